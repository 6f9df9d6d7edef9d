# %% [markdown]
# # Lab 17: Sharing a service

# %%
from course.exercises import Lab
from course.lessons import lab17

lab = Lab("17")

# %% [markdown]
# ## The question

# %%
lab.earlier()

# %% [markdown]
# Four **tenants**, customers with a key each, share Llama-3.1-8B on one H200. A, B and C are quiet: a question a second
# each, some 512 tokens in and 256 out. N asks {{calm_rate}} times a second on a calm day, with 1,500 in, and {{storm_rate}} times in
# a storm of a minute. Slots and token budget are {{vllm}}'s defaults on this card. **N asks too much, and all wait.** Who should?

# %%
lab17.storm_and_calm()

# %% [markdown]
# - **Ageing**: seconds of waiting that make up for priority.
# - **Gateway**: before the engine; knows the keys.
# - **Token bucket**: fills at a rate up to its burst, and pays for requests, or they wait.

# %% [markdown]
# ## Predict

# %%
lab.predict("calm")

# %%
lab.predict("aged")

# %% [markdown]
# ## Explore
#
# ### Whose turn?

# %%
lab17.serve_the_tenants()

# %% [markdown]
# ### Who waits?
#
# **Fair** admits the tenant that was served least. (vLLM has neither this nor ageing.) "They" are the quiet ones.

# %%
lab17.who_waits()

# %% [markdown]
# ### Slots, and a gateway
#
# The storm. A full bucket holds 20,000 tokens; a request costs its prompt and 256.

# %%
lab17.slots_and_a_gateway()

# %% [markdown]
# ## Measure
#
# Two slots. N asks for six stories, then A and B a short question each. Play both orders (continuous is that
# of arrival): **measured**, and **simulated** on an H200's recorded steps.

# %%
lab17.tenants_that_speak()

# %% [markdown]
# ## Explain
#
# One slot, a second for each request in a step. N asks for four answers of {{hand_answer}} tokens, then A for one.

# %%
lab17.five_by_hand()

# %% [markdown]
# - In order A's first token comes after {{hand_order_s:.0f}} s, fair after {{hand_fair_s:.0f}} s. Both are **work-conserving**: no slot
#   is free while anybody waits.
# - With {{hand_wide_slots}} slots both orders are the same: {{hand_wide_s:.0f}} s, then {{hand_wide_tpot_s:.0f}} s a token in place of {{hand_tpot_s:.0f}} s.
#
# **Slots decide where the queue is. An order acts only on a queue.** In the storm 128
# give {{few_rate:,.0f}} tokens/s; 1,024, with longer steps, {{many_rate:,.0f}}.
#
# A tenant's **virtual token counter**:
#
# $$ c \leftarrow c + \frac{\text{prompt tokens} + 2 \times \text{output tokens}}{\text{weight}} $$
#
# Of those who wait, the least counter is next.
#
# | symbol | unit | by hand | N, mean |
# |---|---|---|---|
# | prompt | tokens | {{hand_prompt}} | 1,500 |
# | output | tokens | {{hand_answer}} | 256 |
# | added | tokens | {{hand_counter}} | {{mean_counter:,}} |
#
# **Lift.** Who comes back after a silence starts level with the least counter. Without, a tenant
# silent for {{silent_s}} s kept an equal one from every slot for {{stall_s:.0f}} s.
#
# In $t$ seconds a bucket lets through at most $\text{burst} + \text{rate} \times t$ tokens. (vLLM's
# `max_loras` also makes requests wait beside free slots.)

# %% [markdown]
# ## Exercises
#
# **Worked example.** 3 requests of 100 prompt and 50 output tokens add 3 x (100 + 2 x 50) = 600 to a counter.
#
# **1.** A was served {{asked_a}}, B {{asked_b}} and N {{asked_n}}: requests x (prompt + output tokens). All wait. What does
# the counter read whose turn it is?

# %%
answer = None
### BEGIN SOLUTION
answer = 2 * (800 + 2 * 50)  # B's; A's is 2,800, N's 2,300
### END SOLUTION

# %%
lab.check("next", answer)

# %% [markdown]
# **2.** A bucket held {{bucket_level:.0f}} tokens {{bucket_seconds:.0f}} s ago. It fills by {{bucket_rate:.0f}} a second, up to {{bucket_burst:,.0f}}. Two requests come at
# once, for {{bucket_first:.0f}} and {{bucket_second:.0f}} tokens. How long does the second wait?

# %%
answer = None
### BEGIN SOLUTION
answer = (900 + 400 - 1_000) / 100  # the bucket was full
### END SOLUTION

# %%
lab.check("bucket", answer)

# %% [markdown]
# **3.** Write fair. `waiting` lists (tenant, prompt tokens), oldest first; `counters` is {tenant: tokens}. Return
# places of `waiting` in order of admission; each adds its prompt to its tenant's counter.
# `fair([("N", 50), ("N", 50), ("A", 20)], {"N": 10, "A": 0})` is `[2, 0, 1]`.


# %%
def fair(waiting, counters):
    order = None
    ### BEGIN SOLUTION
    order, counters = [], dict(counters)
    for _ in waiting:
        left = [place for place in range(len(waiting)) if place not in order]
        order.append(min(left, key=lambda place: counters[waiting[place][0]]))
        counters[waiting[order[-1]][0]] += waiting[order[-1]][1]
    ### END SOLUTION
    return order


# %%
lab.check("fair", fair)

# %%
lab17.at_work(fair)

# %% [markdown]
# ## Break it

# %%
lab17.ticket_graphs()

# %%
lab.ticket()

# %% [markdown]
# ## Take away
#
# 1. An order acts only on a queue; slots decide where it is.
# 2. Ageing is a fixed head start.
# 3. A limit protects streams too, and can waste the card.

# %%
lab.recap("calm")

# %%
lab.recap("aged")

# %% [markdown]
# **Decide.** In the storm you promise A, B and C a p95 TTFT of {{promised_ttft_s}} s and a p95 TPOT of {{promised_tpot_ms:.0f}} ms, and may lose
# {{promised_loss:.0%}} of the output tokens/s.

# %%
lab17.metrics_page()

# %% [markdown]
# Choose `--max-num-seqs`, `--scheduling-policy` (`"fcfs"`, `"priority"`), or a limit at the `"gateway"` [tokens/s of each
# tenant]; or slots with one of the others.

# %%
decision = None  # {"--flag": value}
### BEGIN SOLUTION
# {"--max-num-seqs": 128, "--scheduling-policy": "priority"} keeps all three as well, if N cannot set its own priority.
# Two such tenants at once would change my mind: each bucket lets through what the card computes.
decision = {"gateway": 28_000}
### END SOLUTION

# %%
lab.check("decision", decision)

# %%
lab.quiz()

# %% [markdown]
# **Read next:** *Fairness in Serving Large Language Models*, OSDI 2024.
