"""Lab 17's decision: what keeps a promise to the quiet tenants, tried in the simulator; and what an operator sees."""

from collections.abc import Mapping
from typing import Any

from course.exercises.decision import flag_typed, value_typed
from course.lessons.lab17 import tenants
from course.lessons.lab17.tenants import IN_ORDER, NONE, PRIORITY, SLOTS, Outcome

SEQS, POLICY, GATEWAY = "--max-num-seqs", "--scheduling-policy", "--gateway"
TTFT = 0.5  # seconds that are promised of the quiet tenants' p95
TPOT, TPOT_TWIN = 0.045, 0.02  # the same of their TPOT, and in the twin
LOSS = 0.1  # of all output tokens/s, at most
AT = 45.0  # seconds: the moment of the page
LARGEST = 60_000  # tokens/s at a gateway: from here on everybody passes
ALL, FIRST_ONLY = "all three hold", "first tokens hold, streams do not"


def now() -> Outcome:
    """The service as it is."""
    return tenants.served()


def holds(found: Outcome, before: Outcome, tpot: float = TPOT) -> tuple[bool, bool, bool]:
    """Whether first tokens, streams and tokens/s are as promised."""
    return (
        found.ttft <= TTFT,
        found.tpot <= tpot,
        found.tokens_per_second >= (1 - LOSS) * before.tokens_per_second,
    )


def words(kept: tuple[bool, bool, bool]) -> str:
    """The same in words."""
    first, streams, rate = kept
    if first and streams:
        return ALL if rate else "both promises hold, tokens/s do not"
    if first:
        return FIRST_ONLY
    return "streams hold, first tokens do not" if streams else "neither promise holds"


def settings_of(answer: Any) -> dict[str, Any]:
    """The settings of `tenants.served` that an answer names; what is left out stays as it is.

    Raises NotImplementedError for an empty answer; ValueError: no dictionary, another flag, a value that cannot be.
    """
    if not isinstance(answer, Mapping):
        raise ValueError(f"give a dictionary of settings, such as {{{SEQS!r}: 512}}")
    flags = {flag_typed(flag): value_typed(value) for flag, value in answer.items() if value is not None}
    if not flags:
        raise NotImplementedError("nothing is chosen yet")
    other = [flag for flag in flags if flag not in (SEQS, POLICY, GATEWAY)]
    if other:
        raise ValueError(f"{other[0]} is none of the three: choose among {SEQS}, {POLICY} and 'gateway'")
    policy = str(flags.get(POLICY, "fcfs")).strip().casefold()
    if policy not in ("fcfs", "priority"):
        raise ValueError(f"{POLICY} is {policy!r}: the engine knows fcfs and priority")
    seqs, gateway = flags.get(SEQS, SLOTS), flags.get(GATEWAY, LARGEST)
    for name, value, low in ((SEQS, seqs, 1), ("gateway", gateway, 1_000)):
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= 10 * LARGEST:
            raise ValueError(f"{name} is {value!r}: give a whole number, {low:,} or more")
    if GATEWAY in flags and policy == "priority":
        raise ValueError("the simulator has a limit at the gateway or priority in the engine: choose one of the two")
    order = PRIORITY if policy == "priority" else IN_ORDER
    limit = min(float(NONE), gateway / 1e3)
    return {"order": order, "slots": min(seqs, SLOTS), "gateway": limit}


def kept(answer: Any) -> str:
    """Which promises hold with an answer, in words."""
    return words(holds(tenants.served(**settings_of(answer)), now()))


def kept_twin(answer: Any) -> str:
    """The same with a shorter TPOT promised."""
    return words(holds(tenants.served(**settings_of(answer)), now(), TPOT_TWIN))


def page() -> str:
    """Some lines of the engine's metrics at AT, without labels, and what the gateway counted until then."""
    found = now()
    run, tenant = found.run, found.run.workload.tenant
    here = run.arrival <= AT
    keys = [
        f"  key {name}: {int((here & (tenant == name)).sum()):,} requests" for name in (*tenants.QUIET, tenants.NOISY)
    ]
    began = int((run.first_computed <= AT).sum())
    late = int(((run.first_computed <= AT) & (run.ttft > TTFT)).sum())
    return "\n".join([
        f"vllm:num_requests_running {found.running(AT)}",
        f"vllm:num_requests_waiting {found.waiting(AT)}",
        f'vllm:time_to_first_token_seconds_bucket{{le="{TTFT:g}"}} {began - late}',
        f'vllm:time_to_first_token_seconds_bucket{{le="+Inf"}} {began}',
        f"gateway, the last {AT:g} s:",
        *keys,
    ])  # fmt: skip
