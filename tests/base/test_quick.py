"""What takes seconds to import and is not needed is not imported, and is there for whoever needs it."""

from __future__ import annotations

import subprocess
import sys

from tests.helpers.sizes import PATIENCE

GRAMMAR = "rfc3987_syntax"


def test_jupyterlab_does_not_wait_for_a_grammar():
    code = (
        f"import sys; from course.base.quick import without_grammar\n"
        f"with without_grammar(): import jupyterlab.labapp\n"
        f"assert 'jsonschema' in sys.modules and '{GRAMMAR}' not in sys.modules\n"
        f"import {GRAMMAR}  # whoever wants it later still gets it"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE)


def test_figures_do_not_wait_either():
    code = f"import sys, course.figures.theme; assert 'jsonschema' in sys.modules and '{GRAMMAR}' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE)


def test_what_was_imported_before_stays():
    code = (
        f"import sys, {GRAMMAR} as before; from course.base.quick import without_grammar\n"
        f"with without_grammar(): import {GRAMMAR} as inside\n"
        f"assert inside is before is sys.modules['{GRAMMAR}']"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE)
