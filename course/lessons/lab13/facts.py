"""The numbers in the texts of lab 13, from the runs that they speak of, and what must hold beside them."""

from __future__ import annotations

from functools import cache
from typing import Any

from course import lm
from course.lessons.lab13 import decision, deeper, figures, pays, spoken, tasks
from course.lessons.lab13.pays import HEAD, MODEL, SUFFIX, expected
from course.policies import Continuous, Drafting

K, ACCEPT = tasks.STEP["k"], tasks.STEP["accept"]
ASKED, ASKED_TWIN = (3, 0.8), (5, 0.6)
"""Drafts and acceptance of exercise 1 and its twin."""
SEEN = (0, 10, 30)  # answers that the suffixes come from
LEVEL = (8, 32)  # batches between which the gain hardly changes
SERVED_BY = 16  # slots in which the committed prompts are answered
PUBLISHED: dict[str, Any] = {"claimed_low": 2, "claimed_high": 3}
"""What the notes say of a batch."""

GIVEN = (
    pays.CONTEXT,
    pays.BATCHES[-1],
    tasks.SERVED["requests"],
    *pays.MIXES["half and half"],
    pays.ANSWER,
    K,
)


@cache
def answered(k: int) -> lm.SpokenRun:
    """All committed prompts, answered with k drafts of the draft model."""
    model, small = spoken.models()
    asked = lm.Questions.at_once([prompt.turns for prompt in spoken.ALL])
    policy = Continuous(SERVED_BY, 1_024)
    return lm.serve_live(asked, Drafting(policy, k) if k else policy, model, draft=small if k else None, waits=False)


def _acceptance(k: int) -> float:
    found = answered(k).summary()
    return found["accepted_tokens"] / found["drafted_tokens"]


def facts() -> dict[str, Any]:
    """Every number that the texts show."""
    gain = dict(zip(pays.BATCHES, pays.curve(HEAD, K, ACCEPT), strict=True))
    one, many = (pays.pays(batch=batch) for batch in (1, tasks.SHARED))
    (k, accept), (k_twin, accept_twin) = ASKED, ASKED_TWIN
    seen = sorted(deeper.suffixes_seen())[1:]
    top, least = max(figures.DAY), min(figures.DAY)
    ticket = pays.pays(accept=pays.TICKET_ACCEPT, batch=top)
    return {
        **PUBLISHED,
        # Earlier labs, predictions, tasks
        "plain_1": 1e3 * one.plain, "plain_16": 1e3 * pays.pays(batch=16).plain, "gain_1": gain[1],
        "gain_many": gain[tasks.SHARED], "gain_256": gain[256], "answers": len(spoken.ALL),
        "wrong_share": 1 - _acceptance(8),
        "likely": tasks.LIKELY, "unlikely": tasks.UNLIKELY, "shared": tasks.SHARED, "half": tasks.HALF,
        # The text
        "head_pass_ms": 1e3 * pays.HEAD_S, "head_each_us": 1e6 * pays.HEAD_EACH_S,
        "accepted_1": _acceptance(1), "accepted_8": _acceptance(8), "steps_0": len(answered(0).steps),
        "steps_8": len(answered(8).steps), "seen_none": spoken.suffix_acceptance(SEEN[0]),
        "seen_some": spoken.suffix_acceptance(SEEN[1]), "seen_many": spoken.suffix_acceptance(SEEN[2]),
        "some": SEEN[1], "many": SEEN[2], "verify_1": 1e3 * one.verification, "verify_many": 1e3 * many.verification,
        "plain_many": 1e3 * many.plain, "tokens": one.tokens,
        "accept": ACCEPT, "level_from": LEVEL[0], "level_to": LEVEL[1],
        "pass_1": 1e3 * one.draft / K, "rows_many": tasks.SHARED * (K + 1),
        # Exercises
        "exercise_accept": accept, "expected": expected(accept, k),
        "expected_drafts": expected(accept, k) - 1, "expected_each": 1 + k * accept, "expected_all": k + 1,
        "expected_each_alone": k * accept,
        "expected_short": expected(accept, k - 1), "twin_accept": accept_twin,
        "expected_twin": expected(accept_twin, k_twin), "expected_twin_drafts": expected(accept_twin, k_twin) - 1,
        "expected_twin_all": k_twin + 1, "decide": decision.best(),
        "two_less": 1 - decision.speed(2, decision.acceptance()) / decision.speed(1, decision.acceptance()),
        # Deeper
        "deep_tie_model": pays.tie(MODEL, tasks.HALF, K), "deep_tie_free": pays.tie(SUFFIX, pays.BATCHES[-1], K),
        "deep_seen_from": seen[0], "deep_seen_to": seen[-1], "deep_free_seen":
        pays.pays(SUFFIX, K, deeper.suffixes_seen()[seen[-1]], 1).speed_up,
        # The ticket
        "ticket_most": top, "ticket_least": least, "ticket_gain": ticket.speed_up,
        "ticket_free": pays.pays(SUFFIX, K, pays.TICKET_ACCEPT, top).speed_up,
    }  # fmt: skip


def keys() -> dict[str, tuple[bool, ...] | str]:
    """Which option of each question is true; of a question about no number, words of the right one."""
    words = answered(0).words
    other = sum(one != two for one, two in zip(words, answered(8).words, strict=True))
    top = max(figures.DAY)
    busy = pays.pays(accept=pays.TICKET_ACCEPT, batch=top)
    return {
        "reads": "read once",
        "refill": "filled in the next step",
        "words": (other > 5, other in (1, 2), other == 0),
        "cause": (False, busy.verification > 2 * busy.plain, False),
        "next": "with and without drafts",
        "repair": (
            pays.pays(SUFFIX, K, pays.TICKET_ACCEPT, top).speed_up > 1,
            pays.pays(HEAD, 7, pays.TICKET_ACCEPT, top).speed_up > busy.speed_up,
            pays.best_k(HEAD, pays.TICKET_ACCEPT, top) < K,
        ),
        "all_right": tuple(expected(1, 5) == said for said in (5, 6, 1, 10)),
        "notes": "smaller",
        "draft_time": (
            pays.pays_up_to(HEAD, K, 0.6) > pays.pays_up_to(MODEL, K, 0.6),
            pays.pays_up_to(HEAD, K, 0.6) < pays.pays_up_to(MODEL, K, 0.6),
            pays.pays_up_to(HEAD, K, 0.6) == pays.pays_up_to(MODEL, K, 0.6),
        ),
        "answers": "whatever",
    }


def claims() -> dict[str, bool]:
    """What the texts say beyond their numbers."""
    gains, words = pays.curve(HEAD, K, ACCEPT), answered(0).words
    level = [pays.BATCHES.index(batch) for batch in LEVEL]
    day = [pays.pays(accept=pays.TICKET_ACCEPT, batch=batch) for batch in figures.DAY]
    speeds = [one.batch * one.tokens / (one.draft + one.verification) for one in day]
    a_token = [(one.draft + one.verification) / one.tokens for one in day]
    return {
        "all answers are equal with 1, 2, 4 and 8 drafts": all(answered(k).words == words for k in (1, 2, 4, 8)),
        "the speed-up is largest alone, hardly changes between two batches, and falls from there on": (
            gains[0] == max(gains)
            and abs(gains[level[1]] / gains[level[0]] - 1) < 0.05
            and sorted(gains[level[1] :], reverse=True) == gains[level[1] :]
        ),
        "between them a step without drafts gets slower": (
            pays.pays(batch=LEVEL[1]).plain > 1.25 * pays.pays(batch=LEVEL[0]).plain
        ),
        "an acceptance of the page between a half and two thirds": 0.5 < decision.acceptance() < 0.67,
        "without drafts it would be faster than with four": decision.speed(0, 0) > decision.speed(4, 0.6),
        "with four times the people the TPOT more than triples": max(a_token) > 3 * a_token[figures.DAY.index(64)],
        "and tokens/s grow by a fifth": (1.15 < speeds[figures.DAY.index(256)] / speeds[figures.DAY.index(64)] < 1.25),
        "more answers seen, more accepted": (
            spoken.suffix_acceptance(SEEN[0]) < spoken.suffix_acceptance(SEEN[1]) < spoken.suffix_acceptance(SEEN[2])
        ),
        "a short answer wastes the drafts beyond its end": spoken.by_model(spoken.PROMPTS["how many?"], 8).accepted
        <= 2,
    }
