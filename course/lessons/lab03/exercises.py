"""Lab 03, Little's law: what it asks. Values are computed from the scenario and stay true if its constants change."""

from course import queueing
from course.engine.serving import serve
from course.exercises.spec import Exercise, LabSpec, Mistake, Prediction
from course.lessons.lab03 import one_engine, tasks
from course.lessons.lab03.quiz import QUIZ
from course.steptime import PowerLaw, Step

SERVICE_S, SINGLE_RATE = 0.050, 16.0  # exercise 2: one slot, every request takes 50 ms
SLO_S = 0.200  # exercise 4
TTFT_ENDS = "TTFT ends with the first token, and the request stays in the system until its last one. Which time is W?"

_run = serve(one_engine.requests(17.0), one_engine.engine(), one_engine.STEP)
_completion_rate = len(_run) / _run.makespan
_offered_rate = (len(_run) - 1) / (_run.arrival[-1] - _run.arrival[0])
_in_batch = float(_run.steps.running @ _run.steps.seconds) / _run.makespan


def capacity(step_time, prompt, output, context, slots):
    """Requests/s with every slot taken: a request costs output / slots steps, one of them with its prompt."""
    plain = step_time(Step(slots, slots * context, ()))
    mixed = step_time(Step(slots - 1, (slots - 1) * context, ((prompt, 0),)))
    return 1 / ((output / slots - 1) * plain + mixed)


def _without_prefill(step_time, prompt, output, context, slots):
    return slots / (output * step_time(Step(slots, slots * context, ())))


def _prompt_step_twice(step_time, prompt, output, context, slots):
    plain = step_time(Step(slots, slots * context, ()))
    return 1 / (output / slots * plain + step_time(Step(slots - 1, (slots - 1) * context, ((prompt, 0),))))


def _step_of_one(step_time, prompt, output, context, slots):
    return slots / (output * step_time(Step(1, context, ())))


def _one_at_a_time(step_time, prompt, output, context, slots):
    return 1 / (output * step_time(Step(1, context, ())))


def _prefill_apart(step_time, prompt, output, context, slots):
    plain = step_time(Step(slots, slots * context, ()))
    return 1 / (output / slots * plain + step_time(Step(0, 0, ((prompt, 0),))))


def _context_of_one(step_time, prompt, output, context, slots):
    mixed = step_time(Step(slots - 1, context, ((prompt, 0),)))
    return 1 / ((output / slots - 1) * step_time(Step(slots, context, ())) + mixed)


def _tokens(step_time, prompt, output, context, slots):
    return output * capacity(step_time, prompt, output, context, slots)


def best_rate(meets_slo) -> float:
    """The largest rate in steps of 0.1 requests/s, below capacity, whose forecast meets the SLO (by bisection)."""
    low, high = 10, int(10 * one_engine.capacity()) + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if meets_slo(one_engine.forecast(middle / 10)) else (low, middle)
    return low / 10


_best = best_rate(lambda forecast: forecast.ttft_percentile_s(0.99) <= SLO_S)
_single = queueing.md1(arrival_rate=SINGLE_RATE, service_s=SERVICE_S)
_exponential = queueing.mm1(arrival_rate=SINGLE_RATE, service_s=SERVICE_S)

LAB = LabSpec(
    number="03",
    title="Little's law",
    tasks=(*tasks.LOAD, *tasks.LAW),
    predictions=(
        Prediction(
            "p99",
            "At 10 requests/s the engine runs at 61% of its capacity and the p99 of TTFT is 35 ms. Traffic grows by"
            " 40%, to 14 requests/s. What happens to the p99 of TTFT?",
            (
                "it grows more than tenfold",
                (
                    "it doubles or triples",
                    "queues-grow-gently",
                    "The tail was on its floor, and left it as soon as enough arrivals had to queue.",
                ),
                (
                    "it grows by about 40%, as the traffic does",
                    "latency-follows-traffic",
                    "The mean E2E grew by less than that, the tail by far more: waiting is not shared out evenly.",
                ),
                (
                    "it hardly moves: the engine is still below 90% of its capacity",
                    "safe-below-capacity",
                    "Capacity is a matter of the mean. Chance fills the slots for a while long before the mean does.",
                ),
            ),
            "a",
            "From 35 ms to 1,018 ms, while the mean TTFT went from 19 to 102 ms and the mean E2E from 1.60 to 1.90 s. "
            "At 10 requests/s nobody found all slots taken, at 14 one request in four did. As long as fewer than one"
            " in a hundred wait, the p99 cannot see the queue; from then on the p99 is the queue. 1,018 ms is one draw "
            "of 2,000 requests: 20 others gave 253 to 1,858 ms, and one of 100,000 gave 1,124 ms.",
        ),
        Prediction(
            "bursts",
            "Still 10 requests/s and the same lengths, but the requests come in bursts: the gaps between arrivals "
            "have a coefficient of variation of 4 instead of 1. With Poisson arrivals the p95 of TTFT was 29 ms. "
            "And now?",
            (
                (
                    "the same: the rate is the same",
                    "rate-is-all",
                    "The rate says how much comes in the long run. Who waits depends on how much comes at a time.",
                ),
                (
                    "about twice",
                    "bursts-average-out",
                    "Requests that come together wait for each other, and calm stretches do not pay that back.",
                ),
                (
                    "about four times, like the coefficient of variation",
                    "linear-in-the-spread",
                    "The mean wait grows about with the square of the spread, and the tail faster still.",
                ),
                "more than a hundred times",
            ),
            "d",
            "From 29 ms to 3.24 s. A burst brings requests faster than capacity for a while, and while it lasts the"
            " queue grows as in an overload. The mean load says nothing about that. This too is one draw: 20 others "
            "gave 0.73 to 6.95 s, and one of 100,000 requests gave 2.46 s.",
        ),
        Prediction(
            "window",
            "A dashboard shows 10 s of traffic at 14 requests/s. You multiply the arrival rate in that window by "
            "the mean E2E of the requests that arrived in it, and compare with the mean of the gauge 'requests in "
            "the system' over the same window. How far apart are the two in a bad window?",
            (
                (
                    "they are equal: Little's law holds for any system",
                    "law-holds-in-any-window",
                    "It holds for a run that starts and ends empty. A window has people at both edges.",
                ),
                (
                    "below 1%: there are about 140 requests in the window",
                    "many-requests-small-error",
                    "The error comes from those at the edges, and they are as many as are in the system.",
                ),
                "about a quarter",
                (
                    "they have nothing to do with each other",
                    "law-needs-a-model",
                    "The law needs no model of arrivals. With the edge terms it is exact here as well.",
                ),
            ),
            "c",
            "In the window from 70 to 80 s, the worst of this run, they differ by 24.1%; in the long run half of "
            "all windows are off by more than 6%, and one in ten by more than 15%. The law is exact when nobody is "
            "in the system at both edges. A window cuts requests in two: those carried in add to the gauge and not "
            "to the arrivals, those carried out the other way round. With both edge terms it is exact again.",
        ),
    ),
    exercises=(
        Exercise(
            "little",
            "the number in the system",
            solution=_completion_rate * float(_run.e2e.mean()),
            mistakes=(
                Mistake(
                    _offered_rate * float(_run.e2e.mean()),
                    "That is the offered rate times W. The offered rate ends with the last arrival, and the system "
                    "is not empty then: over which time is L a mean here?",
                ),
                Mistake(
                    17.0 * float(_run.ttft.mean()),
                    TTFT_ENDS,
                ),
                Mistake(_completion_rate * float(_run.ttft.mean()), TTFT_ENDS),
                Mistake(
                    one_engine.SLOTS,
                    "max_num_seqs limits the batch. Requests that wait for a slot are in the system too, and at "
                    "other times slots are free.",
                ),
                Mistake(
                    _in_batch,
                    "That is the mean number in the batch. Those who wait for a slot are in the system as well.",
                ),
            ),
            hint="Multiply a rate in requests/s by a time in seconds, both over the whole run.",
            plain="The rate is that of the whole run: all requests by its makespan. The time is the mean E2E, from "
            "arrival to the last token. Multiply them.",
        ),
        Exercise(
            "md1",
            "one slot, equal requests",
            solution=_single.mean_wait_s,
            mistakes=(
                Mistake(
                    _exponential.mean_wait_s,
                    "That is M/M/1: service times that vary exponentially. Here all are equal.",
                ),
                Mistake(
                    _exponential.mean_time_in_system_s,
                    "That is the time in the system of M/M/1. The question is the wait before service, and all "
                    "services are equal.",
                ),
                Mistake(
                    _single.mean_time_in_system_s,
                    "That is wait plus service. The question is the wait before service.",
                ),
                Mistake(
                    _single.utilisation * SERVICE_S,
                    "The chance to find the slot busy times one service leaves out everybody who waits in front.",
                ),
                Mistake(
                    _single.utilisation * SERVICE_S / 2,
                    "That is only the rest of the service in progress. Who else is in front?",
                ),
                Mistake(
                    _single.mean_wait_s / SERVICE_S,
                    "That is the wait in services. Give it in seconds.",
                ),
                Mistake(
                    _single.mean_waiting_requests,
                    "That is the mean number of requests that wait. The question is a time.",
                ),
                Mistake(_single.mean_wait_s * 1e3, "That is in milliseconds. Give seconds."),
            ),
            hint="Start from the load: arrival rate times service time.",
            plain="Multiply the load by the service time and divide by the share of the time in which the slot is "
            "free. Since all services are equal, halve that.",
        ),
        Exercise(
            "capacity",
            "capacity by hand",
            solution=capacity,
            probes=(
                (one_engine.STEP, 512, 256, 768, 32),
                (one_engine.STEP, 1024, 128, 1152, 64),
                (PowerLaw(5.5e-3, 30e-6, 1, prefill=25e-6, context=45e-9), 512, 256, 768, 32),
            ),
            mistakes=(
                Mistake(
                    _without_prefill,
                    "Decoding alone. Every request also brings a prompt, and the step that computes it takes longer.",
                ),
                Mistake(
                    _step_of_one,
                    "That step holds one sequence. With all slots taken a step takes longer: use its time.",
                ),
                Mistake(
                    _one_at_a_time,
                    "That serves one request after the other. All slots move forward in the same step.",
                ),
                Mistake(
                    _prefill_apart,
                    "You pay for a step of its own for the prompt. Continuous batching computes it in the same step"
                    " as the decodes of the others, so the weights are read once for both.",
                ),
                Mistake(
                    _prompt_step_twice,
                    "One of the N/B steps is the one with the prompt: you count it twice.",
                ),
                Mistake(
                    _context_of_one,
                    "A Step wants the context of all its decodes together; `context` is that of one.",
                ),
                Mistake(_tokens, "That is a rate of tokens. The question is requests per second."),
            ),
            rtol=0.02,
            hint="How many steps does one request cost when all the slots share each of them? One of those steps also "
            "holds a prompt. A Step wants the context of all its decodes together.",
            plain="A request's share of the steps is output by slots. All but the step with its prompt take as long"
            " as a step full of decodes; that step holds the prompt beside the decodes of the others. Add up "
            "the seconds and take the reciprocal.",
        ),
        Exercise(
            "slo",
            "the rate an SLO allows",
            solution=_best,
            rtol=3e-3,  # the next rates, 0.1 requests/s away, are wrong
            mistakes=(
                Mistake(
                    _best + 0.1,
                    "Rounded to 0.1 requests/s, at this rate the p99 of the forecast is already above the SLO.",
                ),
                Mistake(
                    best_rate(lambda forecast: forecast.mean_ttft_s <= SLO_S),
                    "At that rate the mean TTFT meets the SLO. The SLO is on the p99, which turns up much earlier.",
                ),
                Mistake(
                    best_rate(lambda forecast: forecast.ttft_percentile_s(0.95) <= SLO_S),
                    "That is the p95: ttft_percentile_s takes a share of requests.",
                ),
                Mistake(
                    one_engine.capacity(),
                    "That is capacity. Just below it the queue is finite, and far longer than the SLO allows.",
                ),
                Mistake(
                    best_rate(lambda forecast: forecast.sharing.wait_percentile_s(0.99) <= 0),
                    "There the p99 sees no queue at all. The SLO leaves room for a short one.",
                ),
            ),
            hint="one_engine.forecast(rate).ttft_percentile_s(0.99) is the p99 of TTFT in seconds.",
            plain="Go through the rates in small steps and keep the last one whose forecast, at the percentile of "
            "the SLO, meets it.",
        ),
    ),
    quiz=QUIZ,
)
