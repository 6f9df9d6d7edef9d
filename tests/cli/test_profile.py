"""`course profile`: what it hands to the recorder, what it prints, and what it refuses."""

import json

import pytest
from typer.testing import CliRunner

from course import gpu
from course.cli import app
from course.gpu import step_profile
from course.steptime import recorded
from course.steptime.files import FOLDER


def call(*args):
    return CliRunner().invoke(app, ["profile", *(str(arg) for arg in args)])


@pytest.fixture
def recorder(monkeypatch):
    """A card that has 3 points to give; what it was asked for."""
    asked = {}

    def record(device, spec, out, **settings):
        asked.update(settings, spec=spec, device=device)
        settings["told"]("one point")
        out.write_text((FOLDER / "h100_llama3_8b.json").read_text())
        return {"points": {"seconds": [1, 2, 3]}, "provenance": {"card": "A card"}}

    monkeypatch.setattr(gpu, "device", lambda kind: f"the {kind} device")
    monkeypatch.setattr(step_profile, "record", record)
    return asked


def test_it_records_into_the_file_and_says_how_much(recorder, tmp_path):
    out = tmp_path / "mine.json"
    result = call("--out", out, "--limit", 60, "--cache-tokens", 65_536)
    assert result.exit_code == 0, result.stderr
    first, second = result.stdout.splitlines()
    assert first == f"{out}: 3 points of llama-3.1-8b on A card" and "one point" in result.stderr
    assert second == f"As a step time: {recorded(out)!r}"
    assert recorder["device"] == "the cuda device" and recorder["limit"] == 60
    assert recorder["cache_tokens"] == 65_536 and recorder["kind"] == "bf16" and not recorder["tied"]
    assert recorder["command"].startswith(f"course profile --out {out} --model llama-3.1-8b --kind bf16")


def test_it_says_where_too_little_was_measured_for_a_step_time(recorder, tmp_path, monkeypatch):
    def record(device, spec, out, **settings):
        few = json.loads((FOLDER / "h100_llama3_8b.json").read_text())
        few["points"] = {key: values[:5] for key, values in few["points"].items()}
        out.write_text(json.dumps(few))
        return few

    monkeypatch.setattr(step_profile, "record", record)
    result = call("--out", tmp_path / "few.json")
    assert result.exit_code == 0 and result.stdout.splitlines()[1].startswith("Too few points for a step time: few is")
    assert "it needs steps of decodes alone and steps of a chunk alone. Give it more time" in result.stdout


def test_a_config_of_ones_own_whose_head_is_the_table(recorder, tmp_path):
    config = {
        "model_type": "llama", "num_hidden_layers": 16, "hidden_size": 2048, "intermediate_size": 8192,
        "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 128256,
        "tie_word_embeddings": True, "torch_dtype": "bfloat16",
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert call("--out", tmp_path / "a.json", "--model", tmp_path / "config.json").exit_code == 0
    assert recorder["tied"] and recorder["spec"].hidden_size == 2048


def test_a_folder_is_refused_before_anything_is_measured(recorder, tmp_path):
    folder = tmp_path / "mine.json"
    folder.mkdir()
    result = call("--out", folder)
    assert result.exit_code == 2 and f"--out must be a file, and {folder} is a folder" in result.stderr and not recorder


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("--out", "a.txt"), "--out must end in .json"),
        (("--out", "no/such/folder/a.json"), "make no/such/folder first"),
        (("--out", "a.json", "--kind", "int8"), "bf16, fp16, fp32"),
        (("--out", "a.json", "--cache-tokens", 5), "--cache-tokens"),
        (("--out", "a.json", "--limit", 0), "--limit"),
        (("--out", "a.json", "--model", "nothing"), "nothing"),
        ((), "--out"),
    ],
)
def test_refusals(recorder, tmp_path, monkeypatch, args, sentence):
    monkeypatch.chdir(tmp_path)
    result = call(*args)
    assert result.exit_code == 2 and sentence in result.stderr and not list(tmp_path.iterdir())
    assert result.stderr.count("\n") == 1


def test_a_card_that_gives_no_point_leaves_no_empty_success(recorder, tmp_path, monkeypatch):
    monkeypatch.setattr(step_profile, "record", lambda *args, **settings: {})
    result = call("--out", tmp_path / "a.json")
    assert result.exit_code == 2 and "no point could be measured" in result.stderr


def test_without_a_gpu_a_sentence_names_the_recording_there_is(tmp_path, monkeypatch):
    def none(kind):
        raise gpu.KernelError("no driver for an NVIDIA GPU is installed")

    monkeypatch.setattr(gpu, "device", none)
    result = call("--out", tmp_path / "a.json")
    assert result.exit_code == 2 and not list(tmp_path.iterdir())
    assert "no driver for an NVIDIA GPU" in result.stderr and "h100-llama3-8b" in result.stderr
    assert recorded("h100-llama3-8b").card
