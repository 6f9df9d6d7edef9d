# %% [markdown]
# # Lab 02, deeper: The memory wall

# %%
from course.lessons import lab02

# %% [markdown]
# ## The question
#
# Lab 02 put a step on a roofline and fitted a curve to steps. **How much of that is the card, how much the model, and
# what changes with experts?** This notebook is optional; nothing in it is asked elsewhere.

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
# A benchmark that reads a small matrix again and again measures the cache. In a real step {{weights_gb:.0f}} GB of weights go through
# it in between, and none of them is still there.
#
# A recorded step is one CUDA graph. Launched one by one, ahead of the card, its kernels took {{one_by_one_ms:.2f}} ms. Neither says
# how long a card waits for an engine that launches from Python without graphs.
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
# **Read next.** Williams, Waterman and Patterson, *Roofline*, CACM 52(4), 2009.
