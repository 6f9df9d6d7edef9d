"""Holes in texts: facts in their formats, never in code, formulas or backticks."""

import pytest

from course.exercises.holes import HoleError, filled, names
from course.notebooks import source
from tests.helpers.small_lab import SMALL

FACTS = {"gain": 3.846, "slots": 32, "claim": "20 to 30%"}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("gains {{gain:.2f}}", "gains 3.85"),
        ("{{slots}} or {{slots:,}}: {{claim}}", "32 or 32: 20 to 30%"),
        ("`{{gain}}` and {{slots}}", "`{{gain}}` and 32"),
        (r"$\frac{{a}}{{b}}$ and $$ {{x}} $$ {{slots}}", r"$\frac{{a}}{{b}}$ and $$ {{x}} $$ 32"),
        ("```\n{{gain}}\n```\n{{slots}}", "```\n{{gain}}\n```\n32"),
        ("{static} at {{slots}}", "{static} at 32"),
        ("none", "none"),
    ],
)
def test_filled(text, wanted):
    assert filled(text, FACTS) == wanted


@pytest.mark.parametrize("hole", ["{{}}", "{{gains}}", "{{gain:d}}", "{{gain.real}}", "{{ gain }}", "{{claim:.2f}}",
                                  "{{gain:{slots}}}", "{{__class__}}"])  # fmt: skip
def test_a_hole_that_cannot_be_filled(hole):
    with pytest.raises(HoleError) as error:
        filled(f"so {hole} it is", FACTS)
    assert error.value.hole in hole and str(error.value).startswith("{{")


def test_names():
    assert names("{{gain:.2f}} `{{no}}` {{slots}}") == ["gain", "slots"]


def test_a_notebooks_texts_are_filled_and_its_code_is_not():
    text = SMALL.replace("# ## Predict", "# ## Predict\n#\n# It gains {{gain:.1f}}.\n\n# %%\nf'{{gain}}'")
    cells = source.parse(text, "07", FACTS).cells
    assert any("It gains 3.8." in cell.source for cell in cells)
    assert any(cell.source == "f'{{gain}}'" for cell in cells)
    with pytest.raises(source.SourceError, match=r"^line \d+: \{\{gain:.1f\}\}: there is no fact 'gain'") as error:
        source.parse(text, "07")
    line = int(str(error.value).split()[1].rstrip(":"))
    assert "It gains" in text.splitlines()[line - 1]
