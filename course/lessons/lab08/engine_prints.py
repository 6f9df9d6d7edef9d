"""What real engines printed about their KV pool: start-up logs that somebody published; `source` says where.

Settings that a log does not show are vLLM's defaults of that version for that card (assumed).
"""

from dataclasses import dataclass

from course import memory
from course.lessons.lab08 import card_memory
from course.lessons.lab08.card_memory import GIB
from course.memory import Ledger


@dataclass(frozen=True)
class Print:
    """One log. kv_gib: what it calls available KV cache memory, of one card; tokens: GPU KV cache size."""

    engine: str
    model_name: str
    card: str
    memory_gib: float
    utilization: float
    max_num_batched_tokens: int
    max_num_seqs: int
    kv_gib: float
    weights_gib: float
    source: str
    tokens: int | None = None

    @property
    def ledger(self) -> Ledger:
        """The ledger by its own estimates: weights from the config, activation and other as modelled."""
        return memory.ledger(
            card_memory.spec(self.model_name),
            memory_bytes=self.memory_gib * GIB,
            max_model_len=4_096,
            gpu_memory_utilization=self.utilization,
            max_num_batched_tokens=self.max_num_batched_tokens,
            max_num_seqs=self.max_num_seqs,
        )

    @property
    def engine_rest_gib(self) -> float:
        """Activation and other, as they follow from the log: usable - weights - KV."""
        return self.utilization * self.memory_gib - self.weights_gib - self.kv_gib

    @property
    def rest_gib(self) -> float:
        """The same as the ledger estimates them."""
        return (self.ledger.activation_bytes + self.ledger.other_bytes) / GIB


PRINTS = (
    Print("vLLM 0.19", "llama-3.1-8b", "RTX 4090", 25_250_627_584 / GIB, 0.9, 2048, 256, 41_408 * 131_072 / GIB, 14.99,
          "casys-kaist/LLMServingSim, bench/examples/RTX4090", 41_408),
    Print("vLLM V1", "llama-3.1-8b", "H100", 79.18, 0.9, 8192, 1024, 51.38, 14.99,
          "llm-d/llm-d-benchmark, empirical vLLM memory results"),
    Print("vLLM V1", "qwen3-32b", "H100", 79.18, 0.9, 8192, 1024, 4.45, 61.03,
          "llm-d/llm-d-benchmark, empirical vLLM memory results"),
    Print("vLLM V0", "llama-3.1-8b", "RTX 3090", 23.58, 0.9, 20_000, 256, 3.81, 14.99,
          "vllm-project/vllm#10517", 31_232),
    Print("vLLM 0.10", "qwen2-7b", "A100", 79.15, 0.25, 2048, 256, 5.01, 14.25,
          "dennislee22/vLLM-benchmarking, 7B on one A100", 93_872),
)  # fmt: skip
