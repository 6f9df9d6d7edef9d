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
# A colleague moved a small language model to an H200. A step should take next to nothing. It takes {{fp32_us:.0f}} µs:

# %%
lab12.step_now()

# %% [markdown]
# A **launch** is the call by which a program starts a kernel on the card. "A GPU this fast is never idle", says the
# colleague. **Where is the rest of the step, and which setting brings it back?**
#
# ## Predict

# %%
lab.predict("launches")

# %% [markdown]
# Kernels can be started otherwise. A **CUDA graph** is a list of launches that is captured once and then started by one
# call. With **dependent launch** a kernel may be put on the card before the one before it has ended. A **persistent
# kernel** stays on the card and does step after step.

# %%
lab.predict("persistent")

# %% [markdown]
# ## Explore
#
# ### A step of sixteen kernels
#
# The kernel of a toy decode step, 16 sequences, sixteen times, one behind the other. The lane *begun early* has kernels
# that are on the card and wait for the one before. A profiler drew the timeline, and slowed the calls; the table's first
# row is without it.

# %%
lab12.one_step_of_16()

# %% [markdown]
# ### Who waits for whom?
#
# A step has more for the program to do: plan it, send its inputs, take its tokens; {{plan_ms:g}} ms in Python, at its best. vLLM
# does so during the last step, which is called **async scheduling**; with `--no-async-scheduling` after it.

# %%
lab12.who_waits_for_whom()

# %% [markdown]
# ## Measure
#
# Our small model, recorded. Each form gives the same words:

# %%
lab12.forms_of_our_model()

# %% [markdown]
# Without a GPU nothing can be launched here, and what is shown of the card is the recording. Python's own part of a step
# is **measured** on your machine; a launch is then a call that does nothing. With a GPU, whole steps are measured too.

# %% tags=["nbval-ignore-output"]
lab12.pythons_part()

# %% [markdown]
# A good place for a break.
#
# ## Explain
#
# {{hand_kernels}} kernels of 2 µs. A launch takes the program 6 µs, and in a graph 0.5 µs lie between two kernels.

# %%
lab12.four_by_hand()

# %% [markdown]
# By launches the last one ends after {{hand_launched:.0f}} µs, as a graph after {{hand_graph:g}}. To remember: $n$ kernels take about
#
# $$ t = n \cdot \max(\ell,\ k) \quad\text{by launches},\qquad t = n\,(k + g) \quad\text{as a graph} $$
#
# | symbol | meaning | unit | by hand | recorded |
# |---|---|---|---|---|
# | $n$ | kernels | | {{hand_kernels}} | {{sixteen}} |
# | $\ell$ | launch | µs | 6 | {{launch_us:.1f}} |
# | $k$ | kernel | µs | 2 | {{kernel_us:.1f}} |
# | $g$ | between two | µs | 0.5 | {{gap_us:.1f}} |
# | $t$ | by launches | µs | {{hand_launched:.0f}} | {{sixteen_launched_us:.0f}} |
# | $t$ | as a graph | µs | {{hand_graph:g}} | {{sixteen_graph_us:.0f}} |
#
# Both begin with a call and end with a wait, which the recorded steps hold too.
#
# **While launches are shorter than kernels, they cost nothing**: the card has a queue. That is why a graph gains nothing
# with the 8B, and graph, dependent launch and fused kernels gain {{small_gain:.1f}} times with our model (a graph alone {{graph_alone_gain:.1f}}).
#
# **A persistent kernel has no launches, and still must wait**: behind each step its blocks meet, which takes as long as
# from kernel to kernel. What it spares is the host. Our model as one kernel takes {{token_us:.0f}} µs a token, its graph {{queued_us:.0f}}: it keeps
# its numbers in shared memory. With 8 sequences it takes {{eight_us:.0f}}.
#
# **A graph has fixed sizes.** Engines capture decodes in a list of sizes and round up. Prompts come in too many sizes, and
# their kernels are long: they are launched, or captured in pieces.
#
# **What else the program does.** Inputs lie in **pinned** memory, from which a copy of 16 MiB returns after {{pinned_us:.0f}} µs, and not after
# {{pageable_ms:.1f}} ms. It is still under way then: two buffers take turns. Choosing tokens on the card spares a copy of all logits. The thread
# that launches needs a core to itself.
#
# **GPU-Util** of `nvidia-smi` is the share of time in which *some* kernel was there, looked at coarsely: gaps of
# microseconds do not show. A timeline shows them. [Lab 12, deeper](12b_launch_overhead.ipynb) reads one, with its counters.
#
# ## Exercises
#
# **Worked example.** Kernels of 4 µs; a launch takes 7 µs, and {{worked_between}} µs lie between two kernels of a graph. By launches one ends
# every 7 µs, in the graph every 4.5: the graph is 7 / 4.5 = 1.56 times as fast.
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
# **2.** The longer the kernels, the less a graph gains. Up to which kernel time [µs] is it still `gain` times as fast, if a
# launch takes `launch` µs and `between` lie between two kernels of the graph? 0 if it never is.
# With {{worked_launch:g}}, {{worked_between}} and {{worked_gain}}, it is up to {{worked_until:.2f}} µs.


# %%
def until(launch, between, gain):
    ### BEGIN SOLUTION
    return max(0.0, launch / gain - between)
    ### END SOLUTION


# %%
lab.check("until", until)

# %% [markdown]
# **3.** Write the loop that captures sizes and rounds up. Each batch runs in the smallest size that holds it, or is launched
# (`None`) if none does. A size is captured when it is first needed. Return what was captured, in order, and the size of each batch.
# Batches {{worked_batches}} and sizes {{worked_sizes}} give {{worked_captured}} and {{worked_served}}.


# %%
def replayed(batches, sizes):
    ### BEGIN SOLUTION
    captured, served = [], []
    for batch in batches:
        size = min((size for size in sizes if size >= batch), default=None)
        if size is not None and size not in captured:
            captured.append(size)
        served.append(size)
    return captured, served
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
# 2. Graph mode spares launches, async scheduling hides the plan: look which of them the card waits for.
# 3. A persistent kernel spares the host, not the waiting behind each step.

# %%
lab.recap("launches")

# %%
lab.recap("persistent")

# %% [markdown]
# **Decide.** Llama-3.1-8B on an H200, 8 sequences a step, was started with `--enforce-eager` (no graphs) and
# `--no-async-scheduling`. A TPOT of at most {{goal_ms:g}} ms is promised, and it is {{now_ms:.2f}}. Its timeline, simulated on recorded steps:

# %%
lab12.two_timelines()

# %% [markdown]
# You may take one flag out before tonight: `--enforce-eager`, `--no-async-scheduling`, or `--max-num-seqs` of 8, above which
# nobody asks. Which? What TPOT do you expect, and what would change your mind?

# %%
decision = None  # {"remove": "--flag"}
### BEGIN SOLUTION
# 1 ms of launches is hidden behind 3.9 ms of kernels; the plan of 0.4 ms is not.
decision = {"remove": "--no-async-scheduling"}
### END SOLUTION

# %%
lab.check("decision", decision)

# %%
lab.quiz()

# %% [markdown]
# **Next:** NVIDIA, *CUDA C++ Programming Guide: CUDA Graphs; Programmatic Dependent Launch*; lab 13.
