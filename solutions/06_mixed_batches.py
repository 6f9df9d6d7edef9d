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
# Llama-3.1-8B answers questions about pages of text on one H200: 16 requests a second, prompts of 1,500 tokens,
# answers of 250 on average, some of 20 and some of 1,000. Each step of the engine is a **mixed batch**: whoever decodes
# gets a token, and prompts get what is left of the 8,192 tokens of a step, as in vLLM. A colleague has read that another
# engine starts **prompts first**: while one waits, a step holds prompts alone. "Then first tokens come first.
# What can it cost?" **Who goes first, prompts or decodes?** (256 slots, of {{engines_slots:,}} by default, suffice.)

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
# The composition of the batch, step by step, around [the longest gap](#see:decodes). Each [prompt](#see:prompts)
# has 1,500 tokens.

# %%
lab06.who_goes_first()

# %% [markdown]
# ### A share for prompts
#
# A **prefill share** is the part of a step's budget that prompts may take at most. Or they run in every second, fourth or
# eighth step only. The dotted line is mixed batches with budgets from 512 to 8,192 tokens.

# %%
lab06.a_share_for_prompts()

# %% [markdown]
# ## Measure
#
# Decodes and a part of a prompt, launched one after the other and together: a product with a model's matrix, and attention
# (on a GPU; NumPy has none for both). Each decode has 1,024 tokens behind it, the prompt {{cached:,}}. **Measured** here, beside
# the same on an H200, **recorded**. Together the weights are read once: at the start, two products take {{product_gain:.2f}}
# times as long as one. In the attention kernel some thread blocks compute the prompt, others wait for the K and V of decodes;
# two launches take {{attention_gain:.2f}} times as long.

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
# - **Prompts first**: the readers wait for both prompts, {{hand_gap_first:.0f}} ms. The mean TTFT is {{hand_mean_first:.0f}} ms.
# - **Mixed**: {{hand_left}} tokens are left to prompts. The longest gap is one step, {{hand_gap_mixed:.0f}} ms; the mean TTFT is
#   {{hand_mean_mixed:.1f}} ms.
# - **Half of a step for prompts**: steps are shorter, and so are gaps.
#
# To remember: in a mixed batch nobody waits longer than a step, and
#
# $$ \text{prompt tokens} = \min(\text{share} \times \text{budget},\ \text{budget} - \text{decodes}) $$
#
# | symbol | unit | by hand | the service |
# |---|---|---|---|
# | budget | tokens a step | {{hand_budget}} | 8,192 |
# | decodes, mean | tokens a step | {{hand_readers}} | {{decodes:.0f}} |
# | share | | 1 | 1 |
# | prompt tokens, at most | tokens a step | {{hand_left}} | {{room:,}} |
# | longest gap, mixed | ms | {{hand_gap_mixed:.0f}} | {{gap_mixed_ms:.0f}} |
# | longest gap, prompts first | ms | {{hand_gap_first:.0f}} | {{gap_first_ms:.0f}} |
#
# **SplitFuse** (DeepSpeed-FastGen) is a mixed batch that splits long prompts and packs short ones until a step holds its
# budget. It does not watch how busy the card is.
#
# **Late first tokens, early last ones.** Mixed with a budget of 1,024, the mean TTFT is {{few_ttft_ms:.0f}} ms instead of {{mixed_ttft_ms:.0f}}, yet
# the mean E2E is {{few_e2e_s:.2f}} s instead of {{mixed_e2e_s:.2f}}: whoever has begun is stopped for less, and ends before others begin.
#
# **A rule of thumb that fails.** "Keep prompts below 20% of a step's tokens": beside {{decodes:.0f}} decodes that is
# {{rule_tokens:.0f}} tokens a step, while {{arrive:,}} arrive each second. "80% of the compute for prompts, 20% of the bandwidth for
# decodes" is no setting either: one step does both.

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
# **2.** What percentage of the tokens that this service computes is of prompts? An answer of 250 tokens takes 249 decodes.

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
            tokens[request] = min(left, room)
            room -= tokens[request]
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
# 2. In a mixed batch the budget, or a share of it, bounds the gap.
# 3. Prompts in some steps only: later first tokens, the same gaps.

# %%
lab.recap("price")

# %%
lab.recap("gap")

# %% [markdown]
# **Decide.** The service runs on the other engine, prompts first, with `--chunked-prefill-size 8192`. You promise gaps of at
# most {{gap_promised_ms:.0f}} ms and a p99 TTFT of at most {{ttft_promised_ms:.0f}} ms, also on days with {{busier:.0%}} more requests.

# %%
lab06.engine_log()

# %% [markdown]
# Choose among `--enable-mixed-chunk` (a switch: `True`), `--chunked-prefill-size` (the budget) and `--max-running-requests`
# (slots).

# %%
decision = None  # {"--flag": value}
### BEGIN SOLUTION
# Ten times as long prompts, or a service in which nobody reads along, would change it.
decision = {"--enable-mixed-chunk": True, "--chunked-prefill-size": 2_048}
### END SOLUTION

# %%
lab.check("decision", decision)

# %%
lab.quiz()

# %% [markdown]
# **Read next:** `docs/reading-the-engine.md` of this course, one step of its engine in nine points, beside vLLM's own scheduler
# (`vllm/v1/core/sched/scheduler.py`, `schedule`): both serve those that run first, then those that wait.
