# %% [markdown]
# # Lab 12: Launch overhead

# %%
from course.exercises import Lab
from course.lessons import lab12

lab = Lab("12")

# %%
lab.earlier()

# %% [markdown]
# ## The question
#
# A colleague moved a small language model to an H200:

# %%
lab12.step_now()

# %% [markdown]
# A **launch** is the call by which a program starts a kernel. **Where is the rest of the step, and which setting brings it back?**
#
# ## Predict

# %%
lab.predict("launches")

# %% [markdown]
# A **CUDA graph** is a list of launches, captured once and started by one call. With **dependent launch** a kernel is on the
# card before the one before it has ended. A **persistent kernel** does step after step.

# %%
lab.predict("persistent")

# %% [markdown]
# ## Explore
#
# ### A step of sixteen kernels
#
# Sixteen toy kernels, each a sum of terms. A profiler drew the timeline and slowed the calls; the first row is without it.

# %%
lab12.one_step_of_16()

# %% [markdown]
# ### Who waits for whom?
#
# The program also plans each step, sends inputs and takes tokens: {{plan_ms:g}} ms in Python, at its best. With **async scheduling**, vLLM's
# default, it does so during the last step.

# %%
lab12.who_waits_for_whom()

# %% [markdown]
# ## Measure
#
# Python's part of a step, **recorded** beside the card and **measured** here. Without a GPU a launch is a call that does
# nothing.

# %% tags=["nbval-ignore-output"]
lab12.pythons_part()

# %% [markdown]
# ## Explain
#
# {{hand_kernels}} kernels of 2 µs. A launch takes the program 6 µs, and in a graph 0.5 µs lie between two kernels.

# %%
lab12.four_by_hand()

# %% [markdown]
# By launches the last one ends after {{hand_launched:.0f}} µs, as a graph after {{hand_graph:g}}. To remember: many kernels, $n$, take about
#
# $$ t = n \cdot \max(\ell,\ k) \quad\text{by launches},\qquad t = n\,(k + g) \quad\text{as a graph} $$
#
# | symbol | meaning | unit | by hand | recorded |
# |---|---|---|---|---|
# | $n$ | kernels | | {{hand_kernels}} | {{sixteen}} |
# | $\ell$ | launch | µs | 6 | {{launch_us:.1f}} |
# | $k$ | kernel | µs | 2 | {{kernel_us:.1f}} |
# | $g$ | between two | µs | 0.5 | {{gap_us:.1f}} |
#
# **While launches are shorter than kernels they cost nothing**: the card has a queue. So a graph gains nothing with the 8B ({{torch_gain:.1f}} times where PyTorch launches);
# graph, dependent launch, bf16 and fused kernels gain {{small_gain:.1f}} times with our model (a graph alone {{graph_alone_gain:.1f}}).
#
# **A persistent kernel still waits**: behind each step its blocks meet, which takes as long as from kernel to kernel.
# Our model as one kernel, with its numbers in shared memory, takes {{token_us:.0f}} µs a token, its graph {{queued_us:.0f}}. For 8 sequences it takes {{eight_us:.0f}}, the graph {{eight_queued_us:.0f}}.
#
# **Graphs have fixed sizes**: decodes are captured in a list of them and rounded up. Long prompts have too many sizes, and long kernels.
#
# **What else.** A copy of {{copy_mib}} MiB from **pinned** memory returns after {{pinned_us:.0f}} µs, not {{pageable_ms:.1f}} ms. It is
# under way, so two buffers take turns. A kernel waiting on the card for a number there answers in {{bell_us:.1f}} µs, not {{bell_launch_us:.1f}} (a launch) or
# {{bell_graph_us:.1f}} (a graph). Tokens chosen on the card spare a copy of all logits.
#
# **GPU-Util** counts the time with *some* kernel, coarsely: gaps of microseconds show on a timeline only.
#
# ## Exercises
#
# **Worked example.** Kernels of 4 µs, launches of 7, 0.5 µs between two in a graph: one ends every 7 µs or every 4.5. The graph is
# 7 / 4.5 = 1.56 times as fast.
#
# **1.** The colleague's step takes {{share_wall_us}} µs; its kernels, one behind the other, {{share_card_us}} µs. What percentage of the step is no kernel?

# %%
answer = None  # %
### BEGIN SOLUTION
answer = 100 * (411 - 123) / 411
### END SOLUTION

# %%
lab.check("share", answer)

# %% [markdown]
# **2.** A launch takes {{pays_launch:g}} µs, and {{pays_between:g}} µs lie between two kernels of a graph. Up to which kernel time [µs] is the graph
# {{pays_gain:g}} times as fast?

# %%
answer = None  # µs
### BEGIN SOLUTION
answer = 7 / 1.25 - 0.5
### END SOLUTION

# %%
lab.check("until", answer)

# %% [markdown]
# **3.** Write the loop that captures sizes and rounds up: each batch runs in the smallest size that holds it, captured when
# first needed. Return how many steps each size served; what no size holds is launched, and counts as 0.
# Batches {{worked_batches}} and sizes {{worked_sizes}} give {{worked_steps}}.


# %%
def replayed(batches, sizes):
    ### BEGIN SOLUTION
    graphs = {}
    for batch in batches:
        size = min((size for size in sizes if size >= batch), default=0)
        graphs[size] = graphs.get(size, 0) + 1
    return graphs
    ### END SOLUTION


# %%
lab.check("loop", replayed)

# %% [markdown]
# ## Break it

# %%
lab12.ticket_graphs()

# %%
lab.ticket()

# %% [markdown]
# ## Take away
#
# 1. A launch costs microseconds of the program; it matters where kernels are as short.
# 2. Graph mode spares launches, async scheduling hides the plan.
# 3. A persistent kernel spares the host, not the wait behind each step.

# %%
lab.recap("launches")

# %%
lab.recap("persistent")

# %% [markdown]
# **Decide.** The 8B, 8 sequences a step, was started with `--enforce-eager` and `--no-async-scheduling`. A TPOT of
# {{goal_ms:g}} ms is promised; it is {{now_ms:.2f}}. Simulated on our recorded steps:

# %%
lab12.two_timelines()

# %% [markdown]
# Set one of `--async-scheduling` (1 is on), `--max-cudagraph-capture-size` (the largest batch captured, and no `--enforce-eager`) and
# `--max-num-seqs`. What would change your mind?

# %%
decision = None  # {"--flag": value}
### BEGIN SOLUTION
# 1 ms of launches is hidden behind 3.9 ms of kernels; the plan of 0.4 ms is not.
# PyTorch's launches, 6 ms of them, would not be: graphs as well then.
decision = {"--async-scheduling": 1}
### END SOLUTION

# %%
lab.check("decision", decision)

# %%
lab.quiz()

# %% [markdown]
# **Next:** NVIDIA, *CUDA Programming Guide: CUDA Graphs*; lab 13.
