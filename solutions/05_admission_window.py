# %% [markdown]
# # Lab 05: The admission window

# %%
from course.exercises import Lab
from course.lessons import lab05

lab = Lab("05")

# %%
lab.earlier()

# %% [markdown]
# ## The question
#
# A colleague tunes a decode server: 80 requests/s, answers of 32 tokens, at most 16 sequences in a step of 0.9 ms for 4
# and 1.9 ms for 16. Its loop has an **admission window**: an idle loop waits 6 ms, so that several requests start
# together, and a busy one a quarter of that before each step. Tokens/s of **GPU time**, in which the card computes, have
# doubled:

# %%
lab05.two_clocks()

# %% [markdown]
# Users say that it got slower. **What does the wait buy, and who pays for it?**

# %% [markdown]
# ## Predict

# %%
lab.predict("delivered")

# %%
lab.predict("tail")

# %% [markdown]
# ## Explore
#
# ### A loop that waits
#
# *Before every step* is the colleague's loop. The other opens a window when a request finds the engine idle.
# Drawn are {{stretch_ms:g}} ms, and up to {{lanes}} of {{toy_requests:,}} requests that come in them.

# %%
lab05.one_loop()

# %% [markdown]
# ### The window on a card
#
# Llama-3.1-8B behind the window that opens when idle: a chat (prompts of {{chat_prompt}} tokens, answers of {{chat_answer}}, on average), or a
# yes or no to {{short_prompt}} tokens. {{slots}} slots are this lab's choice ({{engine}}: {{default_slots:,}}).

# %%
lab05.window_on_a_card()

# %% [markdown]
# ## Measure
#
# The benchmark's knobs: `lambda` is the rate, `bmax` the largest batch. Each move launches its
# kernel, beside a recording on an H200. It passes with four times yes, the third for windows of 6 and 2 ms.

# %% tags=["nbval-ignore-output"]
lab05.all_knobs()

# %% [markdown]
# On the H200 a step of {{h200_step_us:.0f}} µs is nearly all launch. *When idle* the p95 falls by {{h200_fall:.0%}}; *before every step* it rises with
# some seeds.
#
# A good place for a break.
#
# ## Explain
#
# Four requests arrive at {{hand_arrivals}} s, with answers of two tokens. Each step takes 1 s.

# %%
lab05.four_by_hand()

# %% [markdown]
# Behind a window of 2 s the TTFTs are {{hand_ttfts}} s, without it {{hand_at_once}} s; the engine takes {{hand_steps}} steps and not {{hand_steps_at_once}}. **A
# window buys card time, and users pay for it**.
#
# Whoever finds the engine idle waits for the window and a step. So a promise $S$ leaves
#
# $$D \le S - t(b) - \text{margin}$$
#
# To look up: the mean wait where $\lambda D$ join a window and wait half of it; Little's law for the sequences in a step.
#
# $$\text{wait} = D \, \frac{1 + \lambda D / 2}{1 + \lambda D} \qquad b = \lambda N \cdot \text{TPOT}$$
#
# | symbol | meaning | unit | waits | never waits |
# |---|---|---|---|---|
# | $D$ | window | ms | 6 | 0 |
# | $\lambda$ | rate | requests/s | 80 | 80 |
# | $N$ | answer | tokens | 32 | 32 |
# | TPOT | gap | ms | {{tpot_waits_ms:.2f}} | {{tpot_never_ms:.2f}} |
# | $b$ | sequences in a step, by the law | | {{little_waits:.1f}} | {{little_never:.1f}} |
# | | the same, simulated | | {{batch_waits:.1f}} | {{batch_never:.1f}} |
#
# **The window does not gather the batch**: {{company:g}} requests arrive in 6 ms. But each gap has a **top-up** of {{quarter_ms:g}} ms in it,
# so answers take longer, and more are there at once. A step of seven takes {{step_seven_ms:.2f}} ms, one of two {{step_two_ms:.2f}}.
#
# **A busy engine needs no window**: company gathers during a step. A window opens where the engine is idle, and buys
# card time for others. The toy has no prefill, though drawn so: with a model it is most of TTFT.

# %% [markdown]
# ## Exercises
#
# **Worked example.** A window of 6 ms, 80 requests/s: 6 x 0.08 = {{worked_more:g}} join, and the mean wait is
# 6 x (1 + {{worked_more:g}} / 2) / (1 + {{worked_more:g}}) = {{worked_wait:.2f}} ms.
#
# **1.** A request opens a window of {{wait_ms:g}} ms; {{wait_rate:g}} arrive each second (Poisson). What is the mean wait in it, in ms?

# %%
answer = None  # ms
### BEGIN SOLUTION
answer = 10 * (1 + 1.5 / 2) / (1 + 1.5)
### END SOLUTION

# %%
lab.check("wait", answer)

# %% [markdown]
# **2.** You promise a p95 of TTFT of {{rule_slo:g}} ms. A step of $b$, at most {{rule_batch}}, takes {{rule_t0:g}} + {{rule_each:g}} $b$ ms; the margin is {{rule_margin:g}} ms. Which is
# the longest window, in ms?

# %%
answer = None  # ms
### BEGIN SOLUTION
answer = 5 - (0.5 + 0.1 * 8) - 0.5
### END SOLUTION

# %%
lab.check("rule", answer)

# %% [markdown]
# **3.** Write a window that shrinks with the rate. The **EMA** of `gaps` between arrivals begins with the first; each
# further gap moves it by 0.2 of the way. The window is as long as `company` more requests take to come; 0 if that is
# longer than `most`. Gaps of {{ema_gaps}} ms have an EMA of {{ema_worked:g}}: for a company of {{company_wanted}}, at most 20, the window is {{ema_window:g}}.


# %%
def shrinking(gaps, company, most):
    ### BEGIN SOLUTION
    ema = gaps[0]
    for gap in gaps[1:]:
        ema += 0.2 * (gap - ema)
    return company * ema if company * ema <= most else 0.0
    ### END SOLUTION


# %%
lab.check("shrink", shrinking)

# %%
lab05.at_work(shrinking)

# %% [markdown]
# ## Break it

# %%
lab05.ticket_graphs()

# %%
lab.ticket()

# %% [markdown]
# ## Take away
#
# 1. Tokens/s of GPU time leave out every wait: ask for E2E.
# 2. A window delays who finds the engine idle, and buys card time.
# 3. It is at most the promise less a step and a margin.

# %%
lab.recap("delivered")

# %%
lab.recap("tail")

# %% [markdown]
# **Decide.** A vision model shares its card. Triton runs up to 32 images as a batch: {{vision_one_ms:g}} ms for one image, {{vision_batch_ms:g}} ms for
# {{vision_batch}}. 200 images/s arrive; you promise a p95 of {{vision_goal_ms:g}} ms. After a minute our simulator wrote, as Triton would:
#
# ```
# nv_inference_count{model="vision",version="1"} 12000
# nv_inference_exec_count{model="vision",version="1"} 9018
# ```
#
# Others need the card. Choose `max_queue_delay_microseconds` (the wait of the oldest image, now 0),
# `preferred_batch_size` or `count`, the instances. For the first, give the largest of {{vision_choices}}
# that keeps the promise. What would change your mind?

# %%
decision = None  # {"name": value}
### BEGIN SOLUTION
# In 10 ms two more images come: 10 + 4 + 3 x 0.5 = 15.5 ms. With 15 ms it is 21.
# If nobody else needs the card, 0 is best.
decision = {"max_queue_delay_microseconds": 10_000}
### END SOLUTION

# %%
lab.check("decision", decision)

# %%
lab.quiz()

# %% [markdown]
# **Next:** NVIDIA, *Triton: Dynamic batcher*; lab 15.
