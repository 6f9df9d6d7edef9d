"""Lab 07, chunked prefill: what it asks. Values are computed, and stay true if the scenario's constants change."""

from course.exercises.spec import Exercise, LabSpec, Mistake, Prediction
from course.lessons.lab07 import share, tasks
from course.lessons.lab07.long_prompt import STEP
from course.lessons.lab07.quiz import QUIZ
from course.steptime import PowerLaw, Step

PROMPT, CHUNK = 2_000, 512  # exercise 1, its third chunk
GRID = 64  # exercise 3: chunks are multiples of it

# A card on which the weights are read in no time and attention is dear, so that every slip shows.
PLAIN = PowerLaw(5.5e-3, 30e-6, 1, prefill=25e-6, context=45e-9, pairs=2e-9)


def pairs(tokens: int, cached: int) -> int:
    """Query-key pairs of a chunk: each token attends to what is cached, to those before it in it, and to itself."""
    return tokens * cached + tokens * (tokens + 1) // 2


def prefill_seconds(step_time, prompt, chunk):
    """Seconds of the steps that compute a prompt alone in chunks: each has the earlier ones in the cache."""
    total = 0.0
    for cached in range(0, prompt, chunk):
        total += step_time(Step(0, 0, ((min(chunk, prompt - cached), cached),)))
    return total


def _steps_times_whole(step_time, prompt, chunk):
    return -(-prompt // chunk) * step_time(Step(0, 0, ((prompt, 0),)))


def _steps_times_first(step_time, prompt, chunk):
    return prompt / chunk * step_time(Step(0, 0, ((chunk, 0),)))


def _nothing_cached(step_time, prompt, chunk):
    starts = range(0, prompt, chunk)
    return sum(step_time(Step(0, 0, ((min(chunk, prompt - cached), 0),))) for cached in starts)


def _last_chunk_full(step_time, prompt, chunk):
    return sum(step_time(Step(0, 0, ((chunk, cached),))) for cached in range(0, prompt, chunk))


def _rest_forgotten(step_time, prompt, chunk):
    return sum(step_time(Step(0, 0, ((chunk, cached),))) for cached in range(0, prompt - chunk + 1, chunk))


def _one_step(step_time, prompt, chunk):
    return step_time(Step(0, 0, ((prompt, 0),)))


def _own_tokens_cached(step_time, prompt, chunk):
    starts = range(0, prompt, chunk)
    return sum(step_time(Step(0, 0, ((min(chunk, prompt - k), min(k + chunk, prompt)),))) for k in starts)


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


def _one_too_many(step_time, prompt, decodes, context, limit):
    return largest_chunk(step_time, prompt, decodes, context, limit) + GRID


def _as_budget(step_time, prompt, decodes, context, limit):
    return largest_chunk(step_time, prompt, decodes, context, limit) + decodes


LAB = LabSpec(
    number="07",
    title="Chunked prefill",
    tasks=(*tasks.MOMENT, *tasks.HIDDEN),
    predictions=(
        Prediction(
            "p99",
            "Chats stream with a gap of 5.3 ms between tokens. Every 20 s a prompt of 32,768 tokens comes and stops "
            "all of them for 1.7 s. You cut the token budget of a step to 512, so that it runs in 64 chunks. What "
            "happens to the p99 of the gaps, over all tokens?",
            (
                "it about triples",
                (
                    "it does not change: one prompt in 20 s is too rare for a p99",
                    "rare-is-invisible",
                    "True of the long gap, and that is why no percentile showed it. Its chunks are not rare.",
                ),
                (
                    "it halves",
                    "smaller-steps-smaller-gaps",
                    "The longest gap shrinks. Most gaps had no chunk beside them before, and now more of them do.",
                ),
                (
                    "it falls to about a thirtieth, like the longest gap",
                    "p99-shows-the-stall",
                    "The percentile over tokens never held the stall, so it had nothing to lose.",
                ),
            ),
            "a",
            "From 9.9 to 29.5 ms, while the longest gap fell from 1,744 to 56 ms. A stop of 1.7 s hits 15 chats once: "
            "0.03% of all tokens, which no p99 sees. In 64 chunks the same work makes 64 times as many gaps, each a "
            "little long: over 1% of the tokens. The better service has the worse p99.",
        ),
        Prediction(
            "newcomers",
            "And the chats that arrive while the long prompt runs? Their p99 TTFT was 1,616 ms with the whole prompt "
            "in one step. What is it with a budget of 512 tokens?",
            (
                (
                    "about 20 ms: they slip in between two chunks",
                    "chunks-let-others-in",
                    "There is no between: the next chunk of the long prompt takes what the decodes leave, in every "
                    "step.",
                ),
                (
                    "about half: they wait for half of the chunks",
                    "wait-for-half",
                    "Who comes late in the prompt waits less. A high percentile is about those who come early in it.",
                ),
                "about a third longer",
            ),
            "c",
            "2,120 ms. The long prompt came first, and its chunk fills the budget of every step: newcomers wait for "
            "its last chunk, which comes later than before. A smaller budget does not help them. A cap on what one "
            "prompt may take (long_prefill_token_threshold) does: 92 ms with a budget of 2,048 and a cap of 512.",
        ),
        Prediction(
            "long",
            "The long prompt itself: 64 steps of 512 tokens instead of one step of 32,768. What happens to its own "
            "TTFT?",
            (
                (
                    "shorter: its first token can be streamed early",
                    "chunks-stream-early",
                    "A first token needs the whole prompt, however it was cut.",
                ),
                "about a third longer",
                (
                    "about twice as long",
                    "chunks-double-the-work",
                    "Each token still attends to all before it, in either way. Small chunks cost more, but not that.",
                ),
                (
                    "64 times as long: every step must finish first",
                    "a-step-is-a-step",
                    "A step with fewer tokens is shorter. The number of steps says little.",
                ),
            ),
            "b",
            "33%, 1.74 s to 2.30 s, and 6% in theory: small chunks cost these kernels more than the roofline says. A "
            "step with fewer tokens is shorter, so the number of steps says little. The first token needs the whole "
            "prompt, so chunks never bring it earlier.",
        ),
    ),
    exercises=(
        Exercise(
            "pairs",
            "the pairs of a chunk",
            solution=pairs(CHUNK, 2 * CHUNK),
            rtol=1e-6,  # counted, not measured
            mistakes=(
                Mistake(
                    pairs(CHUNK, 0),
                    "Those are the pairs inside the chunk. Its tokens also attend to everything computed before.",
                ),
                Mistake(
                    CHUNK * 2 * CHUNK,
                    "Those are the pairs with what is in the cache. The tokens of a chunk attend to each other too.",
                ),
                Mistake(
                    CHUNK * 3 * CHUNK,
                    "That lets every token see the whole chunk. Attention is causal: a token does not see later ones.",
                ),
                Mistake(
                    pairs(3 * CHUNK, 0),
                    "Those are the pairs of all chunks up to here. How many are computed in this step?",
                ),
                Mistake(
                    CHUNK * 2 * CHUNK + CHUNK * (CHUNK - 1) // 2,
                    "A token attends to itself as well: the first one of a chunk has one pair inside it, not none.",
                ),
                Mistake(
                    pairs(PROMPT - 3 * CHUNK, 3 * CHUNK), "That is the next chunk. The first one has nothing cached."
                ),
                Mistake(
                    pairs(CHUNK, CHUNK), "That is the chunk before. How many tokens are cached when this one runs?"
                ),
            ),
            hint="Tokens times what is cached, and a triangle for the chunk itself.",
            plain="Multiply the tokens of the chunk by those in the cache. Inside the chunk the first token sees "
            "itself and the last one sees all of them: add up such a row for each token.",
        ),
        Exercise(
            "ttft",
            "a prompt in chunks",
            solution=prefill_seconds,
            probes=((STEP, 2_000, 512), (PLAIN, 2_000, 512), (PLAIN, 10_000, 3_000), (STEP, 32_768, 2_048)),
            rtol=2e-3,
            mistakes=(
                Mistake(
                    _steps_times_whole,
                    "So many steps, and each as long as the whole prompt in one. A step with fewer tokens is shorter.",
                ),
                Mistake(
                    _steps_times_first,
                    "All chunks are taken for copies of the first. Later ones attend to more, and the last is smaller.",
                ),
                Mistake(
                    _nothing_cached,
                    "Every chunk is taken for a prompt of its own. What is in the cache when the second one runs?",
                ),
                Mistake(_last_chunk_full, "The last chunk is no full one: how many tokens are left for it?"),
                Mistake(
                    _rest_forgotten, "The prompt is no whole number of chunks: a smaller one is missing at the end."
                ),
                Mistake(_one_step, "That is the whole prompt in one step."),
                Mistake(
                    _own_tokens_cached,
                    "The second number of a chunk is what was in the cache before this step, without its own tokens.",
                ),
            ),
            hint="One Step a chunk, with no decodes: ((tokens, tokens already in the cache),).",
            plain="Walk through the prompt in strides of a chunk. Each stride is a Step of what is left, a chunk at"
            " most, with all that was walked before in the cache. Add up the seconds.",
        ),
        Exercise(
            "chunk",
            "the chunk that a limit allows",
            solution=largest_chunk,
            probes=((STEP, 32_768, 32, 700, 0.050), (STEP, 4_096, 128, 1_600, 0.060), (PLAIN, 8_192, 48, 900, 0.050)),
            mistakes=(
                Mistake(
                    _search(lambda chunk, prompt, decodes, context: Step(decodes, decodes * context, ((chunk, 0),))),
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
            hint="Try multiples of 64. The step to look at is the last one, which attends to the whole prompt.",
            plain="For each size in the grid build the step that holds all decodes and this chunk behind the rest "
            "of the prompt. Keep the largest size whose step is within the limit.",
        ),
        Exercise(
            "share",
            "share the step",
            solution=share.share,
            evaluate=share.share_result,
            rtol=1e-6,
            mistakes=(
                Mistake(
                    share.without_cap,
                    "The first prompt takes all that is left of the budget, and the next ones wait for its last chunk. "
                    "`cap` limits what one request may take.",
                ),
                Mistake(
                    share.prompts_first,
                    "Prompts are served first, and when they use up the budget some decodes sit out the step. Whose "
                    "turn comes first?",
                ),
                Mistake(
                    share.forgets_the_budget,
                    "The engine refuses: all tokens of a step together may be at most state.max_num_batched_tokens. "
                    "Keep count of what is left.",
                ),
                Mistake(
                    share.forgets_the_slots,
                    "The engine refuses: only as many may be let in as there are free slots, max_num_seqs less those "
                    "that run.",
                ),
                Mistake(
                    share.forgets_the_waiting,
                    "Nobody is let in while others run. A waiting request that gets tokens takes a free slot.",
                ),
                Mistake(
                    share.cap_for_all,
                    "All prompts together share one cap. It is meant for each of them; the budget limits the sum.",
                ),
                Mistake(
                    share.zero_chunks,
                    "The engine refuses a request with 0 tokens. Leave those out for whom nothing is left.",
                ),
                Mistake(
                    share.whole_prompt_again,
                    "The engine refuses: a prompt that is partly computed has less left than its size. Which attribute "
                    "says what is left?",
                ),
            ),
            hint="The run has 5 slots, a budget of 12 tokens and a cap of 5; each step takes 1 s.",
            plain="Those who decode come first, with a token each. Then go through the running prompts and as many "
            "waiting ones as there are free slots. Each gets the least of what it needs, the cap, and what is"
            " left of the budget.",
        ),
    ),
    quiz=QUIZ,
)
