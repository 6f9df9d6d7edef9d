"""Lab 16: a client over HTTP beside the metrics of the server that it asks."""

from types import SimpleNamespace

import numpy as np
import pytest

from course.lessons import lab16
from course.lessons.lab16 import over_http


@pytest.fixture(autouse=True, scope="module")
def words_from_memory():
    """None here: the server has a cache of its own, and answers go on behind their end."""


@pytest.fixture(scope="module")
def held():
    """Twelve requests at 100 a second through a client that sends one at a time; none of it is a bound on speed."""
    return over_http.measure(1, rate=100.0, requests=12)


def test_both_sides_count_the_same_requests_and_tokens(held):
    assert held.answered == 12 and (held.tokens == over_http.TOKENS).all()
    assert held.server.totals["output_tokens"] == 12 * over_http.TOKENS
    assert held.server.totals["failed"] == 0


def test_the_server_agrees_from_sending_and_cannot_see_the_client_wait(held):
    assert (held.sent >= held.planned).all() and (held.first > held.sent).all() and (held.last > held.first).all()
    assert (held.sent[1:] >= held.last[:-1]).all()  # one in flight
    for name in ("ttft", "e2e"):
        sent, plan, server = held.means[name]
        assert server <= sent  # its clock starts later and stops earlier, for each request
        assert plan - sent == pytest.approx(float((held.sent - held.planned).mean()))
    assert held.means["tpot"][0] == held.means["tpot"][1]
    each = (held.last - held.first) / (over_http.TOKENS - 1)
    assert held.means["tpot"][0] == pytest.approx(each.mean())


def test_the_limit_is_kept():
    test = over_http.measure(3, rate=200.0, requests=9)
    flying = [int(((test.sent <= moment) & (test.last > moment)).sum()) for moment in test.sent]
    assert max(flying) <= 3 and test.answered == 9


def test_a_table_a_limit(monkeypatch):
    summary = {"ttft": {"mean": 0.5}, "e2e": {"mean": 1.5}, "tpot": {"mean": 0.1}}
    server = SimpleNamespace(summary=summary, totals={"requests": 40.0})

    def made(limit):
        zeros = np.zeros(over_http.REQUESTS)
        return over_http.Measured(limit, zeros, zeros, zeros + 1, zeros + 2, zeros + 11, server)

    monkeypatch.setattr(over_http, "measure", made)
    both = lab16.a_client_and_a_server(limits=(1, 16))
    text = str(both.table)
    assert both.tests[0].means == {"ttft": (1.0, 1.0, 0.5), "e2e": (2.0, 2.0, 1.5), "tpot": (0.1, 0.1, 0.1)}
    assert "limit 1, TTFT mean" in text and "limit 16, answered" in text and "measured: this machine's CPU" in text


def test_without_the_servers_packages_a_sentence(monkeypatch):
    monkeypatch.setattr(over_http, "NEEDED", ("starlette", "a_package_that_nobody_has"))
    both = lab16.a_client_and_a_server()
    assert both.tests == () and "the server needs a_package_that_nobody_has: `course doctor` says" in str(both.table)


def test_what_the_server_refuses_is_said():
    with over_http._serving() as (port, _), pytest.raises(ValueError, match="refused a request with 401"):
        over_http._ask(port, "another token")
