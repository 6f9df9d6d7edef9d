"""The start page: what the course is, the labs as paths with minutes and progress, and how to get help. Text only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from course.desk.catalogue import PRIMER, Entry, in_order
from course.exercises.names import is_deeper
from course.exercises.progress import Progress
from course.exercises.standing import attempted, done_so_far, in_words

ABOUT = """\
# Batching for language models

You move a slider and see what a batching policy does to the people who wait for tokens. Each lab answers one question
about serving language models: how many requests one GPU can take, who waits, what a long prompt does to everybody else,
what fits into the memory of a card. Most times are simulated; each figure says whether they are modelled, recorded
on a GPU, or measured on your machine.

## What you need

- You read Python, and you have seen a NumPy array.
- You know what a request and a queue are. You do not need to have served a language model: each term is
  explained where it first appears, and the [glossary]({glossary}) has them all.
- You need neither a GPU nor a network. If there is a GPU, the labs use it.
"""

PRIMER_FIRST = """\
{primer}, is the primer: it explains what a token, a step and a percentile are. It ends with six questions: whoever gets
five right without reading the rest goes on to the next lab.
"""

AROUND = """\
## How to take a lab

Open a lab by its link above, or in the list on the left. Run its cells from top to bottom with Shift+Enter, and commit
to your predictions before you move anything. Answers are checked at once. You can stop anywhere: predictions, tasks and
answers are kept, and the lab says where you left it. The labs in this folder are your copies, so change what you like.

{solutions}

## When something does not work

| What you see | What to do |
|---|---|
| Tables where sliders should be | *Run > Run All Cells* |
| Sliders that change nothing, or a `NameError` | *Run > Run All Above Selected Cell*, then run the cell |
| A cell that does not end | *Kernel > Interrupt Kernel* |
| A lab that you want to start again | *File > New > Terminal*, then `course reset 03` for lab 03; your copy is kept |
| Anything else | *File > New > Terminal*, then `course doctor`: it checks the installation and says what to do |

{kept}
"""

SOLUTIONS = """\
A lab's solutions appear in the table above once one of your answers to its exercises has been checked, right or
wrong."""
NO_SOLUTIONS = """\
This copy of the course came without solutions: whoever teaches has them. After three wrong answers
to an exercise `lab.solution` shows that one."""

THIS_PAGE = """\
The course writes this page again at each start and whenever a lab is saved, so keep your notes in another file."""


@dataclass(frozen=True)
class Links:
    """What the page may link to, as paths from its folder.

    solutions: by number of the lab, those that are open; None if the course came without any.
    """

    labs: tuple[str, ...]
    glossary: str
    solutions: Mapping[str, str] | None


def text(links: Links, entries: Mapping[str, Entry], progress: Progress) -> str:
    """The page in Markdown.

    entries: what the labs ask, by number. A notebook that it does not know is listed by its name.
    """
    named: dict[str, list[str]] = {}
    for name in links.labs:
        named.setdefault(name[:2], []).append(name)
    core, electives = in_order(set(named))
    rows = {number: _row(number, named[number], links, entries.get(number), progress) for number in named}
    parts = [ABOUT.format(glossary=quote(links.glossary)), "## The labs\n"]
    if PRIMER in named and PRIMER in entries:
        primer = _link(f"Lab {PRIMER}, {entries[PRIMER].title}", named[PRIMER][0])
        parts.append(PRIMER_FIRST.format(primer=primer))
    parts.append(_next(core, named, entries, progress))
    parts += [_table(core, rows, entries)] if core else []
    parts += ["Electives, in any order:\n", _table(electives, rows, entries)] if electives else []
    stored = f"Your progress is kept in `{progress.path}`." if progress.kept() else " ".join(progress.notices)
    on_progress = f"{stored} {THIS_PAGE}"
    said = NO_SOLUTIONS if links.solutions is None else SOLUTIONS
    return "\n".join([*parts, AROUND.format(kept=on_progress, solutions=said)])


def _next(core: list[str], named: dict[str, list[str]], entries: Mapping[str, Entry], progress: Progress) -> str:
    """One sentence: which lab comes next on the core path."""
    for number in core:
        spec = entries.get(number)
        if spec is None:
            continue
        finished = done_so_far(spec, progress)
        if number == PRIMER and _only_tested(spec, finished):
            continue
        if any(len(ids) < len(getattr(spec, part)) for part, ids in finished.items()):
            word = "Go on with" if any(finished.values()) else "Next"
            return f"{word}: {_link(f'lab {number}, {spec.title}', named[number][0])}.\n"
    return "You have done every lab of the core path.\n" if core else ""


def _only_tested(spec: Entry, finished: Mapping[str, list[str]]) -> bool:
    """Whether the test of the primer has been answered and nothing else of it: then the next lab comes first."""
    begun = [part for part, ids in finished.items() if ids]
    return begun == ["quiz"] and len(finished["quiz"]) == len(spec.quiz)


def _table(numbers: list[str], rows: Mapping[str, str], entries: Mapping[str, Entry]) -> str:
    minutes = sum(entries[number].minutes or 0 for number in numbers if number in entries)
    head = "| | Lab | Minutes | Progress | Solutions |\n|---|---|---|---|---|"
    return "\n".join([head, *(rows[number] for number in numbers), f"| | | {minutes} | | |", ""])


def _row(number: str, names: list[str], links: Links, spec: Entry | None, progress: Progress) -> str:
    lab = _link(spec.title if spec else names[0], next((n for n in names if not is_deeper(n)), names[0]))
    deeper = next((name for name in names if is_deeper(name)), None)
    if deeper and len(names) > 1:
        lab += f" ({_link('deeper', deeper)}, optional)"
    finished = done_so_far(spec, progress) if spec else {}
    begun = "started" if attempted(number, progress) else "not started"
    progress_text = in_words(spec, finished) if any(finished.values()) else begun if spec else ""
    if links.solutions is None:
        solutions = "not in this copy"
    else:
        solutions = _link("open", links.solutions[number]) if number in links.solutions else "after your first answer"
    return f"| {number} | {lab} | {spec.minutes if spec else ''} | {progress_text} | {solutions} |"


def _link(words: str, path: str) -> str:
    return f"[{words}]({quote(path)})"
