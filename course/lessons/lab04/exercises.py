"""Lab 04, static, dynamic and continuous batching: what it asks, and the mistakes it knows."""

from course.exercises import slips
from course.exercises.decision import one_flag
from course.exercises.spec import Exercise, LabSpec, Mistake, Objective, Prediction
from course.lessons.lab04 import refill, tasks
from course.lessons.lab04.quiz import EARLIER, QUIZ, TICKET

WASTE, WASTE_TWIN = (100, 20, 80), (60, 10, 30, 50)
RATIO, RATIO_TWIN = (400, 50, 110, 80), (90, 20, 40)
"""Answers [tokens] of one static batch."""
ARRIVE, ARRIVE_TWIN = 20, 30  # requests/s of the decision


def padding(answers: tuple[int, ...]) -> int:
    """Slot-steps of padding of a static batch with these answers."""
    return len(answers) * max(answers) - sum(answers)


def ratio(answers: tuple[int, ...]) -> float:
    """What continuous batching gains over batches like this one, where every step costs the same."""
    return max(answers) * len(answers) / sum(answers)


FLAG = "--max-num-seqs"
OTHER_FLAGS = (
    Mistake(
        {"--max-num-batched-tokens": 16_384},
        "That limits the tokens of a step. With 32 requests a step has fewer than a hundred. Which limit is reached?",
    ),
    Mistake(
        {"--gpu-memory-utilization": 0.95},
        "The KV cache is nearly empty: memory is not what they wait for. Which limit is reached?",
    ),
)


def keeps_up(right: int, twin: Exercise | None = None, question: str = "") -> Exercise:
    """The decision: the flag, and the smallest of four values that keeps up."""
    hints = {
        16: "That is less than the server has now, and the queue already grows.",
        32: "That is what the server has now, and the queue grows.",
        64: "Multiply the arrivals by the tokens of an answer: do so many slots deliver that many tokens/s?",
        128: "It keeps up, and so does a smaller value, with shorter steps.",
        256: "That is far more than is needed: each step would take longer for everybody.",
    }
    return Exercise(
        id="decision",
        title="Decision",
        solution={FLAG: right},
        evaluate=one_flag(FLAG),
        mistakes=(
            *OTHER_FLAGS,
            *(Mistake({FLAG: value}, hint) for value, hint in hints.items() if value != right),
        ),
        hint="Look at which number of the log stays at a limit.",
        plain="Running stays at its limit and Waiting grows, so slots are short. Multiply the arrivals by the tokens "
        "of an answer. Then read off what continuous batching delivers with each number of slots, at a spread of 1.",
        question=question,
        twin=twin,
    )


LAB = LabSpec(
    number="04",
    title="Static, dynamic, continuous",
    needs="lab 00 or its test; dictionaries in Python.",
    objectives=(
        Objective(
            "compute the padding of a static batch",
            task="busy", exercise="waste", retest="15:padding",
        ),
        Objective(
            "compute what continuous batching gains",
            task="slots", exercise="ratio", retest="17:longest",
        ),
        Objective(
            "write the rule that refills free slots",
            task="late", exercise="refill", retest="09:refill",
        ),
    ),
    earlier=EARLIER,
    terms=(
        "slot", "slot-step", "padding", "static batching", "dynamic batching", "continuous batching", "CV",
        "saturation",
    ),
    predictions=(
        Prediction(
            id="gain",
            question="In a chat with 32 slots and somebody always waiting, continuous batching delivers",
            options=(
                (
                    "32 times the tokens/s of static",
                    "slots-are-speed",
                    "Both have 32 slots. What differs is how many compute what somebody wants.",
                ),
                "4 times the tokens/s of static",
                (
                    "20 to 30% more tokens/s than static",
                    "gain-is-a-constant",
                    "That was measured on answers of nearly equal length.",
                ),
                (
                    "the same tokens/s as static",
                    "busy-is-useful",
                    "The card is just as busy, but most slot-steps of static batching are padding.",
                ),
            ),
            right="b",
            why="A batch runs until its longest answer ends. Of 32 in a chat, that is about four times the mean.",
        ),
        Prediction(
            id="bigger",
            question="With 32 slots instead of 8, static batching falls behind continuous batching",
            options=(
                "by more than before",
                (
                    "by less than before",
                    "bigger-batches-heal",
                    "More slots make both faster, but a static batch still waits for its longest answer.",
                ),
                (
                    "by as much as before",
                    "same-batch-same-ratio",
                    "The longest of 32 answers is longer than the longest of 8.",
                ),
            ),
            right="a",
            why="The gain is 2.5 with 8 slots and 3.8 with 32.",
        ),
    ),
    tasks=(*tasks.TRACE, *tasks.SATURATION),
    exercises=(
        Exercise(
            id="waste",
            title="Padding",
            solution=padding(WASTE),
            rtol=1e-3,
            mistakes=(
                Mistake(80, "That is what one of the two shorter answers wastes. Count the padding of every slot."),
                Mistake(200, "Those are the slot-steps that somebody wanted. What is paid for on top of them?"),
                Mistake(300, "That is all that the batch pays for. Subtract what somebody wanted."),
                Mistake(1 / 3, "That is the padding as a share of all slot-steps. Count the slot-steps themselves."),
            ),
            slips=(slips.per_slot(3),),
            hint="Draw three lanes of equal length, and mark where each answer ends.",
            plain="Every slot pays for as many steps as the longest answer has tokens. Subtract the tokens of all "
            "answers.",
            twin=Exercise(
                id="waste",
                title="Padding",
                question="Four answers of 60, 10, 30 and 50 tokens in four slots: how many slot-steps are padding?",
                solution=padding(WASTE_TWIN),
                rtol=1e-3,
                mistakes=(
                    Mistake(150, "Those are the slot-steps that somebody wanted. What is paid for on top of them?"),
                    Mistake(240, "That is all that the batch pays for. Subtract what somebody wanted."),
                ),
            ),
        ),
        Exercise(
            id="ratio",
            title="Gain",
            solution=ratio(RATIO),
            rtol=5e-3,
            mistakes=(
                Mistake(4, "Those are the slots. They are the same for both policies."),
                Mistake(8, "That is the longest answer over the shortest. Which length stands for all of them?"),
                Mistake(1.5, "That is the padding for each wanted token. The wanted token is paid for as well."),
                Mistake(0.6, "That is the share of padding. Compare all that is paid for with what is wanted."),
            ),
            hint="Static batching pays for the longest answer in every slot, continuous batching for the tokens alone.",
            plain="Divide the longest answer of the batch by the mean of all its answers.",
            twin=Exercise(
                id="ratio",
                title="Gain",
                question="What is the gain over static batches of 90, 20 and 40 tokens in three slots, if all steps "
                "take equally long?",
                solution=ratio(RATIO_TWIN),
                rtol=5e-3,
                mistakes=(
                    Mistake(3, "Those are the slots. They are the same for both policies."),
                    Mistake(4.5, "That is the longest answer over the shortest. Which length stands for all of them?"),
                ),
            ),
        ),
        Exercise(
            id="refill",
            title="Refill",
            solution=refill.refill,
            probes=refill.PROBES,
            mistakes=(
                Mistake(
                    refill.only_when_empty,
                    "Newcomers join only once nobody runs: free slots stay empty until then. That is static batching.",
                ),
                Mistake(
                    refill.forgets_the_running,
                    "Whoever is not in the dictionary computes nothing. Who belongs in it besides the newcomers?",
                ),
                Mistake(
                    refill.ignores_the_slots,
                    "You admit everybody, also when there are not enough slots. How many of them are free?",
                ),
                Mistake(
                    refill.counts_only_newcomers,
                    "You admit as many newcomers as there are slots in all, but some of those slots are taken.",
                ),
                Mistake(
                    refill.stops_for_newcomers,
                    "The running requests stop whenever somebody joins. One step can hold both.",
                ),
                Mistake(
                    refill.one_at_a_time,
                    "One newcomer a step, even when several slots are free: fill all of them in the same step.",
                ),
                Mistake(
                    refill.one_token_each,
                    "A newcomer gets one token of its prompt a step. `waiting` says how many it needs.",
                ),
            ),
            hint="Go through the example in the text by hand, then through one with no free slot.",
            plain="Begin with a copy of `running`. Count the free slots. Add that many of the waiting requests, in "
            "order, each with the tokens that it needs.",
            twin=Exercise(
                id="refill",
                title="A careful refill",
                question="A careful server admits at most one newcomer in a step. Write its refill.",
                solution=refill.one_at_a_time,
                probes=refill.PROBES,
                mistakes=(
                    Mistake(refill.refill, "You fill all free slots at once; here at most one newcomer joins."),
                    Mistake(refill.forgets_the_running, "Who must be in the dictionary besides the newcomer?"),
                ),
            ),
        ),
        keeps_up(
            64,
            keeps_up(128, question="Now 30 requests/s arrive. Choose again, and again the smallest value."),
        ),
    ),
    ticket=TICKET,
    quiz=QUIZ,
)  # fmt: skip
