# %% [markdown]
# # Lab 01: The first token

# %%
from course.exercises import Lab
from course.lessons import lab01

lab = Lab("01")

# %%
lab.earlier()

# %% [markdown]
# ## The question
#
# Your chat runs Llama-3.1-8B on one H100. 10 requests arrive each second, with prompts of 512 tokens and answers of
# 256 on average. The engine's dashboard is green: a TTFT of 35 ms, and 2,497 tokens/s. Users say that the chat feels
# slow. **Where does the time before the first token go, and which number shows it?**

# %%
lab01.dashboard_and_users()

# %% [markdown]
# Users count from the click to the first token on their screen. On the way a request meets
#
# - the time **outside**: network and tokenizer, and on the way back tokens into text;
# - an **admission window**: a gateway holds requests for up to 100 ms, to pass several on at once;
# - the **queue wait**: until the engine's first step with it. It needs a **slot**, room for one request; here are 32;
# - the prefill, which brings the first token. Decodes bring the others.

# %% [markdown]
# ## Predict

# %%
lab.predict("window")

# %%
lab.predict("hundred")

# %% [markdown]
# ## Explore
#
# ### Words and waits
#
# The course's own model answers 12 people on your machine, with four slots. Under *continuous* batching whoever waits
# takes a slot as soon as one is free, and each token is sent at once. Under *static* batching four start together, and
# are sent together.

# %%
lab01.words_and_waits()

# %% [markdown]
# ### Where the time goes
#
# Each move serves 2,000 requests with the steps of the H100. The bars p50 and p99 show the 20 requests next to that
# percentile.

# %%
lab01.where_the_time_goes()

# %% [markdown]
# ## Measure
#
# Each move asks the course's model one question on your machine, by the clock, beside as many tokens on the H100. The
# models differ; compare how the time is divided. The network is missing: your question stays here.

# %%
lab01.one_question()

# %% [markdown]
# Half of the lab is done: a good place for a break.
#
# ## Explain
#
# Four requests arrive at 0, 0, 1 and 2 s, with answers of 4, 2, 3 and 2 tokens. There are two slots, each step takes 1
# s, and a prompt needs one.

# %%
lab01.four_by_hand()

# %% [markdown]
# Request 4 waits 2 s for a slot. Its prefill ends at 5 s and its decode at 6 s. So its **TTFT** is 3 s, and its
# **E2E**, the time to its last token, is 4 s. An **ITL** is one gap between two tokens; **TPOT** is the mean gap of one
# answer. An answer of $N$ tokens has $N - 1$ gaps:
#
# $$\text{E2E} = \text{TTFT} + (N - 1) \cdot \text{TPOT}$$
#
# To look up: the parts of a TTFT, and the mean wait in a window $D$ that a request opens, under Poisson arrivals. With
# $\lambda D$ more requests, which wait half of it on average,
#
# $$\text{TTFT} = \text{outside} + \text{window} + \text{queue} + \text{prefill}, \qquad
# \text{window} = D \, \frac{1 + \lambda D / 2}{1 + \lambda D}$$
#
# | symbol | meaning | unit | request 4 | the chat, mean | formula |
# |---|---|---|---|---|---|
# | $N$ | answer | tokens | 2 | 256 | |
# | TPOT | mean gap | s | 1 | 0.0067 | |
# | TTFT | to the first token | s | 3 | 0.170 | |
# | E2E | to the last token | s | 4 | 1.89 | 1.88 |
# | outside | there and back | s | 0 | 0.060 | |
# | window | $D$ = 0.1 s, $\lambda$ = 10/s | s | 0 | 0.0751 | 0.0750 |
# | queue | to the first step | s | 2 | 0.0034 | |
# | prefill | to the first token | s | 1 | 0.0315 | |
#
# **Means and percentiles.** The four TTFTs are 1, 1, 2 and 3 s: their mean is 1.75 s, and nobody waits that long. At 12
# requests/s the p50 of the chat stays, and a few who find no slot make the p99. That p99 is one draw: 20 draws of 2,000
# requests gave 216 to 700 ms. Draws of 100 requests gave 204 to 215 ms, since the p99 of 100 lies between the two
# longest, and so short a test hardly meets a full engine. Percentiles neither add up nor average: take them of all
# requests.
#
# **Two throughputs.** The GPU's 2,497 tokens/s are shared by all who decode, and count no second before the engine.
# One reader gets $N$ / E2E, here 140 tokens/s, waits included.

# %% [markdown]
# ## Exercises
#
# **Worked example.** Sent at 2 s, tokens at 5.0, 5.5, 6.0 and 7.5 s: TTFT is 5 - 2 = 3 s, E2E 7.5 - 2 = 5.5 s, TPOT
# (5.5 - 3) / 3 = 0.83 s, and the longest ITL 1.5 s.
#
# **1.** Complete it the other way round: TTFT is 0.2 s, TPOT 10 ms, the answer has 101 tokens. What is E2E, in seconds?

# %%
ttft, tpot, tokens = 0.2, 0.010, 101
answer = None
### BEGIN SOLUTION
answer = ttft + (tokens - 1) * tpot
### END SOLUTION

# %%
lab.check("whole", answer)

# %% [markdown]
# **2.** A user's TTFT is 420 ms. She opened the window of 100 ms; the time outside is 60 ms, and the prefill takes 16
# ms. For how many ms did her request queue?

# %%
answer = None  # ms
### BEGIN SOLUTION
answer = 420 - 60 - 100 - 16
### END SOLUTION

# %%
lab.check("queue", answer)

# %% [markdown]
# **3.** Write the reader of a stream. From the moment when a request was sent, and those of its tokens, return TTFT,
# TPOT, E2E and the longest ITL. There are two tokens or more.


# %%
def four_times(sent, tokens):
    ### BEGIN SOLUTION
    ttft, e2e = tokens[0] - sent, tokens[-1] - sent
    gaps = [tokens[i + 1] - tokens[i] for i in range(len(tokens) - 1)]
    return ttft, (e2e - ttft) / len(gaps), e2e, max(gaps)
    ### END SOLUTION


# %%
lab.check("reader", four_times)

# %% [markdown]
# ## Break it
#
# A ticket and its graphs.

# %%
lab01.ticket_graphs()

# %%
lab.ticket()

# %% [markdown]
# ## Take away
#
# 1. TTFT is outside + window + queue + prefill, and an engine sees only the last two.
# 2. E2E = TTFT + (N - 1) TPOT; one long gap hides in TPOT and shows as an ITL.
# 3. Means hide the few who queue. A p99 is one of many draws, and is taken of all requests.

# %%
lab.recap("window")

# %%
lab.recap("hundred")

# %% [markdown]
# **Decide.** Two scrapes of the engine's page (vLLM 0.11.0), five minutes apart, without labels:
#
# ```
# vllm:time_to_first_token_seconds_count      615.0      3602.0
# vllm:time_to_first_token_seconds_sum      21.7406    125.9869
# vllm:request_queue_time_seconds_sum        2.0206     11.7093
# vllm:request_prefill_time_seconds_sum     19.7200    114.2776
# ```
#
# Users spend 60 ms outside, and were promised a mean TTFT of 125 ms. Choose `--max-num-seqs`,
# `--max-num-batched-tokens` or the gateway's `max_queue_delay_microseconds` (now 100,000), and the largest of 0, 5,000,
# 10,000, 20,000 and 50,000 that keeps the promise if the engine takes as long as now. What on the page would change
# your mind?

# %%
decision = None  # {"name": value}
### BEGIN SOLUTION
# 60 + 35 ms leave 30 ms for the window: 18 ms with a delay of 20 ms, 42 ms with one of 50 ms.
# A queue sum that grew as fast as the TTFT sum would change my mind: then slots are short.
decision = {"max_queue_delay_microseconds": 20_000}
### END SOLUTION

# %%
lab.check("decision", decision)

# %%
lab.quiz()

# %% [markdown]
# **Next:** this lab's optional notebook; Dean and Barroso, *The Tail at Scale*, CACM 56(2), 2013.
