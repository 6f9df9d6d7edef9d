# %% [markdown]
# # Lab 03: Little's law

# %%
from course import serve
from course.exercises import Lab
from course.lessons import lab03
from course.lessons.lab03 import one_engine
from course.steptime import Step

lab = Lab("03")

# %%
lab.earlier()

# %% [markdown]
# ## The question
#
# One H100 serves Llama-3.1-8B with continuous batching and 32 slots. Prompts have 512 tokens, answers 256 on average.
# Today 10 requests arrive per second, soon 14 will. **How many requests will be in the system, how long will they
# wait, and how many can one GPU take?**
#
# 32 slots are this lab's choice: {{engine}} takes {{default_slots:,}} by default. The host adds up to {{host_ms:.1f}} ms a step, mostly
# hidden.

# %%
lab03.today()

# %% [markdown]
# From arrival to last token a request is **in the system**. The **arrival rate** λ counts requests per second, **capacity**
# is the rate sustained while somebody always waits, **load** is λ / capacity.

# %% [markdown]
# ## Predict

# %%
lab.predict("p99")

# %%
lab.predict("window")

# %% [markdown]
# ## Explore
#
# ### Load and slots
#
# Each move serves 2,000 requests. Lines: theory for **Poisson** arrivals (CV 1).

# %%
lab03.under_load()

# %% [markdown]
# ### The number in the system
#
# In the window **L** is the mean of the jagged line, **W** the mean E2E of those who arrive.

# %%
lab03.law_in_a_window()

# %% [markdown]
# ## Measure
#
# Each move asks a small language model 60 questions.

# %%
lab03.law_on_live_words()

# %% [markdown]
# A good place for a break.
#
# ## Explain
#
# Four requests:

# %%
lab03.by_hand()

# %% [markdown]
# They stay {{stays}} seconds, {{stayed}} in all. By request: 4 arrivals in {{over_s}} s, staying {{mean_stay:g}} s on average, give
# λ W = {{hand_rate:g}} x {{mean_stay:g}} = {{hand_in_system:g}}. By the clock: {{stayed}} request-seconds in {{over_s}} s are {{hand_in_system:g}} in the system.
#
# $$L = \lambda W$$
#
# In the shaded 4 s λ W is {{shaded_rate:g}} x {{shaded_stay:g}} = {{shaded_product:g}}, but L is {{shaded_in_system:g}}: requests [1](#see:request-1) and [2](#see:request-2) bring {{brought}} seconds in, [request 4](#see:request-4) takes {{taken}} out.
#
# It holds for any part, such as the queue. `vllm bench serve` fixes λ with `--request-rate`, or L,
# the number in flight, with `--max-concurrency`.
#
# **Capacity.** With all $B$ slots taken, each step gives $B$ requests a token. So a request of $N$ tokens costs $N/B$
# steps, one with its prompt:
#
# $$\frac{1}{\text{capacity}} = \left(\frac{N}{B} - 1\right) t_d + t_p$$
#
# | symbol | meaning | unit | today |
# |---|---|---|---|
# | $L$ | in the system, mean | requests | {{in_system_now:.1f}} |
# | $\lambda$ | arrival rate, whole run | requests/s | {{rate_now:.2f}} |
# | $W$ | E2E, mean | s | {{e2e_now_s:.2f}} |
# | $N$, $B$ | mean answer; slots | tokens; | 256; 32 |
# | $t_d$ | step of $B$ decodes | ms | {{decode_ms:.2f}} |
# | $t_p$ | step of $B - 1$ decodes and a prompt | ms | {{mixed_ms:.1f}} |
# | capacity | formula; simulated | requests/s | {{capacity:.1f}}; {{capacity_simulated:.1f}} |
#
# **Slots.** At {{most:.1f}} requests/s more stop helping, and memory ends near {{room_requests}} requests. {{vllm}}: a mean TTFT
# of {{few_vllm_ms:,}} ms with {{few_vllm}} slots, of {{many_vllm_ms}} ms with {{many_vllm}}.
#
# **Above capacity** the queue grows by λ minus capacity each second, and drains by capacity minus λ.

# %% [markdown]
# ## Exercises
#
# **Worked example.** On average 30 requests run and 10 wait; 16 finish each second. L is 30 + 10 = 40, and each stays
# W = L / λ = 40 / 16 = 2.5 s.
#
# **1.** In `run`, 17 requests/s arrive. Compute L over the whole run. W is `run.e2e.mean()`; λ comes from `len(run)`
# and `run.makespan`.

# %%
run = serve(one_engine.requests(rate=17), one_engine.engine(), one_engine.STEP)
answer = None
### BEGIN SOLUTION
answer = len(run) / run.makespan * run.e2e.mean()
### END SOLUTION

# %%
lab.check("little", answer)

# %% [markdown]
# **2.** As in the example, but {{waits}} wait. How many seconds does a request wait for its slot?

# %%
answer = None
### BEGIN SOLUTION
answer = 8 / 16
### END SOLUTION

# %%
lab.check("waiting", answer)

# %% [markdown]
# **3.** Write capacity. The next cell times a step of {{other_slots}} decodes over 768 tokens each and a prompt of 512. Without a prompt
# write `()`. Call `step_time` like `one_engine.STEP`.

# %%
round(one_engine.STEP(Step(31, 31 * 768, ((512, 0),))), 4)  # s


# %%
def capacity(step_time, prompt, output, context, slots):
    """Requests/s; lengths in tokens, `context` is that of one decode."""
    ### BEGIN SOLUTION
    t_d = step_time(Step(slots, slots * context, ()))
    t_p = step_time(Step(slots - 1, (slots - 1) * context, ((prompt, 0),)))
    return 1 / ((output / slots - 1) * t_d + t_p)
    ### END SOLUTION


# %%
lab.check("capacity", capacity)

# %% [markdown]
# ## Break it

# %%
lab03.ticket_graphs()

# %%
lab.ticket()

# %% [markdown]
# ## Take away
#
# 1. L = λ W for any policy and part of a system; a short window needs its edges.
# 2. Capacity: a request costs N/B steps of a full batch, one with its prompt.
# 3. The p99 of TTFT leaves its floor when 1 in {{hundred}} arrivals finds no slot. More slots help, while TPOT allows.

# %%
lab.recap("p99")

# %%
lab.recap("window")

# %% [markdown]
# **Decide.** vLLM with {{vllm_slots}} slots took {{page_s:.2f}} s for {{page_count}} requests. Its metrics page before, within and after [{{vllm}}]:
#
# ```
# vllm:num_requests_running                  0.0      4.0      0.0
# vllm:num_requests_waiting                  0.0      5.0      0.0
# vllm:request_queue_time_seconds_sum       10.8     11.0     69.4
# vllm:e2e_request_latency_seconds_count    17.0     21.0     37.0
# vllm:e2e_request_latency_seconds_sum      25.9     29.7    116.8
# ```
#
# Test the next version with the mean number in flight. Choose `--request-rate`,
# `--max-concurrency` or `--num-prompts`, and its value.

# %%
decision = None  # {"--flag": value}
### BEGIN SOLUTION
# λ = 20 / 8.56 s, W = 90.8 s / 20. Somebody in flight at a scrape would change my mind: edges.
# Nearly 7 of the 11 wait. Up to 16 were in flight: a test with 11 shows no such tail, and
# --request-rate does.
decision = {"--max-concurrency": 11}
### END SOLUTION

# %%
lab.check("decision", decision)

# %%
lab.quiz()

# %% [markdown]
# **Next:** the optional notebook.
