# %% [markdown]
# # Lab 11: Padding, packing, ragged

# %%
from course.exercises import Lab
from course.lessons import lab11

lab = Lab("11")

# %% [markdown]
# ## The question

# %%
lab.earlier()

# %% [markdown]
# A batch in one array needs **padding**: each prompt becomes as long as the longest. Some servers sort prompts into **buckets** first. Engines such
# as vLLM put all behind one another and keep where each begins, the **offsets**: a **ragged batch**.
#
# 32 prompts for Llama-3.1-8B have 256 tokens on average: a vLLM step of {{total:,}}. **What does the square shape cost?**
#
# ## Predict

# %%
lab.predict("padding")

# %%
lab.predict("step")

# %% [markdown]
# ## Explore
#
# Orange are prompts, [grey is padding](#see:padding). Halved edges: half of the next.

# %%
lab11.one_batch()

# %% [markdown]
# Attention of one layer, and whole steps; halved buckets.

# %%
lab11.on_the_card()

# %% [markdown]
# ## Measure
#
# Each move launches every layout here. A GPU runs the recorded kernel. A CPU computes one head
# in NumPy, with prompts an eighth as long; packed is 32 calls.

# %%
lab11.launched_here()

# %% [markdown]
# ## Explain

# %%
lab11.three_by_hand()

# %% [markdown]
# At a spread of 1 the longest is {{times:.1f}} times the mean, and so are the tokens. The step takes {{step_times:.2f}} times as long: attention is
# {{attention_share:.1%}} of the FLOPs.
#
# **To remember**: the tokens. **To look up**: the pairs that attend.
#
# $$ r = \frac{L_{\max}}{\bar L} \qquad r_{\text{pairs}} \approx \frac{r^2}{1 + c^2} $$
#
# | symbol | meaning | here |
# |---|---|---|
# | $L_{\max}$, $\bar L$ | longest, mean prompt [tokens] | {{longest:,}}, 256 |
# | $c$ | standard deviation over mean | {{cv:.2f}}, drawn with 1 |
# | $r$ | tokens, times ragged | {{times:.2f}} |
# | $r_{\text{pairs}}$ | pairs, times ragged | {{square_law:.1f}}, counted {{pairs_times:.1f}}, time {{attention_times:.1f}}, {{attention_long:.0f}} at {{longer:,}} |
#
# **Masks.** An **attention mask** hides padding that was computed. A ragged batch with a mask over all pairs has {{mask_times:.0f}} times the pairs, and
# {{scores_gb:.1f}} GB of scores a layer if stored. **Tiled attention** keeps a tile of scores in the chip, and with offsets opens none
# between two prompts.
#
# **Decodes** mostly read weights. Four buckets take {{many_buckets:.1f}} times packed ({{many_packed_ms:.1f}} ms), since each reads them, a rectangle {{many_times:.2f}}. Engines bucket
# rows: decodes run in the CUDA graph of the next **capture size**.
#
# **Packed is not free.** A long context keeps a few multiprocessors busy after the others: attention of decodes takes {{imbalance:.2f}} times as long for the
# same bytes, {{imbalance_long:.2f}} at {{longer:,}}.
#
# ## Exercises
#
# Two prompts, {{hand}} tokens: `1 - 400 / 600` is padding.
#
# **1.** {{waste_lengths}} tokens. What share of the rectangle is padding?

# %%
share = None
### BEGIN SOLUTION
share = 1 - (120 + 400 + 680) / (3 * 680)
### END SOLUTION
lab.check("waste", share)

# %% [markdown]
# **2.** Two buckets, padded to an edge and to the longest, both multiples of `step`. Return the edges that compute the fewest tokens, the smallest of
# equal ones.


# %%
def two_edges(lengths, step):
    """[edge, longest]"""
    ### BEGIN SOLUTION
    longest = -(-max(lengths) // step) * step

    def tokens(edge):
        return sum(edge if length <= edge else longest for length in lengths)

    return [min(range(step, longest + 1, step), key=tokens), longest]
    ### END SOLUTION


lab.check("edges", two_edges)

# %% [markdown]
# **3.** A step has some decodes, a row each, and behind them prompts, some of 0 tokens. Return the offsets: `pack(1, [3, 2])` is
# `[0, 1, 4, 6]` (vLLM's `query_start_loc`).


# %%
def pack(decodes, prompts):
    """Offsets."""
    ### BEGIN SOLUTION
    offsets = [0]
    for tokens in [1] * decodes + list(prompts):
        offsets.append(offsets[-1] + tokens)
    return offsets
    ### END SOLUTION


lab.check("pack", pack)

# %% [markdown]
# ## Break it

# %%
lab11.ticket_graphs()

# %%
lab.ticket()

# %% [markdown]
# ## Take away
#
# 1. A rectangle takes the **longest over the mean** times as long.
# 2. **Buckets** save most of it for prompts, and lose for decodes.
# 3. A **ragged batch** needs neither padding nor a mask.

# %%
lab.recap("padding")

# %%
lab.recap("step")

# %% [markdown]
# **Decide.** Some hundred requests stay in flight. Somebody shortened the list of capture sizes (by default every 8 up to 256):

# %%
print(lab11.log())

# %% [markdown]
# Change a flag, or list **all sizes and one more**, for the most tokens/s.

# %%
choice = {"--flag": None}
### BEGIN SOLUTION
# Another number of requests in flight would change my mind; longer contexts would not.
choice = {"--cudagraph-capture-sizes": [1, 2, 4, 8, 16, 32, 64, 120, 256]}
### END SOLUTION
lab.check("decide", choice)

# %%
lab.quiz()
