"""Lab 08, KV budgeting: six reports from the issue trackers of engines, each with the answer and its usual mistakes."""

from collections.abc import Mapping
from typing import Any

from course.exercises.cards import Card
from course.exercises.judge import NOT_ATTEMPTED, RIGHT, WRONG, judge
from course.exercises.spec import Exercise, Mistake

GIB = 2**30
_NOT_A_LIMIT = "The 4.61 counts requests of 8,192 tokens, and is no limit. These have 800."

REPORTS = (
    Exercise(
        "concurrency",
        "vllm-project/vllm#8031",
        solution=int(4.61 * 8_192 / 800),
        rtol=5e-3,
        mistakes=(
            Mistake(4, _NOT_A_LIMIT),
            Mistake(4.61, _NOT_A_LIMIT),
            Mistake(8_192 / 800, "That is how many fit into one request of 8,192 tokens. There are 4.61 of those."),
        ),
        hint="How many tokens are in the pool?",
    ),
    Exercise(
        "qwen",
        "vllm-project/vllm#22291",
        solution=2 * 28 * 4 * 128 * 2,
        rtol=1e-3,
        mistakes=(
            Mistake(2 * 28 * 3_584 * 2, "That counts all 28 query heads. Only KV heads are stored."),
            Mistake(
                2 * 3_584 * 28 * 8, "That is the report's own number. Which heads are kept? How long is an element?"
            ),
            Mistake(28 * 4 * 128 * 2, "K and V are two tensors."),
        ),
        hint="Exercise 1 has the formula.",
    ),
    Exercise(
        "tensorrt",
        "NVIDIA/TensorRT-LLM#1400",
        solution=132_608 * 2 * 32 * 32 * 128 * 2 / 1e9,
        rtol=5e-3,
        mistakes=(
            Mistake(132_608 * 2 * 32 * 32 * 128 * 2 / GIB, "That is in GiB. The question asks for GB, 10⁹ bytes."),
            Mistake(132_608 * 32 * 32 * 128 * 2 / 1e9, "K and V are two tensors."),
        ),
        hint="Tokens times bytes a token.",
    ),
    Exercise(
        "a10",
        "NVIDIA/TensorRT-LLM#224",
        solution=8_348 * 16 * 524_288 / GIB,
        rtol=5e-3,
        mistakes=(
            Mistake(8_348 * 16 * 524_288 / 1e9, "That is in GB. The question asks for GiB, 2³⁰ bytes."),
            Mistake(8_348 * 524_288 / GIB, "That counts a block as one token."),
        ),
        hint="Blocks times tokens of a block times bytes a token.",
    ),
    Exercise(
        "llama.cpp",
        "ggml-org/llama.cpp#11681",
        solution=4_096 // 2,
        rtol=1e-3,
        mistakes=(
            Mistake(4_096, "The context is that of the whole server, and its slots share it."),
            Mistake(8_192, "The context is that of the whole server: slots do not add to it."),
        ),
        hint="The pool is as long as --ctx-size says, however many share it.",
    ),
    Exercise(
        "never",
        "vllm-project/vllm#39734",
        solution=-(-(99_000 + 1_000) // 16),
        rtol=1e-4,
        mistakes=(
            Mistake(99_000 // 16 + 1, "That is the prompt. At its end the request holds its answer as well."),
            Mistake(5_000, "That is what the pool has. How many does the request need?"),
            Mistake(100_000, "Those are tokens. How many blocks hold them?"),
        ),
        hint="Count blocks for all that the request holds at its end.",
    ),
)


def check(answers: Mapping[str, Any] | None) -> Card:
    """A line for each report: whether its answer is right, and if not, a hint. answers: by the report's name."""
    given = answers if isinstance(answers, Mapping) else {}
    verdicts = {report.id: judge(report, given.get(report.id)) for report in REPORTS}
    done = sum(verdict.status == RIGHT for verdict in verdicts.values())
    lines = [f"{name}: {verdict.status}. {verdict.hint}".rstrip() for name, verdict in verdicts.items()]
    status = RIGHT if done == len(REPORTS) else WRONG
    if not given:
        status = NOT_ATTEMPTED
    return Card(f"{done} of {len(REPORTS)} reports answered.", lines, status)
