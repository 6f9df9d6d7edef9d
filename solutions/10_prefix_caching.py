# %% [markdown]
# # Lab 10: Prefix caching

# %%
from course.exercises import Lab
from course.lessons import lab10

lab = Lab("10")

# %% [markdown]
# ## The question

# %%
lab.earlier()

# %% [markdown]
# An assistant on an H200, Llama-3.1-8B. Every prompt begins with the same **system prompt** of 2,000 tokens; 104 follow.
# **Prefix caching**, on by default in vLLM, keeps full blocks after their request has ended. Who begins alike uses them and computes
# the rest. The log shows the **hit rate**, the share of prompt tokens that were found: {{hit_rate:.0%}}.
#
# "A twentieth of the work is left", says your manager, "so we need a twentieth of the cards." **What is a hit worth? And
# how much memory does it take to have one?**
#
# Slots ({{slots_text}}) and token budget ({{budget:,}}) are the engine's own, the pool is that of the whole card: {{pool:,}} blocks.
#
# ## Predict

# %%
lab.predict("worth")

# %%
lab.predict("pool")

# %% [markdown]
# ## Explore
#
# The same requests with prefix caching and without.

# %%
lab10.one_system_prompt()

# %% [markdown]
# ### Whose turn?
#
# Order matters when the cache is small. Cards say which manual a prompt begins with.

# %%
lab10.two_manuals()

# %% [markdown]
# ### Chats that come back
#
# Each **turn**'s prompt holds all that was said before. Blocks that nobody uses are overwritten in **LRU** order: the least recently
# used first.

# %%
lab10.chats_that_return()

# %% [markdown]
# ## Measure
#
# A small language model answers 24 questions after one conversation, **measured**. Turn caching off: which words change?
# The real vLLM was asked the same with this model, **recorded**; beside it, **simulated** on recorded steps of an H200.

# %%
lab10.words_again()

# %% [markdown]
# Its log, right behind those questions, and after random prompts:

# %%
print(lab10.log_of_vllm())

# %% [markdown]
# The questions alone found {{live_hits:,}} of {{live_queries:,}} tokens, {{alone_rate:.1%}}. The log counts the latest 1,000 requests together, those
# before and after too. For a time of your own, take `vllm:prefix_cache_queries` and `vllm:prefix_cache_hits` at both ends, and
# divide the differences.
#
# ## Explain
#
# Four prompts one after the other, in blocks of {{hand_block}} tokens. A, B and C begin with the same 8 tokens; D is A with another second token.

# %%
lab10.four_prompts()

# %% [markdown]
# Only full blocks are found. C is in the cache to its end, but its last token is computed: the first word of the answer
# comes from it. D shares most tokens with A and finds nothing, since a block's **key** is made from its tokens and the key before
# it. Answers are kept as well: without them the chats find {{answers_rate:.0%}}, not {{most_rate:.0%}}.
#
# **To remember**: Amdahl's law. **To look up**: how many blocks are filled in one pause.
#
# $$ \text{gain} = \frac{1}{1 - h\,\varphi} \qquad
# \text{blocks} = \lambda\,T\,b\,(1 + 2 + \dots + n) + s $$
#
# | symbol | meaning | here |
# |---|---|---|
# | $h$ | hit rate | {{hit_rate:.3f}} |
# | $\varphi$ | share of the time that prompts take without caching | {{share:.2f}} |
# | gain | times the throughput, saturated | {{amdahl:.1f}}, simulated {{gain:.1f}} |
# | $\lambda$, $T$ | chats per second, pause [s] | {{chat_rate}}, 60 |
# | $b$, $n$ | blocks that a turn adds, turns | 100, 5 |
# | $s$ | blocks of the system prompt | 125 |
# | blocks | where agents find all | {{needed:,.0f}}, simulated 44,000 to 46,000 |
#
# With answers of 1,000 tokens it is {{large_gain:.1f}} where Amdahl says {{large_amdahl:.1f}}: sharers also need only their own blocks, so more run at once.
# At {{light:g}} requests/s nothing is gained but time: mean TTFT falls from {{light_off_ms:.0f}} to {{light_on_ms:.0f}} ms.
#
# Chats that have ended are in the sum: a cache cannot know that nobody comes back. People's pauses vary, and some
# return soon. Then the first blocks buy most.
#
# In {{moon_requests:,}} conversations published by Mooncake an unlimited cache finds {{moon_most:.0%}}, this card's pool {{moon_card:.1%}}; {{moon_near:.0%}} takes {{moon_tb:.1f}} TB. So engines
# also keep blocks in the host's memory, and routers send who begins alike to the same replica.
#
# ## Exercises
#
# An example: two counters at the ends of an hour; blocks of agents.

# %%
queries, hits = 9_000 - 1_000, 6_500 - 500
print(hits / queries, round(1 / (1 - hits / queries * 0.7), 2))
print(0.5 * 60 * 100 * (1 + 2 + 3 + 4 + 5) + 125)

# %% [markdown]
# **1.** In an hour `queries` rose by {{ex_queries:,}} and `hits` by {{ex_hits:,}}. Without caching prompts took {{ex_share:.0%}} of the time. How many
# times the throughput is caching worth, saturated?

# %%
gain = None
### BEGIN SOLUTION
gain = 1 / (1 - 320_000 / 400_000 * 0.6)
### END SOLUTION
lab.check("gain", gain)

# %% [markdown]
# **2.** Every {{ex_gap:.0f}} s an agent begins a chat of {{ex_turns}} turns. A turn adds {{ex_a_turn}} blocks, a tool then runs for {{ex_pause}} s, and the system prompt has
# {{ex_shared}} blocks. From how many blocks on is all found that can be?

# %%
blocks = None
### BEGIN SOLUTION
blocks = 1 / 5 * 90 * 50 * (1 + 2 + 3 + 4) + 100
### END SOLUTION
lab.check("pool", blocks)

# %% [markdown]
# **3.** Write the look-up. `cached` is a set of keys, `lab10.block_key(before, tokens)` makes one from the key before
# (None for the first block) and a block's tokens. Return how many tokens of the prompt are found.


# %%
def lookup(prompt, cached, block_size):
    """Tokens of the prompt that are in the cache."""
    ### BEGIN SOLUTION
    found, before = 0, None
    while found + block_size < len(prompt):
        before = lab10.block_key(before, prompt[found : found + block_size])
        if before not in cached:
            break
        found += block_size
    return found
    ### END SOLUTION


lab.check("lookup", lookup)

# %% [markdown]
# ## Break it

# %%
lab10.ticket_graphs()

# %%
lab.ticket()

# %% [markdown]
# ## Take away
#
# 1. A hit saves a prompt's time, not an answer's: **Amdahl** says what that is worth.
# 2. What is found is what **others have not overwritten** in the meantime.
# 3. A hit rate mixes all who asked, and rises with preemptions. Look at both counters.

# %%
lab.recap("worth")

# %%
lab.recap("pool")

# %% [markdown]
# **Decide.** The recorded vLLM again ({{live}}): `prefix_cache_queries` {{live_queries:,}}, `prefix_cache_hits` {{live_hits:,}}.
#
# From now on {{decide_chats}} conversations take turns, one question each. All questions about one of them begin with the same {{decide_history}} tokens;
# a prompt has {{decide_prompt}}, an answer {{decide_answer}}, a block {{decide_block}}. The log will show 0%.
#
# Choose `--num-gpu-blocks-override`, `--max-num-seqs` or `--data-parallel-size` (replicas, requests to whichever is free), and the least value that
# brings the hits back.

# %%
choice = {"--flag": None}
### BEGIN SOLUTION
# If they came in random order, many would be found with less. If a router looked at prefixes, two replicas would do.
choice = {"--num-gpu-blocks-override": 40 * 10 + 1}
### END SOLUTION
lab.check("decide", choice)

# %%
lab.quiz()
