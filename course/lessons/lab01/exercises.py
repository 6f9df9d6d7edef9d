"""Lab 01, the first token: what it asks, and the mistakes it knows."""

from course.exercises import slips
from course.exercises.spec import Exercise, LabSpec, Mistake, Objective, Prediction
from course.lessons.lab01 import metrics_page, reader, tasks
from course.lessons.lab01.metrics_page import FLAG
from course.lessons.lab01.quiz import EARLIER, QUIZ, TICKET

WHOLE, WHOLE_TWIN = (0.2, 101, 0.010), (0.5, 41, 0.020)  # TTFT [s], tokens, TPOT [s]
QUEUE, QUEUE_TWIN = (420.0, 60.0, 100.0, 16.0), (900.0, 80.0, 50.0, 30.0)  # ms: TTFT, outside, window, prefill


def whole(ttft: float, tokens: int, tpot: float) -> float:
    """E2E [s]."""
    return ttft + (tokens - 1) * tpot


def queue(ttft: float, outside: float, window: float, prefill: float) -> float:
    """The wait for the engine [ms] of somebody who opened the window."""
    return ttft - outside - window - prefill


def _whole_mistakes(ttft: float, tokens: int, tpot: float) -> tuple[Mistake, ...]:
    return (
        Mistake(ttft + tokens * tpot, "You count a gap for each token. Between which tokens are gaps?"),
        Mistake((tokens - 1) * tpot, "Those are the gaps. What comes before the first token?"),
        Mistake(tokens * tpot, "Those are gaps alone, and one too many. What comes before the first token?"),
        Mistake(ttft + tpot, "That is the second token. When does the last one come?"),
        Mistake(ttft + 1e3 * (tokens - 1) * tpot, "The TTFT is in seconds, and your gaps are in milliseconds."),
    )


def _queue_mistakes(ttft: float, outside: float, window: float, prefill: float) -> tuple[Mistake, ...]:
    return (
        Mistake(ttft - outside, "That is all but the time outside. Two more parts are known."),
        Mistake(ttft - outside - window, "That is all the time in the engine. Which part of it is not queueing?"),
        Mistake(
            ttft - outside - window / 2 - prefill, "Half a window is a mean. This user opened it: how long did it last?"
        ),
        Mistake(outside + window + prefill, "Those are the parts that you know. What is left of TTFT?"),
    )


def decide(
    right: int, half: int, least: int = 0, twin: Exercise | None = None, question: str = "", worked: str = ""
) -> Exercise:
    """The decision: the setting, and the largest of five values that keeps the promise. half: of half a window."""
    return Exercise(
        id="decision",
        title="The decision",
        solution={FLAG: right},
        evaluate=metrics_page.choice,
        rtol=1e-3,
        mistakes=(
            Mistake({"--max-num-seqs": 64}, "More slots shorten the queue. How long is the queue on this page?"),
            Mistake({"--max-num-batched-tokens": 4_096}, "That changes the prefill. Which part is larger than that?"),
            Mistake({FLAG: half}, "That holds if everybody waits for half of the window. Who opens it?"),
            Mistake({FLAG: right // 1_000}, "The flag is in microseconds, and your value is in milliseconds."),
            Mistake({FLAG: least}, "It keeps the promise, and so does a longer one. Which is the longest?"),
        ),
        hint="Take from the promise what users spend outside and in the engine. What is left is for the window.",
        plain="The engine's mean TTFT is what the sum grew by over what the count grew by. Put each delay, in "
        "seconds, into the "
        "formula for the window, with the rate of the page, and add the three.",
        worked=worked,
        question=question,
        twin=twin,
    )


_here = {"rate": metrics_page.rate(), "inside": metrics_page.engine()}
DECISION = decide(
    metrics_page.largest(metrics_page.GOAL, **_here),
    half=50_000,
    twin=decide(
        metrics_page.largest(metrics_page.GOAL_TWIN, **metrics_page.TWIN),
        half=20_000,
        least=5_000,
        question="Another chat: 2 requests/s, 20 ms in the engine, 40 ms outside, 72 ms promised. Choose again.",
    ),
    worked='decision = {"max_queue_delay_microseconds": 20_000}\n'
    "# 60 + 35 ms leave 30 ms for the window: 18 ms with a delay of 20 ms, 42 ms with one of 50 ms.\n"
    "# A queue sum that grew as fast as the TTFT sum would change my mind: then slots are short.",
)

LAB = LabSpec(
    number="01",
    title="The first token",
    needs="lab 00 or its test; functions and lists in Python.",
    objectives=(
        Objective(
            "compute E2E from TTFT and TPOT",
            task="stream", exercise="whole", retest="03:whole",
        ),
        Objective(
            "name the part of a TTFT that is to blame",
            task="inside", exercise="queue", retest="08:blame",
        ),
        Objective(
            "write a reader that takes the four times off a stream",
            task="held", exercise="reader", retest="15:stream",
        ),
    ),
    earlier=EARLIER,
    terms=("TPOT", "ITL", "E2E", "queue wait", "admission window", "slot"),
    tasks=(*tasks.WORDS, *tasks.GOES),
    predictions=(
        Prediction(
            "window",
            "A window of 100 ms opens when a request comes. At its end it passes on all that came. With 2 requests/s, "
            "how long is the mean wait in it?",
            (
                (
                    "hardly at all",
                    "empty-window-is-free",
                    "The gateway cannot know that nobody else will come. It waits to the end.",
                ),
                (
                    "about 50 ms",
                    "half-the-window",
                    "That is for requests that come into an open window. Most open one, and wait for all of it.",
                ),
                "about 90 ms",
            ),
            "c",
            "92 ms: five in six open a window, and wait for all of it.",
        ),
        Prediction(
            "hundred",
            "The p99 of TTFT is 0.3 s. Each user asks 100 questions a month, at odd times. How many see a longer TTFT?",
            (
                "about 2 in 3",
                (
                    "about 1 in 100",
                    "p99-is-one-user-in-a-hundred",
                    "That is the share of requests. Each user draws 100 times.",
                ),
                (
                    "all of them",
                    "chances-add-up",
                    "Some meet it twice, so others never do.",
                ),
            ),
            "a",
            "All 100 go well for 37%: 0.99 to the power of 100.",
        ),
    ),
    exercises=(
        Exercise(
            "whole",
            "the whole answer",
            solution=whole(*WHOLE),
            rtol=2e-3,  # one gap more is 8 in a thousand
            mistakes=_whole_mistakes(*WHOLE),
            hint="Draw the tokens on a time axis, and count the gaps between them.",
            plain="To the TTFT add a TPOT for every token but the first, all in seconds.",
            worked="TTFT + (tokens - 1) x TPOT = 0.2 + 100 x 0.010 s",
            twin=Exercise(
                "whole",
                "the whole answer",
                question="TTFT is 0.5 s, TPOT 20 ms, the answer has 41 tokens. What is E2E, in seconds?",
                solution=whole(*WHOLE_TWIN),
                rtol=2e-3,
                mistakes=_whole_mistakes(*WHOLE_TWIN),
            ),
        ),
        Exercise(
            "queue",
            "the queue",
            solution=queue(*QUEUE),
            rtol=5e-3,
            mistakes=_queue_mistakes(*QUEUE),
            hint="The parts of a TTFT add up. Which of the four do you know?",
            plain="Take the time outside, the whole window and the prefill off the TTFT.",
            worked="TTFT - outside - window - prefill = 420 - 60 - 100 - 16 ms",
            twin=Exercise(
                "queue",
                "the queue",
                question="A TTFT of 900 ms: 80 ms outside, a window of 50 ms that the user opened, 30 ms of prefill. "
                "For how many ms did the request queue?",
                solution=queue(*QUEUE_TWIN),
                rtol=5e-3,
                mistakes=_queue_mistakes(*QUEUE_TWIN),
            ),
        ),
        Exercise(
            "reader",
            "the reader",
            solution=reader.four_times,
            probes=reader.PROBES,
            rtol=1e-6,
            mistakes=(
                Mistake(reader.divides_by_tokens, "TPOT: how many gaps are there between so many tokens?"),
                Mistake(reader.first_token_in_tpot, "Your TPOT includes the wait for the first token."),
                Mistake(reader.moments, "TTFT and E2E count from when the request was sent, not from 0 on the clock."),
                Mistake(reader.from_the_first_token, "Your E2E begins with the first token. When was it sent?"),
                Mistake(reader.first_wait_is_a_gap, "The wait for the first token is not a gap between two tokens."),
                Mistake(reader.in_another_order, "Your E2E stands where the TPOT is asked: TTFT, TPOT, E2E, ITL."),
                Mistake(reader.mean_gap, "The last of the four is the longest gap, and yours is the mean gap."),
            ),
            slips=(slips.Slip(-1.0, "Your times are negative: which of the two moments is the later one?"),),
            hint="Work out the example in the text by hand, line by line.",
            plain="TTFT is the first moment less `sent`, E2E the last one less `sent`. TPOT is their difference, "
            "divided by the number of gaps. The gaps are the differences of neighbouring moments.",
            twin=Exercise(
                "reader",
                "the reader",
                question="Return TTFT, TPOT, E2E and the shortest gap.",
                solution=reader.shortest_gap,
                probes=reader.PROBES,
                rtol=1e-6,
                mistakes=(
                    Mistake(reader.four_times, "That is the longest gap."),
                    Mistake(reader.divides_by_tokens, "TPOT: how many gaps are there between so many tokens?"),
                ),
            ),
        ),
        DECISION,
    ),
    ticket=TICKET,
    quiz=QUIZ,
)  # fmt: skip
