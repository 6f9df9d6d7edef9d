# %% [markdown]
# # Lab 01, deeper: The first token

# %%
from course.lessons import lab01

# %% [markdown]
# ## The question
#
# Lab 01 gave a formula for the window, and said that a p99 is one of many draws. **Where does the formula come from,
# what are the parts of a TTFT in vLLM, and how far can one trust a percentile?** This notebook is optional; nothing in it
# is asked elsewhere.

# %% [markdown]
# ## The window
#
# A window of $D$ seconds opens when a request comes and none is open. While it is open, $\lambda D$ more come on
# average, for Poisson arrivals of rate $\lambda$. So a window holds $1 + \lambda D$ requests. The first waits $D$. The
# others come at moments spread evenly over the window, and wait $D / 2$ on average. All of them together wait
# $D + \lambda D \cdot D / 2$ seconds, so each waits on average
#
# $$\text{window} = D \, \frac{1 + \lambda D / 2}{1 + \lambda D}$$
#
# At a low rate that is $D$, and at a high one $D / 2$.

# %%
lab01.windows()

# %% [markdown]
# "Half of the window" is right where windows run all the time, whether or not somebody is there, so that a request
# meets one at a random moment. The last column shows what the window gains: nothing that one could see. The engine
# batches by itself, in every step. The window even lengthens the prefill: prompts that are passed on together share a
# step, which takes as long as all of them need. In an open loop below capacity the engine delivers what arrives, with a
# window or without.
#
# ## The parts in vLLM
#
# vLLM was sent the same questions with two settings. Client, API server and engine shared two busy cores: how long the
# outer parts take here says nothing about your machine. That they are outside the scheduler holds everywhere.

# %%
lab01.vllm_by_parts()

# %% [markdown]
# With four slots nearly all of a TTFT is queue, with eight nobody waits for a slot. The metric
# `vllm:time_to_first_token_seconds` begins when the API server has read a request. So it has the way to the scheduler in
# it, and `vllm:request_queue_time_seconds` and `vllm:request_prefill_time_seconds` together are less.
#
# ## A p99 is one of many draws
#
# Below are the p99s of {{draws}} draws for each length of test. A user's TTFT has the time outside and the window in it.

# %%
lab01.twenty_draws()

# %% [markdown]
# The shortest tests agree with each other, and none of them shows the tail. They last {{few_last_s:.0f}} seconds, start with an empty
# engine, and end before its slots are full. The long ones differ threefold, since a full engine is rare, and then stays
# full for a while: the slow requests of a draw come together. A p99 over 2,000 requests rests on {{late_requests:.0f}} of them, and these
# {{late_requests:.0f}} may be one event. More requests help, and so do several draws, whose spread is part of the result.
#
# ## Percentiles do not add up
#
# The p99 of each part of TTFT belongs to different requests: one that opens a window seldom also finds a full engine.

# %%
lab01.parts_of_a_p99()
