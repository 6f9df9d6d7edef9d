"""What the decision is about: vLLM's own metrics page before, within and after a load that it was sent."""

from functools import cache

from course.calibration import vllm_live, vllm_pages

GAUGES = ("num_requests_running", "num_requests_waiting")
QUEUE, COUNT, E2E = (
    "request_queue_time_seconds_sum",
    "e2e_request_latency_seconds_count",
    "e2e_request_latency_seconds_sum",
)


@cache
def load() -> vllm_live.VllmRun:
    """The load between the pages, as the recorder in vLLM's scheduler saw it."""
    return vllm_live.read("preempted")


def seconds() -> float:
    """From the first request that was sent to the last token that came back."""
    return float(load().client_last.max() - load().sent.min())


def on_page(name: str, when: str) -> float:
    """One of vLLM's metrics."""
    return vllm_pages.metrics(when).total(f"vllm:{name}")


def growth(name: str) -> float:
    """By how much a counter grew over the whole load."""
    return on_page(name, "after") - on_page(name, "before")


def in_flight(count: float, e2e_sum: float, lasted: float) -> float:
    """Mean number in the system: λ = count / seconds, W = e2e_sum / count, and their product."""
    return (count / lasted) * (e2e_sum / count)


def from_page() -> float:
    """What the counters say."""
    return in_flight(growth(COUNT), growth(E2E), seconds())
