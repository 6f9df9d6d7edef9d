r"""From a policy to the settings of an engine, and from a command line of one back to a policy.

from course import flags, policies

for export in flags.for_policy(policies.Continuous(64, 2048), model="meta-llama/Llama-3.1-8B"):
    print(export.version, export.command, *export.warnings, sep="\n")
found = flags.parse("vllm serve MODEL --max-num-seqs 64 --max-num-batched-tokens 8k", "H100")
found.policy, found.kv, found.defaults
"""

from collections.abc import Sequence

from course.base.settings import quote
from course.flags import sglang, tensorrt_llm, vllm
from course.flags.export import Export, Setting, Wish
from course.flags.kv import KVSettings
from course.flags.parse import parse
from course.flags.parsed import ParsedCommand
from course.policies import Continuous, Dynamic, Policy, PrefillFirst, Static

__all__ = ["ENGINES", "Export", "KVSettings", "ParsedCommand", "Setting", "for_policy", "parse"]

ENGINES = {"vllm": vllm.export, "sglang": sglang.export, "tensorrt-llm": tensorrt_llm.export}


def for_policy(
    policy: Policy, kv: KVSettings | None = None, *, model: str = "MODEL", engines: Sequence[str] = tuple(ENGINES)
) -> tuple[Export, ...]:
    """The settings of each engine that come nearest to a policy and a KV budget.

    policy: Continuous, PrefillFirst, Static or Dynamic. kv: vLLM's defaults if None. model: the name for the commands.
    engines: of ENGINES, in the order wanted.

    Each setting has its reason, and what an engine has no setting for is in `warnings`. ValueError for a policy of
    one's own, which no setting can say, and for an unknown engine.
    """
    if type(policy) not in (Continuous, PrefillFirst, Static, Dynamic):
        raise ValueError(
            f"{quote(policy)} cannot be written as settings of an engine: there are settings for "
            "Continuous, PrefillFirst, Static and Dynamic"
        )
    policy.check_settings()
    if not isinstance(model, str) or not model.strip() or model.startswith("-"):
        raise ValueError(f"a model's name must not start with a dash, unlike {quote(model)}")
    wish = Wish(policy, KVSettings() if kv is None else kv, model)
    unknown = [name for name in engines if name not in ENGINES]
    if unknown:
        raise ValueError(f"no engine is called {quote(unknown[0])}; there are {', '.join(ENGINES)}")
    return tuple(ENGINES[name](wish) for name in dict.fromkeys(engines))
