"""Ctrl-C, as a real signal, while the modules of each command are imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from course.cli import COMMANDS
from tests.helpers.sizes import PATIENCE, size

ARGUMENTS = {
    "lab": ["--no-browser"],
    "simulate": ["--rate", "5"],
    "talk": ["Hi"],
    "serve": ["--port", "0"],
    "lm": ["--to", "lm"],
    "kv": ["Qwen/Qwen3-8B"],
    "reset": ["03"],
    "flags": ["vllm serve x"],
    "compare": ["nothing.json"],
    "look": ["nothing.log"],
    "results": ["nothing.json"],
}
# The signal comes when so many modules were asked for; a command that needs fewer has come to its end before.
PRESSED = size(small=(20, 120), whole=(1, 5, 30, 60, 100, 150, 200, 250, 330, 400, 500, 700, 900))
CODE = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
class Pressed:
    asked = 0
    def find_spec(self, name, path=None, target=None):
        Pressed.asked += "course.base.interrupt" in sys.modules
        if Pressed.asked == {after}:
            open("pressed", "w").close()
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Pressed())
sys.argv = ["course", *{arguments}]
from course.cli import main
main()
"""


@pytest.mark.parametrize("after", PRESSED)
@pytest.mark.parametrize("command", COMMANDS)
def test_ctrl_c_in_an_import_is_one_sentence(command: str, after: int, tmp_path: Path) -> None:
    code = CODE.format(after=after, arguments=[command, *ARGUMENTS.get(command, [])])
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=PATIENCE,
    )  # fmt: skip
    if (tmp_path / "pressed").exists():
        assert (done.returncode, done.stderr) == (130, "course: stopped by Ctrl-C\n")
    assert "Traceback" not in done.stderr
