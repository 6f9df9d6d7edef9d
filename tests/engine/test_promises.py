"""Goodput by SLO, class and tenant, on a run small enough to count by hand; and the rate that an engine carries."""

import pytest

from course import SLO, Workload, metrics, policies, serve, steptime
from course.engine.capacity import capacity

SECOND = steptime.PowerLaw(t0=1, c=0, alpha=1)  # every step takes one second
CHAT, DOCS = SLO(ttft=1, tpot=1), SLO(e2e=5)


def one_slot(**more):
    """One after the other, two tokens each: TTFT 1, 3, 5, 7; E2E 2, 4, 6, 8; TPOT 1."""
    return serve(Workload([0.0] * 4, [3] * 4, [2] * 4, **more), policies.Continuous(1, 64), SECOND)


LABELS = {"class_": ["chat", "docs", "chat", "docs"], "tenant": [5, 5, 9, 9]}


def test_by_class_and_tenant():
    run = one_slot(**LABELS, slo={"chat": CHAT, "docs": DOCS})
    assert metrics.meets_slos(run).tolist() == [True, True, False, False]
    assert metrics.share_within_slo(run) == {"all": 0.5}
    assert metrics.share_within_slo(run, "class") == {"chat": 0.5, "docs": 0.5}
    assert metrics.share_within_slo(run, "tenant") == {5: 1, 9: 0}
    assert metrics.goodput(run, "tenant") == {5: 2 / 8, 9: 0}
    summary = run.summary()
    assert {key: value for key, value in summary.items() if "goodput" in key or "within_slo" in key} == {
        "goodput": 2 / 8,
        "share_within_slo": 2 / 4,
        "goodput_class_chat": 1 / 8,
        "share_within_slo_class_chat": 1 / 2,
        "goodput_class_docs": 1 / 8,
        "share_within_slo_class_docs": 1 / 2,
        "goodput_tenant_5": 2 / 8,
        "share_within_slo_tenant_5": 1,
        "goodput_tenant_9": 0,
        "share_within_slo_tenant_9": 0,
    }


def test_what_is_given_stands_in_place_of_the_workloads():
    run = one_slot(**LABELS, slo=SLO(ttft=0.5))
    assert run.summary()["goodput"] == 0
    assert run.summary(ttft_slo=3)["goodput"] == 2 / 8
    assert run.summary(slo=SLO(ttft=5))["goodput"] == 3 / 8
    assert run.summary(slo={"chat": SLO(), "docs": SLO(e2e=4)})["goodput"] == 3 / 8
    assert metrics.meets_slos(run, 3, None, 2).tolist() == [True, False, False, False]
    assert not metrics.meets_slos(run, tpot_slo=0.5).any() and metrics.meets_slos(run, tpot_slo=1).all()
    assert metrics.share_within_slo(run, "class", slo=DOCS) == {"chat": 0.5, "docs": 0.5}
    assert "share_within_slo" not in one_slot(**LABELS).summary()


def test_refusals():
    run = one_slot(class_=["chat"] * 4)
    for wrong in (0, -1, "soon"):
        with pytest.raises(ValueError, match=r"ttft_slo must be a .*number above 0"):
            run.summary(ttft_slo=wrong)
    with pytest.raises(ValueError, match="give slo, or tpot_slo, and not both"):
        run.summary(tpot_slo=1, slo=CHAT)
    with pytest.raises(ValueError, match="slo names the class 'docs', which no request has"):
        run.summary(slo={"chat": CHAT, "docs": DOCS})
    with pytest.raises(ValueError, match='by must be "class", "tenant" or None, not \'user\''):
        metrics.goodput(run, "user")
    with pytest.raises(ValueError, match="these requests have no tenant: give the workload tenant"):
        metrics.share_within_slo(run, "tenant")


def test_capacity_is_the_highest_rate_that_keeps_the_share():
    """One request at a time, 2 s each, 20 of them in regular gaps: request k waits k (2 - gap) seconds if the gap is
    less, so TTFT 1 + k (2 - gap) <= 3 for all k up to 19 means a gap of at least 2 - 2/19."""
    load = Workload.fixed(1, num_requests=20, prompt_tokens=3, output_tokens=2)
    policy = policies.Continuous(1, 64)
    found = capacity(load, policy, SECOND, slo=SLO(ttft=3), share=1, low=0.1, high=2, within=1e-4)
    assert found == pytest.approx(1 / (2 - 2 / 19), rel=2e-4) and found <= 1 / (2 - 2 / 19)
    # Half of them: k up to 9.
    half = capacity(load, policy, SECOND, slo=SLO(ttft=3), share=0.5, low=0.1, high=2, within=1e-4)
    assert half == pytest.approx(1 / (2 - 2 / 9), rel=2e-4)
    # Each class its share: the last ten are a class of their own, so five of them must keep it, k up to 14.
    load = Workload(load.arrival, [3] * 20, [2] * 20, class_=[0] * 10 + [1] * 10, slo={0: SLO(), 1: SLO(ttft=3)})
    each = capacity(load, policy, SECOND, share=0.5, by="class", low=0.1, high=2, within=1e-4)
    assert each == pytest.approx(1 / (2 - 2 / 14), rel=2e-4)


def test_refusals_of_capacity():
    load = Workload.fixed(1, num_requests=20, prompt_tokens=3, output_tokens=2)
    ask = {"policy": policies.Continuous(1, 64), "step_time": SECOND, "share": 1}
    for more, sentence in (
        ({"low": 0.1, "high": 1}, "nothing was promised"),
        ({"low": 1, "high": 1, "slo": CHAT}, "low must be below high"),
        ({"low": 1, "high": 2, "slo": CHAT}, "at 1 requests/s 5.0% keep their SLO, and 100.0% should: lower low"),
        ({"low": 0.1, "high": 0.2, "slo": CHAT}, "at 0.2 requests/s 100.0% still keep their SLO: raise high"),
        ({"low": 0.1, "high": 2, "slo": CHAT, "share": 0}, "share must be a finite number above 0"),
    ):
        with pytest.raises(ValueError, match=sentence):
            capacity(load, **{**ask, **more})
