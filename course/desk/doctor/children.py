"""Questions asked in a process of their own: `python -m course.desk.doctor.children QUESTION`, answered in JSON."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from typing import Any

from course.base.quick import without_grammar

BATCH, WORK, THREADS = 5, 4_096, 256


def imports(*modules: str) -> dict[str, Any]:
    """The modules that cannot be imported, with the reasons; what JupyterLab will find, or why that cannot be told."""
    failed: dict[str, str] = {}
    lab: dict[str, Any] = {"found": {}, "off": []}
    why = ""
    for name in modules:
        print(f"importing {name}", file=sys.stderr, flush=True)  # the last line tells where a crash happened
        try:
            with without_grammar():
                importlib.import_module(name)
        except Exception as error:
            failed[name] = f"{type(error).__name__}: {_first_line(error)}"
    try:
        with without_grammar():
            lab = _extensions()
    except Exception as error:
        why = f"{type(error).__name__}: {_first_line(error)}"
    return {"failed": failed, "extensions": lab, "why_no_extensions": why}


def _extensions() -> dict[str, Any]:
    """The lab extensions that JupyterLab will find, with version and folder, and the names that are switched off."""
    from jupyter_core.paths import jupyter_path
    from jupyterlab_server.config import get_federated_extensions, get_page_config

    path = jupyter_path("labextensions")
    extensions = get_federated_extensions(path)
    off = get_page_config(path).get("disabledExtensions", [])
    return {
        "found": {name: [str(one.get("version", "")), str(one["ext_path"])] for name, one in extensions.items()},
        "off": [str(name) for name in off],
    }


def kernel(folder: str | None = None) -> dict[str, Any]:
    """The Python behind the kernel python3, once that has been started in a folder and has imported the course."""
    from jupyter_client.manager import KernelManager

    manager = KernelManager(kernel_name="python3")
    spec = manager.kernel_spec
    answer = {"spec": spec.resource_dir if spec else "", "prefix": "", "error": ""}
    manager.start_kernel(**({} if folder is None else {"cwd": folder}))
    client = manager.client()
    try:
        client.start_channels()
        client.wait_for_ready(timeout=60)

        def heard(message: dict[str, Any]) -> None:
            content = message["content"]
            if message["msg_type"] == "stream" and content["name"] == "stdout":
                answer["prefix"] += content["text"]
            elif message["msg_type"] == "error":
                answer["error"] = f"{content['ename']}: {content['evalue']}"

        code = "import sys; import course; from course import serve; print(sys.prefix)"
        client.execute_interactive(code, output_hook=heard, timeout=60, store_history=False)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    return {key: value.strip() for key, value in answer.items()}


def launch(kind: str) -> dict[str, Any]:
    """A decode step on the device of this kind, compared with NumPy in float64."""
    from importlib.util import find_spec

    import numpy as np

    from course import gpu

    answer: dict[str, Any] = {"has_cupy": find_spec("cupy") is not None, "device": None, "notes": [], "why": ""}
    try:
        device = gpu.device(kind)
        answer |= {
            "device": {"kind": device.kind, "name": device.name, "versions": dict(device.versions)},
            "is_gpu": device.is_gpu,
            "notes": list(device.notes),
        }
        got = gpu.DecodeStep(device, WORK, THREADS, BATCH).result(BATCH).astype(np.float64)
    except gpu.KernelError as error:
        return answer | {"why": str(error)}
    want = gpu.reference(BATCH, WORK)
    off = float(np.max(np.abs(got - want) / want))
    # NaN is no number for JSON, and no agreement either
    return answer | {"off": off if np.isfinite(off) else None, "allowed": gpu.tolerance(WORK, THREADS)}


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else ""


QUESTIONS: dict[str, Callable[..., dict[str, Any]]] = {"imports": imports, "kernel": kernel, "launch": launch}

if __name__ == "__main__":
    try:
        answer = QUESTIONS[sys.argv[1]](*sys.argv[2:])
    except ImportError as error:
        answer = {"missing": str(error)}
    print(json.dumps(answer))
