"""`course talk` and `course serve`: words on a terminal and over HTTP, and what both refuse."""

import json
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

from course import gpu
from course.cli import app, talk
from tests.helpers.sizes import PATIENCE

COMMAND = [sys.executable, "-c", "from course.cli import main; main()"]
PROMPTS = "Spell owl.\n\nCount from 3 to 30.\nWhat is 17 plus 25?\n"
ANSWERS = ["o-w-l.", ", ".join(map(str, range(3, 31))) + ".", "42."]


def call(*args, text=None):
    return CliRunner().invoke(app, [str(arg) for arg in args], input=text)


@pytest.fixture
def prompts(tmp_path):
    path = tmp_path / "prompts.txt"
    path.write_text(PROMPTS)
    return path


def test_a_replay_under_two_policies(prompts):
    found = call("talk", "--prompts", prompts, "--policy", "static,continuous", "--max-num-seqs", 2, "--json")
    assert found.exit_code == 0, found.stderr
    static, continuous = json.loads(found.stdout)
    for run in (static, continuous):
        assert [one["words"] for one in run["answers"]] == ANSWERS
        assert {one["ended"] for one in run["answers"]} == {"stop"}
    assert static["padding_tokens"] > 20 and continuous["padding_tokens"] == 0
    # The short one is answered before the long one beside it, and with it in a static batch.
    assert continuous["answers"][0]["e2e"] < continuous["answers"][1]["e2e"]
    assert static["answers"][0]["e2e"] == static["answers"][1]["e2e"]


def test_a_replay_as_text(prompts):
    found = call("talk", "--prompts", prompts, "--policy", "static,continuous", "--max-num-seqs", 2, "--max-tokens", 9)
    assert found.exit_code == 0, found.stderr
    assert found.stdout.count("#0 Spell owl.") == 2 and found.stdout.count("[length]") == 2
    assert "The words are the same under all of them." in found.stdout
    assert "TTFT" in found.stdout and "tokens of padding" in found.stdout


def test_prompts_from_the_input_that_come_one_by_one():
    found = call("talk", "--prompts", "-", "--rate", 50, "--json", text=PROMPTS)
    (run,) = json.loads(found.stdout)
    arrivals = [one["arrival"] for one in run["answers"]]
    assert arrivals == sorted(arrivals) and arrivals[-1] > 0
    assert [one["words"] for one in run["answers"]] == ANSWERS


def test_the_words_are_the_same_on_a_device(prompts):
    found = call("talk", "--prompts", prompts, "--max-num-seqs", 2, "--device", "numpy", "--json")
    assert found.exit_code == 0, found.stderr
    assert [one["words"] for one in json.loads(found.stdout)[0]["answers"]] == ANSWERS
    assert call("talk", "--device", "numpy", text="What is 17 plus 25?\n").stdout == "42.\n"


@pytest.mark.parametrize("command", ["talk", "serve"])
def test_a_gpu_that_is_not_there(command, monkeypatch):
    def none(kind):
        raise gpu.KernelError("no driver for an NVIDIA GPU is installed")

    monkeypatch.setattr(gpu, "device", none)
    found = call(command, "--device", "cuda", text="Spell owl.\n")
    assert found.exit_code == 2 and found.stdout == ""
    assert found.stderr == (
        "course: The model cannot run on this device: no driver for an NVIDIA GPU is installed. "
        "Without a device it runs in NumPy.\n"
    )


def test_a_chat_remembers_until_an_empty_line():
    found = call("talk", text="My name is Mia.\nWhat is my name?\n\nWhat is 17 plus 25?\n")
    assert found.exit_code == 0, found.stderr
    lines = found.stdout.splitlines()
    assert "Mia" in lines[0] and lines[1] == "Your name is Mia." and lines[2] == "42."


def test_a_chat_goes_on_after_a_prompt_that_is_too_long():
    found = call("talk", text=f"{'owl ' * 600}\nWhat is 17 plus 25?\n")
    assert "no room" in found.stderr and found.stdout == "42.\n"


def test_a_long_chat_forgets_its_beginning():
    found = call("talk", text="Count from 3 to 40.\n" * 6)
    assert found.stdout == (", ".join(map(str, range(3, 41))) + ".\n") * 6


def on_a_terminal(*args):
    """What a command writes to a terminal."""
    inside, outside = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "30"}
    with subprocess.Popen([*COMMAND, *args], stdin=outside, stdout=outside, stderr=outside, env=env) as process:
        os.close(outside)
        parts = []
        while True:
            ready, _, _ = select.select([inside], [], [], PATIENCE)
            assert ready, f"nothing for {PATIENCE} s"
            try:
                part = os.read(inside, 65_536)
            except OSError:  # its other end is closed
                break
            if not part:
                break
            parts.append(part.decode())
        assert process.wait(PATIENCE) == 0
    os.close(inside)
    return parts


def test_words_appear_as_they_are_computed(prompts):
    parts = on_a_terminal("talk", "--prompts", str(prompts), "--policy", "static", "--max-num-seqs", "3")
    text = "".join(parts)
    assert "3, 4, 5" in text and text.index("o-w-l") < text.index("s  #0 Spell owl.")
    # The answer that is complete goes on as padding, a dot a token, before the long one ends.
    assert "..." in text[: text.index("s  #0 Spell owl.")]


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["--rate", "3"], "--rate is for --prompts"),
        (["--json"], "--json is for --prompts"),
        (["--policy", "static"], "--policy is for --prompts"),
        (["--prompts", "nowhere.txt"], "cannot read nowhere.txt"),
        (["--prompts", "-", "--policy", "fastest"], "no policy is called 'fastest'"),
        (["--prompts", "-", "--max-num-seqs", "0"], "max-num-seqs must be"),
        (["--prompts", "-", "--rate", "0"], "rate"),
        (["--prompts", "-", "--max-tokens", "0"], "max_tokens must be"),
        (["--prompts", "-", "--temperature", "-1"], "temperature must be"),
        (["--prompts", "-", "--num-gpu-blocks", "1"], "can never be served"),
        (["--device", "gpu"], "no device is called 'gpu': choose one of auto, cuda"),
        (["--prompts", "-", "--device", "numpy", "--num-gpu-blocks", "9", "--block-size", "5"], "cannot be 5"),
    ],
)
def test_refusals(args, sentence):
    found = call("talk", *args, text="Spell owl. " * 4)
    assert found.exit_code == 2 and sentence in found.stderr and "Traceback" not in found.stderr


def test_a_file_without_prompts(tmp_path):
    empty, odd = tmp_path / "empty.txt", tmp_path / "odd.txt"
    empty.write_text("\n\n")
    odd.write_bytes(b"Spell owl.\n\xff\n")
    assert "has no prompts" in call("talk", "--prompts", empty).stderr
    assert "row 2: byte 0xff is not UTF-8" in call("talk", "--prompts", odd).stderr


def test_a_server_until_ctrl_c():
    command = [*COMMAND, "serve", "--port", "0", "--max-num-seqs", "4", "--max-num-batched-tokens", "64"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline()
            address, _, name, _, token, policy = line.split(None, 5)
            assert name == "course-lm" and "Continuous(max_num_seqs=4" in policy
            asked = urllib.request.Request(
                f"{address}/completions",
                json.dumps({"prompt": "What is 17 plus 25?", "temperature": 0}).encode(),
                {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
            )
            with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
                assert json.load(answer)["choices"][0]["text"] == "42."
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE) in (0, 130)
        assert "Traceback" not in process.stderr.read()


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["--policy", "static,continuous"], "one policy"),
        (["--policy", "fastest"], "no policy is called"),
        (["--port", "70000"], "port must be"),
        (["--max-waiting", "-1"], "max_waiting must be"),
        (["--api-key", ""], "--api-key must be"),
        (["--api-key", "naïve"], "--api-key must be"),
        (["--num-gpu-blocks", "0"], "num_blocks must be"),
        (["--device", "tpu"], "no device is called 'tpu'"),
    ],
)
def test_what_a_server_refuses(args, sentence):
    found = call("serve", *args)
    assert found.exit_code == 2 and sentence in found.stderr, found.stderr


def test_a_port_that_is_taken():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        found = call("serve", "--port", taken.getsockname()[1])
    assert found.exit_code == 2 and "cannot be used" in found.stderr


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="this system has no /dev/zero")
def test_a_file_of_prompts_without_an_end_is_refused(tmp_path, monkeypatch):
    assert "is a device" in call("talk", "--prompts", "/dev/zero").stderr
    monkeypatch.setattr(talk, "MOST_BYTES", 2**20)
    large = tmp_path / "large.txt"
    large.write_text("Spell owl.\n" * 10**5)
    assert "is larger than 1 MiB" in call("talk", "--prompts", large).stderr
    assert "more than 1 MiB" in call("talk", "--prompts", "-", text=large.read_text()).stderr


def test_a_temperature_near_0_gives_the_words_of_0():
    greedy = call("talk", "--prompts", "-", "--json", text="Spell owl.\n")
    found = call("talk", "--prompts", "-", "--temperature", "1e-308", "--json", text="Spell owl.\n")
    (near,), (at,) = json.loads(found.stdout), json.loads(greedy.stdout)
    assert near["answers"][0]["words"] == at["answers"][0]["words"] != ""


def test_what_is_missing_is_named(monkeypatch):
    from course.cli import serve

    monkeypatch.setattr(serve, "find_spec", lambda name: None)
    found = call("serve")
    assert found.exit_code == 2 and "which is not installed: run `" in found.stderr
