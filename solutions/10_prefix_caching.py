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
# **Prefix caching**, on by default in vLLM, keeps full blocks after their request has ended, for who begins alike. The **hit
# rate**, the share of prompt tokens that were found, is {{hit_rate:.0%}}.
#
# "So we need a twentieth of the cards", says your manager. **What is a hit worth? And how much memory does it take?**
#
# Slots ({{slots_text}}), token budget ({{budget:,}}) and pool ({{pool:,}} blocks) are the engine's own.
#
# ## Predict

# %%
lab.predict("worth")

# %%
lab.predict("pool")

# %% [markdown]
# ## Explore

# %%
lab10.one_system_prompt()

# %% [markdown]
# ### Whose turn?

# %%
lab10.two_manuals()

# %% [markdown]
# ### Chats that come back
#
# Each **turn**'s prompt holds all that was said before. Unused blocks are overwritten in **LRU** order: least recently used first.

# %%
lab10.chats_that_return()

# %% [markdown]
# ## Measure
#
# A small language model answers 24 questions after one conversation, **measured**. Turn caching off: which words change?
# Beside it an H200, **simulated**, and the real vLLM with this model, **recorded**.

# %%
lab10.words_again()

# %% [markdown]
# Its log after them, and after random prompts:

# %%
print(lab10.log_of_vllm())

# %% [markdown]
# The questions found {{live_hits:,}} of {{live_queries:,}} tokens, {{alone_rate:.1%}}. The log mixes the latest {{log_requests:,}} requests. For a time of your own
# divide the differences of `vllm:prefix_cache_hits` and `vllm:prefix_cache_queries`.
#
# ## Explain
#
# Four prompts in turn, in blocks of {{hand_block}} tokens. A, B and C begin with the same {{hand_c}}; D is A with another second token.

# %%
lab10.four_prompts()

# %% [markdown]
# Only full blocks are found. C is all there, but finds {{hand_c_found}}: its last token is computed, since the answer's first word comes
# from it. D finds nothing: a block's **key** is made from its tokens and the key before it. Answers are kept as well:
# without them the chats find {{answers_rate:.0%}}, not {{most_rate:.0%}}.
#
# **To remember**: Amdahl's law. **To look up**: the blocks filled in one pause.
#
# $$ \text{gain} = \frac{1}{1 - h\,\varphi} \qquad
# \text{blocks} = \lambda\,T\,b\,(1 + 2 + \dots + n) + s $$
#
# | symbol | meaning | here |
# |---|---|---|
# | $h$ | hit rate | {{hit_rate:.3f}} |
# | $\varphi$ | prompts' share of the time, without caching | {{share:.3f}} |
# | gain | times the throughput | {{amdahl:.1f}}, simulated {{gain:.1f}} |
# | $\lambda$, $T$ | chats per second, pause [s] | {{chat_rate}}, 60 |
# | $b$, $n$ | blocks of a turn, turns | {{a_turn}}, 5 |
# | $s$ | blocks of the system prompt | {{system_blocks}} |
# | blocks | filled in a pause, on average | {{needed:,.0f}}, simulated {{enough_blocks:,}} |
#
# With answers of {{large_answer:,}} tokens it is {{large_gain:.1f}}, not {{large_amdahl:.1f}}: sharers need only their own blocks. At {{light:g}}
# requests/s the tokens/s stay; mean TTFT falls from {{light_off_ms:.0f}} to {{light_on_ms:.0f}} ms.
#
# Chats that have ended are in the sum: a cache cannot know. Where pauses vary, the first blocks buy most, since some
# return soon.
#
# Of {{moon_requests:,}} conversations of Mooncake's trace an unlimited cache finds {{moon_most:.0%}}, this pool {{moon_card:.1%}}; {{moon_near:.0%}} takes {{moon_tb:.1f}} TB.
#
# ## Exercises
#
# An example:

# %%
print(round(1 / (1 - 6_000 / 8_000 * 0.7), 2))
print(0.5 * 60 * 100 * (1 + 2 + 3 + 4 + 5) + 125)

# %% [markdown]
# **1.** In an hour `queries` rose by {{ex_queries:,}}, `hits` by {{ex_hits:,}}. Without caching prompts took {{ex_share:.0%}} of the time. How many
# times the throughput, saturated?

# %%
gain = None
### BEGIN SOLUTION
gain = 1 / (1 - 320_000 / 400_000 * 0.6)
### END SOLUTION
lab.check("gain", gain)

# %% [markdown]
# **2.** Every {{ex_gap:.0f}} s an agent begins a chat of {{ex_turns}} turns. A turn adds {{ex_a_turn}} blocks, a tool then runs for {{ex_pause}} s; the system prompt has
# {{ex_shared}} blocks. How many blocks are filled in one pause, on average?

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
# 2. What is found is what **others have not overwritten**.
# 3. A hit rate mixes all who asked.

# %%
lab.recap("worth")

# %%
lab.recap("pool")

# %% [markdown]
# **Decide.** The recorded vLLM: `prefix_cache_queries` {{live_queries:,}}, `prefix_cache_hits` {{live_hits:,}}.
#
# Now {{decide_chats}} conversations take turns, one question each: {{decide_history}} tokens of history in a prompt of {{decide_prompt}}, an answer of {{decide_answer}}, blocks of {{decide_block}}.
# Hits fall to 0.
#
# Choose `--num-gpu-blocks-override` (blocks used; it adds no memory), `--max-num-seqs` or `--data-parallel-size`, and the least value that brings them back.

# %%
choice = {"--flag": None}
### BEGIN SOLUTION
# If they came in random order, many would be found with less. If a router looked at prefixes, two replicas would do.
choice = {"--num-gpu-blocks-override": 40 * 10 + 1}
### END SOLUTION
lab.check("decide", choice)

# %%
lab.quiz()
