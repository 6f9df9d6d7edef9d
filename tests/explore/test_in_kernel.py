"""An explorer in a real kernel: one output a cell, the same text each time, and slider messages that do not pile up."""

from __future__ import annotations

import nbformat
import pytest
from nbclient import NotebookClient

from course.explore.explorer import WIDGET_VIEW

SETUP = """
import time
import plotly.graph_objects as go
from course.explore import Explorer, Slider

seen = []
def simulate(rate):
    seen.append(rate)
    time.sleep(0.05)
    if rate == 13:
        raise ValueError("13 does not work: move on")
    return rate

explorer = Explorer(simulate, [Slider("rate", "Rate", 1, 50, 1, 20, "requests/s")],
                    lambda r: go.Figure(go.Scatter(y=[0, r])), lambda r: [("rate", f"{r} requests/s")])
"""
ID = "print(explorer.view.controls['rate'].comm.comm_id)"
CELLS = [SETUP, "explorer", "explorer", "explorer.set(rate=30)", ID]


class Kernel:
    """A notebook that has run, whose kernel still lives."""

    def __init__(self, client: NotebookClient) -> None:
        self.client = client
        self.outputs = [cell.outputs for cell in client.nb.cells]

    def run(self, code: str) -> str:
        """Run a cell and return what it printed."""
        cell = nbformat.v4.new_code_cell(code)
        self.client.nb.cells.append(cell)
        self.client.execute_cell(cell, len(self.client.nb.cells) - 1)
        return "".join(output.get("text", "") for output in cell.outputs)

    def slide(self, *values: int) -> None:
        """Send positions of the slider as a browser does, as fast as they go."""
        kernel = self.client.kc
        comm = self.outputs[-1][0]["text"].strip()
        for value in values:
            content = {"comm_id": comm, "data": {"method": "update", "state": {"value": value}, "buffer_paths": []}}
            kernel.shell_channel.send(kernel.session.msg("comm_msg", content))


@pytest.fixture(scope="module")
def kernel():
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in CELLS])
    client = NotebookClient(notebook, timeout=120, kernel_name="python3", store_widget_state=False)
    with client.setup_kernel():
        for index, cell in enumerate(list(notebook.cells)):
            client.execute_cell(cell, index)
        yield Kernel(client)


def test_one_output_with_the_view_and_the_text(kernel):
    for outputs in kernel.outputs[1:3]:
        (output,) = outputs
        assert output.output_type == "execute_result"
        assert set(output.data) == {"text/plain", WIDGET_VIEW}
        assert output.data["text/plain"].splitlines()[1:] == [
            "At the start: Rate 20 requests/s",
            "  rate  20 requests/s",
        ]
    assert kernel.outputs[1][0].data["text/plain"] == kernel.outputs[2][0].data["text/plain"]


def test_set_is_done_when_the_cell_is(kernel):
    (output,) = kernel.outputs[3]
    assert output.data["text/plain"] == "30"


def test_slider_messages_do_not_pile_up(kernel):
    # However slowly a busy machine reads the queue, it settles when the last position is read.
    kernel.run("import asyncio; from course.explore import latest; latest.SETTLE, latest.PATIENCE = 0.5, 600")
    kernel.run("await asyncio.sleep(2 * latest.JUST_ENDED); seen.clear()")
    kernel.slide(*range(1, 41))
    kernel.run("await asyncio.sleep(2 * latest.SETTLE)")
    assert eval(kernel.run("print(seen)")) == [1, 40], "the first is shown at once, and the newest"
    assert kernel.run("print(explorer.view.result)").strip() == "40"


def test_a_failure_from_the_browser_is_shown_and_recovered(kernel):
    for value, error in ((13, "13 does not work: move on"), (14, "None")):
        kernel.slide(value)
        kernel.run("await asyncio.sleep(2 * latest.SETTLE)")
        assert kernel.run("print(explorer.view.error)").strip() == error
