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
# Your chat runs Llama-3.1-8B on one H100. 10 requests arrive each second, with prompts of 512 tokens and answers of 256
# on average. The engine's dashboard is green, and users say the chat feels slow. **Where does the time before the first
# token go, and which number shows it?**

# %%
lab01.dashboard_and_users()

# %% [markdown]
# Users count from the click to the first token on their screen:
#
# - **outside**: network, tokenizer, and tokens turned back into text;
# - an **admission window**: a gateway holds requests for up to 100 ms, to pass several on at once;
# - the **queue wait** for one of 32 **slots**, until the engine's first step with the request;
# - the prefill, which brings the first token.

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
# A small language model answers 12 people on your machine, in four slots. *Continuous* batching gives a free slot to
# whoever waits, and sends each token at once. *Static* batching starts four together, and sends their answers together.

# %%
lab01.words_and_waits()

# %% [markdown]
# ### Where the time goes
#
# Each move serves 2,000 requests with the steps of the H100. The rows p50 and p99 are means of the 20 requests nearest
# them.

# %%
lab01.where_the_time_goes()

# %% [markdown]
# ## Measure
#
# Each move asks a small language model one question on your machine, beside as many tokens on the H100. Compare how the
# time is divided; there is no network.

# %%
lab01.one_question()

# %% [markdown]
# A good place for a break.
#
# ## Explain
#
# Four requests arrive at 0, 0, 1 and 1.5 s, with answers of 4, 2, 3 and 2 tokens. There are two slots, each step takes
# 1 s, and a prompt one step.

# %%
lab01.four_by_hand()

# %% [markdown]
# Request 4 waits 2.5 s for a slot. Its prefill ends at 5 s, its decode at 6 s. So its TTFT is 3.5 s, and its
# **E2E**, the time to its last token, 4.5 s. An **ITL** is one gap between two tokens, **TPOT** the mean gap of
# one answer. $N$ tokens have $N - 1$ gaps:
#
# $$\text{E2E} = \text{TTFT} + (N - 1) \cdot \text{TPOT}$$
#
# To look up: the parts of a TTFT, and the mean wait in a window of $D$ seconds. Whoever opens it waits $D$; $\lambda D$
# more come (Poisson arrivals), and wait $D / 2$ on average:
#
# $$\text{TTFT} = \text{outside} + \text{window} + \text{queue} + \text{prefill}, \qquad
# \text{window} = D \, \frac{1 + \lambda D / 2}{1 + \lambda D}$$
#
# | symbol | meaning | unit | request 4 | the chat, mean | formula |
# |---|---|---|---|---|---|
# | $N$ | answer | tokens | 2 | 256 | |
# | TPOT | gap | s | 1 | 0.00626 | |
# | TTFT | first token | s | 3.5 | 0.170 | 0.170 |
# | E2E | last token | s | 4.5 | 1.77 | 1.77 |
# | outside | network, text | s | 0 | 0.060 | |
# | window | $D$ = 0.1, $\lambda$ = 10 | s | 0 | 0.0751 | 0.0750 |
# | queue | for a step | s | 2.5 | 0.0034 | |
# | prefill | prompts of a window, together | s | 1 | 0.0315 | |
#
# **Means and percentiles.** The four TTFTs are 1, 1, 2 and 3.5 s, with a mean of 1.875 s, which nobody waits. At 12
# requests/s the chat's p50 stays; the p99 belongs to those who found no slot. It is one draw: 20 draws of 2,000
# requests gave 216 to 700 ms. With 100 requests they gave 204 to 215 ms: that p99 lies between the two longest, and so
# short a test hardly meets a full engine. Percentiles neither add up nor average: take them over all requests.
#
# **Two throughputs.** The GPU's 2,497 tokens/s are for all answers, and leave out waits. One reader gets $N$ / E2E, at
# the median 140.

# %% [markdown]
# ## Exercises
#
# **Worked example.** Sent at 2 s, tokens at 5.0, 5.5, 6.0 and 7.5 s: TTFT is 5 - 2 = 3 s, E2E 7.5 - 2 = 5.5 s, TPOT
# (5.5 - 3) / 3 = 0.83 s, and the longest ITL 1.5 s.
#
# **1.** The other way round: TTFT is 0.2 s, TPOT 10 ms, the answer has 101 tokens. What is E2E, in seconds?

# %%
answer = None
### BEGIN SOLUTION
answer = 0.2 + (101 - 1) * 0.010
### END SOLUTION

# %%
lab.check("whole", answer)

# %% [markdown]
# **2.** A user's TTFT is 420 ms. She opened the window of 100 ms; 60 ms were outside, 16 ms prefill. For how many ms
# did her request queue?

# %%
answer = None  # ms
### BEGIN SOLUTION
answer = 420 - 60 - 100 - 16
### END SOLUTION

# %%
lab.check("queue", answer)

# %% [markdown]
# **3.** Write the reader of a stream. From when a request was sent and when its tokens came (two or more), return TTFT,
# TPOT, E2E and the longest ITL.


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

# %%
lab01.ticket_graphs()

# %%
lab.ticket()

# %% [markdown]
# ## Take away
#
# 1. TTFT = outside + window + queue + prefill, and an engine sees only the last two.
# 2. E2E = TTFT + (N - 1) TPOT; one long gap shows only in ITL.
# 3. Means hide the few who queue. A p99 is one draw: take it over all requests.

# %%
lab.recap("window")

# %%
lab.recap("hundred")

# %% [markdown]
# **Decide.** Two scrapes of the engine's metrics page (vLLM 0.11.0), five minutes apart:
#
# ```
# vllm:time_to_first_token_seconds_count      615.0      3602.0
# vllm:time_to_first_token_seconds_sum      21.7406    125.9869
# vllm:request_queue_time_seconds_sum        2.0206     11.7093
# vllm:request_prefill_time_seconds_sum     19.7200    114.2776
# ```
#
# Users spend 60 ms outside; you promise a mean TTFT of 125 ms. Choose `--max-num-seqs` (slots),
# `--max-num-batched-tokens` (tokens a step) or the gateway's `max_queue_delay_microseconds` (the window, now 100,000).
# For the last, give the largest of 0, 5,000, 10,000, 20,000 and 50,000 that keeps the promise. What on the page would
# change your mind?

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
# **Next:** this lab's optional notebook; Dean and Barroso, *The Tail at Scale*, CACM 56, 2013.
