# %% [markdown]
# # Lab 04: Static, dynamic, continuous

# %%
import os
import time
from textwrap import fill

# For "Measure": what is timed must not depend on who else uses the cores.
os.environ["OPENBLAS_NUM_THREADS"] = "1"
import numpy as np
from course import Workload, lengths, policies, queueing, serve, steptime, traces
from course.exercises import Lab
from course.explore import Choice, Explorer, Slider
from course.figures.timelines import timelines
from course.lessons.lab04 import figures as draw
from course.lessons.lab04 import side_by_side, three_batchers
from course.lessons.lab04.three_batchers import CHAT, H100, IMAGE, TRACE

lab = Lab("04")

# %% [markdown]
# ## The question
#
# You run a chat assistant: Llama-3.1-8B on one H100. Prompts have 512 tokens. Answers have 256 tokens on average, some
# of them 20 and some of them 2,000. The server collects 32 requests, runs them as one batch until the last answer is
# complete, sends all 32 answers, and takes the next 32. At 4 requests a second people grumbled. This week there are 6,
# and they wait for minutes.
#
# Your dashboard says that the GPU is busy all the time. A colleague wants to buy a second one. Before you sign: **what
# is the first one busy with?**

# %%
print(CHAT)
for rate in (4, 6):
    run = serve(CHAT.scaled(rate), policies.Static(max_num_seqs=32), H100)
    busy = run.steps.seconds.sum() / run.makespan
    print(
        f"{rate} requests/s: 95% are answered within {np.percentile(run.e2e, 95):5.1f} s, "
        f"GPU busy {busy:4.0%}, "
        f"slot-steps that somebody wanted {side_by_side.slot_utilisation(run):.0%}"
    )

# %% [markdown]
# A **slot** is a row of the batch: room for one request. A **step** is one forward pass; it moves every slot on by one
# token. A **slot-step** is one slot during one step, which is what you pay for. The GPU above is busy, and three of
# four slot-steps are **padding**: the slot computes a token for an answer that was complete already, since its batch is
# still running.
#
# Three policies decide when a request may join and leave a batch:
#
# | policy | joins | leaves |
# |---|---|---|
# | **static** | when a batch is full, and the one before has ended | when the longest of its batch ends |
# | **dynamic** | the same, or when the oldest request has waited for the delay | when the longest of its batch ends |
# | **continuous** | before any step, if a slot is free | when its own answer ends |
#
# All numbers in this lab carry a badge. *Modelled* ones come from a roofline of an H100 (what must be read, against
# measured bandwidth; what must be computed, against measured peak); a real engine adds scheduling, sampling and HTTP.
# The steps recorded on that card, which labs 03, 07 and 16 use, do not reach this far: a padded batch of the trace
# computes 131,296 prompt tokens in one step, and 65,536 are the most that were recorded. *Measured* ones come from the
# machine you sit at.

# %% [markdown]
# ## Predict
#
# Commit to an answer before you see one. Your answers are kept, and the lab comes back to them at the end.

# %%
lab.predict("gain")

# %%
lab.predict("bigger")

# %%
lab.predict("below")

# %% [markdown]
# ## Explore
#
# ### One trace, three policies
#
# The same 16 requests meet 4 slots under each policy, on one clock. Each lane is a slot, each number is a request, and
# the thin lines above the lanes are those who wait. Request 5 is picked out: its answer has 9 tokens.
#
# 1. Follow request 5 down the three panels. What is it doing all that time?
# 2. Set the spread to 0. Where did the padding go? What does continuous still do better?
# 3. Set the spread back to 1 and the delay to 1 s. Which panel comes to look like which?
# 4. Set the rate to 1 request/s. Who waits for whom now?
# 5. Choose the Azure-style trace (made up, with the statistics of a real conversation trace). Its prompts differ too.
#    What happens to the prefill of a static batch?


# %%
timeline_explorer = Explorer(
    three_batchers.timelines,
    controls=[
        Slider("follow", "Follow request (0: none)", 0, 16, 1, 5),
        Slider("output_cv", "Spread of drawn answers (CV)", 0.0, 2.0, 0.1, 1.0),
        Slider("slots", "Slots", 2, 8, 1, 4),
        Slider("rate", "Arrival rate", 1, 30, 1, 10, unit="requests/s"),
        Slider("max_queue_delay", "Delay of dynamic", 0.0, 1.0, 0.05, 0.1, unit="s"),
        Choice(
            "workload",
            "Workload",
            {"drawn lengths": "drawn", "Azure-style trace": "trace"},
            "drawn",
        ),
    ],
    figure=lambda result: timelines(*result, height=440),
    summary=three_batchers.timeline_rows,
    title="One trace, three policies",
)
timeline_explorer

# %% [markdown]
# ### What padding costs: spread and batch
#
# To compare what policies *can* do, let nobody ever run out of work: all requests are there at time 0. This is
# **saturation**. The **coefficient of variation** (CV) of the lengths is their standard deviation divided by their
# mean: 0 when all are equal, about 1 for chat. The gain is continuous tokens/s over static tokens/s. Dynamic equals
# static here, since its batches are always full. The dashed line is E[max] / mean: the expected longest answer of a
# batch over the mean answer.
#
# 1. Find the spread at which "20 to 30% more" is true for 32 slots. Which workload has answers as equal as that?
# 2. Leave the spread at 1 and raise the slots. Does static catch up?

# %%
sweep = three_batchers.gain_sweep()  # the lines, once
gain_explorer = Explorer(
    three_batchers.gain,
    controls=[
        Slider("output_cv", "Spread of answer lengths (CV)", 0.0, 2.0, 0.1, 1.0),
        Slider("max_num_seqs", "Slots", 4, 128, 2, 32, log=True),
    ],
    figure=lambda result: draw.gain(sweep, result),
    summary=three_batchers.gain_rows,
    title="Gain at saturation, 2,000 requests",
)
gain_explorer

# %% [markdown]
# ### Below saturation, and at it
#
# Now people arrive one by one, 2,000 of them, whether or not the server keeps up (an **open loop**). **Goodput** counts
# the requests a second that are answered in time, here within 10 s. The Azure-style trace has prompts of 1,161 tokens
# on average, answers of 258, and gaps that vary a little more than Poisson's.
#
# 1. Move the rate from 0.5 to 4 requests/s. Tokens/s are the same for all three. What does static do to the latency,
#    and why is its curve high at *both* ends?
# 2. Find the rate at which each policy stops keeping up.
# 3. Look at the first token instead of the whole answer. Which of the policies can stream?
# 4. Give dynamic a delay of 10 s. Where does it help?
# 5. Repeat with the Azure-style trace.

# %%
three_batchers.compute_lines()  # the lines behind the dots, once
load_explorer = Explorer(
    three_batchers.under_load,
    controls=[
        Slider("rate", "Arrival rate", 0.5, 20.0, 0.5, 6.0, unit="requests/s"),
        Slider("max_queue_delay", "Delay of dynamic", 0.1, 10.0, 10, 0.1, unit="s", log=True),
        Choice("workload", "Workload", list(three_batchers.LOADS), "chat, CV 1"),
        Choice(
            "metric",
            "Latency",
            {
                "p50 of the whole answer": ("e2e", 50),
                "p95 of the whole answer": ("e2e", 95),
                "p99 of the whole answer": ("e2e", 99),
                "p95 of the first token": ("ttft", 95),
            },
            ("e2e", 95),
        ),
    ],
    figure=lambda result: draw.against_load(
        result["curves"], result["points"], *result["metric"]
    ),
    summary=three_batchers.load_rows,
    title="32 slots, 2,000 requests",
)
load_explorer

# %% [markdown]
# ## Measure
#
# Are wasted slot-steps wasted *seconds*? The same policy objects can drive real work: `serve` accepts any callable that
# takes a step and returns its seconds. This one multiplies a matrix of 38 MB by one row for each slot, padding
# included, and looks at the clock. It stands for one layer of a decode step: the weights are read once, for all rows
# together. A badge for what you see: **measured on this CPU**, now. None of it is an H100.


# %% tags=["nbval-ignore-output"]
class CpuStep:
    """One matrix product a step on this CPU: as many rows as the step has tokens."""

    source = "measured on this CPU"

    def __init__(self, width=3072, most_rows=512):
        self.weights = np.full((width, width), 1e-3, dtype=np.float32)
        self.rows = np.ones((most_rows, width), dtype=np.float32)
        self.calls = 0

    def __call__(self, step):
        begin = time.perf_counter()
        self.rows[: step.decodes + step.prefill_tokens] @ self.weights
        self.calls += 1
        return time.perf_counter() - begin


cpu = CpuStep()
for rows in (1, 2, 4, 8, 16):
    seconds = [cpu(steptime.Step(rows, rows, ())) for _ in range(15)]
    print(
        f"{rows:2d} rows: {1e3 * np.median(seconds):6.2f} ms a step, "
        f"{1e3 * np.median(seconds) / rows:5.2f} ms a row"
    )

SMALL = side_by_side.at_once(
    Workload.fixed(
        rate=1,
        num_requests=24,
        prompt_tokens=8,
        output_tokens=lengths.lognormal(24, cv=1),
        seed=1,
    )
)
measured = {}
for name, policy in {
    "static": policies.Static(8),
    "continuous": policies.Continuous(8, 256),
}.items():
    cpu.calls = 0
    measured[name] = run = serve(SMALL, policy, cpu)
    wasted, wanted = run.steps.wasted.sum(), run.steps.useful.sum()
    print(
        f"{name:10s} {cpu.calls:3d} steps in {run.makespan:.2f} s, "
        f"{wanted / run.makespan:.0f} tokens/s, "
        f"padding {wasted} of {wasted + wanted} slot-steps"
    )
    assert cpu.calls == len(run.steps) and (run.steps.seconds > 0).all()
    assert run.steps.useful.sum() == SMALL.output_tokens.sum()
assert len(measured["continuous"].steps) < len(measured["static"].steps)
timelines(measured, height=420, note="measured on this CPU")

# %% [markdown]
# The time of a step grows much more slowly than its rows, since all of them share one reading of the 38 MB: that is why
# batching pays. (Between one row and two, NumPy's library changes its routine, and on many CPUs the step jumps.) It is
# also why padding costs so much: a row of padding takes the place of a row that somebody wants. The numbers of steps
# and slot-steps are exact and the same everywhere; the seconds are yours.

# %% [markdown]
# ## Explain
#
# ### The bound
#
# Let a batch have $b$ slots, and answers of $L_1 \dots L_b$ tokens. Static batching runs max(L) steps (a request emits
# one token a step), so it pays for
#
# $$ b \cdot \max(L_1 \dots L_b) \ \text{slot-steps, of which}\ \ L_1 + \dots + L_b \ \text{are wanted.} $$
#
# A continuous batch with a queue that never empties pays for the wanted ones alone. In slot-steps, nobody can save more
# than that. If every step costs the same, the tokens/s follow:
#
# $$ \text{gain} \ =\ \frac{E[\max(L_1 \dots L_b)]}{E[L]} \qquad \text{[tokens/s over tokens/s]} $$
#
# It depends on how far the lengths spread (the longest of a batch moves away from the mean) and on $b$ (more draws,
# longer longest). Below it stands twice: as expected, and of the 2,000 answers that were drawn.

# %%
spreads = (0, 0.1, 0.2, 0.3, 1, 2)
print("modelled H100               " + "".join(f"{f'CV {cv:g}':>9s}" for cv in spreads))
for slots in (8, 32, 128):
    row = [g for g in sweep if g.max_num_seqs == slots and g.output_cv in spreads]
    print(f"{slots:3d} slots  simulated gain   " + "".join(f"{g.gain:9.2f}" for g in row))
    print("           bound, as drawn  " + "".join(f"{g.drawn_bound:9.2f}" for g in row))
    print("           bound, expected  " + "".join(f"{g.bound:9.2f}" for g in row))

same_cost = steptime.PowerLaw(t0=5e-3, c=0, alpha=1)
constant = side_by_side.saturated_gain(
    same_cost, max_num_seqs=32, output_cv=1.0, num_requests=20_000
)
print(
    "if every step took 5 ms, 32 slots, CV 1, 20,000 requests:",
    f"{constant.gain:.2f} / {constant.bound:.2f}",
)

# %% [markdown]
# "20 to 30%" is right for 32 slots at a CV of 0.1. Chat is not like that.
#
# The bound counts slot-steps, so it is exact where every step costs the same. On the modelled card steps differ, and
# the gain is mostly a few per cent *above* the bound of the same draws. Continuous batching computes a prompt in the
# same step as everybody's decodes, so that the weights are read once for both. And a row of padding reads its keys
# and values as well, more of them with every step: with 128 slots and a CV of 2 that makes the difference.
# Prompts pull the other way, since either policy must compute them: with 128 slots and a small CV they are so much of
# the work that the gain stays below.
#
# Where the drawn bound is below the expected one, the draw was kind to static: 2,000 requests are 62 batches of 32, and
# 15 of 128.
#
# ### Capacity by hand
#
# Seconds of a full batch, static: one padded prefill, then a step for each further token of the longest answer.
# Continuous: each step carries the decodes and, now and then, a prompt. Both in tokens/s, next to what the simulator
# does at saturation.

# %%
need = queueing.demand(prompt_tokens=512, output_tokens=256, output_cv=1.0)
longest = queueing.lognormal_gain(batch=32, output_cv=1.0)
by_hand = {
    "static": queueing.static_capacity(need, longest, H100, max_num_seqs=32),
    "continuous": queueing.continuous_capacity(
        need, H100, max_num_seqs=32, max_num_batched_tokens=8192
    ),
}
simulated = next(g for g in sweep if g.max_num_seqs == 32 and g.output_cv == 1.0)
for name, capacity in by_hand.items():
    print(
        f"{name:10s} mean step {1e3 * capacity.step_s:.2f} ms, "
        f"{capacity.requests_per_s:5.2f} requests/s, "
        f"{capacity.output_tokens_per_s:5.0f} tokens/s by hand, "
        f"{getattr(simulated, name):5.0f} simulated"
    )

# %% [markdown]
# That answers the question of this lab. At 6 requests/s the static server is past its capacity, so its queue grows
# for as long as the rush lasts. The same card with continuous batching would stand 18 requests/s: three times this
# rush, and over four times what static can do.
#
# The static numbers are 8% apart, since the longest answers of 62 batches are a small sample. The run at the top is one
# draw as well. At 4 requests/s static is at 97% of its capacity, and there one draw tells little. Twelve others:

# %%
others = [
    serve(three_batchers.chat(rate=4, seed=seed), policies.Static(32), H100)
    for seed in range(1, 13)
]
p95 = [np.percentile(run.e2e, 95) for run in others]
wanted = [side_by_side.slot_utilisation(run) for run in others]
print(
    f"95% are answered within {min(p95):.0f} to {max(p95):.0f} s, median {np.median(p95):.0f} s"
)
print(
    f"wanted slot-steps {min(wanted):.0%} to {max(wanted):.0%}; expected, mean / E[max]: "
    f"{1 / longest.gain:.0%}"
)

# %% [markdown]
# ### What is often said
#
# Five claims you will meet, each next to a number. First: **"the GPU idles once the short sequences of a static batch
# have ended."** It does not idle, it computes padding, and no dashboard shows the difference.

# %%
full = side_by_side.serve_each(
    side_by_side.at_once(CHAT), side_by_side.three_policies(32), H100
)
idle = 1 - full["static"].steps.seconds.sum() / full["static"].makespan
print(f"static at saturation: idle {idle:.0%} of the time,", end=" ")
print(f"padding {1 - side_by_side.slot_utilisation(full['static']):.0%} of the slot-steps")

# %% [markdown]
# **"Utilisation is 50 to 70% with static batching and 80 to 95% with continuous."** The first range belongs to answers
# that differ little; the second is too modest, as long as somebody waits.

# %%
for output_cv in (0.2, 0.3, 0.5, 1, 2):
    share = 1 / queueing.lognormal_gain(batch=32, output_cv=output_cv).gain
    print(f"static, 32 slots, CV {output_cv:3g}: {share:.0%} of the slot-steps are wanted")
print(f"continuous: {side_by_side.slot_utilisation(full['continuous']):.0%}")

# %% [markdown]
# **"Dynamic batching replaces finished sequences one by one."** That describes continuous batching. Dynamic batching
# forms a batch by size or delay, and runs it to the end.

# %%
for name in ("dynamic", "continuous"):
    run = full[name]
    moments = np.unique(run.admitted)
    joined = sum(((run.admitted < t) & (run.response > t)).any() for t in moments)
    print(
        f"{name}: requests were admitted at {len(moments)} moments, "
        f"at {joined} of them while others ran"
    )

# %% [markdown]
# **"Average latency is the duration divided by the number of requests"**, and **"a larger batch of requests shows the
# gain"**: a benchmark sends 100 equal requests at once. But duration / requests is 1 / throughput, not a latency. And
# equal requests in one batch show no gain at all: it comes from spread, and from people who arrive later. (Dynamic
# waits out its 100 ms for 156 requests that never come.) The last lines are for equal answers and people who arrive
# later: the 16 requests of the first explorer, at a spread of 0.

# %%
equal = side_by_side.at_once(
    Workload.fixed(rate=1, num_requests=100, prompt_tokens=6, output_tokens=50)
)
for name, run in side_by_side.serve_each(equal, side_by_side.three_policies(256), H100).items():
    print(
        f"{name:10s} duration {run.makespan:.3f} s, "
        f"duration / requests {1e3 * run.makespan / 100:.1f} ms, "
        f"mean latency {1e3 * run.e2e.mean():.0f} ms"
    )
one_by_one, _ = three_batchers.timelines(
    "drawn", slots=4, output_cv=0.0, rate=10, max_queue_delay=0.1, follow=0
)
for name, run in one_by_one.items():
    print(
        f"{name:10s} equal answers, arriving one by one: "
        f"mean latency {1e3 * run.e2e.mean():.0f} ms"
    )

# %% [markdown]
# **"Queued requests are answered 3 to 5 times sooner."** That depends on the draw. Two batches' worth of chat, all
# there at once, and then 40 other draws of as many:

# %%
both = {
    name: policy
    for name, policy in side_by_side.three_policies(32).items()
    if name != "dynamic"
}
sooner = []
for seed in range(41):
    pair = side_by_side.serve_each(
        side_by_side.at_once(three_batchers.chat(num_requests=64, seed=seed)), both, H100
    )
    sooner.append(pair["static"].e2e.mean() / pair["continuous"].e2e.mean())
low, middle, high = np.percentile(sooner[1:], (10, 50, 90))
print(
    f"this draw: {sooner[0]:.1f} times sooner; others: median {middle:.1f}, "
    f"four in five {low:.1f} to {high:.1f}"
)

# %% [markdown]
# One more, since you are about to write such a loop. A list that shrinks while you walk over it skips whoever comes
# after the one that left:

# %%
tokens_left = {"a": 0, "b": 0, "c": 3}
active = ["a", "b", "c"]
for name in active:
    if tokens_left[name] == 0:
        active.remove(name)
print("still in the batch:", active)

# %% [markdown]
# *b* has ended, and keeps its slot for another step.
#
# ### Where the dynamic batcher still fits
#
# An image classifier, or an audio encoder over windows of 30 s: every request is one step of equal length. The CV is 0,
# so there is no padding and continuous batching has nothing to win. Here is such a service: a step takes 2 ms and 0.25
# ms for each image (made-up numbers), at most 16 images a step. The lines are the share of requests answered within a
# time.
#
# 1. Leave the rate at 1,000 images/s and move the delay from 1 ms to 20 ms. What grows, what shrinks?
# 2. At 2,400 images/s, move the delay from 20 ms to 50 ms. Why does nothing happen any more?

# %%
image_explorer = Explorer(
    three_batchers.image_service,
    controls=[
        Slider("rate", "Arrival rate", 100, 2_600, 100, 1_000, unit="images/s"),
        Slider("delay_ms", "max_queue_delay", 1, 50, 1, 10, unit="ms"),
    ],
    figure=lambda runs: draw.shares(
        runs, dict(zip(runs, ("continuous", "dynamic"), strict=True))
    ),
    summary=three_batchers.image_rows,
    title="Images: 2 ms a step + 0.25 ms an image, at most 16",
)
image_explorer

# %% [markdown]
# With a delay of 0 nobody is held back: whoever waits when the model gets free makes the next batch. For requests of
# one step that is what continuous batching does, to the last bit:

# %%
images = Workload.poisson(rate=1_000, num_requests=2_000, prompt_tokens=1, output_tokens=1)
as_continuous = serve(images, policies.Continuous(16, max_num_batched_tokens=16), IMAGE)
same = np.array_equal(as_continuous.e2e, three_batchers.image_run(1_000, 0.0).e2e)
print("continuous and dynamic without delay give every request the same latency:", same)

# %% [markdown]
# Queueing theory calls this **bulk service**: whoever waits when the server gets free is served together, up to 16. For
# Poisson arrivals the means can be computed exactly. At 1,000 images/s the batches stay small, the GPU is busy nearly
# all the time, and still it could serve 2.7 times as many, since its batches grow with the load.

# %%
no_delay = three_batchers.image_run(1_000, 0.0)
bulk = queueing.bulk_service(
    arrival_rate=1_000, batch_s=[2e-3 + 0.25e-3 * images for images in range(1, 17)]
)
print(
    f"theory:    mean batch {bulk.mean_batch_requests:.2f}, busy {bulk.busy:.0%}, "
    f"mean latency {1e3 * bulk.mean_time_in_system_s:.2f} ms, "
    f"load {bulk.utilisation:.0%} of full batches"
)
print(
    f"simulated: mean batch {len(no_delay) / len(no_delay.steps):.2f}, "
    f"busy {no_delay.steps.seconds.sum() / no_delay.makespan:.0%}, "
    f"mean latency {1e3 * no_delay.e2e.mean():.2f} ms"
)

# %% [markdown]
# Is the delay an upper bound on the time a request waits? At 3,000 images/s, above capacity, with a delay of 10 ms:

# %%
overload = serve(images.scaled(3_000), policies.Dynamic(16, max_queue_delay=0.01), IMAGE)
print(
    "longest wait for a slot in the first 2,000 images: "
    f"{1e3 * overload.queue_wait.max():.0f} ms"
)

# %% [markdown]
# Does a delay raise throughput? Above, people came by themselves, and the model kept up: it delivered what came. A load
# test with a fixed number of clients (a **closed loop**) is another matter. Here each client sends its next image 1 ms
# after the answer to its last:

# %%
for clients in (8, 16):
    clicks = Workload.closed_loop(
        users=clients,
        think_time=1e-3,
        think_cv=0,
        requests_per_user=125,
        prompt_tokens=1,
        output_tokens=1,
    )
    for delay in (0.0, 0.005):
        run = serve(clicks, policies.Dynamic(16, max_queue_delay=delay), IMAGE)
        print(
            f"{clients:2d} clients, delay {1e3 * delay:.0f} ms: "
            f"mean batch {len(run) / len(run.steps):4.1f}, "
            f"{len(run) / run.makespan:5,.0f} images/s"
        )

# %% [markdown]
# Without a delay the clients fall into two groups that take turns. With 16 of them the delay merges the two into a full
# batch; with 8 the batch can never be full, and everybody waits for clients who do not exist.
#
# And in front of an LLM engine that batches by iteration? The chat at 6 requests/s, straight to the engine, and through
# a dynamic batcher that collects up to 32 requests for up to 100 ms:

# %%
engine = policies.Continuous(32, max_num_batched_tokens=8192)
passed_on = side_by_side.batcher_release(CHAT.arrival, max_batch_size=32, max_queue_delay=0.1)
late = Workload(
    arrival=passed_on, prompt_tokens=CHAT.prompt_tokens, output_tokens=CHAT.output_tokens
)
for name, ttft in (
    ("straight to the engine", serve(CHAT, engine, H100).ttft),
    ("through the batcher", serve(late, engine, H100).ttft + passed_on - CHAT.arrival),
):
    print(f"{name:22s} first token, p50 {1e3 * np.median(ttft):.0f} ms")

# %% [markdown]
# Four consequences, for whoever operates Triton:
#
# - **With a delay of 0 there are still batches.** Whoever waits when the model gets free is taken along, so batches
#   grow with the load by themselves. Their sizes vary, and that is fine.
# - **In an open loop below capacity the delay buys time on the GPU, not throughput.** Fewer and fuller steps leave room
#   for another model on the same card. If there is none, a delay only makes everybody wait. In a load test with a fixed
#   number of clients it can raise throughput or lower it: that tells about the test.
# - **The delay is no bound on latency.** It limits how long the batcher *holds* a request that could run, and applies
#   only while the batch is smaller than the preferred (by default the maximum) size. Past capacity people queue for as
#   long as it takes.
# - **A batcher in front of an LLM engine that batches by iteration only delays admission.** The engine mixes requests
#   by itself: send them on at once.

# %% [markdown]
# ## Exercises
#
# ### 1. The waste of one batch
#
# Three requests of 100, 20 and 80 tokens share a static batch of three slots. How many slot-steps are padding?

# %%
answer = None
### BEGIN SOLUTION
answer = sum(100 - tokens for tokens in (100, 20, 80))
### END SOLUTION

# %%
lab.check("waste", answer)

# %% [markdown]
# ### 2. The bound for exponential lengths
#
# Lengths are exponential, so that an answer that still runs is as good as new. What is E[max] / mean for 32 slots?
# Start with two slots: the first to end takes half a mean, since two are running, and the other one needs a whole mean
# more.

# %%
answer = None
### BEGIN SOLUTION
answer = sum(1 / still_running for still_running in range(1, 33))
### END SOLUTION

# %%
lab.check("bound", answer)

# %% [markdown]
# ### 3. Write the refill
#
# The engine calls your function before every step. It returns a dictionary: which request computes how many tokens in
# the next step. A waiting request that gets tokens takes a slot.
#
# - `state.running` and `state.waiting` are tuples of requests, first come first served;
# - `state.max_num_seqs` is the number of slots;
# - `request.remaining` is what a request must compute before it emits its next token: the whole prompt at first, then
#   one token.
#
# Memory and the token budget are not short here. Nobody may stand still while they could run.


# %%
def refill(state):
    tokens = None
    ### BEGIN SOLUTION
    tokens = {request: request.remaining for request in state.running}
    free = state.max_num_seqs - len(state.running)
    for request in state.waiting[:free]:
        tokens[request] = request.remaining
    ### END SOLUTION
    return tokens


# %%
lab.check("refill", refill)

# %% [markdown]
# See your policy at work, next to the one of the package. (The engine checks every answer of a policy, and says what is
# wrong with it in a sentence. While your function is empty, that is what you get.)

# %%
tiny = Workload.poisson(
    rate=10, num_requests=16, prompt_tokens=1024, output_tokens=lengths.lognormal(64, cv=1)
)
theirs = serve(tiny, policies.Continuous(4, max_num_batched_tokens=8192), H100)
picture = None
try:
    mine = serve(tiny, policies.FromFunction(refill, max_num_seqs=4), H100)
    print(
        f"last answer at {mine.response.max():.3f} s with yours, "
        f"{theirs.response.max():.3f} s with the package's"
    )
    picture = timelines({"yours": mine, "continuous": theirs}, follow=5, height=400)
except ValueError as error:
    print(fill(str(error), 90))
picture

# %% [markdown]
# ### 4. The waste on a trace
#
# `answers` holds the lengths of the Azure-style trace in order of arrival. Cut them into batches of 32 (leave out the
# rest at the end). How many slot-steps does static batching pay for each token that somebody wants?

# %%
answers = traces.read(traces.example()).output_tokens
answer = None
### BEGIN SOLUTION
batches = answers[: len(answers) // 32 * 32].reshape(-1, 32)
answer = batches.max(axis=1).sum() * 32 / batches.sum()
### END SOLUTION

# %%
lab.check("trace", answer)

# %% [markdown]
# Now hold your number against the seconds, and see what the prompts add:

# %%
print(
    "slots  static  continuous   gain  E[max] / mean of the answers  prompt tokens computed "
    "/ needed"
)
for slots in (8, 32, 128):
    runs = side_by_side.serve_each(
        side_by_side.at_once(TRACE), side_by_side.three_policies(slots), H100
    )
    rates = {name: side_by_side.saturated_tokens_per_second(run) for name, run in runs.items()}
    bound = queueing.empirical_gain(batch=slots, output_tokens=TRACE.output_tokens).gain
    prompts = runs["static"].steps.prefill_tokens.sum() / TRACE.prompt_tokens.sum()
    print(
        f"{slots:5d} {rates['static']:7,.0f} {rates['continuous']:11,.0f} "
        f"{rates['continuous'] / rates['static']:6.1f}"
        f" {bound:29.2f} {prompts:32.1f}"
    )

# %% [markdown]
# On this trace the gain is larger than the padding of the answers explains. The prompts differ as well, from 3 to 7,651
# tokens, and a static batch pads every one of them to its longest, computes it, and then reads it in every step.

# %% [markdown]
# ## Break it
#
# ### Static at light load
#
# Sunday night, one request every five seconds. Nothing is overloaded.

# %%
night = serve(CHAT.scaled(0.2), policies.Static(max_num_seqs=32), H100)
fill = queueing.static_batching(
    arrival_rate=0.2,
    max_num_seqs=32,
    mean_batch_s=by_hand["static"].step_s * longest.gain * 256,
).mean_fill_s
print(
    f"median answer after {np.median(night.e2e):.0f} s, "
    f"GPU busy {night.steps.seconds.sum() / night.makespan:.0%}"
)
print(f"waiting for 31 others: (32 - 1) / (2 x 0.2) = {fill:.1f} s on average")

# %% [markdown]
# ### A delay of ten seconds
#
# Somebody read that larger batches are more efficient.

# %%
for delay in (0.1, 10.0):
    run = serve(CHAT.scaled(1), policies.Dynamic(32, max_queue_delay=delay), H100)
    batches = (run.steps.prefill_tokens > 0).sum()
    print(
        f"delay {delay:4.1f} s at 1 request/s: mean batch {len(run) / batches:4.1f}, "
        f"median answer {np.median(run.e2e):4.1f} s, "
        f"{run.workload.output_tokens.sum() / run.makespan:.0f} tokens/s"
    )
print(
    "continuous: median answer "
    f"{np.median(serve(CHAT.scaled(1), policies.Continuous(32, 8192), H100).e2e):.1f} s"
)

# %% [markdown]
# ### Between the two capacities
#
# 8 requests/s is above what static can do and less than half of what continuous can. This is what the operator's graph
# shows in the first four minutes.

# %%
rush = side_by_side.serve_each(CHAT.scaled(8), side_by_side.three_policies(32), H100)
for name, run in rush.items():
    print(f"{name}: {' '.join(run.warnings) or 'no warning'}")
draw.waiting_line({name: rush[name] for name in ("static", "continuous")}, until=240)

# %% [markdown]
# The symptom: a queue that grows in a straight line, a GPU that is 100% busy, and tokens/s that do not move, whatever
# the traffic does. A longer time-out or a larger queue only moves the complaint to later.

# %% [markdown]
# ## Take away
#
# 1. A batch that runs as one pays for its longest answer in every slot; the GPU looks busy while it computes padding.
# 2. Continuous batching refills a slot as soon as its answer ends. At saturation it gains about E[max] / mean where
#    prompts are alike, and more where they differ: nothing for equal lengths, about 4 times for chat with 32 slots, and
#    more with more slots.
# 3. Below saturation everybody delivers the offered tokens/s: compare latency or goodput there.

# %%
lab.recap("gain")

# %%
lab.recap("bigger")

# %%
lab.recap("below")

# %%
lab.quiz()

# %% [markdown]
# **The knobs in real engines**
#
# | engine | knob | in this lab |
# |---|---|---|
# | vLLM | `--max-num-seqs` | slots |
# | vLLM | `--max-num-batched-tokens` | tokens a step of `Continuous` |
# | Triton | `dynamic_batching { max_queue_delay_microseconds }` | `Dynamic(max_queue_delay=)`, in seconds here |
# | Triton | `max_batch_size` | slots of `Dynamic` |
# | TensorRT-LLM in Triton | `gpt_model_type: inflight_fused_batching` | `Continuous`; the other, `V1`: `Static` |
# | TensorRT-LLM in Triton | `batch_scheduler_policy: guaranteed_no_evict` (default) | admit only what surely fits |
# | TensorRT-LLM in Triton | `batch_scheduler_policy: max_utilization` | admit what fits now, preempt when it grows |
# | TensorRT-LLM | `capacity_scheduler_policy` | the same outside Triton; also `STATIC_BATCH`, like `Static` |
#
# The script `fill_template.py` of TensorRT-LLM's Triton backend calls the first of its rows `batching_strategy`.
#
# **What to read next**
#
# - Yu et al., *Orca: A Distributed Serving System for Transformer-Based Generative Models*, OSDI 2022: iteration-level
#   scheduling.
# - Kwon et al., *Efficient Memory Management for Large Language Model Serving with PagedAttention*, SOSP 2023,
#   arXiv:2309.06180.
# - Agrawal et al., *Taming Throughput-Latency Tradeoff in LLM Inference with Sarathi-Serve*, OSDI 2024,
#   arXiv:2403.02310: what a long prompt does to everybody else in a continuous batch, and chunked prefill against it.
