"""Import jsonschema without two to four seconds of waiting.

Everything of Jupyter imports it, and so do plotly's renderers. Its check of internationalised addresses (format "iri")
compiles a grammar as it is imported; if that package is not installed jsonschema leaves the check out, and no file
that is read here asks for it.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

GRAMMAR = "rfc3987_syntax"


@contextmanager
def without_grammar() -> Iterator[None]:
    """Make the package with the grammar look absent to what is imported inside; afterwards it can be imported again."""
    if GRAMMAR in sys.modules:
        yield
        return
    sys.modules[GRAMMAR] = None  # type: ignore[assignment]  # this is how Python notes that there is no such module
    try:
        yield
    finally:
        del sys.modules[GRAMMAR]
