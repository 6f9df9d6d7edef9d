"""plotly's renderers, imported in a third of the time.

They import nbformat and that jsonschema, whose check of internationalised addresses compiles a grammar at import: two
of the three seconds that a lab needs to start. Without that package jsonschema leaves the check out, which nothing here
asks for.
"""

import sys

SLOW = "rfc3987_syntax"

_here = SLOW in sys.modules
if not _here:
    sys.modules[SLOW] = None  # type: ignore[assignment]  # importing it raises ImportError, as where it is not installed
try:
    from plotly.io import renderers
finally:
    if not _here:
        del sys.modules[SLOW]

__all__ = ["renderers"]
