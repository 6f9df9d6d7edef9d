"""What the trial of the reader met elsewhere: the smallest input of each kind, once answered as if all was read."""

import csv
import json
import re
from importlib.resources import files
from pathlib import Path

import pytest

from course import flags, results
from course.memory import ledger
from course.models import gpus, named_or_read
from tests.cli.test_cli import call

HELM = """
servingEngineSpec:
  modelSpec:
  - name: "llama3"
    repository: "vllm/vllm-openai"
    modelURL: "my/model"
    vllmConfig:
      maxModelLen: 4096
      maxNumSeqs: 32
      tensorParallelSize: 2
      extraArgs: ["--max-num-batched-tokens", "4096"]
"""


class TestHelm:
    def test_camel_case_keys_are_options(self):
        parsed = flags.parse(HELM)
        assert parsed.model == "my/model"
        assert (parsed.policy.max_num_seqs, parsed.policy.max_num_batched_tokens) == (32, 4096)
        assert (parsed.kv.max_model_len, parsed.kv.tensor_parallel_size) == (4096, 2)

    @pytest.mark.parametrize("key", ["maxModelLen", "maxNumSeqs", "tensorParallelSize"])
    def test_a_key_that_is_not_known_is_named(self, key):
        with pytest.raises(ValueError, match="-extra"):
            flags.parse(HELM.replace(key, f"{key}Extra"))

    @pytest.mark.parametrize("text", ["image:\n  repository: vllm/vllm-openai\n  tag: v1\n", "vllm/vllm-openai:latest"])
    def test_an_image_alone_is_no_command(self, text):
        with pytest.raises(ValueError, match=r"names no container|no command or option"):
            flags.parse(text)


KSERVE = """
kind: InferenceService
spec:
  predictor:
    model:
      modelFormat: {name: huggingface}
      storageUri: hf://my/model:main
      args: ["--model_name=llama", "--backend=vllm", "--disable_lower_case", "--http_port", "8080", MORE]
"""


class TestKServe:
    """Its server has options of its own, and passes vLLM's on (python/huggingfaceserver/__main__.py)."""

    @pytest.mark.parametrize("more", ['"--max_num_seqs=48"', '"--max-num-seqs", "48"'])
    def test_the_options_of_the_engine_are_read(self, more):
        parsed = flags.parse(KSERVE.replace("MORE", more))
        assert parsed.model == "my/model" and parsed.policy.max_num_seqs == 48

    def test_what_it_calls_otherwise(self):
        parsed = flags.parse(KSERVE.replace("MORE", '"--model_id=a/b", "--max_length=4096"'))
        assert parsed.model == "a/b" and parsed.kv.max_model_len == 4096

    def test_by_the_image(self):
        parsed = flags.parse(
            "containers:\n- name: main\n  image: kserve/huggingfaceserver:v0.15.0-gpu\n"
            '  args: ["--model_name=x", "--model_id=a/b", "--max_num_seqs=4"]\n'
        )
        assert parsed.model == "a/b" and parsed.policy.max_num_seqs == 4

    @pytest.mark.parametrize(
        ("more", "why"),
        [('"--backend=huggingface"', "is another program"), ('"--max_lenght=9"', "no option '--max-lenght'")],
    )
    def test_what_is_not_vllms_is_named(self, more, why):
        with pytest.raises(ValueError, match=why):
            flags.parse(KSERVE.replace("MORE", more))


SCRIPT = """#!/bin/bash
TP=${1:-2}
ARGS=(--max-num-seqs 32 --kv-cache-dtype fp8)
if [ "$LONG" = 1 ]; then LEN=32768; else LEN=8192; fi
cat > /run.sh <<'END'
echo starting
END
vllm serve $MODEL --tensor-parallel-size $TP --max-model-len $LEN "${ARGS[@]}"
"""


class TestScripts:
    def test_a_variable_of_two_values_is_named(self):
        parsed = flags.parse(SCRIPT)
        assert parsed.kv.max_model_len == 8192 and parsed.kv.tensor_parallel_size == 2
        assert any("LEN is set to 2 values: the last one counts, '8192'" in note for note in parsed.notes)
        assert flags.parse(SCRIPT, env={"LEN": "32768"}).kv.max_model_len == 32768

    def test_two_commands_are_counted(self):
        two = "if [ -n $A ]; then\n  vllm serve m --max-num-seqs 4\nelse\n  vllm serve m --max-num-seqs 8\nfi\n"
        parsed = flags.parse(two)
        assert parsed.policy.max_num_seqs == 4
        assert any("2 commands of this text start an engine: the first one is read" in note for note in parsed.notes)

    def test_a_command_in_a_heredoc(self):
        parsed = flags.parse("docker run -i image bash <<END\nvllm serve m --max-num-seqs 12\nEND\n")
        assert parsed.model == "m" and parsed.policy.max_num_seqs == 12

    def test_course_kv_takes_the_settings_of_a_script(self, tmp_path):
        path = tmp_path / "serve.sh"
        path.write_text(SCRIPT)
        asked = ("--tp", "2", "--max-num-seqs", "32", "--kv-cache-dtype", "fp8", "--max-model-len")
        words = ("kv", "llama-3.1-8b", "--gpu", "H100", "--json")
        by_hand = json.loads(call(*words, *asked, "8192").stdout)["ledger"]
        read = call(*words, "--from", str(path))
        assert json.loads(read.stdout)["ledger"] == by_hand and "LEN is set to 2 values" in read.stderr
        longer = call(*words, "--from", str(path), "--env", "LEN=32768")
        assert json.loads(longer.stdout)["ledger"]["max_model_len"] == 32768
        other = call(*words, "--from", str(path), "--tp", "4")
        assert json.loads(other.stdout)["ledger"]["tp"] == 4
        assert "tensor_parallel_size is the one of this command, not the 2 of the text" in other.stderr

    def test_memory_of_the_text_and_options_without_a_card(self):
        given = call("kv", "llama-3.1-8b", "--json", "--from", "vllm serve m --kv-cache-memory-bytes 10G")
        assert json.loads(given.stdout)["ledger"]["kv_bytes"] == 10 * 2**30
        assert "--from has no effect" in call("kv", "llama-3.1-8b", "--from", "vllm serve m").stderr
        assert "--env needs --from" in call("kv", "llama-3.1-8b", "--env", "A=1").stderr


def test_the_arguments_of_another_program_are_not_vllms():
    sidecar = 'containers:\n- name: proxy\n  args: ["--port", "9090", "--config", "x.yaml"]\n'
    with pytest.raises(ValueError, match="Its services are proxy"):
        flags.parse(sidecar)
    engine = '- name: engine\n  args: ["--model", "m", "--max-num-seqs", "48"]\n'
    assert flags.parse(sidecar + engine).policy.max_num_seqs == 48


BENCH = {
    "backend": "vllm", "num_prompts": 10, "completed": 10, "request_rate": 1.0, "duration": 10.0,
    "total_input_tokens": 100, "total_output_tokens": 200, "request_throughput": 1.0, "output_throughput": 20.0,
    "total_token_throughput": 30.0,
    "mean_ttft_ms": 250.0, "median_ttft_ms": 240.0, "p99_ttft_ms": 400.0, "mean_tpot_ms": 20.0,
    "median_tpot_ms": 20.0, "p99_tpot_ms": 25.0,
}  # fmt: skip
TIMES = [key for key in BENCH if key.endswith("_ms")]


def read(tmp_path, doc):
    path = tmp_path / "run.json"
    path.write_text(json.dumps(doc))
    return results.read(path)


class TestUnits:
    @pytest.mark.parametrize("key", TIMES)
    @pytest.mark.parametrize("unit", ["", "_s", "_seconds"])
    def test_a_time_in_seconds_is_the_same_time(self, tmp_path, key, unit):
        doc = {(key.removesuffix("_ms") + unit if one == key else one): value / 1e3 if one == key else value
               for one, value in BENCH.items()}  # fmt: skip
        statistic, metric, _ = key.split("_")
        name = {"mean": "mean", "median": "p50", "p99": "p99"}[statistic]
        expected = read(tmp_path, BENCH).ours[metric][name]
        assert read(tmp_path, doc).ours[metric][name] == pytest.approx(expected, rel=1e-12)  # * 1e-3 rounds once

    @pytest.mark.parametrize("key", TIMES)
    def test_a_unit_that_is_not_known_is_a_note_that_names_the_key(self, tmp_path, key):
        changed = key.removesuffix("_ms") + "_ticks"
        doc = {changed if one == key else one: value for one, value in BENCH.items()}
        assert any(changed in note for note in read(tmp_path, doc).notes)

    def test_a_whole_file_has_no_such_note(self, tmp_path):
        assert not any("is not read" in note for note in read(tmp_path, BENCH).notes)


DATA = Path(results.__file__).parents[2] / "tests" / "data" / "results"


@pytest.mark.parametrize("name", ["vllm_bench_summary.json", "sglang_bench.jsonl"])
def test_a_renamed_key_changes_nothing_or_is_named(tmp_path, name):
    """Each key of a file, one at a time: the same answer, a refusal, or a note with the key."""
    doc = json.loads((DATA / name).read_text(encoding="utf-8").splitlines()[0] if name.endswith("jsonl")
                     else (DATA / name).read_text(encoding="utf-8"))  # fmt: skip
    whole = read(tmp_path, doc)
    named = 0
    for key in doc:
        try:
            other = read(tmp_path, {(f"{one}_renamed" if one == key else one): value for one, value in doc.items()})
        except ValueError:
            continue
        same = repr((other.totals, other.ours, other.loop)) == repr((whole.totals, whole.ours, whole.loop))
        noted = any(key in note for note in other.notes)
        assert same or noted, key
        named += noted and not same
    assert named >= 8


class TestStates:
    def test_slots_above_the_state_blocks_are_a_problem(self):
        """Nemotron-H on eight ranks with 10 GiB: 1,008 blocks."""
        card = ledger("nemotron-h-56b", kv_bytes=10 * 2**30, tp=8, max_num_seqs=1024)
        assert card.num_blocks == 1008
        assert len(card.problems) == 1 and "1,008 at most" in card.problems[0]

    def test_as_many_slots_as_blocks_are_none(self):
        assert not ledger("nemotron-h-56b", kv_bytes=10 * 2**30, tp=8, max_num_seqs=1008).problems

    def test_attention_alone_has_no_such_limit(self):
        assert not ledger("llama-3.1-8b", kv_bytes=10 * 2**30, max_model_len=8192, max_num_seqs=10**6).problems

    def test_the_memory_of_one_sequence_is_printed(self):
        """8,192 tokens x 131,072 B are 1 GiB."""
        card = ledger("llama-3.1-8b", kv_bytes=10 * 2**30, max_model_len=8192)
        assert any("one needs 1.00 GiB" in str(line) for line in card.lines)


OUTSIDE = ("nvidia-smi", "data sheet", "resellers' lists", "clouds' lists", "ROCm documentation")


class TestCards:
    def test_h20_3e_has_141_gb(self):
        assert gpus.gpu("H20-3e").memory_bytes == gpus.gpu("H200").memory_bytes != gpus.gpu("H20").memory_bytes

    def test_a_card_of_another_size_is_no_alias(self):
        """A size in a name is the row's own, but for GH200-480GB, which counts the CPU's memory, and 10^9 for 2^30."""
        rows = csv.DictReader((files("course") / "data" / "gpus.csv").read_text(encoding="utf-8").splitlines())
        sized = 0
        for row in rows:
            for alias in filter(None, row["also"].split(";")):
                size = re.search(r"(\d+)GB", alias)
                if size and alias != "GH200-480GB":
                    assert float(row["runtime_mib"]) / 1024 == pytest.approx(int(size[1]), rel=0.12), alias
                    sized += 1
        assert sized > 20

    def test_each_alias_has_a_source(self):
        """What the tool prints, the maker's sheet or a list of sellers says; or it is made of the row's own words."""
        rows = csv.DictReader((files("course") / "data" / "gpus.csv").read_text(encoding="utf-8").splitlines())
        seen = 0
        for row in rows:
            aliases, sources = (list(filter(None, row[key].split(";"))) for key in ("also", "also_from"))
            assert len(aliases) == len(sources), row["name"]
            for alias, source in zip(aliases, sources, strict=True):
                seen += 1
                if source == "name and size":
                    size = alias.removeprefix(f"{row['name']}-").removesuffix("GB")
                    assert f"{size} GB" in row["edition"], alias
                elif source == "end of the name":
                    assert row["name"].endswith(f"-{alias}")
                elif source == "short for another alias":
                    assert any(other.endswith(f"-{alias}") for other in aliases)
                else:
                    assert source in OUTSIDE, alias
        assert seen > 50

    def test_an_unknown_card_says_what_to_give_instead(self):
        with pytest.raises(ValueError, match="--memory-gib"):
            gpus.gpu("NoSuchCard")


@pytest.mark.parametrize("key", ["hidden_size_per_layer_input", "use_double_wide_mlp"])
def test_matrices_that_are_not_counted_are_refused_by_key(tmp_path, key):
    config = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
              "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 100}  # fmt: skip
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    assert named_or_read(str(path)).weights is not None
    path.write_text(json.dumps({**config, key: 1}))
    spec = named_or_read(str(path))
    assert spec.weights is None and any(key in note for note in spec.notes)
