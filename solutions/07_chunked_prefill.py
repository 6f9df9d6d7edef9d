# %% [markdown]
# # Lab 07: Chunked prefill

# %%
from math import ceil

from course.exercises import Lab
from course.lessons import lab07
from course.lessons.lab07.long_prompt import STEP
from course.steptime import Step

lab = Lab("07")

# %% [markdown]
# ## The question
#
# Two questions from earlier labs first.

# %%
lab.earlier()

# %% [markdown]
# A chat assistant streams its answers: Llama-3.1-8B on one H100, with continuous batching and 64 slots. Eight chats
# arrive each second, with 200 tokens in and about 300 out. Some weeks ago a customer began to paste whole contracts:
# a prompt of 32,768 tokens, once in 20 seconds. To answer them sooner, somebody raised the **token budget**, the most
# tokens that one step may compute, from 8,192 (the default of vLLM 0.19 on this card) to 65,536. Now any prompt runs in
# one step. And people complain that **the text stops for nearly two seconds, in the middle of a sentence**. The p99 of
# the gaps on the dashboard is 10 ms, as before. What do you set?

# %%
lab07.people_and_dashboard()

# %% [markdown]
# - **ITL**, inter-token latency: the gap between two tokens of one answer.
# - **Stall**: a gap that a reader notices, here one above 100 ms.
# - **Chunk**: the part of a prompt that one step computes. A prompt that does not fit the budget runs in chunks.

# %% [markdown]
# ## Predict

# %%
lab.predict("p99")

# %%
lab.predict("newcomers")

# %% [markdown]
# ## Explore
#
# ### One long prompt, step by step
#
# At time 0 a long prompt arrives among chats that stream, and just after it three short ones. Each tick is a token. The
# **cap for one prompt** is the most tokens that one request may take in a step.

# %%
lab07.one_long_prompt()

# %% [markdown]
# ### What a percentile hides
#
# Now 1,600 chats. The same gaps are counted twice: how many tokens came after a gap longer than that, and how many
# chats had one in their answer. A p99 is where a line crosses 1%.

# %%
lab07.what_a_percentile_hides()

# %% [markdown]
# ## Measure
#
# The slider launches: on your device, each step of a prompt of 8,192 tokens is one launch of a toy kernel, and is
# **measured**. Above it stand the steps of the whole model for 32,768 tokens beside 32 chats, **recorded** on an H100.
# The work differs, so each has its own clock. Halve the chunk from 8,192 on: down to which size do steps get half as
# long? The recorded steps grow along the prompt, since each chunk attends to all before it. The toy has no attention.

# %%
lab07.launched_in_chunks()

# %% [markdown]
# This is the middle of the lab, and a good place for a break.
#
# ## Explain
#
# Four requests: chats A and B stream, a long prompt of 12 tokens arrives, and 1 ms later a new chat with 2 tokens. Say
# that a step takes 1 ms for each of its tokens, but at least 4 ms, to read the weights.

# %%
lab07.four_by_hand()

# %% [markdown]
# - In one step, the prompt stops A and B for 14 ms. Everybody waits because the one in front takes long: **head-of-line
#   blocking**.
# - With a budget of 6, A and B take 2 tokens of each step and leave 4: three chunks. The longest gap is 6 ms. But the
#   new chat waits for the last chunk, since the prompt takes all that is left.
# - With a cap of 2 as well, the new chat fits in beside it. The long prompt pays.
#
# **To remember:** decodes first, then
#
# $$ \text{chunk} = \min(\text{cap},\ \text{budget} - \text{decodes}), \qquad
# \text{steps} = \lceil \text{prompt} / \text{chunk} \rceil $$
#
# | symbol | unit | by hand | first explorer |
# |---|---|---|---|
# | budget | tokens a step | 6 | 512 |
# | decodes | chats that stream, a token each | 2 | 12 |
# | chunk | tokens a step | 4 | 500 |
# | prompt | tokens | 12 | 32,768 |
# | steps | | 3 | 66, as simulated |
#
# **To look up:** what a step with a chunk of $c$ tokens costs in theory, beside $b$ decodes and behind $k$ tokens:
#
# $$ t = t_0 + \max(t_W,\ p\,(b + c)) + q\,c\,(k + c/2) $$
#
# | symbol | meaning | here |
# |---|---|---|
# | $t_0$ | launching the kernels | 0.28 ms |
# | $t_W$ | reading the weights | 4.97 ms |
# | $p$ | matrix products of one token | 17.9 µs |
# | $q$ | one token attends to one token | 0.67 ns |
# | $t$ | last full chunk of 500, beside 12 decodes | 20 ms; recorded 55 ms |
#
# The products of some 280 tokens take as long as reading the weights. A smaller step costs the same and computes less.
# The last term is attention, which grows along the prompt. Attention on the recorded card is slower than in theory: time
# your own card before you choose.
#
# **Why the p99 gets worse.** Chats stream for 1.8 s, so by Little's law 15 of them are caught by a long prompt. One
# step of 1.7 s makes 15 long gaps among the 48,000 tokens of 20 s: 0.03%, which no p99 sees. Its 64 chunks make 64 times
# as many gaps, 2%, and now the p99 is a step with a chunk. So count people: the longest gap of each request.

# %% [markdown]
# ## Exercises
#
# **Worked example.** 12 chats stream, and the budget is 512. A chunk has 512 - 12 = 500 tokens, so a prompt of 2,000
# tokens runs in 2,000 / 500 = 4 steps.
#
# **1.** Complete it: 32 chats stream, and a prompt of 10,000 tokens comes. In how many steps does it run?

# %%
chunk = 512 - 32
answer = None
### BEGIN SOLUTION
answer = ceil(10_000 / chunk)
### END SOLUTION

# %%
lab.check("steps", answer)

# %% [markdown]
# **2.** The recorded milliseconds of a step: 32 decodes with 700 tokens each, and the last 512 tokens of a prompt.

# %%
last = Step(32, 32 * 700, ((512, 32_768 - 512),))
round(STEP(last) * 1e3, 1)

# %% [markdown]
# Change it: return the largest chunk, a multiple of 64, with which the last step takes at most `limit` seconds. Take
# the last chunk as a full one. There are `decodes` chats with `context` tokens each.


# %%
def largest_chunk(step_time, prompt, decodes, context, limit):
    best = None
    ### BEGIN SOLUTION
    for chunk in range(64, prompt + 1, 64):
        last = Step(decodes, decodes * context, ((chunk, prompt - chunk),))
        if step_time(last) <= limit:
            best = chunk
    ### END SOLUTION
    return best


# %%
lab.check("chunk", largest_chunk)

# %% [markdown]
# **3.** A stretch: write the rule. `decoding` lists the requests that decode. `prompts` is {request: tokens of its
# prompt that are left}, in the order in which they came. Return {request: tokens in the next step}, without those who
# get nothing. For `share([1, 3], {5: 40, 6: 7, 7: 30}, budget=12, cap=5)` that is {1: 1, 3: 1, 5: 5, 6: 5}.


# %%
def share(decoding, prompts, budget, cap):
    tokens = None
    ### BEGIN SOLUTION
    tokens = dict.fromkeys(decoding, 1)
    for request, left in prompts.items():
        chunk = min(left, cap, budget - sum(tokens.values()))
        if chunk > 0:
            tokens[request] = chunk
    ### END SOLUTION
    return tokens


# %%
lab.check("share", share)

# %% [markdown]
# Your rule at work, with a budget of 2,048 and a cap of 512:

# %%
lab07.at_work(share)

# %% [markdown]
# ## Break it
#
# A ticket from another service with the same model and card, and its graphs.

# %%
lab07.ticket_graphs()

# %%
lab.ticket()

# %% [markdown]
# ## Take away
#
# 1. Everybody in a step waits for all of it, so the budget bounds the longest gap.
# 2. The budget protects those who stream, and the cap those who come. The long prompt pays for both.
# 3. A p99 over tokens does not show a stall. Watch the longest gap of each request.

# %%
lab.recap("p99")

# %%
lab.recap("newcomers")

# %% [markdown]
# **Decide.** The chat of this lab is back at the default budget of 8,192. You promise that no gap is above 100 ms, and
# that the p99 of a new chat's TTFT is below 120 ms. This is what the engine reports; a bucket counts all values up to
# `le` seconds.

# %%
lab07.metrics_page()

# %% [markdown]
# Choose one flag: `--max-num-batched-tokens` (the budget), `--long-prefill-token-threshold` (the cap) or
# `--max-num-seqs` (slots). Give the largest of 256, 512 and 1,024 that keeps both promises; the second explorer shows
# them. What in the page would change your mind?

# %%
decision = None  # {"--flag": value}
### BEGIN SOLUTION
# If requests waited while all slots were taken, I would look at the slots first.
decision = {"--long-prefill-token-threshold": 512}
### END SOLUTION

# %%
lab.check("decision", decision)

# %%
lab.quiz()

# %% [markdown]
# **Read next:** Agrawal et al., *Sarathi-Serve*, OSDI 2024, arXiv:2403.02310, on how to choose the budget. The optional
# notebook of this lab goes on: theory beside the recording, what chunks cost, other engines, and what is often said.
