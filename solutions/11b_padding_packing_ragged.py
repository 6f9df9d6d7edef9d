# %% [markdown]
# # Lab 11, deeper: Padding, packing, ragged

# %%
from course.lessons import lab11

# %% [markdown]
# ## The question
#
# Packed prompts lie in one piece, and the blocks of their KV cache lie anywhere. **Does it matter to a card where something lies?** Two
# beliefs about it are tested here: that a batch falls off a cliff once it spills out of the second cache (L2), and that
# scattered pages cost time. This notebook is optional; nothing in it is asked elsewhere.
#
# ## Other prompts of the same spread
#
# Lab 11 shows one draw of 32 prompts. Here are {{draws}} of a spread of 1, which differ by their longest prompt.

# %%
lab11.other_draws()

# %% [markdown]
# The whole step of prompts follows the tokens in each draw that was recorded, attention lies above them, and decodes far below.
#
# ## The cliff behind the second cache
#
# An H200 has its L2 on the chip, in two halves. The same memory is read again and again, ten times in one CUDA
# graph, so that what fits stays there. A launch takes about {{launch_us:.1f}} µs whatever it reads, which hides the cache in the time of a single
# read. The figure shows what one MiB more costs.

# %%
lab11.second_cache()

# %% [markdown]
# Up to {{near_mib}} MiB each further MiB comes at {{near_speed:.1f}} TB/s. Between {{cliff_from}} and {{cliff_to}} MiB it is {{cliff_speed:.1f}}, slower than from memory, since every MiB more pushes out
# one that was there. Far beyond it is the memory's {{far_speed:.1f}}. So there is a cliff, and it is low: a read of {{near_mib}} MiB takes
# {{near_us:.1f}} µs with its launch, one of {{cliff_to}} MiB {{cliff_us:.1f}}.
#
# For a decode step it does not matter at all. Between two reads of the same K and V the step reads all its weights,
# {{weights_gb:.0f}} GB for Llama-3.1-8B, and nothing survives that. What L2 does help is inside one launch: blocks of threads that read the same
# keys at the same time. Choose the largest batch by the step's measured curve, and not by the size of a cache.
#
# ## Scattered pages
#
# K of one head and the tokens of one block is a piece, in KiB:

# %%
print(16 * 128 * 2 / 1024)

# %% [markdown]
# Pieces of a few sizes are copied in order, and at random from a table of up to
# {{table_gib}} GiB. If looking up addresses (TLB) were the limit, random pieces of the largest table would be the slowest.

# %%
lab11.scattered()

# %% [markdown]
# In order and at random differ by {{apart:.1%}} at most, for pieces from {{smallest}} bytes up and tables up to {{table_gib}} GiB. (Pieces of {{smallest}} bytes are
# slow in both orders: most threads of the kernel have nothing to read.) Small pages are no problem of this card's memory. What a
# page-friendly layout must keep is that the bytes of **one piece** lie together, which they do in vLLM's blocks (by default all heads of a token), and lab 09 measured the same
# with attention: scattered blocks cost nothing.
#
# ## Layouts that do matter
#
# | layout | what it keeps together | who needs it |
# |---|---|---|
# | `[block][KV head][token][width]` | the tokens of a head: {{piece_kib}} KiB | attention that gives each head to a block of threads: ours |
# | `[block][token][KV head][width]` | all heads of a token | writing a new token: one piece instead of one a head |
# | rows behind one another, with offsets | all tokens of a step | matrix products, which do not ask whose row it is |
#
# **Read next**
#
# - Dao et al., *FlashAttention*, NeurIPS 2022, arXiv:2205.14135: tiles, and why no score is stored.
# - Krell et al., *Efficient Sequence Packing without Cross-contamination*, arXiv:2107.02027: packing as bin packing, for training.
