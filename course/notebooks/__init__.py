"""From one source to two notebooks: `python -m course.notebooks build [--check] [NN ...]`.

An author edits `solutions/NN_topic.py` (jupytext's percent format) and nothing else. From it come the executed
`solutions/NN_topic.ipynb` with the solutions, and the executed `labs/NN_topic.ipynb` with stubs in their place.

source.py     text -> the two notebooks, unexecuted (pure)
execute.py    run a notebook in a fresh kernel, progress pointed at a temporary folder
canonical.py  one byte form: whatever differs between two runs of the same source is taken out (pure)
check.py      every fault of a source and of its committed notebooks, reported together (pure)
glossary.py   links from the first use of a term to its entry (pure)
counts.py     counted minutes, stored beside each lesson and printed in README.md and docs/instructor.md
template.py   the limits of a core notebook (pure)
build.py      the files on disk, and the order of work

`solutions/NNb_topic.py` goes deeper than its lab: optional, with a question of its own, and nothing
that is checked.
"""
