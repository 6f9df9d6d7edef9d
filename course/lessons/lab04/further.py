"""The tables of lab 04's optional notebook: the formula against runs, claims beside numbers, other loads."""

from __future__ import annotations

import numpy as np

from course import policies, queueing
from course.engine.run import Run
from course.engine.serving import serve
from course.explore.table import Table, table
from course.lessons.lab04 import other_loads, side_by_side, three_batchers
from course.lessons.lab04.other_loads import IMAGE, MOST_IMAGES, TRACE
from course.lessons.lab04.side_by_side import at_once, saturated_tokens_per_second, serve_each, slot_utilisation
from course.lessons.lab04.three_batchers import BUDGET, CHAT, ROOFLINE, SLOTS, STEP
from course.workload import Workload

__all__ = [
    "capacity_by_hand",
    "duration_is_no_latency",
    "exponential_answers",
    "gain_and_formula",
    "in_a_closed_loop",
    "joins",
    "no_delay",
    "other_draws",
    "sooner",
    "the_trace",
    "through_a_batcher",
    "wanted_shares",
]

NEED = queueing.demand(prompt_tokens=512, output_tokens=256, output_cv=1.0)
LONGEST = queueing.lognormal_gain(batch=SLOTS, output_cv=1.0)


def gain_and_formula() -> Table:
    """Simulated gain and both forms of E[max] / mean, for some slots and spreads."""
    spreads = (0, 0.1, 0.2, 0.3, 1, 2)
    rows = [("", *(f"CV {cv:g}" for cv in spreads))]
    for slots in (8, 32, 128):
        found = [three_batchers.gain(slots, float(cv)) for cv in spreads]
        rows += [
            (f"{slots} slots, simulated", *(f"{g.gain:.2f}" for g in found)),
            (f"{slots} slots, formula, as drawn", *(f"{g.drawn_bound:.2f}" for g in found)),
            (f"{slots} slots, formula, expected", *(f"{g.bound:.2f}" for g in found)),
        ]
    return table(rows, f"Gain at saturation, 2,000 requests [{STEP.simulated}]")


def capacity_by_hand() -> Table:
    """Seconds of a full batch turned into requests/s, next to what the simulator does at saturation."""
    rows = [("", "mean step", "requests/s by hand", "tokens/s by hand", "tokens/s simulated")]
    for label, step_time in (("recorded", STEP), ("roofline (theory)", ROOFLINE)):
        by_hand = {
            "static": queueing.static_capacity(NEED, LONGEST, step_time, max_num_seqs=SLOTS),
            "continuous": queueing.continuous_capacity(
                NEED, step_time, max_num_seqs=SLOTS, max_num_batched_tokens=BUDGET
            ),
        }
        simulated = side_by_side.saturated_gain(step_time, max_num_seqs=SLOTS, output_cv=1.0)
        for name, capacity in by_hand.items():
            rows.append(
                (
                    f"{name}, {label}",
                    f"{1e3 * capacity.step_s:.2f} ms",
                    f"{capacity.requests_per_s:.2f}",
                    f"{capacity.output_tokens_per_s:,.0f}",
                    f"{getattr(simulated, name):,.0f}",
                )
            )
    return table(rows, "Capacity by hand, 32 slots, the chat")


def other_draws() -> Table:
    """Twelve other draws of the chat at 4 requests/s under static batching."""
    runs = [serve(three_batchers.chat(rate=4, seed=seed), policies.Static(SLOTS), STEP) for seed in range(1, 13)]
    p95 = [float(np.percentile(run.e2e, 95)) for run in runs]
    wanted = [slot_utilisation(run) for run in runs]
    rows = [
        ("", "least", "median", "most"),
        ("95% answered within", *(f"{value:.0f} s" for value in (min(p95), float(np.median(p95)), max(p95)))),
        ("slot-steps wanted", *(f"{value:.0%}" for value in (min(wanted), float(np.median(wanted)), max(wanted)))),
    ]
    return table(rows, "Twelve other draws of the chat, static, 4 requests/s")


def exponential_answers() -> Table:
    """E[max] / mean for exponential lengths: the sum of 1/k, beside a draw."""
    rng = np.random.default_rng(0)
    rows = [("", "1 + 1/2 + ... + 1/b", "longest / mean, of 10,000 batches drawn")]
    for slots in (2, 8, 32):
        drawn = rng.exponential(size=(10_000, slots)).max(axis=1).mean()
        rows.append((f"{slots} slots", f"{queueing.exponential_gain(batch=slots).gain:.2f}", f"{drawn:.2f}"))
    return table(rows, "Exponential answer lengths")


def the_trace() -> Table:
    """Static and continuous on the Azure-style trace at saturation: what the answers explain, and what prompts add."""
    rows = [("slots", "static", "continuous", "gain", "E[max] / mean", "prompts padded")]
    for slots in (8, 32, 128):
        runs = serve_each(at_once(TRACE), side_by_side.three_policies(slots), ROOFLINE)
        static, continuous = (saturated_tokens_per_second(runs[name]) for name in ("static", "continuous"))
        bound = queueing.empirical_gain(batch=slots, output_tokens=TRACE.output_tokens.tolist()).gain
        prompts = runs["static"].steps.prefill_tokens.sum() / TRACE.prompt_tokens.sum()
        rows.append(
            (
                f"{slots}",
                f"{static:,.0f} tokens/s",
                f"{continuous:,.0f} tokens/s",
                f"{continuous / static:.1f}x",
                f"{bound:.2f}",
                f"{prompts:.1f}x",
            )
        )
    return table(rows, "The Azure-style trace at saturation [theory: roofline of an H100]")


def full() -> dict[str, Run]:
    """The chat at saturation under each policy."""
    return serve_each(at_once(CHAT), side_by_side.three_policies(SLOTS), STEP)


def wanted_shares() -> Table:
    """Share of the slot-steps that somebody wanted, by spread, and what a dashboard shows."""
    runs = full()
    rows = [("", "slot-steps wanted", "GPU busy")]
    for output_cv in (0.2, 0.3, 0.5, 1, 2):
        share = 1 / queueing.lognormal_gain(batch=SLOTS, output_cv=output_cv).gain
        rows.append((f"static, CV {output_cv:g}, expected", f"{share:.0%}", ""))
    for name in ("static", "continuous"):
        busy = runs[name].steps.seconds.sum() / runs[name].makespan
        rows.append((f"{name}, the chat, simulated", f"{slot_utilisation(runs[name]):.0%}", f"{busy:.0%}"))
    return table(rows, "32 slots at saturation")


def joins() -> Table:
    """At how many moments requests were admitted, and at how many of them while others ran."""
    rows = [("", "moments with admissions", "of them while others ran")]
    runs = full()
    for name in ("dynamic", "continuous"):
        run = runs[name]
        moments = np.unique(run.admitted)
        joined = sum(((run.admitted < t) & (run.response > t)).any() for t in moments)
        rows.append((name, f"{len(moments):,}", f"{joined:,}"))
    return table(rows, "The chat at saturation, 32 slots")


def duration_is_no_latency() -> Table:
    """100 equal requests at once, and equal answers that arrive one by one."""
    equal = at_once(Workload.fixed(rate=1, num_requests=100, prompt_tokens=6, output_tokens=50))
    runs = serve_each(equal, side_by_side.three_policies(256), STEP)
    one_by_one = three_batchers.one_trace(output_cv=0.0, max_queue_delay=0.1)
    rows = [("", *runs)]
    rows.append(("100 at once: duration", *(f"{run.makespan:.3f} s" for run in runs.values())))
    rows.append(("duration / requests", *(f"{1e3 * run.makespan / 100:.1f} ms" for run in runs.values())))
    rows.append(("mean latency", *(f"{1e3 * run.e2e.mean():.0f} ms" for run in runs.values())))
    rows.append(("one by one: mean latency", *(f"{1e3 * run.e2e.mean():.0f} ms" for run in one_by_one.values())))
    return table(rows, f"Answers of equal length [{STEP.simulated}]")


def sooner() -> Table:
    """How many times sooner two batches' worth of chat is answered: this draw and 40 others."""
    both = {name: policy for name, policy in side_by_side.three_policies(SLOTS).items() if name != "dynamic"}
    ratios = []
    for seed in range(41):
        pair = serve_each(at_once(three_batchers.chat(num_requests=64, seed=seed)), both, STEP)
        ratios.append(float(pair["static"].e2e.mean() / pair["continuous"].e2e.mean()))
    low, middle, high = np.percentile(ratios[1:], (10, 50, 90))
    rows = [
        ("", "this draw", "40 others, median", "four in five of them"),
        ("mean latency, static / continuous", f"{ratios[0]:.1f}", f"{middle:.1f}", f"{low:.1f} to {high:.1f}"),
    ]
    return table(rows, "64 requests of the chat, all there at the start")


def no_delay() -> Table:
    """The image service without a delay, in theory and simulated."""
    run = other_loads.image_run(1_000, 0.0)
    batch_s = [IMAGE.t0 + IMAGE.prefill * images for images in range(1, MOST_IMAGES + 1)]
    bulk = queueing.bulk_service(arrival_rate=1_000, batch_s=batch_s)
    rows = [
        ("", "theory", "simulated"),
        ("mean batch", f"{bulk.mean_batch_requests:.2f}", f"{len(run) / len(run.steps):.2f}"),
        ("GPU busy", f"{bulk.busy:.0%}", f"{run.steps.seconds.sum() / run.makespan:.0%}"),
        ("mean latency", f"{1e3 * bulk.mean_time_in_system_s:.2f} ms", f"{1e3 * run.e2e.mean():.2f} ms"),
        ("load, of full batches", f"{bulk.utilisation:.0%}", ""),
    ]
    return table(rows, "1,000 images/s without a delay")


def in_a_closed_loop() -> Table:
    """Images/s of a fixed number of clients, with and without a delay."""
    rows = [("", "mean batch", "images/s")]
    for clients in (8, 16):
        clicks = Workload.closed_loop(
            users=clients, think_time=1e-3, think_cv=0, requests_per_user=125, prompt_tokens=1, output_tokens=1
        )
        for delay in (0.0, 0.005):
            run = serve(clicks, policies.Dynamic(MOST_IMAGES, max_queue_delay=delay), IMAGE)
            label = f"{clients} clients, delay {1e3 * delay:.0f} ms"
            rows.append((label, f"{len(run) / len(run.steps):.1f}", f"{len(run) / run.makespan:,.0f}"))
    return table(rows, "A fixed number of clients")


def through_a_batcher() -> Table:
    """The chat straight to the engine, and through a dynamic batcher in front of it."""
    engine = policies.Continuous(SLOTS, max_num_batched_tokens=BUDGET)
    passed_on = side_by_side.batcher_release(CHAT.arrival, max_batch_size=SLOTS, max_queue_delay=0.1)
    late = Workload(arrival=passed_on, prompt_tokens=CHAT.prompt_tokens, output_tokens=CHAT.output_tokens)
    straight = serve(CHAT, engine, STEP).ttft
    behind = serve(late, engine, STEP).ttft + passed_on - CHAT.arrival
    rows = [
        ("", "first token, p50"),
        ("straight to the engine", f"{1e3 * np.median(straight):.0f} ms"),
        ("through the batcher", f"{1e3 * np.median(behind):.0f} ms"),
    ]
    return table(rows, f"The chat at 6 requests/s [{STEP.simulated}]")
