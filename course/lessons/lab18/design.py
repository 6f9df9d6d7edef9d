"""A design: how many of which card, under which flags, and the command line that it is."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields

from course import flags
from course.base import settings
from course.flags import KVSettings
from course.lessons.lab18 import service
from course.models import engine_defaults
from course.policies import Continuous

ROUND_ROBIN, CACHE_AWARE, APART = "round_robin", "cache_aware", "apart"
ROUTING = (ROUND_ROBIN, CACHE_AWARE, APART)
KV_TYPES = ("auto", "fp8")
SHARDED = ("H100", "H200")  # cards whose steps on several of them are modelled
MOST_DRAFTS, MOST_CARDS = 7, 64
HEAD = "YOUR-EAGLE3-HEAD"  # trained for as long a context as the service has: published ones often end at 2,048
REPOSITORY = "meta-llama/Llama-3.1-8B-Instruct"
SLOTS, BUDGET = engine_defaults.LARGE  # vLLM's defaults on a large card


@dataclass(frozen=True)
class Design:
    """Flags under vLLM's names, with its defaults on an H100, and what a service needs besides.

    card: one of service.PRICES. replicas: engines, each on tensor_parallel_size cards. routing: "round_robin" or
    "cache_aware", policies of vLLM's router, or "apart": engines for documents and engines for chat, a quarter of them
    for documents, at least one. num_speculative_tokens: drafts of an EAGLE-3 head; 0: none.

    Raises ValueError for what no such engine can be.
    """

    card: str = "H100"
    replicas: int = 1
    tensor_parallel_size: int = 1
    max_num_seqs: int = SLOTS
    max_num_batched_tokens: int = BUDGET
    long_prefill_token_threshold: int = 0
    enable_prefix_caching: bool = True
    routing: str = ROUND_ROBIN
    kv_cache_dtype: str = "auto"
    num_speculative_tokens: int = 0

    def __post_init__(self) -> None:
        for name, allowed in (("card", tuple(service.PRICES)), ("routing", ROUTING), ("kv_cache_dtype", KV_TYPES)):
            value = getattr(self, name)
            if not isinstance(value, str) or value not in allowed:
                raise ValueError(f"{name} is one of {', '.join(allowed)}, not {settings.quote(value)}")
        for name, low, high in (
            ("replicas", 1, MOST_CARDS), ("tensor_parallel_size", 1, 8), ("max_num_seqs", 1, 4_096),
            ("max_num_batched_tokens", 1, 65_536), ("long_prefill_token_threshold", 0, 65_536),
            ("num_speculative_tokens", 0, MOST_DRAFTS),
        ):  # fmt: skip
            object.__setattr__(self, name, settings.whole(name, getattr(self, name), low=low, high=high))
        settings.flag("enable_prefix_caching", self.enable_prefix_caching)
        if self.tensor_parallel_size not in (1, 2, 4, 8):
            raise ValueError(
                f"tensor_parallel_size shares 8 KV heads: 1, 2, 4 or 8 cards, not {self.tensor_parallel_size}"
            )
        if self.tensor_parallel_size > 1 and self.card not in SHARDED:
            raise ValueError(
                f"tensor_parallel_size is {self.tensor_parallel_size}, and nobody recorded halves of a layer on a "
                f"{self.card}: choose {' or '.join(SHARDED)}, or more replicas"
            )
        if self.routing == APART and self.replicas < 2:
            raise ValueError("routing 'apart' needs an engine for each class: raise replicas to 2 or more")
        self.policy.check_settings()

    @property
    def cards(self) -> int:
        """Cards that are paid for."""
        return self.replicas * self.tensor_parallel_size

    @property
    def dollars_an_hour(self) -> float:
        """The price of all cards."""
        return self.cards * service.PRICES[self.card]

    @property
    def policy(self) -> Continuous:
        """The scheduler of vLLM under these flags."""
        return Continuous(
            self.max_num_seqs, self.max_num_batched_tokens,
            long_prefill_token_threshold=self.long_prefill_token_threshold,
        )  # fmt: skip

    @property
    def command(self) -> str:
        """The engine's command line, one option a line; with several engines also that of vLLM's router."""
        kv = KVSettings(
            kv_cache_dtype=self.kv_cache_dtype, tensor_parallel_size=self.tensor_parallel_size,
            max_model_len=service.LONGEST, enable_prefix_caching=self.enable_prefix_caching,
        )  # fmt: skip
        (export,) = flags.for_policy(self.policy, kv, model=REPOSITORY, engines=("vllm",))
        lines = export.command
        if self.num_speculative_tokens:
            drafts = {"method": "eagle3", "model": HEAD, "num_speculative_tokens": self.num_speculative_tokens}
            lines += f" \\\n  --speculative-config '{json.dumps(drafts)}'"
        if self.replicas == 1:
            return lines
        above = f"# on each of {self.replicas} times {self.tensor_parallel_size} {self.card}\n"
        if self.tensor_parallel_size > 1 and self.card not in SHARDED:
            raise ValueError(
                f"tensor_parallel_size is {self.tensor_parallel_size}, and nobody recorded halves of a layer on a "
                f"{self.card}: choose {' or '.join(SHARDED)}, or more replicas"
            )
        if self.routing == APART:
            return f"{above}{lines}\n# {documents(self.replicas)} of them at an address of their own, for documents"
        urls = " ".join(f"http://engine{one}:8000" for one in range(1, self.replicas + 1))
        return f"{above}{lines}\nvllm-router --policy {self.routing} --worker-urls {urls}"

    def changed(self) -> dict[str, object]:
        """What is not as vLLM has it on one H100."""
        return {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}


def documents(replicas: int) -> int:
    """Engines for documents, if they are apart."""
    return max(1, round(replicas / 4))
