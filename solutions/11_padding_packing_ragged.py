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
# A batch in one array needs **padding**: each prompt becomes as long as the longest. Some servers sort prompts into **buckets** of a length first. Engines such
# as vLLM put all behind one another and keep where each begins, the **offsets**: a **ragged batch**.
#
# 32 prompts for Llama-3.1-8B have 256 tokens on average, together the 8,192 of a vLLM step. **What does the square shape cost?**
#
# ## Predict

# %%
lab.predict("padding")

# %%
lab.predict("step")

# %% [markdown]
# ## Explore
#
# Orange are prompts, [grey is padding](#see:padding). Halved edges: each bucket is half as wide as the next. One draw is shown.

# %%
lab11.one_batch()

# %% [markdown]
# ### The same on a card
#
# Attention of one layer, and whole steps; four halved buckets.

# %%
lab11.on_the_card()

# %% [markdown]
# ## Measure
#
# Each move launches every layout here, five times or more: the median. A GPU runs the recorded kernel. A CPU computes one head
# in NumPy, with prompts an eighth as long; packed is 32 calls.

# %%
lab11.launched_here()

# %% [markdown]
# ## Explain

# %%
lab11.three_by_hand()

# %% [markdown]
# Of the 32 the longest is {{times:.1f}} times the mean, and so are the tokens. The step takes {{step_times:.2f}} times as long: products treat every row
# alike, and attention is {{attention_share:.1%}} of the FLOPs. In {{draws}} draws both agree within {{draws_apart:.0%}}.
#
# **To remember**: the tokens. **To look up**: the pairs of attention.
#
# $$ r = \frac{L_{\max}}{\bar L} \qquad r_{\text{pairs}} \approx \frac{r^2}{1 + c^2} $$
#
# | symbol | meaning | here |
# |---|---|---|
# | $L_{\max}$, $\bar L$ | longest and mean prompt [tokens] | {{longest:,}}, 256 |
# | $c$ | spread of these lengths, standard deviation over mean | {{cv:.2f}} |
# | $r$ | tokens computed, times the prompts' own | {{times:.2f}} |
# | $r_{\text{pairs}}$ | the same of pairs | {{square_law:.1f}}; counted {{pairs_times:.1f}}; time {{attention_times:.1f}} |
#
# **Masks.** An **attention mask** hides padding after it was computed. Packed with a mask over all pairs, {{mask_times:.0f}} times the pairs are
# computed; stored they are {{scores_gb:.1f}} GB a layer. **Tiled attention** keeps a tile of scores in the chip, and with offsets opens no tile
# between two prompts.
#
# **Decodes** mostly read weights ({{many_packed_ms:.1f}} ms a step). A rectangle of contexts takes {{many_times:.2f}} times as long, four buckets {{many_buckets:.1f}} times: each reads them
# again. Engines bucket rows there: a batch of 70 runs in the CUDA graph of the next **capture size**.
#
# **Packed is not free.** One long prompt keeps a few multiprocessors busy after the others: attention of decodes takes {{imbalance:.2f}} times as long for the
# same bytes ({{imbalance_long:.2f}} at 1,024 tokens).
#
# ## Exercises
#
# Two prompts, {{hand}} tokens. The rectangle computes two of the longest:

# %%
print(round(1 - (100 + 300) / (2 * 300), 2))

# %% [markdown]
# **1.** {{waste_lengths}} tokens. What share of the rectangle is padding?

# %%
share = None
### BEGIN SOLUTION
share = 1 - (120 + 400 + 680) / (3 * 680)
### END SOLUTION
lab.check("waste", share)

# %% [markdown]
# **2.** Two buckets: prompts up to the smaller edge are padded to it, others to the longest. Of {{edge_lengths}} tokens an edge at {{edge_best}} makes {{edge_tokens:,}}, at 100
# {{edge_long:,}}. Return the best two edges; of equal ones the smallest.


# %%
def two_edges(lengths):
    """[edge, longest]"""
    ### BEGIN SOLUTION
    longest, found = max(lengths), []
    for edge in set(lengths):
        tokens = sum(edge if length <= edge else longest for length in lengths)
        found.append((tokens, edge))
    return [min(found)[1], longest]
    ### END SOLUTION


lab.check("edges", two_edges)

# %% [markdown]
# **3.** Requests are lists of tokens, some empty. Return all tokens behind one another, and the offsets: `[[5, 6], [7]]` gives
# `[5, 6, 7]` and `[0, 2, 3]` (vLLM's `query_start_loc`).


# %%
def pack(requests):
    """(tokens, offsets)"""
    ### BEGIN SOLUTION
    tokens, offsets = [], [0]
    for request in requests:
        tokens.extend(request)
        offsets.append(len(tokens))
    return tokens, offsets
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
# 1. A rectangle computes the **longest over the mean** times the tokens, and takes as much longer.
# 2. **Buckets** save most of it for prompts. For decodes they read weights again.
# 3. A **ragged batch** needs neither padding nor a mask.

# %%
lab.recap("padding")

# %%
lab.recap("step")

# %% [markdown]
# **Decide.** An evaluation keeps some hundred requests in flight. To start sooner, somebody shortened the list of capture sizes (by default
# every 8 up to 256):

# %%
print(lab11.log())

# %% [markdown]
# The load stays. Change one thing, a flag or **one more size**, for the most tokens/s.

# %%
choice = {"--flag": None}
### BEGIN SOLUTION
# Another number of requests in flight would change my mind; longer contexts would not.
choice = {"--cudagraph-capture-sizes": 120}
### END SOLUTION
lab.check("decide", choice)

# %%
lab.quiz()
