"""A kernel behind the hub, used as a notebook page uses it: over the proxy's WebSocket, cells and slider moves."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tornado.httpclient import HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

from tests.hub.hub import Learner

FIGURE = "application/vnd.jupyter.widget-view+json"


@dataclass
class Kernel:
    """One open lab. sliders: ids of the models of its sliders, with their states, in the order in which they came."""

    learner: Learner
    number: str
    socket: WebSocketClientConnection
    messages: asyncio.Queue[str | bytes | None]
    sliders: dict[str, dict[str, Any]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    first_view: float = 0.0

    async def run(self, code: str) -> None:
        """Run a cell and wait until it is done."""
        content = {"code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False}
        await self._ask("execute_request", content)

    async def move(self, slider: str, value: float) -> float:
        """Move a slider, wait until the kernel is idle again, and return the seconds that took."""
        begun = time.monotonic()
        data = {"method": "update", "state": {"value": value}, "buffer_paths": []}
        await self._ask("comm_msg", {"comm_id": slider, "data": data})
        return time.monotonic() - begun

    async def _ask(self, kind: str, content: dict[str, Any]) -> None:
        name = uuid.uuid4().hex
        header = {"msg_id": name, "msg_type": kind, "session": self.number, "username": "", "version": "5.4"}
        message = {"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}
        await self.socket.write_message(json.dumps(message))
        while True:
            got = await self.messages.get()
            if got is None:
                raise ConnectionError(f"{self.learner.name}: the connection to the kernel has ended")
            if isinstance(got, bytes):  # with buffers, which nobody here looks at
                continue
            message = json.loads(got)
            self._note(message)
            done = message["content"].get("execution_state") == "idle"
            if done and message["parent_header"].get("msg_id") == name:
                return

    def _note(self, message: dict[str, Any]) -> None:
        kind, content = message["header"]["msg_type"], message["content"]
        if kind == "error":
            self.errors.append(f"{content['ename']}: {content['evalue']}")
        elif kind == "comm_open":
            state = content["data"].get("state", {})
            if str(state.get("_model_name")) in ("FloatSliderModel", "IntSliderModel"):
                self.sliders[content["comm_id"]] = state
        elif kind in ("display_data", "execute_result") and FIGURE in content["data"]:
            self.first_view = self.first_view or time.monotonic()


async def opened(learner: Learner) -> Kernel:
    """Start a kernel on the learner's server and connect to it."""
    answer = await asyncio.to_thread(learner.asks, "api/kernels", method="POST", json={"path": ""})
    number = answer.json()["id"]
    address = f"{learner.url.replace('http', 'ws', 1)}api/kernels/{number}/channels"
    login = {"Authorization": f"token {learner.token}"}
    request = HTTPRequest(address, headers=login, request_timeout=300, connect_timeout=300)
    # Read as they come: a client that lets them lie answers no ping, and the server hangs up.
    messages: asyncio.Queue[str | bytes | None] = asyncio.Queue()
    socket = await websocket_connect(request, max_message_size=2**28, on_message_callback=messages.put_nowait)
    return Kernel(learner, number, socket, messages)


async def whole_lab(kernel: Kernel, lab: Path) -> float:
    """Run all cells of a lab one after the other. Returns the seconds until the first widget was shown."""
    begun = time.monotonic()
    for cell in json.loads(lab.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            await kernel.run("".join(cell["source"]))
    return kernel.first_view - begun
