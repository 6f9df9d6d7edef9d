# %% [markdown]
# # Lab 02, deeper: The memory wall

# %%
from course.lessons import lab02

# %% [markdown]
# ## The question
#
# Lab 02 put a step on a roofline and fitted a curve to steps. **How much of that is the card, how much the model, and
# how well do a dozen points know a curve?** This notebook is optional; nothing in it is asked elsewhere.

# %% [markdown]
# ## Two limits, and only one has the card in it
#
# A weight of 2 bytes is read once and makes 2 FLOP for each of $b$ sequences: $b$ FLOP for each byte. A card that
# does $R$ FLOP/s and reads $B$ bytes/s has enough to multiply from $b = R / B$ on. That number is the card's.
#
# K and V of a sequence are read for it alone. They take as long as the weights where $b K = W$, so at $b = W / K$. No
# bandwidth is in that: the other limit is the model's, and the length of its contexts.

# %%
lab02.ridges()

# %% [markdown]
# At {{kv_even:.0f}} sequences a step takes twice as long as for one, on an L4 as on a B200, if the card has the memory: together
# they need {{together_gb:.0f}} GB. All of these cards could multiply for more: for {{ridge_low:.0f}} sequences, or for {{ridge_high:.0f}}. These are data sheets; at
# the rates that were reached on an H100 it is {{ridge:.0f}} there.
#
# ## The floor and the recording

# %%
lab02.floor_and_recording()

# %% [markdown]
# Up to 16 decodes the recorded step is at the floor. That is not as low as it could be: it takes the {{read_tb:.2f}} TB/s of a
# simple read kernel, and the best of ten read patterns reached {{probe_tb:.2f}} on that card, {{probe_more:.0%}} more. From {{beyond}} decodes on the
# products read more slowly, and above 32 other kernels run. Prompts of 256 tokens and more take {{prompt_over_floor:.2f}} times the floor or
# more: it takes the rate of one large product, a layer has smaller ones, and attention of long prompts is slower.
#
# ## Three contexts
#
# The last column is $W / K$.

# %%
lab02.three_contexts()

# %% [markdown]
# The knee of the fit comes before $W / K$, since other things grow with the batch too. With short contexts they are
# most of it, and the knee is far from the limit of K and V.
#
# An alpha near 1 says that each sequence adds as much as the one before. Below 1 they become cheaper, which is seldom
# physics: here it is a curve that bends for a smooth law where the recording has a jump.
#
# ## How well do the points know it?
#
# The band is a straight-line estimate. A check that needs no such line: draw points around the curve, with the spread
# that the fit found, and fit again.

# %%
lab02.two_bands()

# %% [markdown]
# Both agree, so the estimate is good here. Neither would notice that the curve is not of this form: in the lab a band
# from points up to 32 missed the step of 256. The points miss the curve by {{miss:.1%}}, and in a pattern, not by chance. A
# plot of the misses over the batch shows that; an interval does not.
#
# ## Weights in 8 bits
#
# The weights are stored in 8 bits, and multiplied in 16.

# %%
lab02.narrow_weights()

# %% [markdown]
# The gain is for few sequences. It shrinks as K and V take over, and ends where multiplying takes as long as reading
# did: a step of 256 and a prompt of {{gains_nothing}} gain nothing. (With units that multiply in 8 bits they gain as well.) What it
# costs in quality is measured on the model, not on a roofline.
#
# ## Caches
#
# What is small enough to stay in a cache is read faster the second time. Each row reads so many bytes again and
# again, on your machine.

# %% tags=["nbval-ignore-output"]
rates = lab02.read_here()
assert len(rates.rows) == 7  # six sizes
rates

# %% [markdown]
# Where the rate falls, a cache ends. A GPU has such a cliff as well: the L2 cache of an H100 holds {{cache_mb}} MB, and the K
# and V of a single short sequence stay in it when a kernel is timed again and again. So a benchmark that reads a
# small matrix repeatedly measures the cache. In a real step {{weights_gb:.0f}} GB of weights go through it in between, and none of
# them is still there.
#
# The last column counts only the bytes that are used. A CPU reads memory in lines of 64 bytes, 16 numbers, and a GPU
# in sectors of 32: who takes one number of each pays for all of them. So where memory is the limit, the last column
# comes near a sixteenth of the one before. Kernels let neighbouring threads read neighbouring numbers (coalescing),
# and lay K and V out in blocks in which the numbers of a token lie side by side.
#
# ## A smaller model

# %%
lab02.small_model()

# %% [markdown]
# The weights are a sixth, and $t_0$ is a little more: parts of a step do not shrink with the weights. K and V shrink
# to a quarter only, {{small_kv:,}} bytes a token. So the knee comes earlier.
#
# ## Sixteen for the price of one?
#
# In a dense model one read of the weights serves everybody. A mixture of experts reads those experts that its tokens
# chose: {{moe_one:.0f}} of {{moe_experts}} in a layer for one token of Qwen3-30B-A3B, {{moe_many:.0f}} for {{moe_tokens}} tokens, if its router spreads them
# evenly. So {{moe_tokens}} sequences cost {{moe_cost:.1f}} times what one costs, where a dense 8B pays {{dense_cost:.2f}} times.

# %%
lab02.experts()

# %% [markdown]
# This is modelled, on no card. Tokens of one text resemble each other, so that a real batch touches fewer experts.
#
# ## What is often said

# %%
lab02.claims()

# %% [markdown]
# GPU utilisation of a dashboard is the share of time in which some kernel runs. It is {{busy}}% in every row.
# A recorded step is one CUDA graph, whose nodes take that time. Launched one by one, ahead of the card, it took
# {{one_by_one_ms:.2f}} ms. Neither says how long a card waits for an engine that launches from Python without graphs.
#
# **Read next.** Williams, Waterman and Patterson, *Roofline*, CACM 52(4), 2009.
