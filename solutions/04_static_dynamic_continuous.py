# %% [markdown]
# # Lab 04: Static, dynamic, continuous

# %%
from course.exercises import Lab
from course.lessons import lab04

lab = Lab("04")

# %% [markdown]
# ## The question
#
# You run a chat assistant: Llama-3.1-8B on one H100. Prompts have 512 tokens. Answers have 256 on average, some of them
# 20 and some 2,000. The server collects 32 requests, runs them as one batch until the longest answer is complete,
# sends all 32 answers, and takes the next 32. At 4 requests a second people grumbled. Now there are 6 a second, and
# they wait for minutes. The GPU is busy all the time, and a colleague wants to buy a second one. **What is the first
# one busy with?**

# %%
lab04.busy_and_waiting()

# %% [markdown]
# A server answers in **steps**: one step adds one token to each answer of the batch. A **slot** is room for one request
# in the batch, and a **slot-step** is one slot during one step: what you pay with. Three of four slot-steps above are
# **padding**: their slot computes on after its answer is complete, because the batch still runs. Three policies:
#
# - **static batching**: a batch starts when all slots are taken, and ends with its longest answer;
# - **dynamic batching**: the same, but a batch also starts when its oldest request has waited for the delay;
# - **continuous batching**: before every step, whoever waits takes a free slot; a request leaves with its last token.

# %% [markdown]
# ## Predict
#
# The **CV** (coefficient of variation) of the answer lengths is their standard deviation over their mean: 0 if all are
# equal, about 1 in a chat.

# %%
lab.predict("gain")

# %%
lab.predict("bigger")

# %% [markdown]
# ## Explore
#
# ### One trace, three policies
#
# The same 12 requests meet 3 slots. Each lane is a slot, and thin lines above the lanes are requests that wait.
# *Prefill* reads the prompt, *decode* adds tokens. Request 5 is outlined; its answer has 9 tokens.

# %%
lab04.one_trace()

# %% [markdown]
# ### Spread and slots
#
# Now 2,000 requests are there at the start, so that somebody always waits: **saturation**. Only there do tokens/s
# compare policies; below it each delivers what arrives. Dynamic equals static here, since its batches are always full.

# %%
lab04.at_saturation()

# %% [markdown]
# ## Measure
#
# Are wasted slot-steps wasted seconds? With every move of a slider this machine computes all steps of 24 small
# requests, by both policies: on a CPU one matrix product a step, with a row for each slot. Recorded beside it are the
# steps of the whole model on an H100. The work differs; compare the gains.

# %%
lab04.launched_here()

# %% [markdown]
# This is the middle of the lab, and a good place for a break.
#
# ## Explain
#
# Four requests are there at the start, with answers of 6, 1, 2 and 3 tokens, and there are two slots.

# %%
lab04.four_by_hand()

# %% [markdown]
# Static batching runs the first two for 6 steps and the others for 3. That makes 9 steps, or 18 slot-steps, for 12
# tokens: 6 slot-steps are padding. Continuous batching refills the second slot at once and needs 6 steps. It gains
# 9 / 6 = 1.5.
#
# In general, a static batch pays for its longest answer in every slot. A continuous batch whose queue never empties
# pays for the tokens alone. If all steps cost the same, the gain in tokens/s is
#
# $$ \text{gain} = \frac{E[\max(L_1 \dots L_b)]}{E[L]} $$
#
# | symbol | meaning | unit | by hand | the chat |
# |---|---|---|---|---|
# | $b$ | slots | | 2 | 32 |
# | $E[\max(L_1 \dots L_b)]$ | longest answer of a batch, on average | tokens | 4.5 | 1,111 |
# | $E[L]$ | answer, on average | tokens | 3 | 256 |
# | gain | | | 1.5 | 4.34 |
#
# The gain grows with the spread, which moves the longest answer away from the mean, and with the slots: more answers,
# longer longest one. For equal lengths it is 1.
#
# In the simulation the chat gained 3.85. The longest answers of its 62 batches were 3.94 times the mean, a little less
# than expected, and the prompts cost both policies the same.
#
# So the question is answered. Static batching delivers about 4 requests/s here, and the other slot-steps are padding.
# Continuous batching delivers 16 requests/s **on the same card**. Its batch has no fixed size: each step decides anew
# who is in it, up to the number of slots.

# %% [markdown]
# ## Exercises
#
# **Worked example.** Two slots, answers of 6 and 1 tokens. Paid are 2 x 6 = 12 slot-steps, wanted are 6 + 1 = 7, so
# 12 - 7 = 5 are padding.
#
# **1.** Complete it: three slots, answers of 100, 20 and 80 tokens. How many slot-steps are padding?

# %%
answers = [100, 20, 80]
paid = 3 * max(answers)
answer = None
### BEGIN SOLUTION
answer = paid - sum(answers)
### END SOLUTION

# %%
lab.check("waste", answer)

# %% [markdown]
# **2.** Now the gain: four slots, batch after batch with answers of 400, 50, 110 and 80 tokens, and steps that cost the
# same.

# %%
answers = [400, 50, 110, 80]
answer = None
### BEGIN SOLUTION
answer = max(answers) / (sum(answers) / len(answers))
### END SOLUTION

# %%
lab.check("ratio", answer)

# %% [markdown]
# **3.** Write continuous batching. Before every step the server asks which request computes how many tokens.
# `running` and `waiting` are dictionaries, {request: tokens that it must compute before its next output token}; those
# who wait are in order of arrival. With `running` {1: 1, 3: 1}, `waiting` {5: 40, 6: 512, 7: 8} and 4 slots the result
# is {1: 1, 3: 1, 5: 40, 6: 512}.


# %%
def refill(running, waiting, slots):
    tokens = None
    ### BEGIN SOLUTION
    tokens = dict(running)
    for request in list(waiting)[: slots - len(running)]:
        tokens[request] = waiting[request]
    ### END SOLUTION
    return tokens


# %%
lab.check("refill", refill)

# %%
lab04.at_work(refill)

# %% [markdown]
# ## Break it
#
# A ticket, and the graphs that came with it.

# %%
lab04.ticket_graphs()

# %%
lab.ticket()

# %% [markdown]
# ## Take away
#
# 1. A static batch pays for its longest answer in every slot; the GPU looks busy while it computes padding.
# 2. Continuous batching refills a slot as soon as its answer ends. At saturation it gains E[max] / mean: nothing for
#    equal lengths, about 4 times for a chat with 32 slots.
# 3. Below saturation every policy delivers what arrives: compare how long people wait.

# %%
lab.recap("gain")

# %%
lab.recap("bigger")

# %% [markdown]
# **Decide.** The chat moved to vLLM 0.11.0, started with `--max-num-seqs 32`. Now 20 requests arrive a second, with
# answers of 256 tokens as before. From its log:
#
# ```
# INFO 11-28 14:21:50 Engine 000: Avg prompt throughput: 8321.0 tokens/s, Avg generation throughput: 4160.5 tokens/s,
#   Running: 32 reqs, Waiting: 252 reqs, GPU KV cache usage: 5.7%, Prefix cache hit rate: 0.0%
# ```
#
# KV cache usage is how much of the memory for running requests is taken. Choose `--max-num-seqs` (slots),
# `--max-num-batched-tokens` (tokens a step) or `--gpu-memory-utilization`, and the smallest of 16, 32, 64, 128 and 256
# that keeps up; "Spread and slots" has the tokens/s. What in the log would change your mind?

# %%
decision = None  # {"--flag": value}
### BEGIN SOLUTION
# 20 x 256 = 5,120 tokens/s are needed. A KV cache that is nearly full would change my mind.
decision = {"--max-num-seqs": 64}
### END SOLUTION

# %%
lab.check("decision", decision)

# %%
lab.quiz()

# %% [markdown]
# **Read next:** Yu et al., *Orca*, OSDI 2022, where continuous batching comes from. The optional notebook of this lab
# goes on: where the formula bends, what is often said, other traces, and where a dynamic batcher still fits.
