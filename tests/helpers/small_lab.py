"""Small notebooks for the tests of the build."""

from __future__ import annotations

import nbformat

SMALL = '''\
# %% [markdown]
# # 07 A small lab
# ## The question
# How many?
# ## Predict

# %%
class Both:
    def _repr_mimebundle_(self, include=None, exclude=None):
        import ipywidgets
        return {**ipywidgets.IntSlider()._repr_mimebundle_(), "text/plain": "a table"}
print("ready")
Both()

# %% [markdown]
# ## 3. Explore
# ## Measure
# ## Explain

# %% tags=["nbval-ignore-output"]
import time
from course.base import answers
print("answers wanted:", answers.wanted())
time.perf_counter()

# %% [markdown]
# ## Exercises

# %%
def little(rate, seconds):
    """Requests in the system."""
    ### BEGIN SOLUTION
    # L = lambda W
    inside = rate * seconds

    return inside
    ### END SOLUTION

# %% tags=["nbval-ignore-output"]
little(2, 3)

# %%
answer = None
### BEGIN SOLUTION
answer = 3 * 14
### END SOLUTION

# %%
object()

# %% [markdown]
# ## Break it

# %%
import os, sys
print("one", flush=True)
print("two")
os.path.basename(os.getcwd()) in ("labs", "solutions"), bool(os.environ["COURSE_PROGRESS_DIR"])

# %% [markdown]
# ## Take away
'''


def code(*lines: str) -> str:
    """A source of one code cell."""
    return "\n".join(["# %%", *lines, ""])


def executed(*cells: tuple[str, str]) -> nbformat.NotebookNode:
    """An executed notebook with the given (source, printed text) cells."""
    notebook = nbformat.v4.new_notebook()
    for number, (text, printed) in enumerate(cells, 1):
        outputs = [nbformat.v4.new_output("stream", name="stdout", text=printed)] if printed else []
        notebook.cells.append(nbformat.v4.new_code_cell(text, execution_count=number, outputs=outputs, id=f"c{number}"))
    return notebook


GOOD = (("print(1)", "1\n"), ("print(2)", "2\n"), ("print(3)", "3\n"))
