"""What a command line, a script or a manifest says of the settings of `course kv`."""

from collections.abc import Collection
from typing import Any

GIB = 2**30


def settings_of(
    line: str, gpu: str | None, env: list[str] | None, typed: Collection[str]
) -> tuple[dict[str, Any], list[str]]:
    """Options of `course kv` that a command gives, and notes on how it was read.

    typed: options of the command line, which count before those. ValueError as `course flags --from` has it.
    """
    from course import flags
    from course.cli.flags import values_of

    card = gpu.split(",")[0].strip() if gpu else None
    parsed = flags.parse(line, card, ignore_unknown=True, env=values_of(env))
    said = parsed.kv.changed()
    memory = said.pop("kv_cache_memory_bytes", None)
    said |= {"kv_gib": str(memory / GIB)} if isinstance(memory, int) else {}
    for name in ("max_num_seqs", "max_num_batched_tokens", "enable_chunked_prefill"):
        if name not in parsed.defaults and hasattr(parsed.policy, name):
            said[name] = getattr(parsed.policy, name)
    notes = [f"{name} is left out" for name in parsed.left_out]
    kept = {name: value for name, value in said.items() if name not in typed}
    notes += [f"{name} is the one of this command, not the {said[name]} of the text" for name in said.keys() - kept]
    return kept, [*parsed.notes, *sorted(notes)]
