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
# **Speculative decoding**: something cheap writes a **draft** of the next tokens, and one step of Llama-3.1-8B on an H200
# computes a row for each, the **verification**. Drafts are **accepted** up to the first that is not the model's own choice, which takes its place.
#
# Alone, a chat was twice as fast. "In a batch the benefit multiplies", say its notes,
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
# Most draft with a small head on the model's last layer (an **EAGLE head**, MTP layers), here modelled: {{head_pass_ms:.1f}} ms
# a pass, {{head_each_us:.1f}} µs a sequence. A 1B model is recorded. **Suffix decoding** looks up what followed the same words before, for nothing.
# Sequences attend to 1,000 tokens.

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
# Our small model answers here, with a draft model of a tenth its size or the longest suffix.

# %%
lab13.with_drafts()

# %% [markdown]
# Over {{answers}} prompts {{accepted_1:.0%}} of the draft model's tokens are accepted with one draft, {{accepted_8:.0%}} with eight; {{steps_0}} steps
# become {{steps_8}}. Of suffixes it is {{seen_none:.0%}}, {{seen_some:.0%}}, {{seen_many:.0%}} with 0, {{some}}, {{many}} answers seen.

# %% tags=["nbval-ignore-output"]
print(lab13.measured_here())

# %% [markdown]
# ## Explain
#
# Four drafts of the head; in each box, the tokens that leave.

# %%
lab13.three_steps()

# %% [markdown]
# Alone, a step that verifies takes {{verify_1:.2f}} ms, not {{plain_1:.2f}}: five rows are computed while the weights come. With {{shared}} sequences
# {{rows_many}} rows take {{verify_many:.1f}} ms, not {{plain_many:.1f}}: reading no longer hides the computing.
# (From {{level_from}} to {{level_to}} plain steps get slower too, and the gain stays.)
#
# **Remember** the tokens of a step; **look up** what they gain.
#
# $$ E = \frac{1 - a^{k+1}}{1 - a} \qquad \text{speed-up} = E \cdot \frac{t_{\text{plain}}}{k\,t_{\text{draft}} + t_{\text{verify}}} $$
#
# | symbol | meaning | here |
# |---|---|---|
# | $k$ | drafts a step, `num_speculative_tokens` | 4 |
# | $a$ | acceptance, if those before were right | {{accept}} |
# | $E$ | tokens of a step | {{tokens:.2f}} |
# | $t_{\text{plain}}$, $t_{\text{verify}}$ | a step without, with drafts [ms] | {{plain_1:.2f}}, {{verify_1:.2f}} alone |
# | $t_{\text{draft}}$ | a pass of the draft [ms] | {{pass_1:.2f}} alone |
# | speed-up | times the tokens/s | {{gain_1:.2f}} alone, {{gain_many:.2f}} with {{shared}} |
#
# Equal words hold in our float32; in bf16 batch and kernels change a rounding.

# %% [markdown]
# ## Exercises
#
# Two drafts, acceptance $0.5$: $1 + 0.5 + 0.5^2 = (1 - 0.5^3) / (1 - 0.5) = 1.75$ tokens a step.
#
# **1.** Three drafts, acceptance {{exercise_accept}}: how many tokens a step?

# %%
tokens = None
### BEGIN SOLUTION
tokens = (1 - 0.8**4) / (1 - 0.8)
### END SOLUTION
lab.check("expected", tokens)

# %% [markdown]
# **2.** Return the speed-up: `plain`, `draft` and `verify` are $t$ in ms.


# %%
def speed_up(plain, draft, verify, k, accept):
    ### BEGIN SOLUTION
    tokens = (1 - accept ** (k + 1)) / (1 - accept)
    return tokens * plain / (k * draft + verify)
    ### END SOLUTION


lab.check("speed_up", speed_up)

# %% [markdown]
# **3.** Now `verify[k - 1]` is the step with `k` drafts. Return the `k` with the most tokens/s, 0 if all lose.


# %%
def how_many(plain, draft, verify, accept):
    ### BEGIN SOLUTION
    gains = [1.0]
    for k, step in enumerate(verify, start=1):
        gains.append(speed_up(plain, draft, step, k, accept))
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
# 2. **Acceptance**, the **draft's time** and the **batch** decide what pays.
# 3. A request's drafts take time from the **others in its step**.

# %%
lab.recap("gain")

# %%
lab.recap("words")

# %% [markdown]
# **Decide.** An engine drafts with the head and `--speculative-config.num_speculative_tokens 4`. Its page:

# %%
print(lab13.page())

# %% [markdown]
# The load stays. Choose flag and number.

# %%
choice = {"--flag": None}
### BEGIN SOLUTION
# Another batch or another acceptance would change my mind; a longer answer would not.
choice = {"--speculative-config.num_speculative_tokens": 1}
### END SOLUTION
lab.check("decide", choice)

# %%
lab.quiz()
