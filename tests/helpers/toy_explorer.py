"""A simulation that counts its calls, with a figure, a summary and one control of each kind, for tests of explorers."""

from __future__ import annotations

import plotly.graph_objects as go

from course.explore import Choice, Slider, Toggle

RATE = Slider("rate", "Arrival rate", 1, 50, 1, 20, "requests/s")
SLOTS = Slider("max_num_seqs", "Slots", 1, 256, 2, 32, log=True)
CV = Slider("cv", "Variation", 0.0, 4.0, 0.25, 1.0)
POLICY = Choice("policy", "Policy", ["static", "continuous"], "continuous")
CHUNKED = Toggle("chunked", "Chunked prefill", True)


class Simulation:
    """Counts its calls; refuses rates above 40, breaks at 13, warns above 30."""

    def __init__(self):
        self.calls = []

    def __call__(self, rate, max_num_seqs, cv, policy, chunked):
        self.calls.append({"rate": rate, "max_num_seqs": max_num_seqs, "cv": cv, "policy": policy, "chunked": chunked})
        if rate > 40:
            raise ValueError(f"rate {rate} is above the capacity of 40 requests/s: lower it")
        if rate == 13:
            raise ZeroDivisionError("division by zero")
        warnings = ("rate is close to capacity: the queue grows long",) if rate > 30 else ()
        return {"load": rate / max_num_seqs, "policy": policy, "warnings": warnings}


def figure(result):
    drawn = go.Figure(layout={"height": 380, "title": {"text": "A title that stays"}})
    drawn.add_scatter(x=[0.0, 1.0], y=[0.0, result["load"]], name="load")
    if result["policy"] == "static":
        drawn.add_bar(x=[0.5], y=[result["load"]])
    return drawn


def summary(result):
    return [("load", f"{result['load']:.3f}"), ("policy", result["policy"])]
