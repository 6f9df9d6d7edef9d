"""Lab 07, chunked prefill: what it asks. Values are computed, and stay true if the scenario's constants change."""

from math import ceil

from course.exercises.spec import Exercise, LabSpec, Mistake, Objective, Prediction
from course.lessons.lab07 import share, tasks
from course.lessons.lab07.decision import keeps
from course.lessons.lab07.long_prompt import PROMPT, STEP
from course.lessons.lab07.quiz import EARLIER, QUIZ, TICKET
from course.steptime import Step

STEPS, STEPS_TWIN = (10_000, 512, 32), (9_000, 256, 16)
"""Prompt, token budget, and decodes of exercise 1."""
GRID = 64  # exercise 2: chunks are multiples of it
LIMIT, LIMIT_TWIN = 0.050, 0.040  # seconds, of exercise 2
DECODES, CONTEXT = 32, 700  # beside its chunk, tokens of each


def steps(prompt: int, budget: int, decodes: int) -> int:
    """Steps of a prompt in chunks, each beside so many decodes."""
    return ceil(prompt / (budget - decodes))


def step_with(chunk: int, cached: int) -> float:
    """Recorded seconds of a step with a chunk behind so many tokens, beside the decodes."""
    return STEP(Step(DECODES, DECODES * CONTEXT, ((chunk, cached),)))


def largest_chunk(limit: float, *, first: bool = False) -> int:
    """The largest multiple of 64 tokens whose last step keeps a limit [s]; first: whose first step does."""
    chunks = range(GRID, PROMPT, GRID)
    return max(chunk for chunk in chunks if step_with(chunk, 0 if first else PROMPT - chunk) <= limit)


LAB = LabSpec(
    number="07",
    title="Chunked prefill",
    needs="labs 04 and 03, dictionaries in Python.",
    objectives=(
        Objective(
            "compute in how many steps a prompt runs",
            task="budget", exercise="steps", retest="15:steps",
        ),
        Objective(
            "choose the limit that keeps a promise",
            task="both", exercise="decision", retest="17:limit",
        ),
        Objective(
            "write the rule that shares a step",
            task="room", exercise="share", retest="09:share",
        ),
    ),
    terms=("ITL", "stall", "chunk", "token budget", "cap for one prompt", "head-of-line blocking"),
    earlier=EARLIER,
    tasks=(*tasks.MOMENT, *tasks.HIDDEN),
    predictions=(
        Prediction(
            "p99",
            "The token budget is lowered to 512: a contract runs in some 66 chunks. What does the p99 of gaps do?",
            (
                "it roughly triples",
                (
                    "it stays the same",
                    "rare-is-invisible",
                    "True of one long gap. But 66 chunks make 66 gaps for each chat, all somewhat longer.",
                ),
                (
                    "it halves",
                    "smaller-steps-smaller-gaps",
                    "The longest gap shrinks. But now many more gaps are steps with a chunk.",
                ),
                (
                    "it falls to a thirtieth",
                    "p99-shows-the-stall",
                    "That is the longest gap. The p99 over tokens never showed the stall.",
                ),
            ),
            "a",
            "From 9.9 to 29.5 ms, and the longest gap fell from 1,744 to 56 ms.",
        ),
        Prediction(
            "newcomers",
            "With the budget of 65,536 the p99 TTFT of chats was 1.6 s. And with 512?",
            (
                (
                    "20 ms: they slip in between two chunks",
                    "chunks-let-others-in",
                    "In every step the next chunk takes all that the decodes leave.",
                ),
                (
                    "0.8 s: they wait for half the chunks",
                    "wait-for-half",
                    "On average they do. The p99 shows chats that come just after the long prompt.",
                ),
                "2.1 s: they wait for all chunks",
            ),
            "c",
            "With a budget of 2,048 and a cap of 512 it is 92 ms.",
        ),
    ),
    exercises=(
        Exercise(
            "steps",
            "Steps",
            solution=steps(*STEPS),
            rtol=1e-3,  # counted, not measured
            mistakes=(
                Mistake(ceil(STEPS[0] / STEPS[1]), "That gives the whole budget to the prompt. Who else is in a step?"),
                Mistake(STEPS[0] / (STEPS[1] - STEPS[2]), "Steps are whole: the rest of the prompt takes a step too."),
                Mistake(
                    STEPS[0] // (STEPS[1] + STEPS[2]) + 1,
                    "The decodes are counted in the budget, and not added to it.",
                ),
                Mistake(ceil(STEPS[0] / STEPS[2]), "That divides by the number of chats. How many tokens do they "
                "leave?"),
            ),
            hint="Divide the prompt by what the decodes leave of the budget.",
            plain="Each chat that streams takes one token of the budget. Divide the prompt by the rest, and round up.",
            twin=Exercise(
                "steps",
                "Steps",
                question="16 chats, a budget of 256, a prompt of 9,000 tokens: in how many steps does it run?",
                solution=steps(*STEPS_TWIN),
                rtol=1e-3,
                mistakes=(
                    Mistake(ceil(STEPS_TWIN[0] / STEPS_TWIN[1]), "That gives the whole budget to the prompt."),
                    Mistake(STEPS_TWIN[0] / (STEPS_TWIN[1] - STEPS_TWIN[2]), "The rest takes a step too."),
                ),
            ),
        ),
        Exercise(
            "chunk",
            "The chunk",
            solution=largest_chunk(LIMIT),
            rtol=1e-3,  # a multiple of 64, and no other
            mistakes=(
                Mistake(
                    largest_chunk(LIMIT, first=True),
                    "With that chunk the first step keeps the limit. The last one attends to the whole prompt.",
                ),
                Mistake(largest_chunk(LIMIT) + GRID, "The last step with that chunk is just above the limit."),
                Mistake(largest_chunk(LIMIT) - GRID, "That keeps the limit. Does a larger chunk keep it too?"),
                Mistake(
                    largest_chunk(LIMIT) + DECODES,
                    "That is the token budget: the decodes are counted in it. The question is the chunk.",
                ),
            ),
            hint="Put another multiple of 64 into the cell above, and run it again.",
            plain="Go down from 512 by 64 at a time, and stop at the first chunk whose step keeps the limit.",
            twin=Exercise(
                "chunk",
                "The chunk",
                question="What is the largest chunk for a limit of 40 ms?",
                solution=largest_chunk(LIMIT_TWIN),
                rtol=1e-3,
                mistakes=(
                    Mistake(largest_chunk(LIMIT_TWIN) + GRID, "The last step with that chunk is above the limit."),
                    Mistake(
                        largest_chunk(LIMIT_TWIN, first=True),
                        "With that chunk the first step keeps the limit. The last one takes longer.",
                    ),
                ),
            ),
        ),
        Exercise(
            "share",
            "Share the step",
            solution=share.share,
            probes=share.PROBES,
            mistakes=(
                Mistake(
                    share.without_cap,
                    "The first prompt takes all that is left of the budget. `cap` limits what one prompt may take.",
                ),
                Mistake(
                    share.prompts_first,
                    "Your rule serves prompts first, and when they use up the budget a chat gets no token. Who should "
                    "go first?",
                ),
                Mistake(
                    share.forgets_the_budget,
                    "A step holds at most `budget` tokens in all. Keep count of what is left.",
                ),
                Mistake(
                    share.forgets_the_decodes,
                    "The tokens of requests that decode count against the budget as well.",
                ),
                Mistake(share.leaves_out_the_decodes, "Who must be in the dictionary besides the prompts?"),
                Mistake(
                    share.cap_for_all,
                    "All prompts together share one cap. It limits each of them; the budget limits the sum.",
                ),
                Mistake(share.zero_chunks, "Leave out a prompt for which nothing is left: no request computes 0."),
                Mistake(share.one_prompt, "Only one prompt gets tokens. The rest of the budget goes to the next one."),
            ),
            hint="Go through the example in the text by hand, then take a budget that the decodes use up.",
            plain="Begin with one token for each request that decodes. Then go through the prompts in order: each gets "
            "the least of what it needs, the cap, and what is left of the budget.",
            twin=Exercise(
                "share",
                "Prompts first",
                question="In a batch service nobody reads along, so prompts go first. Write its share. Requests that "
                "decode get a token each, in order, while the budget lasts.",
                solution=share.prompts_first,
                probes=share.PROBES,
                mistakes=(
                    Mistake(share.share, "Requests that decode still go first. When do they get no token here?"),
                    Mistake(share.forgets_the_budget, "A step holds at most `budget` tokens in all."),
                ),
            ),
        ),
        keeps(
            512,
            keeps(
                256,
                question="Now new chats are promised a p99 TTFT of 60 ms. Choose again the largest value that keeps "
                "both promises.",
            ),
        ),
    ),
    ticket=TICKET,
    quiz=QUIZ,
)  # fmt: skip
