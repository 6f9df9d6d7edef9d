"""Lab 15's decision: flags that there are, tried in the simulator."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from course.exercises.decision import flag_typed, value_typed
from course.lessons.lab15.promises import BUDGET, SMALL, STEP, Outcome, outcome, requests
from course.policies import Continuous

TOKENS, SEQS, CAP = "--max-num-batched-tokens", "--max-num-seqs", "--long-prefill-token-threshold"
RATE, SLOTS = 16, 256  # requests/s, in bursts; --max-num-seqs of this engine
TPOT, TPOT_TWIN = 0.020, 0.030  # seconds that are promised of the p95, and in the twin
DOCUMENTS = 0.95  # of the documents, whose first token comes in time
MORE = 1.1  # of the rate: what is accepted holds there too
AT = 10.0  # seconds: the moment of the page, in a burst
BESIDE = (0, 512, 2_048, 8_192)  # prompt tokens of the steps that the page lists
BOTH_HOLD = "streams and documents hold"


@lru_cache(maxsize=64)
def served(tokens: int = BUDGET, seqs: int = SLOTS, cap: int = 0, rate: float = RATE, seed: int = 0) -> Outcome:
    """The minute with these flags."""
    return outcome(requests(rate, seed=seed), Continuous(seqs, tokens, long_prefill_token_threshold=cap))


def holds(found: Outcome, tpot: float = TPOT) -> tuple[bool, bool]:
    """Whether streams and documents are as promised."""
    return found.tpot <= tpot, float(found.in_time[~found.chat].mean()) >= DOCUMENTS


def words(kept: tuple[bool, bool]) -> str:
    """The same in words."""
    streams, documents = kept
    if streams:
        return BOTH_HOLD if documents else "streams hold, documents do not"
    return "documents hold, streams do not" if documents else "neither holds"


def settings_of(answer: Any) -> dict[str, int]:
    """The settings of `served` that an answer names; what is left out stays as it is.

    Raises NotImplementedError for an empty answer; ValueError: no dictionary, another flag, what vLLM refuses.
    """
    if not isinstance(answer, Mapping):
        raise ValueError(f"give a dictionary of flags, such as {{{SEQS!r}: 1024}}")
    flags = {flag_typed(flag): value_typed(value) for flag, value in answer.items() if value is not None}
    if not flags:
        raise NotImplementedError("nothing is chosen yet")
    names = {TOKENS: "tokens", SEQS: "seqs", CAP: "cap"}
    other = [flag for flag in flags if flag not in names]
    if other:
        raise ValueError(f"{other[0]} is none of the three: choose among {', '.join(names)}")
    for flag, value in flags.items():
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 100_000:
            raise ValueError(f"{flag} is {value!r}: give a whole number, 1 or more")
    found = {"tokens": BUDGET, "seqs": SLOTS, "cap": 0} | {names[flag]: value for flag, value in flags.items()}
    if found["tokens"] < found["seqs"]:
        raise ValueError(
            f"vLLM does not start: {TOKENS} {found['tokens']:,} is below {SEQS} {found['seqs']:,}, one token for each; "
            f"set both"
        )
    return found


def kept(answer: Any) -> str:
    """Which promises hold with an answer, at this rate and at a tenth more, in words."""
    return words(_at_both(settings_of(answer), TPOT))


def _at_both(settings: Mapping[str, int], tpot: float) -> tuple[bool, bool]:
    each = [holds(served(**settings, rate=rate), tpot) for rate in (RATE, MORE * RATE)]
    return all(streams for streams, _ in each), all(documents for _, documents in each)


def kept_twin(answer: Any) -> str:
    """The same with a longer TPOT promised, and whether chats wait less than with the right answer to the first."""
    settings = settings_of(answer)
    said = words(_at_both(settings, TPOT_TWIN))
    return said if said != BOTH_HOLD or served(**settings).ttft < served(SMALL).ttft else f"{said}, chats wait as long"


def step_ms(tokens: int) -> float:
    """A recorded step with what decodes at AT and so many prompt tokens [ms]."""
    run = served().run
    here = int(np.searchsorted(run.steps.end, AT))
    decodes, context = int(run.steps.decodes[here]), int(run.steps.decode_context[here])
    return 1e3 * STEP.seconds(decodes, context, tokens, tokens * (tokens + 1) // 2, tokens)


def page() -> str:
    """Some lines of the engine's metrics at AT, without labels, and steps as the card takes them."""
    found = served()
    run = found.run
    began = run.first_computed <= AT
    lines = [
        f"vllm:num_requests_running {found.running(AT)}",
        f"vllm:num_requests_waiting {found.waiting(AT)}",
        f'vllm:time_to_first_token_seconds_bucket{{le="0.5"}} {int((began & (run.ttft <= 0.5)).sum())}',
        f'vllm:time_to_first_token_seconds_bucket{{le="+Inf"}} {int(began.sum())}',
        f"recorded steps with {run.steps.decodes[int(np.searchsorted(run.steps.end, AT))]} decodes, by prompt tokens:",
        *(f"  {tokens:>5,}: {step_ms(tokens):4.0f} ms" for tokens in BESIDE),
    ]
    return "\n".join(lines)
