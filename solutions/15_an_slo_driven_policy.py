# %% [markdown]
# # Lab 15: An SLO-driven policy

# %%
from course.exercises import Lab
from course.lessons import lab15

lab = Lab("15")

# %% [markdown]
# ## The question

# %%
lab.earlier()

# %% [markdown]
# Chats and documents share Llama-3.1-8B on one H200, {{rate}} requests a second, with {{vllm}}'s defaults. Nine in ten are
# chats, some 512 tokens in; documents have 6,000. The **deadline** of a first token is {{chat_s}} s for a chat, {{document_s:.0f}} s for a
# document; then a token every {{promised_ms:.0f}} ms is promised. Chats come for {{burst_s:.0f}} of every {{every_s:.0f}} seconds. **Which policy keeps
# its promises?**

# %%
lab15.bursts()

# %% [markdown]
# - **Hopeless**: can no longer meet its deadline.
# - **Step target**: prompts get what keeps a step that short. vLLM lacks it.

# %% [markdown]
# ## Predict

# %%
lab.predict("first")

# %%
lab.predict("both")

# %% [markdown]
# ## Explore

# %%
lab15.who_can_make_it()

# %% [markdown]
# ### Which policy?
#
# Kept: both promises.

# %%
lab15.which_policy()

# %% [markdown]
# ### A shorter step
#
# At {{rate}} a second, in bursts.

# %%
lab15.the_step()

# %% [markdown]
# ## Measure
#
# Play both orders, with 2 slots and 8: **measured**, beside **simulated** steps.

# %%
lab15.urgent_questions()

# %% [markdown]
# ## Explain

# %%
lab15.four_by_hand()

# %% [markdown]
# At {{hand_now}} s request 2 is hopeless: it takes {{hand_steps}} s and is due at {{hand_due:.0f}}. Served
# second it makes two others late; last, it is late alone. To remember:
#
# $$ \text{start by} = \text{due} - \frac{\text{prompt tokens}}{\text{pace}} $$
#
# | symbol | unit | request 2 | a chat |
# |---|---|---|---|
# | due | s | {{hand_due:.0f}} | {{chat_s}} |
# | prompt | tokens | {{hand_steps}} | 512 |
# | pace | tokens/s | {{hand_pace:.0f}} | {{pace:,}} |
# | start by | s | {{hand_start:.0f}} | {{chat_start_s:.2f}} |
#
# **An order acts only on those who wait.** With 8,192 tokens a step the queue is in the steps: hopeless last brings {{order_in_time:.0%}}
# of first tokens in time, not {{before_in_time:.0%}}, at a p95 TPOT of {{order_tpot_ms:.0f}} ms. With 512 it is {{flag_tpot_ms:.0f}} ms, and {{flag_in_time:.0%}} are in time: requests wait
# in front, and somebody can go last. Target and order keep {{least_share:.0%}} to {{most_share:.0%}} in five draws. The nearest flag is
# `--max-num-batched-tokens 512`; alone it carries {{flag_rate}}/s.
#
# The notes' "high load, larger batch" keeps {{by_load_share:.0%}}: few of 1,024 slots are ever taken. Their SLO-driven policy
# (two queues, an EMA of the rate, windows of $\text{SLO} - t(b) - \text{margin}$) admits {{few_slots}} chats at most: {{reference_share:.0%}}.

# %% [markdown]
# ## Exercises
#
# **Worked example.** {{worked_slo}} ms promised, step {{worked_step}} ms, margin {{worked_margin}} ms: a window of {{worked_left}} ms. The notes allow {{window_least:.0f}} to
# {{window_longest:.0f}} ms.
#
# **1.** {{window_slo:.0f}} ms promised, margin {{window_margin:.0f}} ms, a step of b requests {{window_t0:.0f}} + {{window_c}} b ms. Which window for
# b = {{window_batch}} [ms]?

# %%
answer = None
### BEGIN SOLUTION
answer = min(8, max(1, 50 - (10 + 0.25 * 96) - 10))
### END SOLUTION

# %%
lab.check("window", answer)

# %% [markdown]
# **2.** The notes' loop serves one queue until all are answered: interactive, or bulk if that is empty. Mend it: who joins
# before *each* step, interactive first? Given: numbers of those who wait, oldest first, how many run, the largest batch.


# %%
def joins(interactive, bulk, running, most):
    ### BEGIN SOLUTION
    return (interactive + bulk)[: most - running]
    ### END SOLUTION


# %%
lab.check("joins", joins)

# %% [markdown]
# **3.** Write hopeless last. `waiting` lists (due, prompt tokens). Return its places, by when each has to start; starts
# before `now` behind. `last([(9, 10), (4, 10), (8, 10)], 4, 10)` is `[2, 0, 1]`.


# %%
def last(waiting, now, pace):
    ### BEGIN SOLUTION
    start = [due - prompt / pace for due, prompt in waiting]
    return sorted(range(len(waiting)), key=lambda place: (start[place] < now, start[place]))
    ### END SOLUTION


# %%
lab.check("last", last)

# %%
lab15.at_work(last)

# %% [markdown]
# ## Break it

# %%
lab15.ticket_graphs()

# %%
lab.ticket()

# %% [markdown]
# ## Take away
#
# 1. An order acts only on those who wait.
# 2. A short step lets requests wait in front.
# 3. Whoever is late anyway goes last.

# %%
lab.recap("first")

# %%
lab.recap("both")

# %% [markdown]
# **Decide.** {{decide_rate}} requests/s in bursts, {{decide_slots}} slots. You promise a p95 TPOT of {{decide_ms:.0f}} ms, and {{decide_documents:.0%}} of documents'
# first tokens in time. Choose `--max-num-batched-tokens`, `--max-num-seqs` or `--long-prefill-token-threshold`.

# %%
lab15.metrics_page()

# %%
decision = None  # {"--flag": value}
### BEGIN SOLUTION
# 384 tokens keep both as well.
decision = {"--max-num-batched-tokens": 512}
### END SOLUTION

# %%
lab.check("decision", decision)

# %%
lab.quiz()

# %% [markdown]
# **Read next:** QLM, SoCC 2024.
