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
# each, some 512 tokens in and 256 out. N asks {{calm_rate}} a second, with 1,500 in, and {{storm_rate}} in a storm of a minute. Slots and budget are {{vllm}}'s defaults here. Simulated on recorded steps, the quiet tenants' p95 TTFT is
# {{calm_ms:.0f}} ms, in the storm {{storm_s:.1f}} s and N's {{storm_noisy_s:.1f}}. **N asks too much, and all wait.** Who should?
#
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
# Two slots. N asks for four stories, A and B then a short question. Play both orders (continuous: of arrival),
# **measured**, and **simulated** on an H200's recorded steps.

# %%
lab17.tenants_that_speak()

# %% [markdown]
# ## Explain
#
# One slot, a second for each request in a step. N asks for four answers of {{hand_answer}} tokens, A for one.

# %%
lab17.five_by_hand()

# %% [markdown]
# - A's first token comes after {{hand_order_s:.0f}} s, fair after {{hand_fair_s:.0f}} s. Both are **work-conserving**: no slot
#   is free while anybody waits.
# - With {{hand_wide_slots}} slots both are the same: {{hand_wide_s:.0f}} s, then {{hand_wide_tpot_s:.0f}} s a token, not {{hand_tpot_s:.0f}} s.
#
# **Slots decide where the queue is. An order acts only on a queue.**
#
# A tenant's **virtual token counter**:
#
# $$ c \leftarrow c + \frac{\text{prompt tokens} + 2 \times \text{output tokens}}{\text{weight}} $$
#
# By hand a request adds {{hand_counter}} tokens, one of N's {{mean_counter:,}} (mean). The least counter is next.
#
# In $t$ seconds a bucket lets through at most $\text{burst} + \text{rate} \times t$ tokens.

# %% [markdown]
# ## Exercises
#
# **Worked example.** 3 requests (100 prompt, 50 output tokens) add 3 x (100 + 2 x 50) = 600.
#
# **1.** A was served {{asked_a}}, B {{asked_b}}, N {{asked_n}}: requests x (prompt + output tokens). What is the
# counter of who is next?

# %%
answer = None
### BEGIN SOLUTION
answer = 2 * (800 + 2 * 50)  # B's; A's is 2,800, N's 2,300
### END SOLUTION

# %%
lab.check("next", answer)

# %% [markdown]
# **2.** A bucket held `level` tokens `seconds` ago and fills by `rate` a second, up to `burst`. Of two requests
# at once, return how long the second waits.


# %%
def wait(level, seconds, rate, burst, first, second):
    ### BEGIN SOLUTION
    level = min(burst, level + rate * seconds)
    return max(0, first + second - level) / rate
    ### END SOLUTION


# %%
lab.check("bucket", wait)

# %% [markdown]
# **3.** Write fair. `waiting` lists (tenant, prompt tokens), `counters` is {tenant: tokens}. Return places of
# `waiting` in order of admission; each adds its prompt to its tenant's counter.
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
# **Decide.** In the storm A, B and C are promised a p95 TTFT of {{promised_ttft_s}} s and TPOT of {{promised_tpot_ms:.0f}} ms; you may lose
# {{promised_loss:.0%}} of the tokens/s.

# %%
lab17.metrics_page()

# %% [markdown]
# Choose `--max-num-seqs`, `--scheduling-policy` (`"fcfs"`, `"priority"`), a limit at the `"gateway"` [tokens/s of each];
# or slots and one of these.

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
