"""Lab 00, how a language model answers: what it asks. Values are computed from the scenario."""

from course.exercises import slips
from course.exercises.spec import Exercise, LabSpec, Mistake, Objective, Prediction
from course.lessons.lab00 import tasks, together
from course.lessons.lab00.quiz import QUIZ

PROMPT, TOKENS = 512, 21  # check 1, and its twin
TWIN_PROMPT, TWIN_TOKENS = 128, 101
RATE, HOUR, SHARE = 12, 3_600, 0.01  # check 2: requests/s, seconds, share above the p99
TWIN_RATE, DAY, TWIN_SHARE = 5, 86_400, 0.05

_prefill, _decode = together.prefill_on_h100(PROMPT), together.on_h100(1)
_twin_prefill = together.prefill_on_h100(TWIN_PROMPT)
_all = RATE * HOUR

LAB = LabSpec(
    number="00",
    title="How a language model answers",
    needs="you read Python and have seen a NumPy array. Nothing about language models.",
    objectives=(
        Objective(
            "compute how long an answer takes from its prefill and its decodes, and say why sixteen answers together "
            "take hardly longer",
            task="together",
            exercise="answer",
            retest="02:shared-weights",
        ),
        Objective(
            "read rates, means and percentiles off a serving graph, and count the people behind them",
            task="far",
            exercise="people",
            retest="01:behind-the-p99",
        ),
    ),
    tasks=(*tasks.TOGETHER, *tasks.TRAFFIC),
    predictions=(
        Prediction(
            "sixteen",
            "On an H100 a decode step of Llama-3.1-8B for one sequence takes 5 ms. How long is a step that moves "
            "sixteen sequences on by one token each?",
            (
                "about 5 ms",
                (
                    "about 20 ms",
                    "batching-saves-some",
                    "That is about what the CPU here does. The H100 multiplies far faster than it reads.",
                ),
                (
                    "about 80 ms",
                    "a-step-for-each",
                    "That is sixteen steps, each of which reads all the weights again.",
                ),
            ),
            "a",
            "5.37 ms against 5.04 ms: 1.07 times as long. The weights are read once for all, which takes about 5 ms; "
            "multiplying them takes 0.02 ms for each sequence. Most of the rest is reading the KV cache of the other "
            "fifteen.",
        ),
        Prediction(
            "mean",
            "Requests come at 10 a second, in bursts: the gaps have a CV of 3. The mean TTFT is 142 ms. What share of "
            "the people waits longer than that?",
            (
                (
                    "about half",
                    "mean-is-the-middle",
                    "That is the median, 53 ms here. A few long waits pull the mean far above it.",
                ),
                "about one in five",
                (
                    "about one in a hundred",
                    "mean-is-a-limit",
                    "That is the p99, 1.51 s here. Those few wait ten times as long as the mean.",
                ),
            ),
            "b",
            "17% here, and 15 to 24% in 20 other draws of random arrivals. Most people wait less than the mean, and "
            "some far longer: it describes neither. That is why the labs show percentiles.",
        ),
    ),
    exercises=(
        Exercise(
            "answer",
            "how long an answer takes",
            solution=_prefill + (TOKENS - 1) * _decode,
            rtol=0.02,
            mistakes=(
                Mistake(
                    _prefill + TOKENS * _decode,
                    "Close. Which step brings the first token of the answer?",
                ),
                Mistake((TOKENS - 1) * _decode, "Those are the decodes. Something comes before them."),
                Mistake(TOKENS * _prefill, "Only the first step computes the whole prompt; what it computed is kept."),
                Mistake(
                    _prefill + (PROMPT + TOKENS - 1) * _decode,
                    "The tokens of the prompt do not take a step each: the prefill computes them together.",
                ),
            ),
            slips=(slips.per_token(TOKENS),),
            hint="The prefill brings the first token; each decode brings one more.",
            plain="Take the time of the prefill, and add the time of a decode for each token but the first. Divide by "
            "1,000 to get seconds.",
            worked="0.0134 + (21 - 1) * 0.00504",
            twin=Exercise(
                "answer",
                "how long an answer takes",
                solution=_twin_prefill + (TWIN_TOKENS - 1) * _decode,
                rtol=0.02,
                question="The prompt has 128 tokens, whose prefill takes 6.48 ms, and the answer has 101. A decode "
                "takes 5.04 ms. How many seconds until the last token?",
                mistakes=(
                    Mistake((TWIN_TOKENS - 1) * _decode - _twin_prefill, "The prefill is added, not taken off."),
                ),
            ),
        ),
        Exercise(
            "people",
            "the people behind a p99",
            solution=_all * SHARE,
            rtol=0.004,  # all and all but one in a hundred are to be told apart
            mistakes=(
                Mistake(_all, "Those are all requests of the hour. Which share of them is above the p99?"),
                Mistake(_all * (1 - SHARE), "Those are below the p99. The question is about the others."),
                Mistake(RATE * SHARE, "That is in one second. The question is about an hour."),
                Mistake(_all * 0.05, "One in twenty is above the p95. How many are above the p99?"),
                Mistake(_all / 2, "Half of them are above the median, the p50."),
            ),
            hint="How many requests come in an hour, and how many in a hundred are above the p99?",
            plain="Multiply the rate by the seconds of an hour, and take one in a hundred of that.",
            worked="12 * 3600 / 100",
            twin=Exercise(
                "people",
                "the people behind a p95",
                solution=TWIN_RATE * DAY * TWIN_SHARE,
                question="5 requests come a second. How many of a day's requests wait longer than the p95 of TTFT?",
                mistakes=(Mistake(TWIN_RATE * DAY * 0.01, "That is above the p99. The question is about the p95."),),
            ),
        ),
    ),
    quiz=QUIZ,
    terms=(
        "token", "sequence", "step", "prefill", "decode", "KV cache",
        "TTFT", "CV", "percentile", "bandwidth", "FLOP", "badge",
    ),
)  # fmt: skip
