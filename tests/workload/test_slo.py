"""SLOs of requests: for all, by class, one each; cut and merged like other columns; every wrong one with a sentence."""

import math
from dataclasses import replace

import pytest

from course import SLO, Workload, policies, serve, steptime
from course.engine.serving import Engine, finish

SECOND = steptime.PowerLaw(t0=1, c=0, alpha=1)
CHAT, DOCS = SLO(ttft=0.5, tpot=0.02), SLO(ttft=5)


def two_classes(**more):
    return Workload([0.0, 1.0, 2.0], [3] * 3, [2] * 3, class_=["chat", "docs", "chat"], **more)


def test_one_for_all_by_class_or_one_each():
    assert two_classes().slo is None
    assert two_classes(slo=CHAT).slo == (CHAT,) * 3
    by_class = two_classes(slo={"docs": DOCS, "chat": CHAT})
    assert by_class.slo == (CHAT, DOCS, CHAT)
    assert two_classes(slo=[CHAT, DOCS, CHAT]) == by_class != two_classes(slo=[CHAT, DOCS, None])
    assert Workload([0.0, 1.0], [3] * 2, [2] * 2, class_=[7, 0], slo={7: CHAT, 0: SLO()}).slo == (CHAT, SLO())


def test_cut_merged_and_labelled_like_other_columns():
    load = two_classes(slo={"chat": CHAT, "docs": DOCS})
    assert load.head(1).slo == (CHAT,)  # no request of docs is left, which is no mistake
    assert load.scaled(7).slo == load.slo
    both = load.concat(Workload([1.5], [3], [2]))
    assert both.slo == (CHAT, DOCS, SLO(), CHAT)
    plain = two_classes()
    assert Workload.mix({"a": replace(plain, slo=CHAT), "b": load}).slo == (CHAT, CHAT, CHAT, DOCS, CHAT, CHAT)


def test_answers_that_are_capped():
    load = Workload([0.0, 1.0], [3, 3], [2, 9], guess=[2, 9])
    assert load.with_max_tokens(4).output_tokens.tolist() == [2, 4]
    assert load.with_max_tokens(9) == load
    with pytest.raises(ValueError, match="max_tokens must be a whole number"):
        load.with_max_tokens(0)
    with pytest.raises(ValueError, match="cap the answers when they are drawn"):
        Workload.closed_loop(2, 1, 2, 5, 5).with_max_tokens(4)


def test_a_policy_sees_it_and_its_ttft_is_the_deadline_unless_another_is_given():
    seen = {}

    class Looks(policies.Continuous):
        def queue(self, state, waiting):
            seen.update({r.index: (r.slo, r.deadline, r.due) for r in waiting})
            return waiting

    load = two_classes(slo=[CHAT, DOCS, SLO(tpot=0.1)], deadline=[math.nan, 9, math.nan])
    serve(load, Looks(8, 64), SECOND)
    assert seen == {0: (CHAT, 0.5, 0.5), 1: (DOCS, 9, 10), 2: (SLO(tpot=0.1), None, math.inf)}
    submitted = policies.Request(1.0, 5, slo=CHAT)
    assert (submitted.slo, submitted.deadline, submitted.due) == (CHAT, 0.5, 1.5)
    assert policies.Request(1.0, 5, slo=CHAT, deadline=2).deadline == 2


def test_earliest_deadline_first_by_slo():
    load = Workload(
        [0.0] * 3, [5] * 3, [1] * 3, class_=["docs", "chat", "night"], slo={"docs": DOCS, "chat": CHAT, "night": SLO()}
    )
    run = serve(load, policies.EarliestDeadline(1, 64), SECOND)
    assert run.admitted.tolist() == [1, 0, 2]


def test_a_stepped_engine_keeps_the_labels_of_what_was_submitted():
    engine = Engine(policies.Continuous(4, 64), SECOND)
    engine.submit(policies.Request(0.0, 5, class_="chat", tenant=3, slo=CHAT, guess=2, tags=("paid",)), 2)
    engine.submit(policies.Request(1.0, 5, deadline=4), 2)
    load = finish(engine).workload
    assert load.slo == (CHAT, SLO()) and load.class_.tolist() == ["chat", ""] and load.tenant.tolist() == [3, -1]
    assert load.tags == (("paid",), ()) and load.deadline.tolist() == [0.5, 4.0]
    assert load.guess.tolist()[0] == 2 and math.isnan(load.guess[1])


@pytest.mark.parametrize(
    ("slo", "sentence"),
    [
        (
            {"chat": CHAT, "dosc": DOCS},
            "slo names the class 'dosc', which no request has: the classes are 'chat', 'docs'",
        ),
        ({"chat": CHAT}, r"request 1 has the class 'docs', which has no SLO: add it to slo, as SLO\(\) if nothing"),
        ({"chat": 0.5, "docs": DOCS}, r"slo of class 'chat' must be an SLO, such as SLO\(ttft=0.5\), not 0.5"),
        ([CHAT, 3, CHAT], "slo of request 1 must be an SLO"),
        ([CHAT], "there are 3 requests and 1 SLOs"),
        (0.5, "slo must be an SLO, or a dict of SLOs by class, not 0.5"),
        ("fast", "slo must be an SLO"),
    ],
)
def test_refusals(slo, sentence):
    with pytest.raises(ValueError, match=sentence):
        two_classes(slo=slo)


def test_refusals_of_the_numbers_and_of_requests():
    for name in ("ttft", "tpot", "e2e"):
        for wrong in (0, -1, math.inf, math.nan, "soon", True):
            with pytest.raises(ValueError, match=rf"{name} of an SLO .* must be a .*number above 0"):
                SLO(**{name: wrong})
    with pytest.raises(ValueError, match="these requests have no class_"):
        Workload([0.0], [1], [1], slo={"chat": CHAT})
    with pytest.raises(ValueError, match=r"slo must be an SLO, such as SLO\(ttft=0.5\), not 0.5"):
        Engine(policies.Continuous(4, 64), SECOND).submit(policies.Request(0.0, 5, slo=0.5), 2)
