# %% [markdown]
# # Lab 03, deeper: Little's law

# %%
from textwrap import fill

import numpy as np
from course import Workload, lengths, policies, queueing, serve
from course.lessons.lab03 import one_engine

# %% [markdown]
# ## The question
#
# The lines of the lab are theory: they fit at most loads, and miss bursts by a factor of a hundred. **Which queueing
# formula fits batching, where does it stop, and what can one load test show?** This notebook is optional; nothing in it
# is asked elsewhere.
#
# ## The law with its edges
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
# Over a run that starts and ends empty $I = O = 0$, and $\lambda$ is the number of requests over the **whole** time,
# the last answer included. The law asks nothing of arrivals, policy or steps. So it holds for static batching, for a
# queue that grows without end, and for a trace:

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
# ## One slot: M/D/1, M/M/1, M/G/1
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
# With equal service times (CV 0) the queue is called M/D/1, with exponential ones (CV 1) M/M/1: twice the wait. Load
# enters through $1/(1-\rho)$, the spread of lengths through $CV^2$. Both effects show with one slot and the model's
# step times:

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
# One slot sustains {{one_slot:.2f}} requests/s, and 32 slots sustain 16: that is what batching buys.
#
# ## Many slots: which formula fits batching?
#
# **M/M/c** (Erlang, 1917) has c servers that do not disturb each other. It seems to fit 32 slots, but it misses what
# batching is about: a step takes longer with more sequences in it, so everybody slows everybody down. **Processor
# sharing** models that. With n requests in the system, min(n, 32) are in the batch and finish at μ(n) requests/s in
# all; the number in the system moves up at rate λ and down at rate μ(n), so each state is λ/μ(n) times as likely as the
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
# answers with a CV of about 1. At {{near_full:.0%}} of capacity many wait, and the spread shows:

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
# M/M/c asks for more: exponential service times, and steps that take equally long whatever they hold.
#
# ## Why the p99 of TTFT explodes long before its mean
#
# In M/M/1 the time in the system is exponential: its p99 is ln {{hundred}} = {{tail_over_mean:.1f}} times its mean at every load, so both explode
# together. With many slots a request waits for one only if it finds all of them taken. While fewer than 1 in {{hundred}} do,
# the p99 of TTFT shows no queue at all. Once more do, the p99 *is* the queue, and the mean hardly shows it.

# %%
print("            find all slots taken     mean TTFT                 p99 TTFT")
print("             theory  simulated    theory  simulated     theory  simulated")
for rate, cv in ((10, 1), (11, 1), (12, 1), (14, 1), (16, 1), (10, 4)):
    known = one_engine.forecast(rate)
    run = serve(one_engine.requests(rate, cv), one_engine.engine(), one_engine.STEP)
    mean, p99 = 1e3 * run.ttft.mean(), 1e3 * np.percentile(run.ttft, 99)
    print(
        f"{rate}/s, CV {cv} {known.sharing.p_wait:9.2%} {one_engine.slots_taken(run):10.2%} "
        f"{known.mean_ttft_s * 1e3:6.0f} ms {mean:7.0f} ms "
        f"{known.ttft_percentile_s(0.99) * 1e3:7.0f} ms {p99:7.0f} ms"
    )

# %% [markdown]
# The last line has bursts. They fill the slots at a load at which Poisson arrivals hardly ever do, and no formula on
# this page takes them into account. Each line is one draw of 2,000 requests. A percentile that comes from a queue
# depends on a few busy spells, so it differs a lot from draw to draw, and a load test of three minutes is one such draw:


# %%
def p99_ttft(rate, seed, slots=32):
    load = one_engine.requests(rate, seed=seed)
    run = serve(load, one_engine.engine(slots), one_engine.STEP)
    return 1e3 * np.percentile(run.ttft, 99)


print("p99 of TTFT, 20 draws      least   median     most")
for rate, slots in ((10, 32), (14, 32), (14, 256)):
    draws = [p99_ttft(rate, seed, slots) for seed in range(1, 21)]
    low, middle, high = np.percentile(draws, (0, 50, 100))
    print(f"{rate}/s, {slots:3d} slots {low:15.0f} ms {middle:5.0f} ms {high:5.0f} ms")

# %% [markdown]
# ## Capacity by hand
#
# How much context does a decode read, on average? The prompt, and the answer so far. Long answers decode more often, so
# an average decode sees $N (1 + CV^2) / 2$ tokens of answer: with a CV of 1 that is a whole mean answer, so 512 + 256 =
# 768 tokens in all.
#
# The formula assumes memory for the KV cache of $B$ requests, and steps with at most one
# prompt, which fits the token budget beside the decodes. A second prompt in a step costs more than the first, part
# of which is computed while the weights are read. So $N$ must be several times $B$, and answers must differ: equal ones
# that start together also end together, and the next prompts start together again.

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
# ## The rate that a promise allows
#
# Suppose you promise that {{in_time}} of {{hundred}} requests get their first token within {{promise_ms}} ms. What is the largest rate that keeps
# the promise?

# %%
for slots in (32, 256):
    most = one_engine.capacity(slots)
    for rate in np.arange(1, most, 0.1).tolist():
        if one_engine.forecast(rate, slots).ttft_percentile_s(0.99) <= 0.200:
            best = rate
    load = one_engine.requests(best, num_requests=40_000)
    p99 = np.percentile(serve(load, one_engine.engine(slots), one_engine.STEP).ttft, 99)
    print(
        f"{slots:3d} slots: {best:.1f} of {most:.1f} requests/s, "
        f"p99 of TTFT {1e3 * p99:.0f} ms simulated"
    )

# %% [markdown]
# With 32 slots that is {{keeps:.1f}} of {{capacity:.1f}} requests/s, if arrivals are Poisson. With {{price_slots}} theory allows {{keeps_many:.1f}} of {{most_of_many:.1f}}, and there
# the simulation breaks the promise: so close to capacity a few busy spells decide. Plan with a rate below, and look at
# the TPOT that comes with it.
#
# ## Little's law with L forgotten
#
# "Tokens/s = 1 / TPOT" holds for a single sequence: tokens/s = (number decoding) / TPOT. "Mean latency = duration / requests"
# is 1 / throughput: too small by the factor L, since E2E = L / rate.
#
# ## Above capacity
#
# Capacity is 16 requests/s. A campaign brings 20. Every formula above refuses to answer: the queue
# grows by {{grows:.0f}} requests each second, and there is no mean for it to settle on.
#
# What an operator sees, in this order: the number running stays at 32. The number waiting climbs in
# a straight line. TTFT climbs with it, for everybody, while TPOT levels off at {{tpot_full_ms:.1f}} ms. Tokens/s look excellent: they
# are at their maximum. A test of one minute shows a mean TTFT of {{minute_ttft_s:.0f}} s, one of a quarter of an hour shows {{quarter_ttft_s:.0f}} s. The
# number only shows how long you measured:

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
# There are three ways out: fewer arrivals (refuse some, limit the rate), more capacity (slots while memory lasts,
# another GPU), or shorter stays (shorter answers, faster steps). A larger queue makes waits longer.
#
# ## In a real engine
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
# **Read next.** J. D. C. Little, "Little's Law as Viewed on Its {{anniversary}}th Anniversary", Operations Research 59(3), 2011.
# M. Harchol-Balter, *Performance Modeling and Design of Computer Systems*, 2013. L. Kleinrock, *Queueing Systems*, vol. 1, 1975.
