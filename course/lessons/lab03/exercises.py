"""Lab 03, Little's law: what it asks. Values are computed from the scenario and stay true if its constants change."""

from course.engine.serving import serve
from course.exercises.spec import Exercise, LabSpec, Mistake, Objective, Prediction
from course.lessons.lab03 import full_batch, metrics_page, one_engine, tasks
from course.lessons.lab03.quiz import EARLIER, QUIZ, TICKET
from course.steptime import PowerLaw

FULL = 17.0  # requests/s of exercise 1
RUNNING, WAITING, FINISHED = 30, 8, 16.0  # requests on average, and requests/s: exercise 2
TWIN_RUNNING, TWIN_WAITING, TWIN_FINISHED = 60, 30, 12.0
TWIN_COUNT, TWIN_SUM = 3_000, 4_800  # requests and seconds of five minutes: the twin of the decision

_run = serve(one_engine.requests(FULL), one_engine.engine(), one_engine.STEP)
_completion_rate = len(_run) / _run.makespan
_offered_rate = (len(_run) - 1) / (_run.arrival[-1] - _run.arrival[0])
_in_batch = float(_run.steps.running @ _run.steps.seconds) / _run.makespan
_product = _completion_rate * float(_run.e2e.mean())
TTFT_ENDS = "TTFT ends with the first token, and the request stays in the system until its last one. Which time is W?"
PROBES = (
    (one_engine.STEP, 512, 256, 768, 32),
    (one_engine.STEP, 1024, 128, 1152, 64),
    (PowerLaw(5.5e-3, 30e-6, 1, prefill=25e-6, context=45e-9), 512, 256, 768, 32),
)

LITTLE = Exercise(
    id="little",
    title="The number in the system",
    solution=_product,
    mistakes=(
        Mistake(
            _offered_rate * float(_run.e2e.mean()),
            "That rate ends with the last arrival, and the system is not empty then. Over which time is L a mean?",
        ),
        Mistake(FULL * float(_run.ttft.mean()), TTFT_ENDS),
        Mistake(_completion_rate * float(_run.ttft.mean()), TTFT_ENDS),
        Mistake(one_engine.SLOTS, "Those are the slots. Requests that wait for one are in the system too."),
        Mistake(_in_batch, "That is the mean number in the batch. Requests that wait are in the system too."),
    ),
    hint="W is the mean E2E. Over which time is λ counted?",
    plain="λ is that of the whole run: all requests divided by its makespan. Multiply it by the mean E2E.",
    worked="answer = len(run) / run.makespan * run.e2e.mean()",
    twin=Exercise(
        id="little",
        title="The mean stay",
        question="In the same run, how many seconds would each request stay if L were 100 at the same λ?",
        solution=100 / _completion_rate,
        mistakes=(
            Mistake(100 / _offered_rate, "That rate ends with the last arrival. Over which time is L a mean?"),
            Mistake(100 * _completion_rate, "L = λ W: solve it for W."),
        ),
    ),
)


def waiting(running: int, waits: int, finished: float, twin: Exercise | None = None, question: str = "") -> Exercise:
    """How long requests wait for a slot: the law for the queue alone."""
    return Exercise(
        id="waiting",
        title="The wait for a slot",
        solution=waits / finished,
        mistakes=(
            Mistake((running + waits) / finished, "That is the whole stay. Count only requests that wait for a slot."),
            Mistake(running / finished, "That is the time in the batch. Count the requests that wait for a slot."),
            Mistake(waits / running, "Divide by requests per second, not by requests."),
            Mistake(waits * finished, "L = λ W: solve it for W."),
        ),
        hint="Apply the law to the queue alone.",
        plain="L is the number of requests that wait. Divide it by λ, which is the same for queue and engine.",
        question=question,
        twin=twin,
    )


CAPACITY = Exercise(
    id="capacity",
    title="Capacity by hand",
    solution=full_batch.capacity,
    probes=PROBES,
    mistakes=(
        Mistake(full_batch.without_prefill, "That is decoding alone. Where is the step that holds the prompt?"),
        Mistake(full_batch.step_of_one, "That step holds one sequence. A step with all slots taken takes longer."),
        Mistake(full_batch.one_at_a_time, "That serves one request after another. All slots share each step."),
        Mistake(full_batch.prefill_apart, "The prompt shares its step with the decodes of all other slots."),
        Mistake(full_batch.prompt_step_twice, "One of the N/B steps is the one with the prompt: you count it twice."),
        Mistake(full_batch.context_of_one, "A Step wants the context of all its decodes; `context` is that of one."),
        Mistake(full_batch.tokens, "That is a rate of tokens. The question is requests per second."),
    ),
    rtol=0.02,
    hint="How many steps does one request cost when all slots share each of them?",
    plain="A request costs output / slots steps. One of them holds its prompt beside the decodes of the other slots, "
    "the others hold decodes alone. Add up the seconds and take the reciprocal.",
    twin=Exercise(
        id="capacity",
        title="Tokens by hand",
        question="Write a function with the same arguments for the tokens/s of a full batch that only decodes.",
        solution=full_batch.decode_tokens,
        probes=PROBES,
        mistakes=(
            Mistake(full_batch.one_token, "That is one token per step. How many slots are there?"),
            Mistake(full_batch.tokens_at_step_of_one, "That step holds one sequence. A full one takes longer."),
        ),
    ),
)


def in_flight(
    value: float, others: dict[float, str], twin: Exercise | None = None, question: str = "", worked: str = ""
) -> Exercise:
    """The decision: the flag that fixes the number in flight, and that number."""
    return Exercise(
        id="decision",
        title="The decision",
        solution={"--max-concurrency": round(value)},
        evaluate=metrics_page.choice,
        rtol=0.04,  # 27 to 29 for 28
        mistakes=(
            Mistake({"--request-rate": 14}, "That fixes λ, and L follows. Which flag fixes L?"),
            Mistake({"--num-prompts": 4_246}, "That is when the test ends. Which flag fixes L?"),
            *(Mistake({"--max-concurrency": wrong}, hint) for wrong, hint in others.items()),
        ),
        hint="In flight means in the system: you are asked for L.",
        plain="λ is the growth of the count, divided by the seconds. W is the growth of the sum, divided by that of "
        "the count. Multiply them.",
        worked=worked,
        question=question,
        twin=twin,
    )


_before, _after = metrics_page.PAGE
DECISION = in_flight(
    metrics_page.from_page(),
    {
        _after.running + _after.waiting: "Gauges show the moment of the scrape. What is the mean between the scrapes?",
        (_before.running + _before.waiting + _after.running + _after.waiting)
        / 2: "The mean of two moments is not the mean of five minutes. The counters saw every request.",
        one_engine.SLOTS: "Those are the slots. How many are in the system on average?",
        14: "That is λ. How many are in the system?",
    },
    twin=in_flight(
        TWIN_SUM / 300,
        {
            TWIN_COUNT / 300: "That is λ. How many are in the system?",
            one_engine.SLOTS: "Those are the slots. How many are in the system on average?",
        },
        question="On another engine the count grows by 3,000 in five minutes, and the sum by 4,800 s. Choose again.",
    ),
    worked='decision = {"--max-concurrency": 28}\n'
    "# 28 in flight never wait for one of 32 slots, so this test shows no tail: its p99 of TTFT is 27 ms, and on the\n"
    "# engine of the page it was 1.6 s. --request-rate shows the tail; lab 16 says more.",
)

LAB = LabSpec(
    number="03",
    title="Little's law",
    needs="labs 01 and 04. No GPU.",
    objectives=(
        Objective(
            "compute the number in the system from rate and E2E, and back",
            task="longer", exercise="little", retest="09:in_system",
        ),
        Objective(
            "compute how long requests wait for a slot",
            task="tail", exercise="waiting", retest="15:no_slot",
        ),
        Objective(
            "compute the capacity of an engine from its step times",
            task="knee", exercise="capacity", retest="18:capacity",
        ),
    ),
    earlier=EARLIER,
    terms=("arrival rate", "capacity", "load", "in the system", "L", "W"),
    tasks=(*tasks.LOAD, *tasks.LAW),
    predictions=(
        Prediction(
            "p99",
            "At 10 requests/s, 61% of capacity, the p99 of TTFT is 35 ms. What happens at 14?",
            (
                "it grows more than tenfold",
                (
                    "it doubles or triples",
                    "queues-grow-gently",
                    "The tail leaves its floor as soon as enough arrivals find no slot.",
                ),
                (
                    "it grows by 40%, as the traffic does",
                    "latency-follows-traffic",
                    "The mean E2E grows by less than that, the tail by far more.",
                ),
                (
                    "it hardly moves below 90% of capacity",
                    "safe-below-capacity",
                    "Capacity is about means. By chance, all slots are taken now and then long before.",
                ),
            ),
            "a",
            "From 35 to 1,018 ms, while the mean E2E grows from 1.60 to 1.90 s: one request in four waits for a "
            "slot.",
        ),
        Prediction(
            "window",
            "Over a window of 10 s, how far can arrival rate times mean E2E be from the mean number in the system?",
            (
                (
                    "they are equal in any window",
                    "law-holds-in-any-window",
                    "They are equal if nobody is in the system at either edge.",
                ),
                (
                    "below 1%, with about 140 requests",
                    "many-requests-small-error",
                    "The error comes from requests at the edges of the window, and they do not average out.",
                ),
                "about a quarter",
                (
                    "unrelated: it is no textbook queue",
                    "law-needs-a-model",
                    "The law needs no model. With the two edges added it is exact here too.",
                ),
            ),
            "c",
            "24.1% from 70 to 80 s: the edges of the window cut stays in two.",
        ),
    ),
    exercises=(
        LITTLE,
        waiting(
            RUNNING, WAITING, FINISHED,
            waiting(
                TWIN_RUNNING, TWIN_WAITING, TWIN_FINISHED,
                question="On average 60 run and 30 wait; 12 finish each second. How long does a request wait?",
            ),
        ),
        CAPACITY,
        DECISION,
    ),
    ticket=TICKET,
    quiz=QUIZ,
)  # fmt: skip
