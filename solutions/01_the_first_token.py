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
# on average. The dashboard is green, and users say it feels slow. **Where does the time before the first
# token go, and which number shows it?**

# %%
lab01.dashboard_and_users()

# %% [markdown]
# Users count from the click to the first token:
#
# - **outside**: network and tokenizer;
# - an **admission window**: a gateway holds requests for up to 100 ms, to pass several on at once;
# - the **queue wait** for one of 32 **slots**;
# - the prefill, which brings the first token.
#
# 32 slots are this lab's choice: {{engine}} takes {{default_slots:,}} by default. Steps are the card's alone; an engine's
# host adds up to {{host_ms:.1f}} ms, mostly hidden.

# %% [markdown]
# ## Predict

# %%
lab.predict("wait")

# %%
lab.predict("hundred")

# %% [markdown]
# ## Explore
#
# ### Words and waits
#
# A small language model answers {{people}} people on your machine, in four slots. *Continuous* batching gives a free slot to
# whoever waits, and sends each token at once. *Static* starts four together, and sends their answers together.

# %%
lab01.words_and_waits()

# %% [markdown]
# ### Where the time goes
#
# A move serves 2,000 requests; the rows p50 and p99 are means of the {{around}} requests nearest them.

# %%
lab01.where_the_time_goes()

# %% [markdown]
# ## Measure
#
# Each move asks a small language model one question on your machine, beside as many tokens on the H100.

# %%
lab01.one_question()

# %% [markdown]
# A good place for a break.
#
# ## Explain
#
# Four requests arrive at {{hand_arrivals}} s, with answers of {{hand_answers}} tokens. There are two slots, each step takes
# 1 s, and a prompt one step.

# %%
lab01.four_by_hand()

# %% [markdown]
# Request {{fourth}} [waits](#see:waiting) {{fourth_wait:g}} s for a slot. Its [prefill](#see:prefill) ends at {{fourth_first:g}} s, its decode at {{fourth_last:g}} s. So its TTFT is {{fourth_ttft:g}} s, and its
# **E2E**, the time to its last token, {{fourth_e2e:g}} s. An **ITL** is one gap between two tokens, **TPOT** the mean gap of
# one answer. $N$ tokens have $N - 1$ gaps:
#
# $$\text{E2E} = \text{TTFT} + (N - 1) \cdot \text{TPOT}$$
#
# To look up: the parts of a TTFT. In a window of $D$ seconds $\lambda D$ more come, and wait $D / 2$ on average:
#
# $$\text{TTFT} = \text{outside} + \text{window} + \text{queue} + \text{prefill}, \qquad
# \text{window} = D \, \frac{1 + \lambda D / 2}{1 + \lambda D}$$
#
# | symbol | meaning | unit | request {{fourth}} | the chat, mean | formula |
# |---|---|---|---|---|---|
# | $N$ | answer | tokens | {{fourth_answer}} | 256 | |
# | TPOT | gap | s | {{fourth_tpot:g}} | {{tpot_s:.5f}} | |
# | TTFT | first token | s | {{fourth_ttft:g}} | {{ttft_s:.3f}} | {{ttft_sum_s:.3f}} |
# | E2E | last token | s | {{fourth_e2e:g}} | {{e2e_s:.2f}} | {{e2e_formula_s:.2f}} |
# | outside | network, text | s | 0 | {{outside_s:.3f}} | |
# | window | $D$ = {{window_given_s:g}}, $\lambda$ = 10 | s | 0 | {{window_s:.4f}} | {{window_formula_s:.4f}} |
# | queue | for slot or step | s | {{fourth_wait:g}} | {{queue_s:.4f}} | |
# | prefill | prompts of a window, together | s | {{fourth_prefill:g}} | {{prefill_s:.4f}} | |
#
# **Means and percentiles.** The four TTFTs are {{hand_ttfts}} s, with a mean of {{hand_mean:g}} s. At {{busy}}
# requests/s the chat's p50 stays; the p99 belongs to those who found no slot. {{draws}} draws of 2,000
# requests gave {{draws_low:.0f}} to {{draws_high:.0f}} ms. Percentiles neither add up nor average.
#
# **Two throughputs.** The GPU's {{gpu_tokens:,.0f}} tokens/s are for all answers, and leave out waits. One reader gets $N$ / E2E, at
# the median {{reader_tokens:.0f}}.

# %% [markdown]
# ## Exercises
#
# **Worked example.** Sent at 2 s, tokens at 5.0, 5.5, 6.0 and 7.5 s: TTFT is 5 - 2 = 3 s, E2E 7.5 - 2 = 5.5 s, TPOT
# (5.5 - 3) / 3 = 0.83 s, and the longest ITL 1.5 s.
#
# **1.** TTFT is {{whole_ttft:g}} s, TPOT {{whole_tpot:g}} ms, the answer has {{whole_tokens}} tokens. What is E2E, in seconds?

# %%
answer = None
### BEGIN SOLUTION
answer = 0.2 + (101 - 1) * 0.010
### END SOLUTION

# %%
lab.check("whole", answer)

# %% [markdown]
# **2.** A user's TTFT is {{queue_ttft:g}} ms. She opened the window of {{queue_window:g}} ms; {{queue_outside:g}} ms were outside, {{queue_prefill:g}} ms prefill. For how many ms
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
lab.recap("wait")

# %%
lab.recap("hundred")

# %% [markdown]
# **Decide.** A gateway with this window stands before an engine with {{vllm_slots}} slots. Beside the engine, without gateway,
# `vllm bench serve` measured [{{vllm}}]:
#
# ```
# request_throughput           3.849
# mean_ttft_ms                43.518
# p99_ttft_ms                139.476
# max_concurrent_requests      7
# ```
#
# Users spend {{outside_ms}} ms outside; you promise a mean TTFT of {{goal_ms:g}} ms. Choose `--max-num-seqs` (slots),
# `--max-num-batched-tokens` (tokens a step) or the gateway's `max_queue_delay_microseconds` (the window, now {{window_us:,}}).
# For the last, give the largest of {{choices_us}} that keeps the promise. What in the file would
# change your mind?

# %%
decision = None  # {"name": value}
### BEGIN SOLUTION
# 60 + 44 ms leave 31 ms for the window: 19 ms with a delay of 20 ms, 46 ms with one of 50 ms.
# Had a gateway held vLLM's own 32 requests so, their mean would be 123 ms.
# 8 in flight or more would change my mind: then slots can be short.
decision = {"max_queue_delay_microseconds": 20_000}
### END SOLUTION

# %%
lab.check("decision", decision)

# %%
lab.quiz()

# %% [markdown]
# **Next:** this lab's optional notebook; Dean and Barroso, *The Tail at Scale*, CACM 56, 2013.
