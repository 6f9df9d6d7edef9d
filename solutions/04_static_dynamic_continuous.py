# %% [markdown]
# # Lab 04: Static, dynamic, continuous

# %%
from course.exercises import Lab
from course.lessons import lab04

lab = Lab("04")

# %%
lab.earlier()

# %% [markdown]
# ## The question
#
# You run a chat assistant: Llama-3.1-8B on one H100. Prompts have 512 tokens; answers have 256 on average, some only 20
# and some 2,000. The server runs 32 requests as one batch until the longest answer is complete, and then sends all 32.
# At 4 requests per second people grumbled. Now 6 arrive, and people wait for minutes.
# **What keeps the GPU that you have busy?** (32 slots are this lab's choice; {{engine}} takes {{default_slots:,}}.)
#
# One **step** adds one token to every answer in the batch. A **slot** holds one request; engines call their number
# `max_num_seqs`. You pay in **slot-steps**: one slot for one step.

# %%
lab04.busy_and_waiting()

# %% [markdown]
# The GPU is busy, and many of its slot-steps nobody wants. They are **padding**: the answer is complete, but its slot
# computes until the batch ends. Three policies:
#
# - **static batching**: a batch starts when all slots are taken, and ends with its longest answer;
# - **dynamic batching**: a batch also starts once its oldest request has waited for a given delay;
# - **continuous batching**: before every step, waiting requests take the free slots; each leaves with its last token.

# %% [markdown]
# ## Predict
#
# The **CV** (coefficient of variation) is the standard deviation divided by the mean: 0 if all answers are equally
# long, about 1 in a chat.

# %%
lab.predict("gain")

# %%
lab.predict("bigger")

# %% [markdown]
# ## Explore
#
# ### Be the scheduler

# %%
lab04.be_the_scheduler()

# %% [markdown]
# ### One trace, three policies
#
# The same 12 requests get 3 slots. Thin lines are requests that wait. Request 5, outlined, has an answer of {{short_answer}} tokens.

# %%
lab04.one_trace()

# %% [markdown]
# ### Spread and slots
#
# Now all 2,000 requests are there at the start: **saturation**. Below its own, a policy delivers what arrives.

# %%
lab04.at_saturation()

# %% [markdown]
# ## Measure
#
# On your machine, a small language model answers {{asked}} questions. Play each policy:
# watch the padding (hatched), and who starts when an answer ends. vLLM's own run, of
# {{vllm_asked}} questions, is in steps. To all {{vllm_same}} committed prompts it gave the same words.

# %%
lab04.three_policies_speak()

# %% [markdown]
# A good place for a break.
#
# ## Explain
#
# Four requests, two slots. Their answers have {{hand_answers}} tokens.

# %%
lab04.four_by_hand()

# %% [markdown]
# Static batching needs 6 + 3 = 9 steps, or {{hand_slot_steps}} slot-steps, for {{hand_tokens}} tokens: {{hand_padding}} slot-steps are [padding](#see:padding). Continuous batching
# refills the second slot at once and needs {{hand_refilled}} steps. The gain is 9 / 6 = 1.5.
#
# If somebody always waits and every step takes the same time, the gain in tokens/s is
#
# $$ \text{gain} = E[\max(L_1 \dots L_b)] \,/\, E[L] $$
#
# | symbol | meaning | unit | by hand | the chat |
# |---|---|---|---|---|
# | $b$ | slots | | {{hand_slots}} | 32 |
# | $E[\max]$ | longest answer of a batch, mean | tokens | {{hand_longest}} | {{longest:,.0f}} |
# | $E[L]$ | answer, mean | tokens | {{hand_mean}} | 256 |
# | gain | | | {{hand_gain}} | {{formula:.2f}} |
#
# The simulated chat gained {{gain:.2f}}. In its draw, the longest answers were {{drawn:.2f}} times the mean.
#
# Static batching serves {{static_rate:.0f}} requests/s, continuous batching {{continuous_rate:.0f}} **on the same card**.

# %% [markdown]
# ## Exercises
#
# **Worked example.** Two slots, answers of 6 and 1 tokens: you pay for 2 x 6 = 12 slot-steps and want 6 + 1 = 7, so
# 12 - 7 = 5 are padding.
#
# **1.** How many are padding with three slots and answers of {{waste_answers}} tokens?

# %%
answer = None
### BEGIN SOLUTION
answer = 3 * 100 - (100 + 20 + 80)
### END SOLUTION

# %%
lab.check("waste", answer)

# %% [markdown]
# **2.** What is the gain over static batches of {{ratio_answers}} tokens in four slots, if somebody always waits and all
# steps take equally long?

# %%
answer = None
### BEGIN SOLUTION
answer = 400 / ((400 + 50 + 110 + 80) / 4)
### END SOLUTION

# %%
lab.check("ratio", answer)

# %% [markdown]
# **3.** Write continuous batching: which requests compute how many tokens in the next step? `running` and `waiting` are
# {request: tokens to compute before its next output token}, in order of arrival. With {{refill_running}} running,
# {{refill_waiting}} waiting and {{refill_slots}} slots, return {{refill_result}}.


# %%
def refill(running, waiting, slots):
    ### BEGIN SOLUTION
    tokens = dict(running)
    for request in list(waiting)[: slots - len(running)]:
        tokens[request] = waiting[request]
    return tokens
    ### END SOLUTION


# %%
lab.check("refill", refill)

# %%
lab04.at_work(refill)

# %% [markdown]
# vLLM:

# %%
lab04.beside_vllm(refill)

# %% [markdown]
# ## Break it

# %%
lab04.ticket_graphs()

# %%
lab.ticket()

# %% [markdown]
# ## Take away
#
# 1. A static batch pays for its longest answer in every slot; the GPU is busy with padding.
# 2. Continuous batching refills slots at once and gains the longest answer of a batch over the mean: 1 for
#    equal lengths, about {{gain:.0f}} in this chat.
# 3. A policy that keeps up delivers what arrives: compare waiting times.

# %%
lab.recap("gain")

# %%
lab.recap("bigger")

# %% [markdown]
# **Decide.** The chat moved to an engine with `--max-num-seqs 32`. Now 20 requests arrive per second. Our simulator wrote
# this in the form of vLLM's log:
#
# ```
# INFO 11-28 14:21:50 Engine 000: Avg prompt throughput: 8321.0 tokens/s, Avg generation throughput: 4160.5 tokens/s,
#   Running: 32 reqs, Waiting: 252 reqs, GPU KV cache usage: 5.7%, Prefix cache hit rate: 0.0%
# ```
#
# Which flag do you change, `--max-num-seqs` (slots), `--max-num-batched-tokens` (tokens per step) or
# `--gpu-memory-utilization`? Which is the smallest of {{choices}} that keeps up, by "Spread and slots"?

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
# **Read next:** Yu et al., *Orca*, OSDI 2022.
