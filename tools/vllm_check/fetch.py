"""The environment in which vLLM's scheduler runs: a venv, and the Python files of each release unpacked beside it.

By pip, into the ignored folder .vllm/: 433 MB for 0.19.1, 336 MB for 0.33.0 and 192 MB for PyTorch's build for CPUs.
1.4 GB once unpacked; the wheels are deleted. vLLM itself is not installed: its scheduler needs no compiled part of it.
"""

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

HERE = Path(__file__).parent
FOLDER = HERE.parents[1] / ".vllm"
PYTHON = FOLDER / "venv" / "bin" / "python"
WANTED = (".py", ".json")


def fetch(versions: tuple[str, ...]) -> None:
    """What is missing of it. Raises CalledProcessError as pip does."""
    FOLDER.mkdir(exist_ok=True)
    stamp = FOLDER / "installed.txt"
    wanted = (HERE / "requirements.txt").read_text()
    if not stamp.exists() or stamp.read_text() != wanted:
        print("Installing what vLLM's scheduler imports into .vllm/ (some minutes) ...", flush=True)
        venv.create(FOLDER / "venv", with_pip=True)
        _pip("install", "--no-deps", "-r", str(HERE / "requirements.txt"))
        stamp.write_text(wanted)
    for version in versions:
        if not source(version).is_dir():
            print(f"Fetching vLLM {version} (some hundred MB) ...", flush=True)
            _unpack(version)


def source(version: str) -> Path:
    """The folder with the Python files of this release."""
    return FOLDER / f"vllm-{version}"


def _unpack(version: str) -> None:
    wheels = FOLDER / "wheels"
    _pip("download", "--no-deps", "--dest", str(wheels), f"vllm=={version}")
    (wheel,) = wheels.glob(f"vllm-{version}-*.whl")
    unfinished = source(f"{version}.unfinished")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(unfinished, [n for n in packed.namelist() if n.endswith(WANTED) or ".dist-info/" in n])
    unfinished.rename(source(version))
    wheel.unlink()


def _pip(*words: str) -> None:
    command = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", "-q", *words]
    subprocess.run(command, check=True, stdout=sys.stderr)
