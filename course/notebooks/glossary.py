"""Links from the first use of a term in a notebook to its entry in the glossary, made when the notebook is built.

`docs/glossary.md` is the list: each row of a table that is headed "term" is an entry, and has an anchor. The link is
relative, since the glossary stands beside the labs in a learner's folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from nbformat import NotebookNode

PAGE = "glossary.md"
ROW = re.compile(r"^\|\s*(?:<a id=\"[\w-]+\"></a>)?\s*([^|]+?)\s*\|", re.MULTILINE)
ANCHOR = re.compile(r'<a id="([\w-]+)"></a>')
ORDINARY = frozenset((
    "badge", "bandwidth", "block", "block table", "capacity", "chunk", "client", "concurrency",
    "contiguous reservation", "fitted", "group", "here", "indexer", "intensity", "knee",
    "load", "measured", "modelled", "offloading", "pair",
    "percentile", "piece", "predicted", "rank", "recompute", "replay", "request", "requests", "settled", "slot", "step",
    "theory", "token", "victim", "watermark", "window",
))  # fmt: skip
"""Words that also mean what they always mean: linked only in a lab that has them among its new terms."""

# What is never cut open: code, formulas, links and pictures, HTML, addresses.
CLOSED = re.compile(
    r"```.*?```|`[^`\n]*`|\$\$.*?\$\$|\$[^$\n]+\$|!?\[[^\]]*\]\([^)]*\)|<[^>\n]+>|https?://\S+", re.DOTALL
)
CLOSED_LINE = re.compile(r"^(#|\||```)")


def entries(text: str) -> dict[str, str]:
    """Return the anchors of the terms in a glossary, by term; a row with several terms has one anchor for all.

    text: the page. Rows of tables headed "term" count, and of each what stands before a comma as well as after.
    """
    anchors: dict[str, str] = {}
    inside = False
    for line in text.splitlines():
        if re.match(r"^\|\s*term\s*\|", line):
            inside = True
        elif not line.startswith("|"):
            inside = False
        elif inside and (match := ROW.match(line)) and not set(match[1]) <= set("-: "):
            anchor = ANCHOR.search(line)
            terms = [re.sub(r"\s+[^\x00-\x7f]$", "", term.strip()) for term in match[1].split(",")]
            for term in terms:
                anchors.setdefault(term, anchor[1] if anchor else slug(terms[0]))
    return anchors


def slug(term: str) -> str:
    """Return the anchor of a term: "KV cache" is "kv-cache"."""
    return re.sub(r"[^a-z0-9]+", "-", term.lower()).strip("-")


def linked(notebook: NotebookNode, terms: Mapping[str, str], new: Iterable[str] = ()) -> NotebookNode:
    """Link the first use of each term in the texts of a notebook, in place, and return it.

    Headings, tables, code, formulas and what is a link already stay as they are, and the next use is linked instead.
    terms: anchors by term. new: terms that this lab introduces, which are linked though they are ordinary words.
    """
    patterns = _patterns(terms, set(new))
    linked_terms: set[str] = set()
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            lines = _closed_blocks(cell.source)
            cell.source = "".join(line if shut else _link(line, patterns, linked_terms) for shut, line in lines)
    return notebook


def _patterns(terms: Mapping[str, str], new: set[str]) -> list[tuple[str, re.Pattern[str]]]:
    """Anchor and pattern of each term that is linked, longer terms first, so that "KV cache" comes before "cache"."""
    names = [term for term in terms if term in new or (len(term) > 1 and term.lower() not in ORDINARY)]
    patterns = []
    for term in sorted(names, key=len, reverse=True):
        body = re.escape(term).replace(r"\ ", r"\s+")
        flags = re.IGNORECASE if term == term.lower() else 0
        patterns.append((terms[term], re.compile(rf"(?<![\w/.-]){body}s?(?![\w-])", flags)))
    return patterns


def _closed_blocks(text: str) -> list[tuple[bool, str]]:
    """The text in pieces (closed, piece): headings and tables line by line, all else in runs of lines."""
    pieces: list[tuple[bool, str]] = []
    fenced = False
    for line in text.splitlines(keepends=True):
        fence = line.lstrip().startswith("```")
        shut = fenced or fence or CLOSED_LINE.match(line) is not None
        fenced ^= fence
        if pieces and pieces[-1][0] == shut:
            pieces[-1] = (shut, pieces[-1][1] + line)
        else:
            pieces.append((shut, line))
    return pieces


def _link(text: str, patterns: list[tuple[str, re.Pattern[str]]], linked_terms: set[str]) -> str:
    """Link in a run of lines what has not been linked yet."""
    for anchor, pattern in patterns:
        if anchor in linked_terms:
            continue
        shut = [match.span() for match in CLOSED.finditer(text)]
        for match in pattern.finditer(text):
            if not any(start < match.end() and match.start() < end for start, end in shut):
                text = f"{text[: match.start()]}[{match[0]}]({PAGE}#{anchor}){text[match.end() :]}"
                linked_terms.add(anchor)
                break
    return text
