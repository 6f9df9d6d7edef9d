"""The decision of lab 08: a queue behind five slots, with the engine's own metrics, and one flag to choose."""

from collections.abc import Mapping
from typing import Any

from course.exercises.decision import flag_typed, value_typed
from course.exercises.spec import Exercise, Mistake
from course.lessons.lab08 import kv_pool

PROMPT, ANSWER = 2_000, 800  # tokens; every answer is as long
FIVE, WAITING = 5, 34
AT_ITS_END = -(-(PROMPT + ANSWER) // kv_pool.BLOCK_SIZE)  # blocks
SLOTS = kv_pool.BLOCKS // AT_ITS_END
ON_AVERAGE = round(kv_pool.TOKENS / (PROMPT + ANSWER / 2))
OPTIONS = {"a": "a longer queue", "b": "longer answers", "c": "more users"}
RIGHT = {"flag": "--max-num-seqs", "value": SLOTS, "unless": "b"}


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


def choice(answer: Any) -> dict[str, Any]:
    """What of a decision is compared: flag, value where the flag is the right one, and the letter of what changes it.

    A flag may have underscores and lack its dashes; an option may be its letter, its words or both.

    Raises NotImplementedError where nothing is filled in, ValueError for anything but these three entries.
    """
    if not isinstance(answer, Mapping) or set(answer) != set(RIGHT):
        raise ValueError("give a dictionary with the entries flag, value and unless")
    if all(part is None for part in answer.values()):
        raise NotImplementedError("nothing is chosen yet")
    flag = flag_typed(answer["flag"])
    unless = " ".join(str(answer["unless"]).casefold().strip(" .").split())
    for letter, words in OPTIONS.items():
        if unless in (letter, f"{letter})", words, f"{letter}) {words}"):
            unless = letter
    return {"flag": flag, "value": value_typed(answer["value"]) if flag == RIGHT["flag"] else 0, "unless": unless}


DECIDE = Exercise(
    "decide",
    "a queue behind five slots",
    solution=RIGHT,
    evaluate=choice,
    rtol=1e-6,
    mistakes=(
        Mistake(
            RIGHT | {"value": ON_AVERAGE},
            "That many fit on average, when each holds half of its answer. Nobody is to be preempted, so count each as "
            "it is at its end.",
        ),
        Mistake(
            RIGHT | {"value": kv_pool.TOKENS // PROMPT},
            "That counts prompts alone. Answers are in the cache as well.",
        ),
        Mistake(
            RIGHT | {"flag": "--max-model-len", "value": PROMPT + ANSWER},
            "That changes the printed concurrency, which limits nobody. Five slots stay five slots.",
        ),
        Mistake(
            RIGHT | {"flag": "--gpu-memory-utilization", "value": 0.98},
            "Look at kv_cache_usage_perc: most of the pool is free.",
        ),
        Mistake(RIGHT | {"unless": "a"}, "A longer queue wants more slots, and the pool still holds no more."),
        Mistake(
            RIGHT | {"unless": "c"}, "More users do not change what a request holds, and the number comes from that."
        ),
    ),
    hint="Which limit is reached, the slots or the pool? And how many tokens does a request hold at its end?",
    plain="The slots are all taken and most of the pool is free, so raise the slots. Divide the tokens of the pool by "
    "prompt plus whole answer, and round down.",
    worked="--max-num-seqs, with tokens of the pool / (prompt + answer), rounded down. Longer answers would change "
    "your mind.",
)
