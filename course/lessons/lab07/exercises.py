"""Lab 07, chunked prefill: what it asks. Values are computed, and stay true if the scenario's constants change."""

from math import ceil

from course.exercises.spec import Exercise, LabSpec, Mistake, Objective, Prediction
from course.lessons.lab07 import share, tasks
from course.lessons.lab07.decision import keeps
from course.lessons.lab07.long_prompt import STEP
from course.lessons.lab07.quiz import EARLIER, QUIZ, TICKET
from course.steptime import PowerLaw, Step

STEPS, STEPS_TWIN = (10_000, 512, 32), (9_000, 256, 16)
"""Prompt, token budget, and decodes of exercise 1."""
GRID = 64  # exercise 2: chunks are multiples of it

# A card on which the weights are read in no time and attention is dear, so that every slip shows.
PLAIN = PowerLaw(5.5e-3, 30e-6, 1, prefill=25e-6, context=45e-9, pairs=2e-9)


def steps(prompt: int, budget: int, decodes: int) -> int:
    """Steps of a prompt in chunks, each beside so many decodes."""
    return ceil(prompt / (budget - decodes))


def largest_chunk(step_time, prompt, decodes, context, limit):
    """The largest multiple of 64 tokens whose last step, behind the rest of the prompt, keeps the limit."""
    best = None
    for chunk in range(GRID, prompt + 1, GRID):
        if step_time(Step(decodes, decodes * context, ((chunk, prompt - chunk),))) <= limit:
            best = chunk
    return best


def _search(step_of):
    """The same search over other steps."""

    def wrong(step_time, prompt, decodes, context, limit):
        chunks = range(GRID, prompt + 1, GRID)
        return max(chunk for chunk in chunks if step_time(step_of(chunk, prompt, decodes, context)) <= limit)

    return wrong


first_step = _search(lambda chunk, prompt, decodes, context: Step(decodes, decodes * context, ((chunk, 0),)))


def first_chunk(step_time, prompt, decodes, context, limit):
    """The largest multiple of 64 tokens whose first step keeps the limit."""
    best = None
    for chunk in range(GRID, prompt + 1, GRID):
        if step_time(Step(decodes, decodes * context, ((chunk, 0),))) <= limit:
            best = chunk
    return best


def _one_too_many(step_time, prompt, decodes, context, limit):
    return largest_chunk(step_time, prompt, decodes, context, limit) + GRID


def _as_budget(step_time, prompt, decodes, context, limit):
    return largest_chunk(step_time, prompt, decodes, context, limit) + decodes


PROBES = ((STEP, 32_768, 32, 700, 0.050), (STEP, 4_096, 128, 1_600, 0.060), (PLAIN, 8_192, 48, 900, 0.050))

LAB = LabSpec(
    number="07",
    title="Chunked prefill",
    needs="Lab 04 (continuous batching, slots) and functions and dictionaries in Python. No GPU.",
    objectives=(
        Objective(
            "compute in how many steps a prompt runs beside chats that stream",
            task="budget", exercise="steps", retest="15:steps",
        ),
        Objective(
            "choose the limit that keeps a promise to those who stream and to those who come",
            task="both", exercise="decision", retest="17:limit",
        ),
        Objective(
            "write the rule that shares a step between decodes and prompts",
            task="room", exercise="share", retest="09:share",
        ),
    ),
    terms=("ITL", "stall", "chunk", "token budget", "cap for one prompt", "head-of-line blocking"),
    earlier=EARLIER,
    tasks=(*tasks.MOMENT, *tasks.HIDDEN),
    predictions=(
        Prediction(
            "p99",
            "You cut the token budget to 512, so that a contract runs in 64 chunks. What happens to the p99 of the "
            "gaps, over all tokens? It was 10 ms.",
            (
                "it about triples",
                (
                    "it stays: one prompt in 20 s is too rare for a p99",
                    "rare-is-invisible",
                    "True of the long gap, and that is why no percentile showed it. Its chunks are not rare.",
                ),
                (
                    "it halves, since steps are shorter",
                    "smaller-steps-smaller-gaps",
                    "The longest gap shrinks. But most gaps had no chunk beside them before, and now more of them do.",
                ),
                (
                    "it falls to a thirtieth, as the longest gap does",
                    "p99-shows-the-stall",
                    "The p99 over tokens never held the stall, so it had nothing to lose.",
                ),
            ),
            "a",
            "From 9.9 to 29.5 ms, while the longest gap fell from 1,744 to 56 ms. 64 chunks make 64 times as many gaps "
            "as one step, each a little long: over 1% of all. The better service has the worse p99.",
        ),
        Prediction(
            "newcomers",
            "And the chats that arrive while a contract runs? Their p99 TTFT was 1.6 s with the whole prompt in one "
            "step. What is it with a budget of 512?",
            (
                (
                    "about 20 ms, since they slip in between two chunks",
                    "chunks-let-others-in",
                    "There is no between: in every step the next chunk takes all that the decodes leave.",
                ),
                (
                    "about 0.8 s, since they wait for half of the chunks",
                    "wait-for-half",
                    "Who comes late in the prompt waits less. A high percentile is about those who come early in it.",
                ),
                "about 2.1 s, since they wait for all of the chunks",
            ),
            "c",
            "2.12 s. The contract came first, and takes what the decodes leave until its last chunk, which comes later "
            "than before. A cap for one prompt helps: 92 ms with a budget of 2,048 and a cap of 512.",
        ),
    ),
    exercises=(
        Exercise(
            "steps",
            "Steps of a prompt",
            solution=steps(*STEPS),
            rtol=1e-3,  # counted, not measured
            mistakes=(
                Mistake(ceil(STEPS[0] / STEPS[1]), "That gives the whole budget to the prompt. Who else is in a step?"),
                Mistake(STEPS[0] / (STEPS[1] - STEPS[2]), "Steps are whole: the rest of the prompt takes one as well."),
                Mistake(
                    STEPS[0] // (STEPS[1] + STEPS[2]) + 1,
                    "The decodes are counted in the budget, and not added to it.",
                ),
                Mistake(ceil(STEPS[0] / STEPS[2]), "That divides by the chats. How many tokens do they leave?"),
            ),
            hint="Divide the prompt by what the decodes leave of the budget.",
            plain="Each chat that streams takes one token of the budget. Divide the prompt by the rest, and round up.",
            twin=Exercise(
                "steps",
                "Steps of a prompt",
                question="A prompt of 9,000 tokens, 16 chats that stream, a budget of 256: in how many steps does it run?",
                solution=steps(*STEPS_TWIN),
                rtol=1e-3,
                mistakes=(
                    Mistake(ceil(STEPS_TWIN[0] / STEPS_TWIN[1]), "That gives the whole budget to the prompt."),
                    Mistake(STEPS_TWIN[0] / (STEPS_TWIN[1] - STEPS_TWIN[2]), "The rest of the prompt takes a step too."),
                ),
            ),
        ),
        Exercise(
            "chunk",
            "The chunk that a limit allows",
            solution=largest_chunk,
            probes=PROBES,
            mistakes=(
                Mistake(
                    first_step,
                    "That keeps the limit in the first step. The last one attends to the whole prompt and is longer.",
                ),
                Mistake(
                    _search(lambda chunk, prompt, decodes, context: Step(0, 0, ((chunk, prompt - chunk),))),
                    "The step holds the chunk alone. The chats whose gaps you limit decode in it too.",
                ),
                Mistake(
                    _search(lambda chunk, prompt, decodes, context: Step(decodes, context, ((chunk, prompt - chunk),))),
                    "A Step wants the context of all its decodes together; `context` is that of one.",
                ),
                Mistake(
                    _search(
                        lambda chunk, prompt, decodes, context: Step(decodes, decodes * context, ((chunk, prompt),))
                    ),
                    "When the last chunk runs, what is cached is the prompt without that chunk.",
                ),
                Mistake(
                    _one_too_many, "The last step of that chunk is above the limit: it is the first that breaks it."
                ),
                Mistake(
                    _as_budget,
                    "That is the token budget: the decodes of the step are counted in it. The question is the chunk.",
                ),
            ),
            rtol=5e-3,
            hint="Look at the last step, in which the chunk attends to all the rest of the prompt.",
            plain="For each multiple of 64 build the step of the worked example, with this chunk in it. Keep the "
            "largest chunk whose step is within the limit.",
            twin=Exercise(
                "chunk",
                "The first chunk that a limit allows",
                question="Now the promise is for the first step of the prompt alone. Return the largest chunk, a "
                "multiple of 64, whose first step takes at most `limit` seconds.",
                solution=first_chunk,
                probes=PROBES,
                rtol=5e-3,
                mistakes=(
                    Mistake(largest_chunk, "That is the last step. How many tokens are cached in the first one?"),
                    Mistake(
                        _search(lambda chunk, prompt, decodes, context: Step(0, 0, ((chunk, 0),))),
                        "The step holds the chunk alone. The chats decode in it too.",
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
                    "Prompts go first, and when they use up the budget a chat gets no token. Whose turn comes first?",
                ),
                Mistake(
                    share.forgets_the_budget,
                    "All tokens of a step together may be at most `budget`. Keep count of what is left.",
                ),
                Mistake(
                    share.forgets_the_decodes,
                    "The tokens of those who decode are counted in the budget as well.",
                ),
                Mistake(share.leaves_out_the_decodes, "Who must be in the dictionary besides the prompts?"),
                Mistake(
                    share.cap_for_all,
                    "All prompts together share one cap. It is meant for each of them; the budget limits the sum.",
                ),
                Mistake(share.zero_chunks, "Leave out a prompt for which nothing is left: no request computes 0."),
                Mistake(share.one_prompt, "Only one prompt gets tokens. What is left goes to the next one."),
            ),
            hint="Go through the example of the text by hand, and then with a budget that the decodes use up.",
            plain="Begin with one token for each request that decodes. Then go through the prompts in order: each gets "
            "the least of what it needs, the cap, and what is left of the budget.",
            twin=Exercise(
                "share",
                "Prompts first",
                question="A batch service has no readers: there, prompts go first. Write its share. Those who decode "
                "get a token each while the budget lasts, in order.",
                solution=share.prompts_first,
                probes=share.PROBES,
                mistakes=(
                    Mistake(share.share, "Those who decode still go first. When do they lose their token here?"),
                    Mistake(share.forgets_the_budget, "All tokens together may be at most `budget`."),
                ),
            ),
        ),
        keeps(
            512,
            keeps(
                256,
                question="Now new chats are promised a p99 TTFT of 60 ms. Choose again, and again the largest value.",
            ),
        ),
    ),
    ticket=TICKET,
    quiz=QUIZ,
)  # fmt: skip
