# %% [markdown]
# # Lab 01, deeper: The first token

# %%
from course.lessons import lab01

# %% [markdown]
# ## The question
#
# Lab 01 gave a formula for the window, and said that a p99 is one of many draws. **Where does the formula come from,
# how far can one trust a percentile, and what else is often computed wrongly from TTFT and TPOT?** This notebook is
# optional; nothing in it is asked elsewhere.

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
# ## The last token
#
# "The time to the last token is TTFT + N x TPOT" counts one gap too many, since the first token is inside TTFT. For a
# long answer that is a detail, for a short one it is not.

# %%
lab01.the_last_token()

# %% [markdown]
# ## A p99 is one of many draws
#
# At {{busy}} requests/s, each mark is the p99 of TTFT of one draw of requests, {{draws}} draws for each length of test. A
# user's TTFT has the time outside and the window in it.

# %%
lab01.twenty_draws()

# %% [markdown]
# The shortest tests agree with each other, and none of them shows the tail. They last {{few_last_s:.0f}} seconds, start with an empty
# engine, and end before its slots are full. The long ones differ threefold, since a full engine is rare, and then stays
# full for a while: the slow requests of a draw come together. A p99 over 2,000 requests rests on {{late_requests:.0f}} of them, and these
# {{late_requests:.0f}} may be one event. More requests help, and so do several draws, whose spread is part of the result.
#
# ## Percentiles neither add up nor average
#
# The p99 of each part of TTFT belongs to different requests: one that opens a window seldom also finds a full engine.

# %%
lab01.parts_of_a_p99()

# %% [markdown]
# The same holds for replicas. Below are the p99s of the replicas of the ticket. None of the usual ways to make one
# number of three gives the p99 of all requests; it needs the requests themselves, or a histogram of each replica, added
# up.

# %%
lab01.replicas_and_all()

# %% [markdown]
# ## Users who ask a hundred times
#
# If each request is late with a chance of 1%, somebody who asks $n$ times at moments that have nothing to do with each
# other is spared with a chance of $0.99^n$. Here the requests of a long run are given to users at random.

# %%
lab01.a_user_a_month()

# %% [markdown]
# Somebody who asks in quick succession meets one full engine several times, and none on other days. Such users are
# fewer, and more annoyed.
#
# ## GPU time and a reader's time
#
# The tokens of a service divided by the seconds of its GPU say what the card costs. They leave out all the time that
# requests wait outside, in a window or in a queue, and cannot show it. Divide the tokens of one answer by its E2E to
# see what a reader gets. A larger batch raises the first and lowers the second.
