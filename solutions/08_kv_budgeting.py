# %% [markdown]
# # Lab 08: KV budgeting

# %%
import numpy as np
from course.exercises import Lab
from course.lessons import lab08

lab = Lab("08")

# %% [markdown]
# ## The question

# %%
lab.earlier()

# %% [markdown]
# You put Llama-3.1-8B on an RTX 4090 for a team of forty. Prompts have 1,024 tokens, answers 512 on average, CV 1. For
# each token every layer keeps a key (K) and a value (V): the **KV cache**. The
# engine allocates it as one **KV pool** of **blocks** of 16 tokens. Its log says (written from the {{blocks:,}} blocks that {{log_of}}
# printed on such a card):

# %%
print(lab08.start_up_log())

# %% [markdown]
# "Five users", says your manager, "so we need eight cards." **How many requests can one card really work on, and what
# do people see when one more comes?**
#
# ## Predict

# %%
lab.predict("fit")

# %%
lab.predict("slots")

# %% [markdown]
# ## Explore
#
# A card's **ledger** goes from its memory to the pool. Its pool is {{ledger_less:.0%}} below
# the engine's.

# %%
lab08.what_fits()

# %% [markdown]
# ### A pool that is too small
#
# That is a **preemption**; engines preempt the sequence admitted last.

# %%
lab08.a_small_pool()

# %%
lab08.full_pool()

# %% [markdown]
# ## Measure
#
# A small language model tells four stories, in blocks of {{story_block}} tokens, **measured**. Who is preempted, and do the words
# change? Beside it: **simulated** on recorded steps of an H100.

# %%
lab08.words_again()

# %% [markdown]
# vLLM with this model, {{live_slots}} slots and {{live_blocks}} blocks of {{live_block}} tokens. **It keeps one block for itself**: it logs {{live_tokens:,}} tokens,
# requests get {{live_usable}}. Its page around {{live_requests}} requests that outgrow them:

# %%
print(lab08.preempted_page())

# %% [markdown]
# ## Explain
#
# A pool of {{hand_blocks}} blocks of {{hand_block}} tokens; four requests with a prompt of {{hand_prompt}} tokens and an answer of {{hand_answer}}.

# %%
lab08.four_requests()

# %% [markdown]
# In the sixth step each needs a fourth block, so the engine preempts [D](#see:d), admitted last.
#
# $$ k = 2 \cdot n_{\text{layers}} \cdot n_{\text{KV heads}} \cdot d_{\text{head}} \cdot s \qquad
# \text{residents} = \frac{\text{tokens in the pool}}{P + N\,(1 + CV^2)/2} $$
#
# | symbol | meaning | here | where to find it |
# |---|---|---|---|
# | $k$ | bytes a token | {{a_token:,}} | |
# | $n_{\text{layers}}$ | layers | 32 | `num_hidden_layers` |
# | $n_{\text{KV heads}}$ | KV heads | 8 | `num_key_value_heads` |
# | $d_{\text{head}}$ | elements of a head | 128 | `head_dim` |
# | $s$ | bytes of an element | 2 | `--kv-cache-dtype` |
# | $P$, $N$, $CV$ | prompt, mean answer [tokens], its spread | 1,024, 512, 1 | your traffic |
# | residents | requests at once | {{residents:.0f}}, simulated {{in_batch:.1f}} | |
#
# Multi-head attention (**MHA**) has a KV head for each query head, grouped-query attention (**GQA**) one for several. fp8 K and V halve $k$. fp8 weights leave $k$ alone and make room for a larger pool.
#
# A sequence holds half of its own answer on average. But long answers stay longer, so the batch holds more of them:
# with a CV of 1, a whole mean answer each. The printed **concurrency** divides by `max_model_len` instead: how many fit
# if all grow to the limit.
#
# **Prefix caching**, on by default in vLLM, holds equal beginnings once: with a system prompt of 512 tokens
# {{with_prefixes:.0f}} would fit. Here no two prompts are alike.

# %% [markdown]
# ## Exercises
#
# An example: bytes a token and requests at once; mean and standard deviation of a sequence's blocks.

# %%
blocks = np.ceil(lab08.tokens_held() / 16)
print(2 * 32 * 8 * 128 * 2, round(41_408 / (1_024 + 512 * (1 + 1**2) / 2)))
print(blocks.mean().round(1), blocks.std().round(1))

# %% [markdown]
# **1.** Qwen2.5-7B has {{qwen_layers}} layers, {{qwen_heads}} query heads, 4 KV heads of 128 elements, and 16 bits an element. Bytes a token?

# %%
qwen_token = None
### BEGIN SOLUTION
qwen_token = 2 * 28 * 4 * 128 * 2
### END SOLUTION
lab.check("token", qwen_token)

# %% [markdown]
# **2.** The same bytes hold K and V in fp8 now. Prompts have {{once_prompt:,}} tokens, answers {{once_answer}}, CV 1. How many run at once, on
# average?

# %%
residents = None
### BEGIN SOLUTION
residents = 2 * 41_408 / (3_000 + 800)
### END SOLUTION
lab.check("residents", residents)

# %% [markdown]
# **3.** Slots that fit *on average* are too many half of the time. Return the most slots n, at least one, with $n\,\mu + 2\sqrt{n}\,\sigma \le \text{num\_blocks}$, where $\mu$ and $\sigma$ are mean and standard deviation
# (`np.std`) of a sequence's blocks. `tokens` has the lengths of many sequences.


# %%
def slots(num_blocks, block_size, tokens):
    """The most slots with two standard deviations to spare."""
    ### BEGIN SOLUTION
    blocks = np.ceil(np.asarray(tokens) / block_size)
    n = 1
    while (n + 1) * blocks.mean() + 2 * (n + 1) ** 0.5 * blocks.std() <= num_blocks:
        n += 1
    return n
    ### END SOLUTION


lab.check("slots", slots)

# %% [markdown]
# ## Break it

# %%
lab08.ticket_graphs()

# %%
lab.ticket()

# %% [markdown]
# ## Take away
#
# 1. Bytes a token come from the **config**; the pool is what the **ledger** leaves.
# 2. The printed concurrency is a worst case: {{residents:.0f}} fit on average, not {{by_limit}}.
# 3. Past the limit requests are **preempted**. Watch the counter; set fewer slots.

# %%
lab.recap("fit")

# %%
lab.recap("slots")

# %% [markdown]
# **Decide.** Of another log ({{live}}; {{live_slots}} slots, {{decide_blocks}} blocks of {{live_block}} tokens):

# %%
print(lab08.log_of_four_slots())

# %% [markdown]
# From now on every prompt has {{decide_prompt}} tokens and every answer {{decide_answer}}.
#
# Choose `--max-num-seqs`, `--max-model-len` or `--gpu-memory-utilization`, and the largest value with which nobody can be
# preempted.

# %%
choice = {"--flag": None}
### BEGIN SOLUTION
# Longer answers would change my mind: they change what a request holds at its end. A longer queue or more users do not.
choice = {"--max-num-seqs": (170 - 1) // 5}
### END SOLUTION
lab.check("decide", choice)

# %%
lab.quiz()
