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
    assert ledger["kv_tokens"] == ledger["longest_sequence"] == 16 * ledger["num_blocks"]
    assert ledger["sequences"] == ledger["kv_tokens"] // 8192
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
    lines = out[out.index("Memory of the card") :].splitlines()[1:]
    assert [line.strip().split("  ")[0] for line in lines] == [*names, "longest sequence"]


def test_a_model_by_its_name():
    result = CliRunner().invoke(app, ["kv", "llama-2-7b", "--json"])
    assert json.loads(result.stdout)["bytes_per_token"] == 524_288


def test_what_cannot_be_is_a_warning_not_a_refusal(ask):
    code, out, err = ask(LLAMA, "--memory-gib", "12", "--json")
    assert code == 0 and json.loads(out)["ledger"]["kv_bytes"] < 0
    assert err.startswith("warning: impossible: the weights, 14.96 GiB a card")


def test_a_setting_without_effect_is_said(ask):
    assert "warning: --tp has no effect without --gpu or --memory-gib" in ask(LLAMA, "--tp", "2")[2]


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
    '{"num_hidden_layers": 1' + "0" * 5000 + "}": "thousands of digits",
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
        (["--tp", "two"], "Invalid value for '--tp'"),
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
    for path, said in ((tmp_path / "none.json", "No such file"), (tmp_path, "config.json: No such file")):
        result = CliRunner().invoke(app, ["kv", str(path), "--json"])
        assert result.exit_code == 2 and said in json.loads(result.stdout)["refused"]
