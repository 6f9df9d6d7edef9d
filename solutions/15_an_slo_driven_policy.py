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
# Chats and documents share Llama-3.1-8B on one H200, {{rate}} requests a second. Nine in ten are chats, some 512 tokens in and
# 192 out; documents have 6,000 in. A chat is promised its first token within {{chat_s}} s, a document within {{document_s:.0f}} s, both a token
# every {{promised_ms:.0f}} ms from then on. Chats come in bursts: for 12 of every 30 seconds. Slots and token budget are
# {{vllm}}'s defaults on this card. **Which policy keeps its promises?**

# %%
lab15.bursts()

# %% [markdown]
# - **Deadline**: when a first token is due.
# - **Hopeless**: who can no longer meet its deadline.
# - **Step target**: prompts get what keeps each step that short.

# %% [markdown]
# ## Predict

# %%
lab.predict("first")

# %%
lab.predict("both")

# %% [markdown]
# ## Explore
#
# ### Who can still make it?

# %%
lab15.who_can_make_it()

# %% [markdown]
# ### Which policy?
#
# "Kept" means both promises. A mark is a request; 300 of them are drawn.

# %%
lab15.which_policy()

# %% [markdown]
# ### A shorter step
#
# The storm, with at most as many slots as tokens.

# %%
lab15.the_step()

# %% [markdown]
# ## Measure
#
# Six stories, then two urgent questions. Play both orders, with 2 slots and with 8: **measured**, beside the same
# **simulated** on an H200's recorded steps.

# %%
lab15.urgent_questions()

# %% [markdown]
# ## Explain
#
# One slot, and a second for each step. All four come at 0 s.

# %%
lab15.four_by_hand()

# %% [markdown]
# At {{hand_now}} s request 2 is hopeless: it takes {{hand_steps}} s and is due at {{hand_due:.0f}}. Served by its deadline it makes two others late, {{earliest_late}} in
# all. Served last, {{last_late}} is late. To remember:
#
# $$ \text{start by} = \text{due} - \frac{\text{prompt tokens}}{\text{pace}} $$
#
# | symbol | unit | request 2 | a chat |
# |---|---|---|---|
# | due | s | {{hand_due:.0f}} | {{chat_s}} |
# | prompt | tokens | {{hand_steps}} | 512 |
# | pace | tokens/s | 1 | {{pace:,}} |
# | start by | s | {{hand_start:.0f}} | {{chat_start_s:.2f}} |
#
# **An order acts only on those who wait.** With 8,192 tokens a step nearly everybody is let in at once, and the queue is in
# the steps: hopeless last brings {{order_in_time:.0%}} of the first tokens in time, not {{before_in_time:.0%}}, at {{order_tpot_ms:.0f}} ms a token. With 512
# tokens streams take {{flag_tpot_ms:.0f}} ms, requests wait in front, and {{flag_in_time:.0%}} are in time. Only now is there somebody to put last.

# %%
lab15.over_five_seeds()

# %% [markdown]
# No engine has either policy. The nearest flag is `--max-num-batched-tokens 512`.
#
# "High load, larger batch": the notes' policy takes 512 tokens while few slots are taken, more at high load. Of 1,024
# slots few are always taken: it keeps {{by_load_share:.0%}}, as 512 do.
#
# The notes' SLO-driven policy has two queues, an EMA of the rate, and to look up, a window $\text{SLO} - t(b) - \text{margin}$ for a batch
# of $b$. It admits {{few_slots}} interactive requests at most, and keeps {{reference_share:.0%}} here.

# %% [markdown]
# ## Exercises
#
# **Worked example.** {{worked_slo}} ms are promised, a step takes {{worked_step}} ms, the margin is 10 ms: the window is {{worked_left}} ms. The
# notes allow {{window_least:.0f}} to {{window_longest:.0f}} ms.
#
# **1.** {{window_slo:.0f}} ms are promised, the margin is {{window_margin:.0f}} ms, a step of b requests takes {{window_t0:.0f}} + {{window_c}} b ms. What is the window for b = {{window_batch}},
# in milliseconds?

# %%
answer = None
### BEGIN SOLUTION
answer = min(8, max(1, 50 - (10 + 0.25 * 96) - 10))
### END SOLUTION

# %%
lab.check("window", answer)

# %% [markdown]
# **2.** The notes' loop takes the interactive queue, or the bulk queue if that is empty, and adds to its batch from that
# queue alone until all are answered. An interactive request waits for a whole bulk answer. Mend it: who joins before *each*
# step? The arguments: names that wait, oldest first, how many run, and the largest batch. Interactive ones come first.


# %%
def joins(interactive, bulk, running, most):
    names = None
    ### BEGIN SOLUTION
    names = (interactive + bulk)[: most - running]
    ### END SOLUTION
    return names


# %%
lab.check("joins", joins)

# %% [markdown]
# **3.** Write hopeless last. `waiting` lists (due, prompt tokens). Return its places in the order of admission: who has to
# start first, first; whose start is before `now`, last, in the same order.
# `last([(9, 10), (4, 10), (8, 10)], 4, 10)` is `[2, 0, 1]`.


# %%
def last(waiting, now, pace):
    order = None
    ### BEGIN SOLUTION
    start = [due - prompt / pace for due, prompt in waiting]
    order = sorted(range(len(waiting)), key=lambda place: (start[place] < now, start[place]))
    ### END SOLUTION
    return order


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
# 2. A short step lets requests wait in front, not in the steps.
# 3. Whoever is late anyway goes last.

# %%
lab.recap("first")

# %%
lab.recap("both")

# %% [markdown]
# **Decide.** {{decide_rate}} requests/s in bursts. You promise a p95 TPOT of {{decide_ms:.0f}} ms, and to {{decide_documents:.0%}} of the documents their first token
# in time.

# %%
lab15.metrics_page()

# %% [markdown]
# Choose `--max-num-batched-tokens`, `--max-num-seqs`, `--long-prefill-token-threshold`: one or more.

# %%
decision = None  # {"--flag": value}
### BEGIN SOLUTION
# 384 tokens keep both as well.
decision = {"--max-num-batched-tokens": 512, "--max-num-seqs": 512}
### END SOLUTION

# %%
lab.check("decision", decision)

# %%
lab.quiz()

# %% [markdown]
# **Read next:** *Queue Management for SLO-Oriented Large Language Model Serving*, SoCC 2024.
