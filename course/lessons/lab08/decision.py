"""The decision of lab 08: a queue behind five slots, with the engine's own metrics, and one flag to choose."""

from course.lessons.lab08 import kv_pool

PROMPT, ANSWER = 2_000, 800  # tokens; every answer is as long
FIVE, WAITING = 5, 34
AT_ITS_END = -(-(PROMPT + ANSWER) // kv_pool.BLOCK_SIZE)  # blocks
SLOTS = kv_pool.BLOCKS // AT_ITS_END
ON_AVERAGE = round(kv_pool.TOKENS / (PROMPT + ANSWER / 2))


def metrics() -> str:
    """Lines of a page as vLLM serves it at /metrics, in its format; nobody ran an engine for it."""
    used = FIVE * (PROMPT + ANSWER / 2) / kv_pool.TOKENS
    values = {
        "num_requests_running": FIVE,
        "num_requests_waiting": WAITING,
        "kv_cache_usage_perc": round(used, 2),
        "num_preemptions_total": 0,
    }
    return "\n".join(f'vllm:{name}{{engine="0"}} {float(value)}' for name, value in values.items())
