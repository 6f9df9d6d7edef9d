# %% [markdown]
# # Lab 03: Little's law

# %%
import os
import time
from textwrap import fill

# For "Measure": what is timed must not depend on who else uses the cores.
os.environ["OPENBLAS_NUM_THREADS"] = "1"
import numpy as np
from course import Workload, lengths, policies, queueing, serve, steptime
from course.exercises import Lab
from course.explore import Choice, Explorer, Slider
from course.lessons.lab03 import figures as draw
from course.lessons.lab03 import one_engine
from course.steptime import Step

lab = Lab("03")

# %% [markdown]
# ## The question
#
# One H100 serves Llama-3.1-8B with continuous batching. Prompts have 512 tokens; answers have 256 on average, some 20
# and some 2,000. Ten requests arrive per second. By step times recorded on such a card, users see their first token
# after 19 ms on average, 35 ms at the 99th percentile, and the GPU runs at 61% of what it can do. Next month there
# will be fourteen requests per second.
#
# Three questions, before anybody buys a second GPU: **how many requests will be in the system, how long will they
# wait, and how many can one GPU take?** A formula of 1961 answers the first for any policy and any model, one line of
# arithmetic the last. For the one in the middle you need to know how a batch shares the GPU.

# %%
today = serve(one_engine.requests(rate=10), one_engine.engine(), one_engine.STEP)
print(
    f"TTFT mean {today.ttft.mean() * 1e3:.0f} ms, "
    f"p99 {np.percentile(today.ttft, 99) * 1e3:.0f} ms"
)
print(f"E2E  mean {today.e2e.mean():.2f} s")
print(
    f"load {10 / one_engine.capacity():.0%} of a capacity of {one_engine.capacity():.1f} "
    f"requests/s ({one_engine.capacity(step_time=one_engine.ROOFLINE):.1f} by the roofline)"
)

# %% [markdown]
# The words, once:
#
# - A **request** is one prompt with its answer. A **step** is one forward pass; it moves every request in the batch on
#   by one token. A **slot** is room for one request in the batch: there are 32 (`max_num_seqs`).
# - **TTFT** is the time from arrival to the first token, **E2E** from arrival to the last.
# - The **arrival rate** λ counts requests per second. **Capacity** is the rate the engine sustains when somebody always
#   waits. **Load** is λ / capacity.
# - A request is **in the system** from its arrival to its last token, waiting or running.
# - The **coefficient of variation** (CV) is standard deviation / mean. Gaps between **Poisson** arrivals, those of many
#   independent users, have a CV of 1; a clock has 0; bursts have more.
#
# Numbers carry a badge. *Recorded* ones come from step times that were recorded on an H100, with the course's own
# kernels; a real vLLM adds scheduling, sampling and HTTP. *Modelled* ones come from a roofline of that card: what a
# step must read, against measured bandwidth, and what it must compute, against measured peak. *Theory* is queueing
# theory, on recorded steps. *Measured* ones come from the machine you sit at.

# %% [markdown]
# ## Predict
#
# Commit to an answer before you see one. Your answers are kept, and the lab comes back to them at the end.

# %%
lab.predict("p99")

# %%
lab.predict("bursts")

# %%
lab.predict("window")

# %% [markdown]
# ## Explore
#
# ### Load and bursts
#
# Each move serves 2,000 requests and puts three marks on the picture. The lines are theory for Poisson arrivals, from
# the section "Explain" below; note that the time axis is logarithmic.
#
# 1. Go from 10 to 14 requests/s, step by step. Which of the three marks moves, and where does it leave the floor?
# 2. Back to 10. Raise the CV of the gaps from 1 to 4. The rate is the same; what does theory know of it?
# 3. At 17 requests/s with a CV of 1, double the slots. What happens to the capacity line, to TTFT, and to E2E?
# 4. Replay the trace instead. Its prompts are longer, and its gaps nearly Poisson: a CV of 1.05 (the CV slider then
#    does nothing). Where is its capacity?

# %%
load_explorer = Explorer(
    one_engine.under_load,
    controls=[
        Slider("rate", "Arrival rate", 2.0, 30.0, 0.5, 10.0, unit="requests/s"),
        Slider("arrival_cv", "Spread of the gaps (CV)", 0.0, 5.0, 0.5, 1.0),
        Choice("max_num_seqs", "Slots (max_num_seqs)", [16, 32, 64, 128], 32),
        Choice(
            "kind", "Requests", [("drawn", "drawn"), ("Azure-style trace", "trace")], "drawn"
        ),
    ],
    figure=draw.latency_against_load,
    summary=one_engine.comparison,
    title="One engine under load",
    badge=one_engine.STEP.badge,
)
load_explorer

# %% [markdown]
# ### The number in the system
#
# The jagged line counts who is in the system. Its mean over the shaded window is **L**, what a gauge shows. The dashed
# level is λ W: the arrival rate in the window times the mean E2E of those who arrived in it.
#
# 1. Make the window longer, up to 60 s. How far apart are the two levels now?
# 2. Put a short window where the line falls, then where it rises. Which side is too large, and why?
# 3. Read the table: what has to be added to λ W, and what taken off, so that nothing is left unexplained?

# %%
window_explorer = Explorer(
    one_engine.window,
    controls=[
        Slider("rate", "Arrival rate", 4.0, 17.0, 1.0, 14.0, unit="requests/s"),
        Slider("arrival_cv", "Spread of the gaps (CV)", 0.0, 5.0, 0.5, 1.0),
        Slider("start", "Window starts at", 0, 80, 5, 70, unit="s"),
        Slider("length", "Window length", 1, 60, 1, 10, unit="s"),
    ],
    figure=draw.number_over_time,
    summary=one_engine.window_rows,
    title="Little's law in a window",
    badge=one_engine.STEP.badge,
)
window_explorer

# %% [markdown]
# ## Measure
#
# Nothing in Little's law is about GPUs, so it must hold on your CPU. `NumpyStep` is a step-time model that does real
# work: it multiplies the rows of a batch with four weight matrices of 16 MiB and returns the seconds this took. The
# same policy object as above decides who runs; arrivals follow the simulated clock, and every step adds its measured
# time.
#
# Badge: **measured** on this machine's CPU. Your numbers will differ from those printed here, and from run to run. What
# the cells assert holds on any machine.


# %% tags=["nbval-ignore-output"]
class NumpyStep:
    """One step of a toy model: every weight is read once, for all tokens of the step."""

    def __init__(self, width=2048, layers=4):
        rng = np.random.default_rng(0)
        self.weights = [
            rng.standard_normal((width, width), dtype=np.float32) / width**0.5
            for _ in range(layers)
        ]

    def __call__(self, step):
        x = np.ones(
            (step.decodes + step.prefill_tokens, len(self.weights[0])), dtype=np.float32
        )
        start = time.perf_counter()
        for weight in self.weights:
            x = np.tanh(x @ weight)
        return time.perf_counter() - start


cpu = NumpyStep()
cpu(Step(16, 16, ()))  # the first call starts threads and touches memory
typical = {b: float(np.median([cpu(Step(b, b, ())) for _ in range(9)])) for b in (1, 4, 16)}
for b, seconds in typical.items():
    print(f"batch {b:2d}: {seconds * 1e3:6.2f} ms a step, {b / seconds:7.0f} tokens/s")
assert typical[16] < 16 * typical[1], (
    "sixteen sequences in one step must cost less than sixteen steps of one"
)

# %% [markdown]
# A step of 16 costs far less than 16 steps of one: the weights are read once for all rows. (Between one row and four,
# NumPy's library changes its routine, and on many CPUs the step jumps.)
#
# Now an engine with 16 slots on those steps, at about half of what it can do: 80 requests of 4 prompt tokens and 16
# output tokens.

# %% tags=["nbval-ignore-output"]
cpu_rate = 0.5 * 16 / (16 * typical[16])  # requests/s: slots / (tokens x seconds a step)
cpu_load = Workload.poisson(
    rate=cpu_rate, num_requests=80, prompt_tokens=4, output_tokens=16, seed=0
)
real = serve(cpu_load, policies.Continuous(max_num_seqs=16, max_num_batched_tokens=64), cpu)
law = real.little()
print(
    f"measured: {len(real.steps)} steps, "
    f"median {np.median(real.steps.seconds) * 1e3:.2f} ms, on this machine's CPU"
)
print(f"L  from counting who is there     {law.L:.3f} requests")
print(
    f"λ  {law.arrival_rate:.3f}/s  x  W  {law.W:.3f} s      = {law.arrival_rate * law.W:.3f} "
    "requests"
)
half = real.little(0, real.makespan / 2)
print(
    f"first half: L {half.L:.3f}, λ W {half.arrival_rate * half.W:.3f}, "
    f"with its edges {half.L - half.residual:.3f}"
)
assert abs(law.residual) < 1e-9 * max(law.L, 1) and abs(half.residual) < 1e-9 * max(half.L, 1)
assert (real.ttft > 0).all() and (real.e2e >= real.ttft).all()

# %% [markdown]
# The measured times are noisy, and the two sides still agree to the last digit. Little's law is no model that fits well
# or badly: it is two ways to add up the same seconds, by the clock and by the request.

# %% [markdown]
# ## Explain
#
# ### Little's law
#
# $$L = \lambda W + I - O$$
#
# | symbol | meaning | unit |
# |---|---|---|
# | $L$ | mean number in the system over a window of $T$ seconds | requests |
# | $\lambda$ | arrivals in the window / $T$ | requests/s |
# | $W$ | mean E2E of those arrivals | s |
# | $I$ | carried in: seconds that earlier arrivals still stay inside the window / $T$ | requests |
# | $O$ | carried out: seconds that its own arrivals stay after its end / $T$ | requests |
#
# Over a run that starts and ends empty $I = O = 0$, and $\lambda$ is the number of requests over the
# **whole** time, the last answer included. No word about Poisson, about the policy, or about equal steps. So it holds
# for static batching, for a queue that grows without end, and for a trace:

# %%
cases = {
    "continuous, Poisson": (one_engine.requests(14), one_engine.engine()),
    "continuous, bursts (CV 4)": (one_engine.requests(14, arrival_cv=4), one_engine.engine()),
    "continuous, overloaded": (one_engine.requests(24), one_engine.engine()),
    "static, 32 slots": (one_engine.requests(4), policies.Static(max_num_seqs=32)),
    "Azure-style trace": (one_engine.trace(), one_engine.engine()),
}
print("                                 λ       W      λ W        L   the same?")
for name, (load, policy) in cases.items():
    law = serve(load, policy, one_engine.STEP).little()
    product = law.arrival_rate * law.W
    same = "yes" if abs(product - law.L) < 1e-9 * law.L else "no"
    print(
        f"{name:26s} {law.arrival_rate:6.2f}/s {law.W:5.2f} s {product:7.2f}  {law.L:7.2f}   "
        f"{same}"
    )

# %% [markdown]
# ### One slot: M/D/1, M/M/1, M/G/1
#
# Little's law ties three numbers together; it does not say how long anybody waits. For that one needs a model of the
# queue. The simplest is one server, here `max_num_seqs=1`: Poisson arrivals (the first M), service times of any
# distribution (G, for general), one server. Pollaczek (1930) and Khinchine (1932) found the mean wait:
#
# $$W_q = \frac{\rho\, S\, (1 + CV^2)}{2\,(1 - \rho)}$$
#
# | symbol | meaning | unit |
# |---|---|---|
# | $W_q$ | mean wait before service | s |
# | $S$, $CV$ | mean and coefficient of variation of the service time | s, none |
# | $\rho = \lambda S$ | load | none |
#
# Equal services (CV 0) are called M/D/1, exponential ones (CV 1) M/M/1: twice the wait. Load enters through
# $1/(1-\rho)$, the spread of lengths through $CV^2$. Both are there with one slot and the model's step times:

# %%
ONE = one_engine.engine(max_num_seqs=1)
equal = Workload.poisson(
    rate=1, num_requests=10_000, prompt_tokens=512, output_tokens=256, seed=0
)
print("one slot, load 0.5      service    CV   wait: theory  simulated")
for name, load in {
    "equal answers (M/D/1)": equal,
    "drawn answers (M/G/1)": one_engine.requests(1, 1, 10_000),
}.items():
    # One request in three hours: nobody waits.
    service = serve(load.scaled(1e-4), ONE, one_engine.STEP).e2e
    mean, cv = service.mean(), service.std() / service.mean()
    theory = queueing.mg1(arrival_rate=0.5 / mean, mean_service_s=mean, service_cv=cv)
    run = serve(load.scaled(0.5 / mean), ONE, one_engine.STEP)
    print(
        f"{name:22s}{mean:7.2f} s  {cv:4.2f}  {theory.mean_wait_s:9.2f} s  "
        f"{run.queue_wait.mean():7.2f} s"
    )
print(f"capacity of one slot: {1 / mean:.2f} requests/s")

# %% [markdown]
# One slot sustains 0.77 requests/s, and 32 slots sustain 16: that is what batching buys.
#
# ### 32 slots: which formula fits batching?
#
# **M/M/c** (Erlang, 1917) has c servers that do not disturb each other. It seems to fit 32 slots, and misses what
# batching is about: a step takes longer with more sequences in it, so everybody slows everybody down. **Processor
# sharing** says that. With n requests in the system, min(n, 32) are in the batch and finish at μ(n) requests/s in all;
# the number in the system moves up at rate λ and down at rate μ(n), so each state is λ/μ(n) times as likely as the
# one before:
#
# $$p(n) = p(0) \prod_{i=1}^{n} \frac{\lambda}{\mu(i)} \qquad L = \sum_n n\,p(n) \qquad W = L / \lambda$$
#
# $p(n)$ is the share of time with $n$ in the system (no unit), $\mu(n)$ comes from the step times, and the last
# equation is Little's law.

# %%
service = serve(one_engine.requests(1e-4), one_engine.engine(), one_engine.STEP).e2e.mean()
print("load   rate      E2E: M/M/c  sharing  simulated   error of sharing")
for share in (0.3, 0.55, 0.7, 0.8, 0.9):
    rate = share * one_engine.capacity()
    erlang = queueing.mmc(
        arrival_rate=rate, service_s=service, servers=32
    ).mean_time_in_system_s
    sharing = one_engine.forecast(rate).mean_e2e_s
    run = serve(
        one_engine.requests(rate, num_requests=20_000), one_engine.engine(), one_engine.STEP
    )
    error = sharing / run.e2e.mean() - 1
    print(
        f"{share:4.2f}  {rate:5.2f}/s  {erlang:9.2f} s {sharing:6.2f} s "
        f"{run.e2e.mean():8.2f} s {error:+13.1%}"
    )
print(
    f"capacity: M/M/c {32 / service:.1f}/s (32 slots / {service:.2f} s), "
    f"sharing {one_engine.capacity():.1f}/s"
)

# %% [markdown]
# Sharing has conditions of its own. Arrivals must be Poisson. While nobody waits, the spread of the answers hardly
# matters, only their mean. Those who wait are served in order of arrival, and there the chain of states assumes
# answers with a CV of about 1. At 90% of capacity many wait, and the spread tells:

# %%
limits = {"max_num_seqs": 32, "max_num_batched_tokens": 2048}
print("load 0.9, answers      E2E: theory  simulated      p99 of the wait: theory  simulated")
for cv in (0, 1, 2):
    need = queueing.demand(prompt_tokens=512, output_tokens=256, output_cv=cv)
    rate = 0.9 * queueing.continuous_capacity(need, one_engine.STEP, **limits).requests_per_s
    known = queueing.continuous_batching(need, one_engine.STEP, arrival_rate=rate, **limits)
    answers = lengths.lognormal(256, cv)
    load = Workload.poisson(
        rate=rate, num_requests=20_000, prompt_tokens=512, output_tokens=answers, seed=0
    )
    run = serve(load, one_engine.engine(), one_engine.STEP)
    print(
        f"CV {cv}, {rate:.1f} requests/s {known.mean_e2e_s:12.2f} s {run.e2e.mean():8.2f} s "
        f"{known.sharing.wait_percentile_s(0.99):22.1f} s "
        f"{np.percentile(run.queue_wait, 99):8.1f} s"
    )

# %% [markdown]
# M/M/c asks for more: exponential service times, steps that cost the same whatever they hold, and short ones, since
# nobody starts in the middle of a step. With constant steps and geometric answers (exponential ones in whole tokens) of
# four tokens on average the first two hold, and Erlang says that 6% of the requests wait. Nearly all do, for the step
# in progress. `stepped_servers` knows the step boundary:

# %%
step_s, tokens = 0.01, 4
rate = 0.5 * 8 / (tokens * step_s)  # a load of 0.5 on 8 slots
answers = lengths.geometric(tokens)
load = Workload.poisson(
    rate=rate, num_requests=20_000, prompt_tokens=1, output_tokens=answers, seed=0
)
run = serve(
    load,
    policies.Continuous(max_num_seqs=8, max_num_batched_tokens=8),
    steptime.PowerLaw(step_s, 0, 1),
)
erlang = queueing.mmc(arrival_rate=rate, service_s=tokens * step_s, servers=8)
stepped = queueing.stepped_servers(
    arrival_rate=rate, step_s=step_s, mean_tokens=tokens, max_num_seqs=8
)
waited = (run.queue_wait > 0).mean()
print(
    f"share of requests that wait:  M/M/c {erlang.p_wait:.1%}   stepped "
    f"{stepped.p_wait:.1%}   simulated {waited:.1%}"
)

# %% [markdown]
# ### Why the p99 of TTFT explodes long before its mean
#
# In M/M/1 the time in the system is exponential: its p99 is ln 100 = 4.6 times its mean at every load, so both explode
# together. With many slots a request waits for one only if it finds all of them taken. While fewer than 1 in 100 do,
# the p99 of TTFT shows no queue at all. Above that the p99 *is* the queue, and the mean still hardly sees it.

# %%
print("rate    find all slots taken   p99 TTFT   mean TTFT   (theory)")
for rate in (10, 11, 12, 13, 14, 16):
    known = one_engine.forecast(rate)
    p99, mean = known.ttft_percentile_s(0.99), known.mean_ttft_s
    print(f"{rate}/s {known.sharing.p_wait:18.2%} {p99 * 1e3:14.0f} ms {mean * 1e3:8.0f} ms")

# %% [markdown]
# That was theory. The simulator, on 2,000 requests a line, and once more with bursts: they fill the slots at a load at
# which Poisson arrivals hardly ever do, and no formula on this page knows of them.

# %%
print("simulated       find all slots taken   mean TTFT       p95       p99")
for rate, cv in ((10, 1), (14, 1), (10, 4)):
    run = serve(one_engine.requests(rate, arrival_cv=cv), one_engine.engine(), one_engine.STEP)
    mean, (p95, p99) = run.ttft.mean(), np.percentile(run.ttft, (95, 99))
    taken = one_engine.slots_taken(run)
    print(
        f"{rate}/s, gaps CV {cv} {taken:16.1%} {mean * 1e3:14.0f} ms {p95 * 1e3:6.0f} ms "
        f"{p99 * 1e3:6.0f} ms"
    )

# %% [markdown]
# Each line is one draw of 2,000 requests. A percentile that a queue makes hangs on few busy spells, so it differs a
# lot from draw to draw, and a load test of three minutes is one draw:


# %%
def ttft_percentile(rate, cv, percent, num_requests=2_000, seed=0):
    load = one_engine.requests(rate, cv, num_requests, seed)
    return np.percentile(serve(load, one_engine.engine(), one_engine.STEP).ttft, percent)


print("TTFT               20 other draws: least   median     most   100,000 requests")
for rate, cv, percent in ((10, 1, 99), (14, 1, 99), (10, 4, 95)):
    draws = [ttft_percentile(rate, cv, percent, seed=seed) for seed in range(1, 21)]
    low, middle, high = np.percentile(draws, (0, 50, 100)) * 1e3
    long = ttft_percentile(rate, cv, percent, num_requests=100_000) * 1e3
    print(
        f"{rate}/s, gaps CV {cv}, p{percent} {low:17.0f} ms {middle:5.0f} ms {high:5.0f} ms "
        f"{long:15.0f} ms"
    )

# %%
loads = np.linspace(0.05, 0.98, 60)
single = [queueing.mm1(arrival_rate=load, service_s=1) for load in loads]
batched = [one_engine.forecast(load * one_engine.capacity()) for load in loads]
draw.tail_over_mean(
    loads,
    {
        "M/M/1, time in system": [
            q.time_in_system_percentile_s(0.99) / q.mean_time_in_system_s for q in single
        ],
        "32 slots, TTFT": [q.ttft_percentile_s(0.99) / q.mean_ttft_s for q in batched],
    },
)

# %% [markdown]
# ### Capacity by hand
#
# When somebody always waits, all $B$ slots are taken. Each step moves $B$ requests on by one token, so a request of $N$
# tokens costs $N/B$ steps. One of them carries its prompt as well:
#
# $$\frac{1}{\text{capacity}} = \left(\frac{N}{B} - 1\right) t_{\text{decode}} + t_{\text{with prompt}}$$
#
# | symbol | meaning | here |
# |---|---|---|
# | $N$ | mean answer, tokens | 256 |
# | $B$ | slots | 32 |
# | $t_{\text{decode}}$ | seconds of a step with $B$ decodes | see below |
# | $t_{\text{with prompt}}$ | seconds of a step with $B - 1$ decodes and one prompt | see below |
#
# How much context does a decode read? Its prompt and what it has said so far. Long answers decode more often, so an
# average decode sees $N (1 + CV^2) / 2$ tokens of answer: with a CV of 1 a whole mean answer, 512 + 256 = 768 tokens.

# %%
B, context = 32, 768
decode = one_engine.STEP(Step(B, B * context, ()))
with_prompt = one_engine.STEP(Step(B - 1, (B - 1) * context, ((512, 0),)))
alone = one_engine.STEP(Step(1, context, ()))
print(f"a step with 1 decode              {alone * 1e3:6.2f} ms")
print(f"a step with 32 decodes            {decode * 1e3:6.2f} ms")
print(f"a step with 31 decodes, 1 prompt  {with_prompt * 1e3:6.2f} ms")
full = serve(
    one_engine.requests(1e6, num_requests=20_000), one_engine.engine(), one_engine.STEP
)
print(
    f"served when somebody always waits {len(full) / full.makespan:6.2f} requests/s (simulated)"
)

# %% [markdown]
# Exercise 3 puts these together. The formula asks for memory enough for the K and V of $B$ requests, and for steps
# with at most one prompt, which fits the token budget beside the decodes. Two prompts in one step cost more than
# twice one: by the roofline a first prompt of 512 tokens adds 4.9 ms to a step with 31 decodes and a second one 9.3,
# on the recorded card 9.2 and 11.3, since the first hides in part behind the reading of the weights. So $N$ must be
# several times $B$, and answers must differ: equal ones that start together also end together, and the next prompts
# start together again.

# %%
print("32 slots: answers     formula against simulation")
for tokens, cv in ((256, 1), (128, 1), (64, 1), (32, 1), (256, 0)):
    need = queueing.demand(prompt_tokens=512, output_tokens=tokens, output_cv=cv)
    formula = queueing.continuous_capacity(need, one_engine.STEP, **limits).requests_per_s
    answers = lengths.lognormal(tokens, cv)
    load = Workload.poisson(
        rate=1e6, num_requests=20_000, prompt_tokens=512, output_tokens=answers, seed=0
    )
    full = serve(load, one_engine.engine(), one_engine.STEP)
    print(
        f"mean {tokens:3d} tokens, CV {cv} {formula / (len(full) / full.makespan) - 1:+10.0%}"
    )

# %% [markdown]
# ### The same on a trace
#
# The course ships a trace in the format of the Azure LLM inference traces (synthetic, 2,000 requests): prompts of 1,161
# tokens on average, answers of 258, gaps with a CV of 1.05. Theory takes its mean lengths and contexts, and knows
# nothing else.

# %%
trace = one_engine.trace()
kind = one_engine.TRACE
full = serve(trace.scaled(1e6), one_engine.engine(), one_engine.STEP)
print(
    f"capacity: by hand {one_engine.capacity(kind=kind):.2f}/s, "
    f"simulated {len(full) / full.makespan:.2f}/s"
)
print("rate      E2E: theory  simulated      mean TTFT: theory  simulated")
for rate in (4, 6, 8, 10):
    known = one_engine.forecast(rate, kind=kind)
    run = serve(trace.scaled(rate), one_engine.engine(), one_engine.STEP)
    print(
        f"{rate:2d}/s {known.mean_e2e_s:13.2f} s {run.e2e.mean():8.2f} s "
        f"{known.mean_ttft_s * 1e3:19.0f} ms {run.ttft.mean() * 1e3:7.0f} ms"
    )

means = []
for seed in range(20):
    rng = np.random.default_rng(seed)
    gaps, rows = rng.permutation(np.diff(trace.arrival)), rng.permutation(len(trace))
    prompts, answers = trace.prompt_tokens[rows], trace.output_tokens[rows]
    load = Workload(
        arrival=np.append(0, np.cumsum(gaps)), prompt_tokens=prompts, output_tokens=answers
    ).scaled(10)
    means.append(serve(load, one_engine.engine(), one_engine.STEP).ttft.mean() * 1e3)
print(
    "10/s, the same gaps and requests in 20 other orders: "
    f"mean TTFT {min(means):.0f} to {max(means):.0f} ms"
)

# %% [markdown]
# E2E fits up to 8 requests/s. At 10 it does not, and TTFT even less: near capacity the queue remembers every busy
# spell, and 2,000 requests hold few of them. Theory gives the mean over all traffic of that kind; one trace is one
# draw, and the same requests in another order are another.
#
# ### Rules that do not survive a check
#
# You will meet these in blog posts, and in some dashboards. Each line computes one on the run at 14 requests/s.

# %%
run = serve(one_engine.requests(14), one_engine.engine(), one_engine.STEP)
tokens, tpot, e2e = run.workload.output_tokens, np.nanmean(run.tpot), run.e2e.mean()
many = tokens > 1
off = [abs(run.ttft + n * run.tpot - run.e2e)[many].mean() for n in (tokens - 1, tokens)]
decoding = float(run.steps.decodes @ run.steps.seconds) / run.makespan
print("time to last token = TTFT + N x TPOT?")
print(
    f"   off by {off[1] * 1e3:.2f} ms, one token too many; "
    f"with N - 1 off by {off[0] * 1e3:.2f} ms"
)
print("tokens/s = 1 / TPOT?")
print(
    f"   {1 / tpot:.0f}, measured {tokens.sum() / run.makespan:.0f}; "
    f"number decoding / TPOT = {decoding / tpot:.0f}"
)
print("mean latency = duration / requests?")
print(
    f"   {run.makespan / len(run):.3f} s, and the mean E2E is {e2e:.2f} s: "
    "that is 1 / throughput, too small by L"
)

# %% [markdown]
# The second and third are Little's law with L forgotten: tokens/s = (number decoding) / TPOT, and E2E = L / rate.
#
# Two more are about an **admission window**, the delay D that a batcher waits for company. "The mean wait is half the
# window" holds if windows run all the time. If the first arrival opens the window, that one waits all of D, and the
# mean wait is D (1 + λD/2) / (1 + λD), as long as the batch never fills and the engine is free when the window closes.
# And "a window of 6 ms makes batches of 16" forgets that a batch is a number in a system. With 80 requests/s of 32
# tokens and a step of 0.57 + 0.083 b ms, Little's law gives b = λ N t(b) if b stood still; processor sharing lets it
# vary.

# %%
D, rate = 0.006, 80
opened = D * (1 + rate * D / 2) / (1 + rate * D)
load = Workload.poisson(
    rate=rate, num_requests=20_000, prompt_tokens=1, output_tokens=1, seed=0
)
run = serve(
    load, policies.Dynamic(max_num_seqs=1_000, max_queue_delay=D), steptime.PowerLaw(1e-6, 0, 1)
)
print("mean wait in a window of 6 ms")
print(
    f"   half of it {D / 2 * 1e3:.2f} ms, formula {opened * 1e3:.2f} ms, "
    f"simulated {run.queue_wait.mean() * 1e3:.2f} ms"
)

t0, c, N = 0.567e-3, 0.0833e-3, 32
still = rate * N * t0 / (1 - rate * N * c)  # b = rate N (t0 + c b), solved for b
sharing = queueing.processor_sharing(
    arrival_rate=rate, rates=[n / (N * (t0 + c * n)) for n in range(1, 17)]
)
load = Workload.poisson(
    rate=rate, num_requests=20_000, prompt_tokens=1, output_tokens=N, seed=0
)
run = serve(
    load,
    policies.Continuous(max_num_seqs=16, max_num_batched_tokens=16),
    steptime.PowerLaw(t0, c, 1),
)
mean_batch = run.steps.running @ run.steps.seconds / run.makespan
print("mean batch with room for 16")
print(
    f"   standing still {still:.2f}, sharing {sharing.mean_in_batch_requests:.2f}, "
    f"simulated {mean_batch:.2f}"
)

# %% [markdown]
# ## Exercises
#
# ### 1. The number in the system
#
# `run` serves 17 requests/s to the last answer. Give **L**, the mean number in the system over the whole run, from its
# request times alone: `run.e2e`, `run.ttft` (arrays, seconds), `run.makespan` (seconds), `len(run)`.

# %%
run = serve(one_engine.requests(rate=17), one_engine.engine(), one_engine.STEP)

answer = None
### BEGIN SOLUTION
answer = len(run) / run.makespan * run.e2e.mean()
### END SOLUTION

# %%
lab.check("little", answer)

# %% [markdown]
# ### 2. One slot, equal requests
#
# An embedding server takes one request at a time, 50 ms each. 16 requests arrive per second (Poisson). How many seconds
# does a request wait before its service starts, on average?

# %%
wait_s = None
### BEGIN SOLUTION
wait_s = queueing.md1(arrival_rate=16, service_s=0.050).mean_wait_s
### END SOLUTION

# %%
lab.check("md1", wait_s)

# %% [markdown]
# ### 3. Capacity by hand
#
# Write the formula of "Capacity by hand" as a function. `step_time(Step(decodes, decode_context, chunks))` gives the
# seconds of a step: `decodes` sequences that attend to `decode_context` tokens in all, and `chunks`, a tuple of
# (prompt tokens, tokens already in the cache): `((512, 0),)` is one whole prompt of 512, `()` is none.


# %%
def capacity(step_time, prompt, output, context, slots):
    """Requests/s that `slots` slots sustain; all in tokens, the context for one decode."""
    ### BEGIN SOLUTION
    decode = step_time(Step(slots, slots * context, ()))
    with_prompt = step_time(Step(slots - 1, (slots - 1) * context, ((prompt, 0),)))
    return 1 / ((output / slots - 1) * decode + with_prompt)
    ### END SOLUTION


# %%
lab.check("capacity", capacity)

# %% [markdown]
# ### 4. The rate an SLO allows
#
# An **SLO** is a promise on a percentile: here, 99 of 100 requests see their first token within 200 ms. Which is the
# largest rate that keeps it? Try rates in steps of 0.1 requests/s with `one_engine.forecast(rate)`; its
# `ttft_percentile_s(share)` gives seconds. At and above capacity it refuses.

# %%
best = None
### BEGIN SOLUTION
for rate in np.arange(1, one_engine.capacity(), 0.1):
    if one_engine.forecast(float(rate)).ttft_percentile_s(0.99) <= 0.200:
        best = rate
### END SOLUTION

# %%
lab.check("slo", best)

# %%
if best is not None:  # what the simulator says of your rate
    trial = serve(
        one_engine.requests(float(best), num_requests=40_000),
        one_engine.engine(),
        one_engine.STEP,
    )
    print(
        f"{best:.1f} requests/s: p99 TTFT {np.percentile(trial.ttft, 99) * 1e3:.0f} ms "
        "simulated"
    )

# %% [markdown]
# ## Break it
#
# Capacity is 16 requests/s. A campaign brings 20. Every formula above refuses to answer, and this is why: the queue
# grows by 4 requests each second, and there is no mean for it to settle on.

# %%
try:
    one_engine.forecast(20)
except ValueError as error:
    print(fill(str(error), 96))

# %%
runs = {
    f"{rate}/s": serve(
        one_engine.requests(rate, 1, 4_000), one_engine.engine(), one_engine.STEP
    )
    for rate in (15, 20)
}
draw.overload(runs, {"20/s": 20 - one_engine.capacity()})

# %% [markdown]
# What an operator sees, in this order: the number running stands at 32 and does not move. The number waiting climbs in
# a straight line. TTFT climbs with it, for everybody, while TPOT levels off at 7.6 ms. Tokens/s look excellent: they
# are at their maximum. A test of one minute shows a mean TTFT of 6 s, one of a quarter of an hour shows 93 s. The
# number tells how long you measured, and nothing else:

# %%
print("at 20/s:   requests   lasted   served/s   mean TTFT   p99 TTFT   TPOT")
for count in (1_000, 4_000, 16_000):
    run = serve(one_engine.requests(20, 1, count), one_engine.engine(), one_engine.STEP)
    p99, tpot = np.percentile(run.ttft, 99), np.nanmean(run.tpot)
    print(
        f"{count:17,d} {run.makespan:8.0f} s {len(run) / run.makespan:8.2f} "
        f"{run.ttft.mean():10.1f} s {p99:8.1f} s {tpot * 1e3:6.2f} ms"
    )
print(fill(f"Warning of the last run: {run.warnings[0]}", 96))

# %% [markdown]
# Three ways out, and Little's law names them: fewer arrivals (shed load, limit the rate), more capacity (slots while
# memory lasts, another GPU), or shorter stays (shorter answers, faster steps). A larger queue is none.
#
# ## Take away
#
# 1. **L = λ W** holds on every run, for every policy. Any two of gauge, rate and latency give the third; a short window
#    needs its edge terms.
# 2. **Capacity** is one line: tokens / slots steps a request, one of them with its prompt. Plan with the rate your SLO
#    allows, which is far below: here 11.7 of 16.3 requests/s.
# 3. With many slots the **p99 of TTFT leaves the floor when 1% of the arrivals find all slots taken**. Bursts do that
#    at loads where Poisson arrivals never would: gaps of CV 4 from about 3 requests/s on, a fifth of capacity. Watch
#    that share, not the mean.
#
# What you predicted, beside what the lab showed:

# %%
lab.recap("p99")

# %%
lab.recap("bursts")

# %%
lab.recap("window")

# %% [markdown]
# ### Quiz

# %%
lab.quiz()

# %% [markdown]
# ### In a real engine
#
# | here | vLLM |
# |---|---|
# | slots | `--max-num-seqs` |
# | tokens a step | `--max-num-batched-tokens` |
# | number in the system | gauges `vllm:num_requests_running` + `vllm:num_requests_waiting` |
# | requests/s | `sum(rate(vllm:request_success_total[5m]))`: one series for each reason to finish |
# | W | `vllm:e2e_request_latency_seconds` (sum / count over the same window) |
# | all slots taken | share of scrapes with `vllm:num_requests_waiting` > 0 (also when KV blocks run short) |
# | arrival rate and bursts of a test | `vllm bench serve --request-rate 10 --burstiness 0.0625` (CV 4) |
# | a fixed number in the system | `vllm bench serve --max-concurrency 64` |
#
# If running + waiting and rate x latency disagree by more than the edges of your window explain, one of the three is
# not measured where you think it is.
#
# **Read next.** J. D. C. Little, "Little's Law as Viewed on Its 50th Anniversary", Operations Research 59(3), 2011.
# M. Harchol-Balter, *Performance Modeling and Design of Computer Systems*, 2013: chapters 6 (Little), 14 (M/M/c), 23
# (M/G/1), 30 (processor sharing). L. Kleinrock, *Queueing Systems*, vol. 1, 1975. Then lab 04: the same load under
# static, dynamic and continuous batching.
