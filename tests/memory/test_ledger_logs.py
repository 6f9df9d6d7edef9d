"""What engines printed for a model and a card; skipped where the folder with their logs is not at hand."""

import json

import pytest

from course import memory
from course.models import ModelSpec
from tests.helpers.places import REAL

LOGS = REAL / "oracles" / "engine_logs.json"
ROWS = {row["id"]: row for row in json.loads(LOGS.read_text(encoding="utf-8"))} if LOGS.is_file() else {}
GIB = 2**30
SPECS = {
    "Qwen2-7B-Instruct": "qwen2.5-7b",
    "gpt-oss-120b": "gpt-oss-120b",
    "gpt-oss-20b": "gpt-oss-20b",
    "Llama-3.1-8B-Instruct": "llama-3.1-8b",
    "Llama-3.1-8B": "llama-3.1-8b",
    "Llama-3.1-8B (default)": "llama-3.1-8b",
    "Qwen3-235B-A22B-FP8": "qwen3-235b-nvfp4",
    "Llama-4 Scout (TP8 inferred)": "llama-4-scout",
    "Llama-3.3-70B-FP8": "llama-3.1-70b",
    "Qwen3-0.6B": "qwen3-0.6b",
    "Qwen3-32B": "qwen3-32b",
}
pytestmark = pytest.mark.skipif(not ROWS, reason="no folder ../shared/realinputs with engine logs")


def spec_of(row):
    if row["model"].startswith("Mistral-Small-3.2"):
        return ModelSpec.from_config(
            {"num_hidden_layers": 40, "hidden_size": 5120, "num_attention_heads": 32, "num_key_value_heads": 8}
            | {"head_dim": 128, "vocab_size": 131072, "intermediate_size": 32768}
        )
    return ModelSpec.from_config(REAL / "configs" / f"{SPECS[row['model']]}.json")


def predictions():
    """(row, what was printed, what the pool or the ledger says) of every row marked as a prediction."""
    for row in ROWS.values():
        facts = row["facts"]
        if row["kind"] != "prediction":
            continue
        spec, tp, block = spec_of(row), row["tp"], facts.get("block", 16)
        length = facts.get("max_model_len", 16000)
        if "need_gib" in facts:
            # Every layer was charged in full by these versions.
            whole = memory.pool(spec, GIB, tp=tp, disable_hybrid_kv_cache_manager=True)
            yield row, "need_gib", facts["need_gib"], whole.blocks_for(length) * whole.bytes_per_block / GIB
            if "est_max_len" in facts:
                pages = memory.pool(spec, facts["avail_gib"] * GIB, block_size=512)
                # The estimate of these versions counts the block that vLLM keeps for itself.
                yield row, "est_max_len", facts["est_max_len"], pages.longest_sequence + 512
            continue
        if "activation_peak_gib" in facts or "peak_torch_gib" in facts:
            activation = facts.get("activation_peak_gib")
            weights = facts.get("weights_gib", facts.get("weights_gb"))
            card = memory.ledger(
                spec,
                memory_bytes=facts.get("total_gib", 79.18) * GIB,
                tp=tp,
                block_size=block,
                max_model_len=length,
                gpu_memory_utilization=facts["util"],
                weights_bytes=weights * GIB,
                activation_bytes=(facts["peak_torch_gib"] - weights if activation is None else activation) * GIB,
                other_bytes=facts["non_torch_gib"] * GIB,
            )
            yield row, "kv_gib", row["reported"], card.kv_bytes / GIB
            if "blocks" in facts:
                yield row, "blocks", facts["blocks"], card.num_blocks
                yield row, "concurrency", facts["concurrency"], card.concurrency(length)
            continue
        printed = facts.get("avail_kv_gib") or facts.get("avail_kv_gib_per_gpu") or facts["kv_gib"]
        pool = memory.pool(spec, printed * GIB, tp=tp, block_size=block)
        yield row, "tokens", facts["tokens"], pool.num_tokens(length)
        if "blocks" in facts:
            yield row, "blocks", facts["blocks"], pool.num_blocks
        if "concurrency" in facts and "max_model_len" in facts:
            yield row, "concurrency", facts["concurrency"], pool.concurrency(length)
        if "concurrency_16k" in facts:
            yield row, "concurrency", facts["concurrency_16k"], pool.concurrency(16000)


CASES = list(predictions())


@pytest.mark.parametrize(
    ("row", "what", "printed", "ours"), CASES, ids=[f"{row['id']}-{what}" for row, what, *_ in CASES]
)
def test_every_prediction_within_its_tolerance(row, what, printed, ours):
    """The tolerance is the row's own: logs round GiB to two digits."""
    # Figures printed with two digits behind the point are no better than that.
    digits = 0.005 if isinstance(printed, float) else 0
    assert ours == pytest.approx(printed, rel=row["tolerance"], abs=digits)


def test_no_prediction_is_left_out():
    assert {row["id"] for row, *_ in CASES} == {row["id"] for row in ROWS.values() if row["kind"] == "prediction"}


def test_what_the_engine_said_of_a_hybrid_to_the_token():
    """16 of 64 layers have attention; with a state kept for prefix caching beside the running one: 302,921 tokens."""
    facts = ROWS["L27"]["facts"]
    spec = ModelSpec.from_config(REAL / "configs" / "qwen3.5-27b.json").with_kv_dtype("fp8")
    pool = memory.pool(spec, facts["pool_gib_total"] / 2 * GIB, tp=2, mamba_cache_mode="align")
    assert pool.num_tokens(131072) == facts["tokens"]
    assert pool.concurrency(131072) == pytest.approx(facts["concurrency_at_131072"], abs=0.005)


def test_an_impossible_claim_is_flagged():
    claim = ROWS["L21"]["facts"]["vllm_blocks_claimed"]
    card = memory.ledger("llama-2-7b", "A10", num_gpu_blocks_override=claim)
    assert card.problems[0].startswith("impossible: 8,348 blocks are 65.22 GiB, more than the whole card's")
