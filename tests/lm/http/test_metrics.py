"""What a server counts is what its clients measure, each value to a millionth: on a clock that moves in steps alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest

from course import KVCache, policies
from course.lm.http import service as services
from course.lm.http.service import Service, Ticket

ASKED = [
    ("Count from 3 to 9.", 60, 0.0), ("Spell owl.", 5, 0.0), ("Count from 1 to 40.", 30, 0.0), ("Spell fox.", 1, 0.03),
]  # fmt: skip
"""Prompt, max_tokens, and when it comes; two have a slot at a time, so that the others wait."""


@dataclass
class Client:
    """One request as its client sees it: when it was sent, and when each token came."""

    sent: float
    prompt: int
    tokens: list[float] = field(default_factory=list)
    started: float = math.nan
    ended: str = ""


def samples(service: Service) -> dict[str, float]:
    """A page of /metrics by the names of its samples, labels left out."""
    lines = service.metrics.page().decode().splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    found: dict[str, float] = {}
    for name, value in pairs:
        found[name.split("{")[0]] = found.get(name.split("{")[0], 0.0) + float(value)
    return found


@pytest.fixture(scope="module")
def watched(model):
    """Four requests over two slots: what their clients saw, pages between the steps, and the last page.

    Each step takes another time, so that no two of the measures are alike. The hook runs in the engine's thread,
    before a step, when the page shows the state after the one before.
    """
    clock = SimpleNamespace(now=0.0)
    clients: list[Client] = []
    states: list[tuple[dict[str, float], list[Client], list[tuple[int, float, str]]]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(services, "time", SimpleNamespace(monotonic=lambda: clock.now))
        service = Service(model, policies.Continuous(2, 64), KVCache(40, 16))
        compute, speak = services._Timed.compute, services.Speaking.compute
        steps: list[int] = []
        waiting = list(ASKED)

        def submit() -> None:
            while waiting and (waiting[0][2] <= clock.now or not service._here):
                text, limit, _ = waiting.pop(0)
                clients.append(one := Client(clock.now, len(model.prompt(text))))

                def said(_: str, ended: str, one: Client = one) -> None:
                    one.tokens.append(clock.now)
                    one.ended = ended
                    submit()

                ticket = Ticket(model.prompt(text), said, limit, created=clock.now)
                one.ticket = ticket  # type: ignore[attr-defined]
                service.submit(ticket)

        def stepped(self, work):
            for request, _ in work.chunks:
                one = next(c for c in clients if c.ticket is service._rows.get(request.index))
                one.started = clock.now if math.isnan(one.started) else one.started
            steps.append(len(work.decodes) + sum(count for _, count in work.chunks))
            return compute(self, work)

        def spoken(self, work):
            clock.now += 0.01 + 0.001 * (len(steps) % 7) + 0.0001 * len(steps)
            return speak(self, work)

        def counted(**state):
            real(**state)
            known = [(len(c.tokens), c.started, c.ended) for c in clients]
            states.append((samples(service), list(clients), known))

        real = service.metrics.state
        patch.setattr(services._Timed, "compute", stepped)
        patch.setattr(services.Speaking, "compute", spoken)
        patch.setattr(service.metrics, "state", counted)
        submit()
        with service:
            while service._here or waiting:
                services.threading.Event().wait(0.005)
    return SimpleNamespace(clients=clients, states=states, steps=steps, page=samples(service), service=service)


def test_everybody_was_answered_and_somebody_waited(watched):
    assert len(watched.clients) == len(ASKED) and {one.ended for one in watched.clients} == {"stop", "length"}
    assert sum(one.started > one.sent for one in watched.clients) >= 1


@pytest.mark.parametrize(
    ("name", "of"),
    [
        ("time_to_first_token_seconds", lambda c: [c.tokens[0] - c.sent]),
        ("request_queue_time_seconds", lambda c: [c.started - c.sent]),
        ("e2e_request_latency_seconds", lambda c: [c.tokens[-1] - c.sent]),
        ("inter_token_latency_seconds", lambda c: np.diff(c.tokens).tolist()),
        (
            "request_time_per_output_token_seconds",
            lambda c: [(c.tokens[-1] - c.tokens[0]) / (len(c.tokens) - 1)] if len(c.tokens) > 1 else [],
        ),
        ("request_prompt_tokens", lambda c: [c.prompt]),
        ("request_generation_tokens", lambda c: [len(c.tokens)]),
    ],
)
def test_a_histogram_is_what_the_clients_measured(watched, name, of):
    measured = [value for one in watched.clients for value in of(one)]
    assert measured and watched.page[f"vllm:{name}_count"] == len(measured)
    assert watched.page[f"vllm:{name}_sum"] == pytest.approx(sum(measured), rel=1e-6)  # sums of floats in another order


def test_the_counters_are_those_of_the_clients(watched):
    assert watched.page["vllm:prompt_tokens_total"] == sum(one.prompt for one in watched.clients)
    assert watched.page["vllm:generation_tokens_total"] == sum(len(one.tokens) for one in watched.clients)
    assert watched.page["vllm:request_success_total"] == len(watched.clients)
    assert watched.page["vllm:iteration_tokens_total_sum"] == sum(watched.steps)
    assert watched.page["vllm:iteration_tokens_total_count"] == len(watched.steps)


def test_the_gauges_are_what_the_clients_know(watched):
    """Who has a slot has started and has no last token; a sequence holds the blocks of all tokens but its newest."""
    busy = 0
    for page, clients, known in watched.states:
        going = [
            (c, n) for c, (n, started, ended) in zip(clients, known, strict=True) if started == started and not ended
        ]
        here = sum(not ended for _, _, ended in known)
        gauges = page["vllm:num_requests_running"], page["vllm:num_requests_waiting"]
        assert gauges == (len(going), here - len(going))
        blocks = sum(math.ceil((c.prompt + n - 1) / 16) for c, n in going if n)
        if all(n for _, n in going):
            assert page["vllm:kv_cache_usage_perc"] == pytest.approx(blocks / 40, abs=1e-12)
            busy += blocks > 0
    assert busy > 10
    assert watched.page["vllm:kv_cache_usage_perc"] == 0 == watched.page["vllm:num_requests_running"]
