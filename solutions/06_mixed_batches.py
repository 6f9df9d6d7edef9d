# %% [markdown]
# # Lab 06: Mixed batches

# %%
from course.exercises import Lab
from course.lessons import lab06

lab = Lab("06")

# %% [markdown]
# ## The question

# %%
lab.earlier()

# %% [markdown]
# Llama-3.1-8B answers questions about pages of text on one H200: 16 requests a second, prompts of 1,500 tokens, answers
# of 250 on average. Its steps are **mixed batches**: whoever decodes gets a token, and prompts get what is left of 8,192,
# as in vLLM. Another engine starts **prompts first**: while one waits, a step holds prompts alone. "Then first tokens
# come first. What can it cost?" **Who goes first, prompts or decodes?** (256 slots, of {{engines_slots:,}} by default, suffice.)

# %%
lab06.service_now()

# %% [markdown]
# ## Predict

# %%
lab.predict("price")

# %%
lab.predict("gap")

# %% [markdown]
# ## Explore
#
# ### Be the scheduler

# %%
lab06.whose_turn()

# %% [markdown]
# ### Who goes first
#
# What each step held, around the longest gap: [decodes](#see:decodes) and [tokens of prompts](#see:prompts).

# %%
lab06.who_goes_first()

# %% [markdown]
# ### A share for prompts
#
# A **prefill share** is the part of a step's budget that prompts may take at most; or they run in some of the steps only.
# The dotted line is mixed batches with budgets from 512 to 8,192 tokens.

# %%
lab06.a_share_for_prompts()

# %% [markdown]
# ## Measure
#
# Decodes and a part of a prompt, apart and together: a matrix product, and attention (on a GPU only). **Measured** here, and
# on an H200 **recorded**. Two products take {{product_gain:.2f}} times as long as one, which reads the weights once. In one attention
# kernel some thread blocks compute while others wait for memory: two take {{attention_gain:.2f}} times as long.

# %%
lab06.one_launch_or_two()

# %% [markdown]
# A good place for a break.
#
# ## Explain
#
# {{hand_readers}} people are being read to when two prompts of {{hand_prompt}} tokens come. A step takes 1 ms a token, {{hand_least:.0f}} ms at
# least, and holds {{hand_budget}} tokens.

# %%
lab06.four_by_hand()

# %% [markdown]
# - **Prompts first**: the readers wait for both prompts.
# - **Mixed**: {{hand_left}} tokens are left to prompts. The longest gap is one step; first tokens come later.
#
# To remember: in a mixed batch nobody waits longer than a step, and
#
# $$ \text{prompt tokens} = \min(\text{share} \times \text{budget},\ \text{budget} - \text{decodes}) $$
#
# | symbol | unit | by hand | the service |
# |---|---|---|---|
# | budget | tokens a step | {{hand_budget}} | 8,192 |
# | decodes, mean | tokens a step | {{hand_readers}} | {{decodes:.0f}} |
# | prompt tokens, at most | tokens a step | {{hand_left}} | {{room:,}} |
# | longest gap, mixed | ms | {{hand_gap_mixed:.0f}} | {{gap_mixed_ms:.0f}} |
# | longest gap, prompts first | ms | {{hand_gap_first:.0f}} | {{gap_first_ms:.0f}} |
#
# **SplitFuse** splits long prompts and packs short ones until a step holds its budget.
#
# **Late first tokens, early last ones.** With a budget of 1,024 the mean TTFT is {{few_ttft_ms:.0f}} ms instead of {{mixed_ttft_ms:.0f}}, the mean E2E
# {{few_e2e_s:.2f}} s instead of {{mixed_e2e_s:.2f}}: whoever has begun is stopped for less.
#
# **A rule that fails.** "Prompts below 20% of a step's tokens": beside {{decodes:.0f}} decodes {{rule_tokens:.0f}} tokens, and {{arrive:,}} arrive
# each second.

# %% [markdown]
# ## Exercises
#
# **Worked example.** The budget is 512, 12 decode, prompts of 300 and 400 tokens wait. The first gets 300, the second
# 512 - 12 - 300 = 200.
#
# **1.** The budget is {{fill_budget:,}}, {{fill_decodes}} decode, and prompts of {{fill_prompts}} tokens wait. How many tokens of the third are
# computed?

# %%
answer = None
### BEGIN SOLUTION
answer = 2_048 - 40 - 1_200 - 700
### END SOLUTION

# %%
lab.check("fill_step", answer)

# %% [markdown]
# **2.** What percentage of the tokens that this service computes is of prompts? The first token of an answer takes no decode.

# %%
answer = None
### BEGIN SOLUTION
answer = 100 * 1_500 / (1_500 + 249)
### END SOLUTION

# %%
lab.check("traffic", answer)

# %% [markdown]
# **3.** Write SplitFuse with a share. `decoding` lists requests, `prompts` is {request: tokens left}, oldest first. Prompts get
# `int(share * budget)` together at most. Return {request: tokens in the next step}, without zeros.
# `fill([1, 3], {5: 9, 6: 4, 7: 30}, 40, 0.5)` is {1: 1, 3: 1, 5: 9, 6: 4, 7: 7}.


# %%
def fill(decoding, prompts, budget, share):
    tokens = None
    ### BEGIN SOLUTION
    tokens = dict.fromkeys(decoding, 1)
    room = min(int(share * budget), budget - len(decoding))
    for request, left in prompts.items():
        if room > 0:
            tokens[request], room = min(left, room), room - left
    ### END SOLUTION
    return tokens


# %%
lab.check("fill", fill)

# %%
lab06.at_work(fill)

# %% [markdown]
# ## Break it

# %%
lab06.ticket_graphs()

# %%
lab.ticket()

# %% [markdown]
# ## Take away
#
# 1. Prompts first buys a fifth of the TTFT with gaps of many steps.
# 2. In mixed batches the budget, or a share of it, bounds the gap.
# 3. Prompts in some steps only: later first tokens, same gaps.

# %%
lab.recap("price")

# %%
lab.recap("gap")

# %% [markdown]
# **Decide.** The service runs on SGLang, prompts first; `--chunked-prefill-size` went from 8,192 to 2,048, in
# vain. You promise gaps of {{gap_promised_ms:.0f}} ms at most and a p99 TTFT of {{ttft_promised_ms:.0f}} ms at most, also on days with {{busier:.0%}} more
# requests.

# %%
lab06.engine_log()

# %% [markdown]
# vLLM could take its place. Choose `--chunked-prefill-size` (SGLang's budget), `--max-running-requests` (its slots) or vLLM's
# `--max-num-batched-tokens`.

# %%
decision = None  # {"--flag": value}
### BEGIN SOLUTION
# The same with --enable-mixed-chunk, which makes that engine mix.
decision = {"--max-num-batched-tokens": 2_048}
### END SOLUTION

# %%
lab.check("decision", decision)

# %%
lab.quiz()

# %% [markdown]
# **Read next:** `docs/reading-the-engine.md`, beside vLLM's `v1/core/sched/scheduler.py`.
