"""What takes seconds to import and is not needed is not imported, and is there for whoever needs it."""

from __future__ import annotations

import subprocess
import sys

import pytest

GRAMMAR = "rfc3987_syntax"


@pytest.mark.parametrize("modules", ["course.figures.theme", "course.figures.theme, jupyterlab.labapp"])
def test_figures_and_jupyterlab_do_not_wait_for_a_grammar(modules):
    code = (
        f"import sys; from course.quick import without_grammar\n"
        f"with without_grammar(): import {modules}\n"
        f"assert 'jsonschema' in sys.modules and '{GRAMMAR}' not in sys.modules\n"
        f"import {GRAMMAR}"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_figures_alone_do_not_either():
    code = f"import sys, course.figures.theme; assert 'jsonschema' in sys.modules and '{GRAMMAR}' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_what_was_imported_before_stays():
    code = (
        f"import sys, {GRAMMAR} as before; from course.quick import without_grammar\n"
        f"with without_grammar(): import {GRAMMAR} as inside\n"
        f"assert inside is before is sys.modules['{GRAMMAR}']"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
