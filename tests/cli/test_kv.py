"""`course kv`: the JSON that other tools read, the table that people read, and one sentence for what is refused."""

import json

import pytest
from typer.testing import CliRunner

from course.cli import app
from tests.helpers.model_configs import HYBRID, WINDOWED

LLAMA = {
    **{"model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32},
    **{"num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 131072},
}
TOKEN = 2 * 32 * 8 * 128 * 2
WEIGHTS = 2 * (32 * (4096 * 128 * 2 * (32 + 8) + 3 * 4096 * 14336) + 2 * 128256 * 4096)


@pytest.fixture
def ask(tmp_path):
    """Run the command on a config: exit status, stdout, stderr."""

    def run(config, *options):
        path = tmp_path / "config.json"
        path.write_text(config if isinstance(config, str) else json.dumps(config), encoding="utf-8")
        result = CliRunner().invoke(app, ["kv", str(path), *options])
        return result.exit_code, result.stdout, result.stderr

    return run


def test_json_of_a_model(ask):
    code, out, err = ask(LLAMA, "--json")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert found["bytes_per_token"] == found["bytes_per_token_after_window"] == TOKEN
    assert found["window_bytes_per_sequence"] == found["state_bytes_per_sequence"] == 0
    assert found["weights_bytes"] == WEIGHTS
    assert found["formulas"]["bytes_per_token"] == "32 layers x 8 KV heads x (128 + 128) x 2 B"
    assert "ledger" not in found


def test_json_of_windows_and_states(ask):
    config, flat, after, window = WINDOWED["command-r7b"]
    found = json.loads(ask(config, "--json")[1])
    names = ("bytes_per_token", "bytes_per_token_after_window", "window_bytes_per_sequence")
    assert [found[name] for name in names] == [flat, after, window]
    config, flat, state = HYBRID["granite-4-h-small"]
    found = json.loads(ask(config, "--json")[1])
    assert (found["bytes_per_token"], found["state_bytes_per_sequence"]) == (flat, state)
    assert found["weights_bytes"] is None
    assert any("the weights could not be counted" in note for note in found["notes"])


def test_json_with_a_card(ask):
    options = ("--memory-gib", "24", "--activation-gib", "1", "--other-gib", "0.5", "--max-model-len", "8192")
    ledger = json.loads(ask(LLAMA, "--json", *options)[1])["ledger"]
    kv = int(0.9 * 24 * 2**30) - WEIGHTS - 2**30 - 2**29
    assert (ledger["total_bytes"], ledger["weights_bytes"], ledger["kv_bytes"]) == (24 * 2**30, WEIGHTS, kv)
    assert ledger["num_blocks"] == kv // (16 * TOKEN)
    assert ledger["kv_tokens"] == ledger["longest_sequence"] + 16 == 16 * ledger["num_blocks"]
    assert ledger["sequences"] == ledger["longest_sequence"] // 8192
    assert all(line["formula"] for line in ledger["lines"])
    eight = json.loads(ask(LLAMA, "--json", *options, "--kv-dtype", "fp8")[1])
    assert eight["bytes_per_token"] == TOKEN // 2
    assert eight["ledger"]["num_blocks"] == kv // (16 * TOKEN // 2)


def test_the_table_shows_every_line_with_its_formula(ask):
    code, out, err = ask(LLAMA, "--gpu", "H100", "--max-model-len", "8192")
    assert (code, err) == (0, "")
    for text in ("131,072", "32 layers x 8 KV heads x (128 + 128) x 2 B", "79.18 GiB", "usable - weights - activation"):
        assert text in out
    names = ["total", "usable", "weights", "activation", "other", "KV", "blocks", "tokens", "sequences of 8,192"]
    *lines, defaults = out[out.index("Memory of the card") :].splitlines()[1:]
    assert defaults.startswith("not given, so what vLLM 0.19 takes on H100: max_num_seqs 1,024, ")
    assert [line.strip().split("  ")[0] for line in lines] == [*names, "longest sequence"]


def test_a_model_by_its_name():
    result = CliRunner().invoke(app, ["kv", "llama-2-7b", "--json"])
    assert json.loads(result.stdout)["bytes_per_token"] == 524_288


def test_what_cannot_be_is_a_warning_not_a_refusal(ask):
    code, out, err = ask(LLAMA, "--memory-gib", "12", "--json")
    assert code == 0 and json.loads(out)["ledger"]["kv_bytes"] < 0
    assert err.startswith("warning: impossible: the weights, 14.96 GiB a card")


def test_a_setting_without_effect_is_said(ask):
    assert (
        "warning: --tensor-parallel-size has no effect without --gpu, --memory-gib or --kv-gib"
        in ask(LLAMA, "--tp", "2")[2]
    )


def test_a_checkpoint_that_asks_for_8_bits(ask):
    config = LLAMA | {
        "quantization_config": {"quant_method": "fp8", "kv_cache_scheme": {"num_bits": 8, "type": "float"}}
    }
    _, out, err = ask(config, "--json")
    assert json.loads(out)["bytes_per_token"] == TOKEN
    assert "asks for a KV cache in fp8, 65,536 bytes a token" in err
    assert json.loads(ask(config, "--json", "--kv-dtype", "auto")[1])["bytes_per_token"] == TOKEN // 2


def test_infinity_is_read(ask):
    text = json.dumps(LLAMA)[:-1] + ', "time_step_limit": [0.0, Infinity], "x": NaN}'
    assert json.loads(ask(text, "--json")[1])["bytes_per_token"] == TOKEN


REFUSED = {
    "{": "row 1: this is not JSON",
    "": "row 1: this is not JSON",
    "[1, 2]": "a config is a JSON object, not [1, 2]",
    "null": "a config is a JSON object, not None",
    "[" * 100_000: "nested too deeply",
    '{"num_hidden_layers": 1' + "0" * 5000 + "}": "more than 300 digits",
    "{}": "the number of layers cannot be told: num_hidden_layers",
    '{"model_type": "something_new"}': "the number of layers cannot be told",
    '{"num_hidden_layers": "many", "hidden_size": 64, "num_attention_heads": 4}': "num_hidden_layers must be a whole",
    '{"num_hidden_layers": 1e99, "hidden_size": 64, "num_attention_heads": 4}': "num_hidden_layers must be a whole",
    '{"num_hidden_layers": 4, "hidden_size": 64}': "the number of heads cannot be told: num_attention_heads",
    '{"num_hidden_layers": 4, "hidden_size": 65, "num_attention_heads": 4}': "head_dim is missing",
    '{"num_hidden_layers": 4, "num_attention_heads": 4}': "hidden_size or n_embd",
}


@pytest.mark.parametrize("text", REFUSED, ids=range(len(REFUSED)))
def test_what_is_no_config_is_refused(ask, text):
    code, out, err = ask(text, "--json")
    assert code == 2
    assert REFUSED[text] in json.loads(out)["refused"]
    assert REFUSED[text] in err and len(err.splitlines()) == 1 and err.startswith("course: ")
    assert ask(text)[:2] == (2, "")


STRANGE = {
    "compress_ratios": [0, 4, 128, 0],
    "attention_of_tomorrow": "x",
    "kv_source_layers": [0, 0, 1, 1],
    "cross_attention_layers": [1],
    "is_encoder_decoder": True,
    "layer_types": ["full_attention", "heavily_compressed_attention"] * 16,
    "use_mla_cache": 3,
    "index_head_dim": 128,
    "type_vocab_size": 2,
}


@pytest.mark.parametrize("key", STRANGE)
def test_a_key_that_is_not_understood_is_named(ask, key):
    code, out, _ = ask(LLAMA | {key: STRANGE[key]}, "--json")
    assert code == 2 and key in json.loads(out)["refused"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--gpu", "B9000"], "no GPU is called 'B9000'; did you mean"),
        (["--gpu", "H100", "--tp", "3"], "32 query heads cannot be spread over 3 ranks"),
        (["--gpu", "H100", "--block-size", "0"], "--block-size must be a whole number"),
        (["--gpu", "H100", "--gpu-memory-utilization", "1.1"], "--gpu-memory-utilization must be"),
        (["--memory-gib", "nan"], "--memory-gib must be"),
        (["--memory-gib", "0"], "--memory-gib must be"),
        (["--gpu", "H100", "--weights-gib", "-1"], "--weights-gib must be"),
        (["--kv-dtype", "fp3"], "no KV cache type is called 'fp3'"),
        (["--gpu", "H100", "--max-model-len", "0"], "--max-model-len must be"),
        (["--tp", "two"], "Invalid value for '--tensor-parallel-size' / '--tp'"),
    ],
)
def test_bad_options_are_refused(ask, options, said):
    code, out, err = ask(LLAMA, *options)
    assert (code, out) == (2, "") and said in err and len(err.splitlines()) == 1


def test_weights_that_could_not_be_counted_are_asked_for(ask):
    config, *_ = HYBRID["granite-4-h-small"]
    code, _, err = ask(config, "--gpu", "H100", "--max-model-len", "4096")
    assert code == 2 and "give the --weights-gib of" in err
    assert ask(config, "--gpu", "H100", "--max-model-len", "4096", "--weights-gib", "60")[0] == 0


def test_missing_files(tmp_path):
    for path, said in ((tmp_path / "none.json", "no such file"), (tmp_path, "config.json: No such file")):
        result = CliRunner().invoke(app, ["kv", str(path), "--json"])
        assert result.exit_code == 2 and said in json.loads(result.stdout)["refused"]


# The engine's own defaults, and what it prints


def ledger_of(config, *options):
    result = CliRunner().invoke(app, ["kv", str(config), "--json", *map(str, options)])
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)["ledger"]


def test_defaults_are_those_of_the_engine_on_that_card():
    """vLLM 0.19: 1,024 sequences and 8,192 tokens from 70 GiB on, but for the A100; 256 and 2,048 below."""
    found = {card: ledger_of("llama-3.1-8b", "--gpu", card) for card in ("H100 SXM5", "A100 SXM", "L4", "MI300X")}
    batches = {card: (one["max_num_seqs"], one["max_num_batched_tokens"]) for card, one in found.items()}
    large, small = (1024, 8192), (256, 2048)
    assert batches == {"H100 SXM5": large, "A100 SXM": small, "L4": small, "MI300X": large}
    asked = ledger_of("llama-3.1-8b", "--gpu", "H100", "--max-num-seqs", 64, "--max-num-batched-tokens", 512)
    assert (asked["max_num_seqs"], asked["max_num_batched_tokens"]) == (64, 512)
    assert asked["defaults"] == ["not given, so what vLLM 0.19 takes on H100: gpu_memory_utilization 0.9"]
    newer = ledger_of("llama-3.1-8b", "--gpu", "H100", "--engine-version", "0.21")
    assert newer["usable_bytes"] == int(0.92 * newer["total_bytes"])
    # More than max_num_seqs x max_model_len tokens cannot come together.
    short = ledger_of("llama-3.1-8b", "--gpu", "H100", "--max-num-seqs", 8, "--max-model-len", 256)
    assert short["max_num_batched_tokens"] == 8 * 256


def test_a_model_that_starts_only_with_a_smaller_batch(tmp_path):
    """70 billion parameters in 8 bits on one H100: with its own defaults the engine has less than nothing left."""
    path = tmp_path / "config.json"
    seventy = {"num_hidden_layers": 80, "hidden_size": 8192, "num_attention_heads": 64, "intermediate_size": 28672}
    path.write_text(json.dumps(LLAMA | seventy | {"quantization_config": {"quant_method": "fp8"}}), encoding="utf-8")
    own = ledger_of(path, "--gpu", "H100", "--max-model-len", 4096)
    assert own["kv_bytes"] / 2**30 == pytest.approx(-1.44, abs=0.02)  # printed: -1.44 GiB
    assert own["sequences"] == 0 and "GiB are left for the KV cache" in own["problems"][0]
    small = ("--max-num-seqs", 256, "--max-num-batched-tokens", 2048)
    assert ledger_of(path, "--gpu", "H100", "--max-model-len", 4096, *small)["sequences"] == 1


def test_whole_prompts_take_activations(tmp_path):
    """48 layers of 128 experts in 8 bits, K and V too: 221,000 tokens fit while prompts are split, and else do not."""
    path = tmp_path / "config.json"
    mixed = {"num_hidden_layers": 48, "hidden_size": 2048, "num_key_value_heads": 4, "head_dim": 128}
    mixed |= {"intermediate_size": 6144, "moe_intermediate_size": 768, "num_experts": 128, "num_experts_per_tok": 8}
    mixed |= {"vocab_size": 151936, "quantization_config": {"quant_method": "fp8"}}
    path.write_text(json.dumps(LLAMA | mixed), encoding="utf-8")
    card = ("--memory-gib", 47.5, "--gpu-memory-utilization", 0.92, "--kv-cache-dtype", "fp8")
    split = ledger_of(path, *card, "--max-model-len", 221_000)
    assert split["sequences"] == 1 and "fit because prompts are split into steps of 2,048" in split["remarks"][0]
    lengths = (100_000, 221_000)
    short, long = (ledger_of(path, *card, "--no-enable-chunked-prefill", "--max-model-len", n) for n in lengths)
    assert (short["sequences"], long["sequences"]) == (2, 0)
    # Three widths of the MLP and three of the model, 2 B each, for every token more.
    more = (221_000 - 100_000) * (3 * 6144 + 3 * 2048) * 2
    assert long["activation_bytes"] - short["activation_bytes"] == more
    assert short["kv_bytes"] - long["kv_bytes"] == more
    # The engine before V1 did so always.
    old = ledger_of(path, *card, "--max-model-len", 221_000, "--engine-version", "0.7.3")
    assert old["max_num_batched_tokens"] == 221_000 and old["kv_bytes"] == long["kv_bytes"]
    assert "remarks" in short and not short["remarks"]


def test_what_is_printed_as_tokens_depends_on_the_version():
    """gpt-oss-120b, 45.32 GiB on each of four cards: vLLM printed 2,640,144 tokens and 284x, from 0.21 on 284 x."""
    pool = ("--kv-gib", "45.32", "--tp", 4, "--max-model-len", 16384)
    found = ledger_of("gpt-oss-120b", *pool, "--engine-version", "0.19")
    assert found["kv_tokens"] == pytest.approx(2_640_144, abs=64)  # the log rounds GiB to two digits
    assert round(found["concurrency"]) == 284
    newer = ledger_of("gpt-oss-120b", *pool, "--engine-version", "0.21")
    assert newer["kv_tokens"] == int(newer["concurrency"] * 16384)
    assert found["kv_tokens_by_version"] == {"0.19": found["kv_tokens"], "0.21": newer["kv_tokens"]}


def test_ranks_that_differ():
    """The smallest decides, as the engine gives all ranks the same number of blocks."""
    both = ledger_of("qwen3-32b", "--kv-gib", "12.5,10.25", "--tp", 2, "--max-model-len", 4096)
    assert both["kv_bytes"] == int(10.25 * 2**30)
    assert both == ledger_of("qwen3-32b", "--kv-gib", "10.25", "--tp", 2, "--max-model-len", 4096)
    cards = ledger_of("qwen3-32b", "--gpu", "H100,L40S", "--tp", 2, "--max-model-len", 4096)
    assert cards["total_bytes"] == 45_589 * 2**20


def test_drafts_are_named_and_hold_memory(tmp_path):
    card = ("--memory-gib", 80, "--max-model-len", 8192)
    plain = ledger_of("llama-3.1-8b", *card)
    eagle = ledger_of("llama-3.1-8b", *card, "--num-speculative-tokens", 3)
    assert eagle["num_blocks"] == plain["kv_bytes"] // (33 * 16 * 4096)
    assert "drafts from eagle: 1 layer of KV" in eagle["remarks"][0]
    ngram = ledger_of("llama-3.1-8b", *card, "--num-speculative-tokens", 3, "--speculative-method", "ngram")
    assert ngram["num_blocks"] == plain["num_blocks"]
    path = tmp_path / "draft.json"
    draft = LLAMA | {"num_hidden_layers": 4, "hidden_size": 1024, "num_attention_heads": 8, "head_dim": 128}
    path.write_text(json.dumps(draft), encoding="utf-8")
    small = ledger_of("llama-3.1-8b", *card, "--num-speculative-tokens", 3, "--draft-model", path)
    assert small["num_blocks"] == small["kv_bytes"] // (36 * 16 * 4096)
    parameters = 4 * (1024 * 128 * 2 * (8 + 8) + 3 * 1024 * 14336) + 2 * 128256 * 1024
    assert small["weights_bytes"] == plain["weights_bytes"] + 2 * parameters


@pytest.mark.parametrize("name", ["qwen3-32b", "gpt-oss-120b", "deepseek-v3"])
def test_the_configs_that_come_with_the_course_have_names(name):
    assert CliRunner().invoke(app, ["kv", name, "--json"]).exit_code == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--gpu", "H100", "--engine-version", "latest"], "an engine's version is written like 0.19 or 0.21"),
        (["--gpu", "H100", "--speculative-method", "eagle"], "drafts nothing without --num-speculative-tokens"),
        (
            ["--gpu", "H100", "--num-speculative-tokens", "2", "--speculative-method", "mtp"],
            "no layers for multi-token",
        ),
        (
            ["--gpu", "H100", "--num-speculative-tokens", "2", "--speculative-method", "x"],
            "--speculative-method is mtp, ",
        ),
        (["--gpu", "H100", "--pp", "33"], "32 layers cannot be spread over 33 stages"),
        (["--gpu", "H100,A100,L4", "--pp", "2"], "has 3 ranks, which 2 stages cannot share evenly"),
        (["--gpu", "H100", "--tp", "8", "--dcp", "2"], "--decode-context-parallel-size 2 is more than"),
        (["--gpu", "H100", "--tp", "4", "--dcp", "3"], "--decode-context-parallel-size 3 must divide"),
        (["--memory-gib", "80,x"], "--memory-gib must be a number of GiB, or one per rank separated by commas"),
    ],
)
def test_bad_ranks_and_drafts_are_refused(ask, options, said):
    code, out, err = ask(LLAMA, *options)
    assert (code, out) == (2, "") and said in err and len(err.splitlines()) == 1


@pytest.mark.parametrize(
    "options", [["meta-llama/Llama-3.1-8B"], ["llama-3.1-8b", "--gpu", "H100", "--draft-model", "x"]]
)
def test_an_unknown_model_is_answered_with_the_known_names(options: list[str]) -> None:
    result = CliRunner().invoke(app, ["kv", *options])
    assert result.exit_code == 2 and "no such file" in result.stderr and "known models: deepseek-v3" in result.stderr


def test_deepseek_v3_drafts_with_its_own_layer() -> None:
    """num_nextn_predict_layers is 1 in its config.json; its module has 11.7 GB beside 671 GB (fp8)."""
    options = ["--gpu", "H200", "--tp", "8", "--num-speculative-tokens", "1"]
    result = CliRunner().invoke(app, ["kv", "deepseek-v3", *options])
    assert "the model's own 1 layer" in result.stderr and "of drafts" in result.stdout


def test_the_mode_of_recurrent_states_follows_prefix_caching(ask):
    """Qwen3-Next has 3 groups of states: a second state of each, once prefixes are cached."""
    config = HYBRID["qwen3-next-80b"][0] | {"max_position_embeddings": 8192}

    def blocks(*options):
        code, out, err = ask(config, "--json", "--kv-gib", "40", *options)
        assert code == 0, err
        ledger = json.loads(out)["ledger"]
        return round(ledger["num_blocks"] / ledger["concurrency"])

    off = blocks()
    assert blocks("--no-enable-prefix-caching") == blocks("--mamba-cache-mode", "none") == off
    assert blocks("--enable-prefix-caching") == blocks("--mamba-cache-mode", "align") == off + 3
    code, _, err = ask(config, "--kv-gib", "40", "--no-enable-prefix-caching", "--mamba-cache-mode", "align")
    assert code != 0 and "--mamba-cache-mode align needs prefix caching" in err
    mamba = HYBRID["granite-4-h-small"][0] | {"max_position_embeddings": 8192}
    code, _, err = ask(mamba, "--kv-gib", "40", "--enable-prefix-caching")
    assert code != 0 and "give --mamba-cache-mode align" in err
    assert ask(mamba, "--kv-gib", "40", "--enable-prefix-caching", "--mamba-cache-mode", "align")[0] == 0
    plain = [ask(LLAMA, "--json", "--kv-gib", "40", *more)[1] for more in ((), ("--enable-prefix-caching",))]
    assert plain[0] == plain[1]


def test_the_type_of_a_recurrent_state(ask):
    """Qwen3-Next: 36 layers of 32 value heads with 128 x 128 elements in the state; the convolution keeps its type."""
    config, _, state = HYBRID["qwen3-next-80b"]
    elements = 36 * 32 * 128 * 128

    def bytes_(*options):
        return json.loads(ask(config, "--json", *options)[1])["state_bytes_per_sequence"]

    assert bytes_() == bytes_("--mamba-ssm-cache-dtype", "auto") == state
    halves, words = (bytes_("--mamba-ssm-cache-dtype", one) for one in ("bfloat16", "float32"))
    assert words - halves == 2 * elements and state in (halves, words)
    code, _, err = ask(config, "--mamba-ssm-cache-dtype", "int4")
    assert code != 0 and "--mamba-ssm-cache-dtype must be auto, float32" in err
    code, _, err = ask(LLAMA, "--mamba-ssm-cache-dtype", "float32")
    assert code != 0 and "no recurrent state whose type can be set" in err
