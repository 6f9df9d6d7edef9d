# %% [markdown]
# # Lab 02: The memory wall

# %%
from course.exercises import Lab
from course.lessons import lab02

lab = Lab("02")

# %%
lab.earlier()

# %% [markdown]
# ## The question
#
# You rent an H100 for {{price:.2f}} dollars an hour. It runs Llama-3.1-8B for one user at a time, and the dashboard says that
# the GPU is {{busy}}% busy. A million tokens cost {{alone_cost:.2f}} dollars, and others sell them for {{cheap:.2f}}. **How many must share a
# step until a token costs so little, and where does more stop helping?**

# %%
lab02.one_at_a_time()

# %% [markdown]
# A step **reads** the weights, and K and V of each sequence, at the card's bandwidth. And it **multiplies**: two FLOP
# for each weight and token. These steps are the card's alone. An engine's host may add up to {{host_ms:.1f}} ms; a switch below does.

# %% [markdown]
# ## Predict

# %%
lab.predict("faster")

# %%
lab.predict("speed")

# %% [markdown]
# ## Explore
#
# ### A step on the roofline
#
# **Intensity** is FLOP for each byte read. The **roofline** is the most FLOP/s that a card reaches at an intensity: on the
# slope it waits for memory, on the flat part it always multiplies.

# %%
lab02.a_step_on_the_roofline()

# %% [markdown]
# ### A curve and its knee
#
# The curve $t_0 + c\,b^\alpha$ is fitted to recorded steps of $b$ decodes, without prompts: $t_0$ is for everybody, the
# rest came with the sequences. At the **knee** the two are equal.

# %%
lab02.a_curve_and_its_knee()

# %% [markdown]
# ## Measure
#
# After each move your machine reads a matrix, multiplies it by a batch, and computes attention, as an H200 did. A CPU has no such flat part: it multiplies slowly, so
# a product with 4 already takes much longer.

# %%
lab02.launched_here()

# %% [markdown]
# A good place for a break.
#
# ## Explain
#
# A small machine reads 10 numbers a second and does 200 operations. Its model has 20 weights, K and V of a sequence
# are 10 numbers.

# %%
lab02.machine_by_hand()

# %% [markdown]
# Reading the [weights](#see:weights) takes 2 s. Each sequence adds 1 s for its [K and V](#see:k-and-v), and {{own_multiplying_s:g}} s of [multiplying](#see:multiply). The products overlap
# with reading the weights only; K and V come after. The knee is at 2,
# where K and V take as long as the weights.
#
# $$t(b) = \max\left(\frac{W}{B}, \frac{b F}{R}\right) + \frac{b K}{B}$$
#
# The knee, and the cost of a million tokens at a price $p$ an hour:
#
# $$b^* = (t_0 / c)^{1/\alpha}, \qquad 10^6 \cdot \frac{p}{3600} \cdot \frac{t(b)}{b}$$
#
# | symbol | meaning | by hand | H100, 1,024 tokens |
# |---|---|---|---|
# | $W$ | weights | 20 numbers | {{weights_gb:.1f}} GB |
# | $B$ | read in a second | 10 numbers | {{read_tb:.2f}} TB |
# | $F$ | work of a sequence | {{own_operations}} operations | {{work_gflop:.1f}} GFLOP |
# | $R$ | multiplied in a second | 200 operations | {{multiply_tflops:.0f}} TFLOP |
# | $K$ | K and V of a sequence | 10 numbers | {{kv_gb:.3f}} GB |
# | $t(1)$ | floor, recorded | 3 s | {{reading_ms:.2f}} ms, {{step_1_ms:.2f}} ms |
#
# **The wall.** With 2 bytes and 2 FLOP for each weight, $b$ sequences make $b$ FLOP for each byte. To keep its units busy
# the H100 needs {{ridge:.0f}}. Decodes stay below: at 1,024 tokens K and V take as long as the weights at {{kv_even:.0f}}. Other kernels grow
# too, so the recorded knee is at {{knee_1k:.0f}}, and at {{longer:,}} tokens at {{knee_4k:.0f}}.
#
# **Prompts.** The tokens of a prompt share the weights, and K and V too. So a prefill multiplies, and decodes read.
# Weights in 8 bits, multiplied in 16, halve $W$ and nearly the steps of few decodes, but no prefill.
#
# A service pays for both: its steps take longer than those of decodes alone, and so do its TPOT and its cost.

# %% [markdown]
# ## Exercises
#
# **Worked example.** 32 sequences share a step of 6.92 ms: 32 / 0.00692 = 4,624 tokens/s, or 16.6 million an hour. At
# 2.50 dollars an hour a million cost 2.50 / 16.6 = 0.15 dollars.
#
# **1.** 128 sequences share a step of {{cost_step_ms:.1f}} ms, and the card costs {{cost_price:g}} dollars an hour. How many dollars do a million
# tokens cost?

# %%
answer = None
### BEGIN SOLUTION
answer = 3 / (128 / 0.0121 * 3600 / 1e6)
### END SOLUTION

# %%
lab.check("cost", answer)

# %% [markdown]
# **2.** A step takes {{knee_t0:g}} ms + {{knee_c:g}} ms x $b^{0.9}$. At which batch is its knee?

# %%
answer = None
### BEGIN SOLUTION
answer = (6 / 0.2) ** (1 / 0.9)
### END SOLUTION

# %%
lab.check("knee", answer)

# %% [markdown]
# **3.** Write the floor of a step [s] of `batch` decodes with `context` tokens each. `K` is here for one token.

# %%
W, B, F, R, K = 15.0e9, 3.02e12, 15.0e9, 778e12, 131_072


def floor(batch, context):
    ### BEGIN SOLUTION
    return max(W / B, batch * F / R) + batch * context * K / B
    ### END SOLUTION


# %%
lab.check("floor", floor)

# %% [markdown]
# ## Break it

# %%
lab.ticket()

# %%
lab02.ticket_graphs()

# %% [markdown]
# ## Take away
#
# 1. A decode step reads: the weights once for all, K and V for each.
# 2. Up to the knee more sequences are cheap; beyond it each adds its own time.
# 3. A larger batch lowers the cost, $t(b) / b$, and raises TPOT, $t(b)$.

# %%
lab.recap("faster")

# %%
lab.recap("speed")

# %% [markdown]
# **Decide.** {{service_rate}} requests/s come, more than an engine can take: prompts of {{service_prompt}} tokens, answers of {{service_answer}}. A simulator
# wrote these lines on recorded steps, in {{engine}}'s format (its default: {{default_slots:,}} slots):
#
# ```
# Avg prompt throughput: 7424.0 tokens/s, Avg generation throughput: 4188.8 tokens/s, Running: 32 reqs, Waiting: 1680 reqs, GPU KV cache usage: 6.6%
# Avg prompt throughput: 12185.6 tokens/s, Avg generation throughput: 6067.2 tokens/s, Running: 64 reqs, Waiting: 1196 reqs, GPU KV cache usage: 12.0%
# Avg prompt throughput: 16128.0 tokens/s, Avg generation throughput: 8460.8 tokens/s, Running: 128 reqs, Waiting: 641 reqs, GPU KV cache usage: 23.3%
# Avg prompt throughput: 18227.2 tokens/s, Avg generation throughput: 9778.9 tokens/s, Running: 256 reqs, Waiting: 314 reqs, GPU KV cache usage: 46.4%
# ```
#
# Promised is a TPOT of {{promise_ms:g}} ms. Choose `--max-num-seqs`, `--max-num-batched-tokens` or
# `--gpu-memory-utilization`. For the first, give the cheapest of 32, 64, 128 and 256 that keeps it.

# %%
decision = None  # {"--flag": value}
### BEGIN SOLUTION
# TPOT = running / (generated tokens/s): 7.6, 10.5, 15.1 and 26.2 ms. At 64 a million tokens of answers
# cost 0.11 dollars. Longer prompts, or a KV cache usage near 100%, would change my mind.
decision = {"--max-num-seqs": 64}
### END SOLUTION

# %%
lab.check("decision", decision)

# %%
lab.quiz()

# %% [markdown]
# **Next:** the optional notebook.
