# %% [markdown]
# # Lab 15, deeper: An SLO-driven policy

# %%
from course.lessons import lab15

# %% [markdown]
# ## The question
#
# In lab 15 a short step and an order together kept most promises. **Does a policy that looks at the load find the short step by
# itself, which order is the best, and who gains when the hopeless are rejected?** This notebook is optional; nothing in it is
# asked elsewhere. Everywhere it is the storm of the lab: {{rate}} requests a second, in bursts.
#
# ## A policy by load
#
# The notes' load is the share of the slots that are taken. Below {{deep_low}} of them a step has 512 tokens, below {{deep_high}} it has
# {{deep_middle:,}}, and then {{deep_most:,}}: "high load, larger batch".

# %%
lab15.by_load()

# %% [markdown]
# With 1,024 slots no more than {{deep_running}} requests ever run. The load stays below {{deep_low}}, and the policy **is** a budget of 512: all times
# are equal to the last digit. It looks at nothing that matters here.
#
# With 256 slots a burst takes all of them. Now the policy reacts, and the wrong way: steps are longest while most streams share
# them, and {{deep_few_share:.0%}} are kept where its own smallest budget keeps {{flag_share:.0%}}. A long step computes a few more tokens a second, and every
# stream in it waits for its end.
#
# ## Which order?
#
# With short steps requests wait in front, so that an order can act. Earliest deadline first is what a textbook takes.

# %%
lab15.two_orders()

# %% [markdown]
# It helps: {{deep_urgent_least:.0%}} to {{deep_urgent_most:.0%}} with the step target, where the order of arrival keeps {{deep_target_least:.0%}} to {{deep_target_most:.0%}}. But in a burst
# whoever is due first is late already, or nearly: it is served first all the same, and whoever could have been in time comes
# behind. Hopeless last keeps {{least_share:.0%}} to {{most_share:.0%}}. (Earliest deadline first is optimal while all deadlines **can** be met.) The
# price stands in the last column: the hopeless wait up to {{deep_last_longest:.0f}} s, not {{deep_urgent_longest:.0f}}.
#
# ## Rejecting
#
# Nobody is rejected so far: the hopeless are answered, late. A policy can also send them away at once, with
# `Schedule(reject=...)`.

# %%
lab15.rejected()

# %% [markdown]
# {{deep_rejected}} of {{deep_all:,}} are rejected, and as many promises are kept as before: the hopeless took only what nobody else wanted. Rejecting
# saves {{deep_saved:.0%}} of the tokens, and its users know at once and can ask elsewhere. If all of them come again in the same burst,
# nothing is saved.
#
# ## A quarter of the slots

# %%
lab15.few_slots()

# %% [markdown]
# With 256 slots a part of the queue stands in front of the slots, and streams are faster: {{deep_few_tpot_ms:.0f}} ms, not {{deep_many_tpot_ms:.0f}}. That is still far
# from {{promised_ms:.0f}} ms, so an order alone keeps hardly more. With a short step slots are never the limit, and nothing changes.
#
# ## Stretch: a step target
#
# Before each step the engine asks how many prompt tokens may run beside the decodes. `seconds(tokens)` is the time of a step with so
# many. Return the most, a multiple of {{deep_grain}} up to `most`, with which the step is within `target` seconds; and {{deep_grain}} if none is. It is
# called some thousand times, so try small numbers first.


# %%
def largest(seconds, target, most):
    tokens = None
    ### BEGIN SOLUTION
    tokens = 64
    while tokens + 64 <= most and seconds(tokens + 64) <= target:
        tokens += 64
    ### END SOLUTION
    return tokens


# %%
lab15.your_step_target(largest)

# %% [markdown]
# Two limits of it. The time is asked for one prompt, and a step may have several; and the function knows the step time, which an engine would have
# to measure. The flag that exists, `--max-num-batched-tokens 512`, is this with one answer for all steps.
