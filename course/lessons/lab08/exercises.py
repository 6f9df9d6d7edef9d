"""Lab 08, KV budgeting: what it asks. Values are computed from the scenario and stay true if its constants change."""

from course.exercises.spec import Exercise, LabSpec, Mistake, Objective, Prediction
from course.lessons.lab08 import card_memory, kv_pool, tasks
from course.lessons.lab08.decision import DECIDE
from course.lessons.lab08.quiz import EARLIER, QUIZ
from course.lessons.lab08.slots import SLOTS
from course.lessons.lab08.ticket import TICKET

# Exercise 1: Qwen2.5-7B has the sizes of Qwen2-7B. Its twin: Qwen3-32B.
QWEN, OTHER = card_memory.spec("qwen2-7b"), card_memory.spec("qwen3-32b")
_layer = 2 * QWEN.num_kv_heads * QWEN.head_dim * 2

# Exercise 2: K and V in fp8 in the same bytes, and longer requests. Its twin: answers that are all as long.
FP8_POOL, PROMPT, ANSWER, TWIN_PROMPT, TWIN_ANSWER = 2 * kv_pool.TOKENS, 3_000, 800, 6_000, 1_000


LAB = LabSpec(
    number="08",
    title="KV budgeting",
    needs="Labs 04 and 03.",
    objectives=(
        Objective("compute the KV bytes of a token from a config", "heads", "token", "09:token"),
        Objective("work out how many of your requests fit at once", "printed", "residents", "15:residents"),
        Objective("recognise preemption and choose max_num_seqs", "room", "slots", "18:slots"),
    ),
    terms=("block", "KV pool", "KV bytes a token", "MHA", "GQA", "ledger", "concurrency", "preemption"),
    earlier=EARLIER,
    tasks=(*tasks.LEDGER, *tasks.FULL),
    predictions=(
        Prediction(
            "five",
            "The log prints 5.05x for requests of 8,192 tokens. Yours have prompts of 1,024 and answers of 512 "
            "on average, CV 1. How many can run at once?",
            (
                (
                    "five",
                    "printed-concurrency-is-a-limit",
                    "None of your requests has 8,192 tokens.",
                ),
                (
                    "256, one in each slot",
                    "slots-decide",
                    "A sequence takes memory: 256 need nine such pools.",
                ),
                ("about 27", "", "You counted what a sequence holds."),
                (
                    "about 40",
                    "only-prompts-take-memory",
                    "Answers are kept as well as prompts.",
                ),
            ),
            "c",
            "A sequence holds 1,536 tokens at a random moment: 41,408 / 1,536 is 27.",
        ),
        Prediction(
            "slots",
            "2 requests/s are more than the card can do, and all 24 slots are taken. You raise them to 48. What "
            "happens to the tokens/s?",
            (
                ("they hardly change", "", "Memory was the limit already."),
                (
                    "they rise by a fifth or so",
                    "more-slots-some-gain",
                    "They would, with memory for a larger batch.",
                ),
                (
                    "they nearly double",
                    "slots-are-speed",
                    "A slot without free blocks is of no use.",
                ),
            ),
            "a",
            "Over 2,000 requests, from 826 to 820 tokens/s and from 63 to 907 preemptions: a quarter of all tokens is "
            "computed twice.",
        ),
    ),
    exercises=(
        Exercise(
            "token",
            "bytes a token",
            solution=QWEN.kv_bytes_per_token,
            rtol=1e-6,
            mistakes=(
                Mistake(
                    2 * QWEN.num_layers * QWEN.num_heads * QWEN.head_dim * 2,
                    "That counts K and V for every query head, which is the width of the model. Only KV heads are "
                    "stored.",
                ),
                Mistake(
                    QWEN.kv_bytes_per_token // 2,
                    "A factor of two is missing: count both K and V, and two bytes for each element.",
                ),
                Mistake(_layer, "That is one layer. Every layer keeps its own K and V."),
                Mistake(8 * QWEN.kv_bytes_per_token, "That counts bits. Give bytes."),
                Mistake(QWEN.kv_bytes_per_token // 1024, "That is in KiB. Give bytes."),
            ),
            hint="Multiply: two tensors, layers, KV heads, elements of a head, bytes of an element.",
            plain="Take five numbers from the question: 2 for K and V, the layers, the KV heads (not the query heads), "
            "the 128 elements of a head, and the 2 bytes of 16 bits. Multiply them.",
            worked="2 tensors x layers x KV heads x elements of a head x bytes of an element.",
            twin=Exercise(
                "token",
                "bytes a token of Qwen3-32B",
                solution=OTHER.kv_bytes_per_token,
                rtol=1e-6,
                mistakes=(
                    Mistake(
                        2 * OTHER.num_layers * OTHER.num_heads * OTHER.head_dim * 2,
                        "That counts K and V for every query head.",
                    ),
                    Mistake(OTHER.kv_bytes_per_token // 2, "A factor of two is missing."),
                ),
                hint="Multiply: two tensors, layers, KV heads, elements of a head, bytes of an element.",
                plain="Multiply five numbers. The query heads are not among them.",
                question="Qwen3-32B has 64 layers, 64 query heads, 8 KV heads of 128 elements, and 16 bits. How many "
                "KV bytes does a token take?",
            ),
        ),
        Exercise(
            "residents",
            "requests at once",
            solution=FP8_POOL / (PROMPT + ANSWER),
            rtol=1e-2,  # somebody who rounds to a whole request is right
            mistakes=(
                Mistake(kv_pool.TOKENS / (PROMPT + ANSWER), "That is the pool with 2 bytes. fp8 takes half of them."),
                Mistake(FP8_POOL / PROMPT, "That counts prompts alone. Answers are in the cache as well."),
                Mistake(
                    FP8_POOL / (PROMPT + ANSWER / 2),
                    "Half an answer each holds when all are as long. With a CV of 1 long ones fill the batch.",
                ),
                Mistake(FP8_POOL / (PROMPT + 2 * ANSWER), "That counts an answer twice: (1 + CV²) / 2 is 1 here."),
            ),
            hint="First the tokens of the pool, then the formula for residents.",
            plain="Double the 41,408 tokens, since each takes half the bytes. Then divide by the prompt and one whole "
            "mean answer.",
            worked="2 x tokens of the pool / (prompt + answer).",
            twin=Exercise(
                "residents",
                "requests at once, all as long",
                solution=FP8_POOL / (TWIN_PROMPT + TWIN_ANSWER / 2),
                rtol=1e-2,
                mistakes=(
                    Mistake(
                        FP8_POOL / (TWIN_PROMPT + TWIN_ANSWER),
                        "With a CV of 0 a request holds half of its answer at a random moment.",
                    ),
                ),
                hint="The same pool; CV is 0 in the formula.",
                plain="Divide the doubled pool by the prompt and half of the answer.",
                question="The same pool in fp8: every prompt has 6,000 tokens and every answer 1,000. How many run at "
                "once, on average?",
            ),
        ),
        SLOTS,
        DECIDE,
    ),
    ticket=TICKET,
    quiz=QUIZ,
)
