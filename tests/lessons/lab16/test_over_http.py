"""Lab 16: a client over HTTP beside the metrics of the server that it asks."""

import pytest

from course.lessons import lab16
from course.lessons.lab16 import over_http


@pytest.fixture(autouse=True, scope="module")
def words_from_memory():
    """None here: the server has a cache of its own, and answers go on behind their end."""


def test_the_server_agrees_from_sending_and_cannot_see_the_client_wait():
    """Twelve requests at 100 a second, one at a time; none of it is a bound on speed."""
    held = over_http.measure(1, rate=100.0, requests=12)
    totals = held.server.totals
    assert (totals["requests"], totals["output_tokens"], totals["failed"]) == (12, 12 * over_http.TOKENS, 0)
    assert (held.sent >= held.planned).all() and (held.first > held.sent).all() and (held.last > held.first).all()
    assert (held.sent[1:] >= held.last[:-1]).all()  # one in flight
    for name in ("ttft", "e2e"):
        sent, plan, server = held.means[name]
        assert server <= sent  # its clock starts later and stops earlier, for each request
        assert plan - sent == pytest.approx(float((held.sent - held.planned).mean()))
    each = (held.last - held.first) / (over_http.TOKENS - 1)
    assert held.means["tpot"][0] == held.means["tpot"][1] == pytest.approx(each.mean())


def test_a_table_a_limit_which_is_kept(monkeypatch):
    whole = over_http.measure
    monkeypatch.setattr(over_http, "measure", lambda limit: whole(limit, rate=200.0, requests=9))
    (test,), table = lab16.a_client_and_a_server(limits=(3,))
    flying = [int(((test.sent <= moment) & (test.last > moment)).sum()) for moment in test.sent]
    assert max(flying) <= 3
    assert [row[0] for row in table.rows[1:]] == [f"limit 3, mean {name}" for name in ("TTFT", "E2E", "TPOT")]
    assert "measured: this machine's CPU" in str(table)


def test_without_the_servers_packages_a_sentence(monkeypatch):
    monkeypatch.setattr(over_http, "NEEDED", ("starlette", "a_package_that_nobody_has"))
    tests, table = lab16.a_client_and_a_server()
    assert tests == [] and "the server needs a_package_that_nobody_has: `course doctor` says" in str(table)


def test_what_the_server_refuses_is_said():
    with over_http._serving() as (port, _), pytest.raises(ValueError, match="refused a request with 401"):
        over_http._ask(port, "another token")
