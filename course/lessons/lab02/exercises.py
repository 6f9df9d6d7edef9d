"""Lab 02, the memory wall: what it asks, and the mistakes it knows."""

from course.exercises import slips
from course.exercises.spec import Exercise, LabSpec, Mistake, Objective, Prediction
from course.lessons.lab02 import engine_log, floor, tasks
from course.lessons.lab02.engine_log import FLAG
from course.lessons.lab02.one_curve import dollars
from course.lessons.lab02.quiz import EARLIER, QUIZ, TICKET

COST, COST_TWIN = (128, 12.1e-3, 3.0), (48, 8.27e-3, 2.0)  # sequences, seconds of a step, dollars an hour
KNEE, KNEE_TWIN = (6.0, 0.2, 0.9), (4.0, 0.1, 0.8)  # t0 [ms], c [ms], alpha


def knee(t0: float, c: float, alpha: float) -> float:
    """The batch at which a step takes twice t0."""
    return (t0 / c) ** (1 / alpha)


def _cost_mistakes(batch: int, step: float, price: float) -> tuple[Mistake, ...]:
    return (
        Mistake(batch * dollars(batch, step, price), "That is what a million steps cost. How many tokens has a step?"),
        Mistake(3_600 * dollars(batch, step, price), "The price is for an hour. What does a second cost?"),
        Mistake(batch / step, "Those are the tokens/s. What does a second cost?"),
        Mistake(3_600 * batch / step / 1e6, "Those are the million tokens of an hour. What does the hour cost?"),
    )


def _knee_mistakes(t0: float, c: float, alpha: float) -> tuple[Mistake, ...]:
    return (
        Mistake(t0 / c, "That would be so with alpha = 1. Put it back into the curve: is the step twice t0?"),
        Mistake((t0 / c) ** alpha, "You took the power alpha. Which power undoes it?"),
        Mistake((2 * t0 / c) ** (1 / alpha), "There the decodes cost twice t0, and the step three times."),
        Mistake(2 * t0, "That is the time of the step at the knee. At which batch does it take so long?"),
    )


def decide(
    right: int, more: int, fewer: int, twin: Exercise | None = None, question: str = "", worked: str = ""
) -> Exercise:
    """The decision: the setting, and the value of four that keeps the promise at the least cost."""
    return Exercise(
        id="decision",
        title="The decision",
        solution={FLAG: right},
        evaluate=engine_log.choice,
        rtol=1e-3,
        mistakes=(
            Mistake({FLAG: more}, "That is the cheapest of all. How long does each request wait for its next token?"),
            Mistake({FLAG: fewer}, "It keeps the promise, and so does a larger value. Which tokens are cheaper?"),
            Mistake({"--max-num-batched-tokens": 4_096}, "That limits prompts. Which flag says how many share a step?"),
            Mistake({"--gpu-memory-utilization": 0.95}, "The KV cache has room. Which flag says how many share it?"),
        ),
        hint="Work out the TPOT of each line: how many tokens/s does one of the requests get?",
        plain="TPOT is Running divided by the tokens/s. Take the largest value whose TPOT keeps the promise: more "
        "requests share the read of the weights, so each token costs less.",
        worked=worked,
        question=question,
        twin=twin,
    )  # fmt: skip


DECISION = decide(
    engine_log.largest(engine_log.PROMISE),
    more=256,
    fewer=64,
    twin=decide(
        engine_log.largest(engine_log.PROMISE_TWIN),
        more=128,
        fewer=16,
        question="Another service promises a TPOT of 8 ms. Choose again, from 16, 32, 64 and 128.",
    ),
    worked='decision = {"--max-num-seqs": 128}\n'
    "# TPOT = running / (tokens/s): 6.9, 9.1, 12.1 and 19.0 ms. At 128 a million tokens cost 0.066 dollars.\n"
    "# A KV cache usage near 100%, or longer contexts, would change my mind: then a step takes longer.",
)

LAB = LabSpec(
    number="02",
    title="The memory wall",
    needs="labs 00 and 01; powers and roots.",
    objectives=(
        Objective(
            "compute the floor of a step from bytes and FLOPs",
            task="kv", exercise="floor", retest="04:floor",
        ),
        Objective(
            "find the knee of a measured curve",
            task="knee", exercise="knee", retest="15:knee",
        ),
        Objective(
            "compute what a million tokens cost",
            task="cheap", exercise="cost", retest="18:cost",
        ),
    ),
    earlier=EARLIER,
    terms=("roofline", "bandwidth", "FLOP", "knee", "intensity"),
    tasks=(*tasks.STEP_TASKS, *tasks.CURVE_TASKS),
    predictions=(
        Prediction(
            "faster",
            "A new card multiplies twice as fast and reads memory as fast as before. How long does its decode step of "
            "one sequence take, if the old one took 5 ms?",
            (
                (
                    "about 2.5 ms",
                    "flops-make-tokens",
                    "That holds where multiplying is the limit. Here it takes 0.02 ms.",
                ),
                (
                    "about 3.8 ms",
                    "half-is-multiplying",
                    "Then half of the step would be multiplying. It takes 0.02 ms.",
                ),
                "about 5 ms",
            ),
            "c",
            "Reading takes 5.01 ms on both.",
        ),
        Prediction(
            "twice",
            "Each sequence has 1,024 tokens. At which batch does a decode step take twice as long as for one sequence?",
            (
                (
                    "at about 8",
                    "gpu-fills-early",
                    "At 8 it takes 6% longer: it reads the same weights.",
                ),
                "at about 80",
                (
                    "at about 260",
                    "ridge-is-the-knee",
                    "At 258 multiplying takes as long as reading weights. K and V come before.",
                ),
            ),
            "b",
            "It takes 10.2 ms between 64 (9.1 ms) and 96 (10.7 ms).",
        ),
    ),
    exercises=(
        Exercise(
            "cost",
            "what tokens cost",
            solution=dollars(*COST),
            rtol=5e-3,
            mistakes=_cost_mistakes(*COST),
            hint="First the tokens of a second, then those of an hour.",
            plain="Divide the batch by the step: tokens/s. Times 3,600 are those of an hour. Divide the price by the "
            "millions among them.",
            twin=Exercise(
                "cost",
                "what tokens cost",
                question="48 sequences share a step of 8.27 ms, and the card costs 2 dollars an hour. How many dollars "
                "do a million tokens cost?",
                solution=dollars(*COST_TWIN),
                rtol=5e-3,
                mistakes=_cost_mistakes(*COST_TWIN),
            ),
        ),
        Exercise(
            "knee",
            "the knee",
            solution=knee(*KNEE),
            rtol=1e-2,  # a whole number of sequences will do
            mistakes=_knee_mistakes(*KNEE),
            hint="Write down what the step takes at the knee, and solve for b.",
            plain="At the knee c b^alpha is as large as t0. Divide t0 by c, and take the power 1 / alpha.",
            twin=Exercise(
                "knee",
                "the knee",
                question="A step takes 4 ms + 0.1 ms x b^0.8. At which batch is its knee?",
                solution=knee(*KNEE_TWIN),
                rtol=1e-2,
                mistakes=_knee_mistakes(*KNEE_TWIN),
            ),
        ),
        Exercise(
            "floor",
            "the floor",
            solution=floor.floor,
            probes=floor.PROBES,
            rtol=1e-3,
            mistakes=(
                Mistake(floor.adds_up, "Multiplying goes on while the weights are read. Which of the two is longer?"),
                Mistake(floor.all_meanwhile, "Products overlap with reading the weights only. What comes after them?"),
                Mistake(floor.weights_for_each, "How often does a step read its weights?"),
                Mistake(floor.one_multiplication, "Each sequence has its own products: how many are there?"),
                Mistake(floor.kv_of_one, "Those are the K and V of one sequence. How many are there?"),
                Mistake(floor.without_kv, "That is for the weights alone. What does each sequence bring?"),
            ),
            slips=(slips.Slip(1e-12, "Are your bytes divided by bytes/s, and your FLOP by FLOP/s?"),),
            hint="Begin with the small machine: weights, K and V, products. Which two overlap?",
            plain="Take the larger of W / B and batch x F / R. Add the K and V of all tokens of all sequences, divided "
            "by B.",
            twin=Exercise(
                "floor",
                "the floor",
                question="The weights are stored in 8 bits and multiplied in 16, so W is half. Return the floor again.",
                solution=floor.eight_bits,
                probes=floor.PROBES,
                rtol=1e-3,
                mistakes=(
                    Mistake(floor.floor, "That is the floor with 16 bits. Which of the three bars is shorter now?"),
                    Mistake(floor.without_kv, "That is for the weights alone, in 16 bits."),
                ),
            ),
        ),
        DECISION,
    ),
    ticket=TICKET,
    quiz=QUIZ,
)  # fmt: skip
