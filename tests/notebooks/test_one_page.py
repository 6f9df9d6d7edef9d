"""Lab 04's timelines as one file: small, without a network, and with the runs of the lab in it."""

from __future__ import annotations

import json
import re

import pytest

from course.lessons.lab04 import three_batchers
from course.notebooks import one_page


def test_the_page_is_small_asks_no_network_and_holds_the_labs_runs() -> None:
    text = one_page.page()
    assert len(text.encode()) < 1_000_000 and "@" not in re.sub(r"`[^`]*`", "", text).replace("@media", "")
    assert not re.search(r"(?:src|href)=|https?:|url\(|import|fetch", text)
    data = json.loads(re.search(r"const data=(.*?),spreads=", text, re.DOTALL)[1])
    assert len(data) == len(one_page.SPREADS) and all(len(row) == len(one_page.DELAYS) for row in data)
    run = three_batchers.one_trace(output_cv=one_page.SPREADS[4], max_queue_delay=one_page.DELAYS[1])["static"]
    stored = data[4][1]["static"]
    assert stored["end"] == pytest.approx(run.response.max(), abs=5e-4)
    assert stored["mean"] == pytest.approx(run.e2e.mean(), abs=5e-4)
    decodes = sum(end - start for kind, _, start, end, _ in stored["bars"] if kind == 2)
    assert decodes == pytest.approx((run.last_computed - run.first_computed).sum(), abs=0.02)  # a dozen rounded ends
