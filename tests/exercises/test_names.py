"""What a notebook is called, and where JupyterLab lists it."""

from __future__ import annotations

import json
import subprocess
from shutil import which

import pytest

from course.exercises.names import former, is_deeper, of_lab
from tests.helpers.places import ROOT

NAMES = sorted(path.name for path in (ROOT / "labs").glob("*.ipynb"))
# As the list of files of JupyterLab 4 compares names (filebrowser/listing.ts); V8 brings ICU's order.
SORT = "console.log(JSON.stringify(JSON.parse(process.argv[1]).sort((a, b) => a.localeCompare(b, undefined, OPTIONS))))"
OPTIONS = ("{}", "{numeric: true, sensitivity: 'base'}")


def test_a_deeper_notebook_stands_behind_its_lab_in_the_order_of_characters():
    for name in filter(is_deeper, NAMES):
        assert NAMES[NAMES.index(name) - 1] == of_lab(name)


@pytest.mark.parametrize("options", OPTIONS)
def test_jupyterlab_lists_the_labs_in_the_same_order(options):
    node = which("node")
    if node is None:
        pytest.skip("there is no Node.js, which compares names as a browser does")
    script = SORT.replace("OPTIONS", options)
    done = subprocess.run([node, "-e", script, json.dumps(NAMES[::-1])], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == NAMES


def test_the_former_name_is_that_of_a_deeper_notebook_alone():
    assert former("03b_littles_law.ipynb") == "03_littles_law_deeper.ipynb"
    assert former("03_littles_law.ipynb") == former("START.md") == ""
    assert of_lab("03b_littles_law.py") == "03_littles_law.py" and of_lab("glossary.md") == "glossary.md"
