"""The style sheet for the dark theme: every colour of the course has one that can be seen there."""

from __future__ import annotations

import re

import pytest

from course.figures import in_page, theme
from course.figures.colours import NIGHT, on_dark
from course.notebooks.catalogue import SHEET


def test_the_stored_sheet_is_the_one_that_is_made():
    assert SHEET.read_text(encoding="utf-8") == in_page.sheet(), "run `make notebooks`"


@pytest.mark.parametrize("colour", theme.COLOURS.values(), ids=theme.COLOURS)
def test_marks_and_texts_of_each_colour_stand_out(colour):
    sheet, rgb = in_page.sheet(), ", ".join(str(int(colour[at : at + 2], 16)) for at in (1, 3, 5))
    for part in ("fill", "stroke"):
        found = re.search(rf'bartext-inside \*\)\[style\*="{part}: rgb\({rgb}\)"\][^{{]* \{{ {part}: (\S+) ', sheet)
        assert theme.contrast(found[1] if found else colour, NIGHT) >= in_page.MARK
    (text,) = re.findall(rf'tspan\[style\*="fill:{colour}" i\]\)[^{{]* \{{ fill: (\S+) ', sheet)
    assert theme.contrast(text, NIGHT) >= in_page.TEXT


def test_a_light_colour_stays():
    assert on_dark("prefill", 3) == theme.COLOURS["prefill"]
    assert on_dark("#000000") != "#000000" and theme.contrast(on_dark("#000000"), NIGHT) >= 4.5


def test_nothing_but_the_buttons_and_the_breaks_of_texts_changes_in_a_light_page():
    rules = [line for line in in_page.sheet().splitlines() if in_page.PAGE not in line]
    allowed = (".js-plotly-plot .modebar", ".jp-OutputArea-output.jp-RenderedText pre ")
    assert rules and all(line.startswith(allowed) for line in rules)
