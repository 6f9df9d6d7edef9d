# %% [markdown]
# # Lab 13: Speculative batching

# %%
from course.exercises import Lab
from course.lessons import lab13

lab = Lab("13")

# %% [markdown]
# ## The question

# %%
lab.earlier()

# %% [markdown]
# A chat serves Llama-3.1-8B on an H200, and its people want words faster.
# **Speculative decoding** lets something cheap write a **draft** of the next tokens. One step of the model then computes a row for
# each of them, the **verification**. Drafts are **accepted** up to the first that is not the model's own choice; the model's token takes its place.
#
# Alone it was twice as fast. "In a batch the benefit multiplies", say its notes,
# "{{claimed_low}} to {{claimed_high}} times." **When do drafts pay, and for whom?**
#
# ## Predict

# %%
lab.predict("gain")

# %%
lab.predict("words")

# %% [markdown]
# ## Explore
#
# Most deployments draft with a small head on the model's last layer (an **EAGLE head**, or MTP layers), here modelled: {{head_pass_ms:.1f}} ms
# a pass and {{head_each_us:.1f}} µs a sequence. A 1B model is recorded. **Suffix decoding** looks up what followed the same words before, for nothing.
# Every sequence attends to 1,000 tokens.

# %%
lab13.pays_off()

# %% [markdown]
# ### Others in the same step
#
# Requests come at once: 1,000 tokens in, 100 out. The head drafts.

# %%
lab13.shared_steps()

# %% [markdown]
# ## Measure
#
# Our small model and a draft of a tenth its size answer here. Choose the longest suffix to draft without a model.

# %%
lab13.with_drafts()

# %% [markdown]
# Over {{answers}} committed prompts the draft model is accepted to {{accepted_1:.0%}} with one draft and {{accepted_8:.0%}} with eight; {{steps_0}} steps
# become {{steps_8}}. Suffixes reach {{seen_none:.0%}}, {{seen_some:.0%}} and {{seen_many:.0%}} of four drafts with 0, {{some}} and {{many}} answers seen. The time,
# **measured** here:

# %% tags=["nbval-ignore-output"]
lab13.measured_table()

# %% [markdown]
# ## Explain
#
# Three steps with four drafts of the head; in each box, the tokens that leave.

# %%
lab13.three_steps()

# %% [markdown]
# Alone, a step that verifies takes {{verify_1:.2f}} ms instead of {{plain_1:.2f}}: five rows are computed while the weights come. With 64 sequences
# {{rows_64}} rows take {{verify_64:.1f}} ms instead of {{plain_64:.1f}}: the reading no longer hides the computing.
#
# **To remember**: the tokens of a step. **To look up**: what they gain.
#
# $$ E = \frac{1 - a^{k+1}}{1 - a} \qquad \text{speed-up} = E \cdot \frac{t_{\text{plain}}}{k\,t_{\text{draft}} + t_{\text{verify}}} $$
#
# | symbol | meaning | here |
# |---|---|---|
# | $k$ | drafts a step, `num_speculative_tokens` | 4 |
# | $a$ | acceptance: the chance of a draft if those before it were right | {{accept}} |
# | $E$ | tokens a step gives a sequence | {{tokens:.2f}} |
# | $t_{\text{plain}}$, $t_{\text{verify}}$ | a step without and with drafts [ms] | {{plain_1:.2f}}, {{verify_1:.2f}} alone |
# | $t_{\text{draft}}$ | one pass of the draft [ms] | {{pass_1:.2f}}, four {{draft_1:.2f}} |
# | speed-up | times the tokens/s | {{gain_1:.2f}} alone, {{gain_64:.2f}} with 64 |
#
# In the recording each row reads the cache of its sequence. A kernel that reads it once for all would gain
# {{once_64:.2f}} times with 64 (modelled), and pay up to {{once_to}} instead of {{pays_to}}.
# Equal words hold in our float32; in bf16 the batch and the kernels change a rounding.

# %% [markdown]
# ## Exercises
#
# Two drafts, each accepted every second time: the model's token, one draft, both.

# %%
print(1 + 0.5 + 0.5**2, (1 - 0.5**3) / (1 - 0.5))

# %% [markdown]
# **1.** Three drafts a step, each accepted with probability {{exercise_accept}}. How many tokens does a step give?

# %%
tokens = None
### BEGIN SOLUTION
tokens = (1 - 0.8**4) / (1 - 0.8)
### END SOLUTION
lab.check("expected", tokens)

# %% [markdown]
# **2.** A step takes {{step_plain}} ms, a pass of the draft {{step_draft}} ms, and the step that verifies {{step_k}} drafts {{step_verify}} ms. Acceptance is {{step_accept}}. How many times the tokens/s?

# %%
speed_up = None
### BEGIN SOLUTION
speed_up = (1 - 0.8**3) / (1 - 0.8) * 5 / (2 * 0.3 + 6)
### END SOLUTION
lab.check("speed_up", speed_up)

# %% [markdown]
# **3.** How many drafts? `verify[k - 1]` is the step with `k` drafts. Return the number with the most tokens/s, 0 if all lose.


# %%
def how_many(plain, draft, verify, accept):
    """Drafts a step."""
    ### BEGIN SOLUTION
    gains = [1.0]
    for k, step in enumerate(verify, start=1):
        tokens = (1 - accept ** (k + 1)) / (1 - accept)
        gains.append(tokens * plain / (k * draft + step))
    return gains.index(max(gains))
    ### END SOLUTION


lab.check("how_many", how_many)

# %% [markdown]
# ## Break it

# %%
lab13.ticket_graphs()

# %%
lab.ticket()

# %% [markdown]
# ## Take away
#
# 1. A verification is nearly free while the step **waits for memory**.
# 2. What pays depends on **acceptance**, the **time of the draft**, and the **batch**.
# 3. Drafts of one request take time from the **others in its step**.

# %%
lab.recap("gain")

# %%
lab.recap("words")

# %% [markdown]
# **Decide.** An engine drafts with the head and `--speculative-config.num_speculative_tokens 4`. Its page:

# %%
print(lab13.page())

# %% [markdown]
# The load stays. Choose the flag and the number.

# %%
choice = {"--flag": None}
### BEGIN SOLUTION
# Another batch or another acceptance would change my mind; a longer answer would not.
choice = {"--speculative-config.num_speculative_tokens": 1}
### END SOLUTION
lab.check("decide", choice)

# %%
lab.quiz()
