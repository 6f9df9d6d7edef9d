"""What every engine's export has in common: settings with their reasons, a command, and warnings."""

import shlex
from dataclasses import dataclass

from course.flags.kv import KVSettings
from course.policies import Continuous, Dynamic, Policy, PrefillFirst, Static


@dataclass(frozen=True)
class Setting:
    """One setting: an option of the command line, or a key of the configuration file, its value, and why.

    value: None for a switch that stands alone.
    """

    name: str
    value: str | None
    why: str

    @property
    def words(self) -> list[str]:
        """The option as words of a command line."""
        return [self.name] if self.value is None else [self.name, self.value]


@dataclass(frozen=True)
class Export:
    """The settings of one engine that come nearest to a policy.

    engine, version: what they are for. settings: in the order of the command. command: to be pasted into a shell.
    file: lines of the configuration file that the command names, empty if none is needed. warnings: what the engine
    has no setting for, or does differently.
    """

    engine: str
    version: str
    settings: tuple[Setting, ...]
    command: str
    file: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Wish:
    """A policy in the words that all engines share.

    slots, budget: of a step; budget None: no limit. continuous: the policy if it is one, or what is nearest to
    prefill first, else None.
    """

    policy: Policy
    kv: KVSettings
    model: str

    @property
    def continuous(self) -> Continuous | None:
        """The policy if it is continuous batching, or the nearest to prefill first."""
        p = self.policy
        if isinstance(p, PrefillFirst):
            return Continuous(p.max_num_seqs, p.max_num_batched_tokens, p.enable_chunked_prefill)
        return p if isinstance(p, Continuous) else None

    @property
    def prefill_first(self) -> bool:
        """Whether steps are prompts alone or decodes alone."""
        return isinstance(self.policy, PrefillFirst)

    @property
    def slots(self) -> int:
        """The most sequences in a step."""
        return self.policy.max_num_seqs

    @property
    def request_level(self) -> str:
        """The name of a request-level policy, static or dynamic; "" for any other."""
        if isinstance(self.policy, Dynamic):
            return "dynamic"
        return "static" if isinstance(self.policy, Static) else ""


def command(words: list[str], settings: list[Setting]) -> str:
    """A command of one option a line."""
    lines = [shlex.join(words), *(shlex.join(setting.words) for setting in settings)]
    return " \\\n  ".join(lines)
