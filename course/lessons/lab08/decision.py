"""The decision of lab 08: a queue behind five slots, with the engine's own metrics, and one flag to choose."""

from course.exercises.decision import one_flag
from course.exercises.spec import Exercise, Mistake
from course.lessons.lab08 import kv_pool

PROMPT, ANSWER = 2_000, 800  # tokens; every answer is as long
FIVE, WAITING = 5, 34
AT_ITS_END = -(-(PROMPT + ANSWER) // kv_pool.BLOCK_SIZE)  # blocks
SLOTS = kv_pool.BLOCKS // AT_ITS_END
ON_AVERAGE = round(kv_pool.TOKENS / (PROMPT + ANSWER / 2))
FLAG = "--max-num-seqs"


def metrics() -> str:
    """Lines of the page that vLLM 0.19 serves at /metrics, in its format."""
    used = FIVE * (PROMPT + ANSWER / 2) / kv_pool.TOKENS
    values = {
        "num_requests_running": FIVE,
        "num_requests_waiting": WAITING,
        "kv_cache_usage_perc": round(used, 2),
        "num_preemptions_total": 0,
    }
    return "\n".join(f'vllm:{name}{{engine="0"}} {float(value)}' for name, value in values.items())


choice = one_flag(FLAG)


DECIDE = Exercise(
    "decide",
    "a queue behind five slots",
    solution={FLAG: SLOTS},
    evaluate=choice,
    rtol=1e-6,
    mistakes=(
        Mistake(
            {FLAG: ON_AVERAGE},
            "That many fit on average, when each holds half of its answer. Nobody is to be preempted, so count each as "
            "it is at its end.",
        ),
        Mistake(
            {FLAG: kv_pool.TOKENS // PROMPT},
            "That counts prompts alone. Answers are in the cache as well.",
        ),
        Mistake(
            {"--max-model-len": PROMPT + ANSWER},
            "That changes the printed concurrency, which limits nobody. Five slots stay five slots.",
        ),
        Mistake(
            {"--gpu-memory-utilization": 0.98},
            "Look at kv_cache_usage_perc: most of the pool is free.",
        ),
    ),
    hint="Which limit is reached, the slots or the pool? And how many tokens does a request hold at its end?",
    plain="The slots are all taken and most of the pool is free, so raise the slots. Divide the tokens of the pool by "
    "prompt plus whole answer, and round down.",
    worked="--max-num-seqs, with tokens of the pool / (prompt + answer), rounded down.",
)
