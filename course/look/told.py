"""What a text says in any other shape: JSON, `name: number`, a sentence. It counts where no line of a log does.

Who only says that memory ran out, or that a length was exceeded, is taken at their word, but not after an "if".
"""

import re
from collections.abc import Iterator

from course.base.printed_number import Number
from course.look.reading import CAPTURE, Paste, Row

MOST = 100_000  # characters: nobody tells more
SAID = (
    r"(?:\{[^}\n]{0,300}\})?"
    r"(?:[\s\W]|\b(?:is|are|was|were|at|to|of|only|about|around|just|stabilized|stays?|pinned|reqs?|requests)\b){0,24}?"
)
VALUE = r"(?P<{name}_is>\d{{1,9}}(?:\.\d{{1,9}})?(?! ?(?:[GM]i?B))|[NX]\b|growing|rising)(?P<{name}_share> ?%)?"
NAMES = {
    "running": r"running(?:[\s_-]?req(?:uest)?s?)?|(?:num)?_?active[\s_]?request(?:s|[\s_]count)",
    "scheduled": r"(?:num)?_?scheduled[\s_]?requests",
    "waiting": r"(?:waiting|pending|queued?)(?:[\s_-]?req(?:uest)?s?)?",
    "usage": r"(?:kv|token|gpu)[\s_-]?(?:cache)?[\s_-]?(?:usage|utili[sz]ation)(?:_perc)?|KV cache",
    "used": r"used(?:num|[\s_]kv[\s_]cache[\s_])[\s_]?blocks",
    "blocks": r"max(?:num|[\s_]kv[\s_]cache[\s_])[\s_]?blocks",
    "slots": r"max(?:[\s_]request[\s_]count|numactiverequests)",
    "tokens": r"numctxtokens|total[\s_]context[\s_]tokens",
}
FIELD = re.compile(
    r"\((?P<pair>running/waiting)\): (?P<one>\d{1,6}) / (?P<two>\d{1,6})"
    + "".join(
        rf"|(?<!max[\s_-])(?<![a-z])(?:num_?(?:requests?_)?)?(?P<{name}>(?:{words})\b){SAID}{VALUE.format(name=name)}"
        for name, words in NAMES.items()
    ),
    re.IGNORECASE,
)
LASTS = re.compile(
    r"\b(?:constant|consistent|continuous|always|stay|stuck|hang|hung|never|forever|pinned (?:at|to)|plateau|remain)",
    re.IGNORECASE,
)
IF = re.compile(r"\b(?:if|may|might|could|can|would|avoid|prevent|consider|without|unless|how to)\b", re.IGNORECASE)
SENTENCE, CLAUSE = re.compile(r"(?<=[.!?;])\s+|\n+|\u3002"), re.compile(r", |\uff0c")
EMPTY = re.compile(
    r"\b(?:(?:out of|not enough) (?:GPU |CUDA |device |free )?memory|OOM)\b"
    r"(?! (?:error )?(?:message|direction|killer|check))"
    r"|炸显存|爆显存|显存不足",
    re.IGNORECASE,
)
POOL = re.compile(r"KV[ _-]?cache[^.\n%]{0,40}\b100(?:\.0)? ?%", re.IGNORECASE)
GRAPHS = re.compile(r"captur\w*[^.\n]{0,40}graph|graph[^.\n]{0,20}captur", re.IGNORECASE)
LONG = re.compile(r"exceed\w*[^.\n]{0,30}(?:context|maximum|model)[ _-]?(?:size|length|window)", re.IGNORECASE)


def read(paste: Paste, text: str) -> None:
    """Adds rows that somebody tells, twice where they last, and the slots."""
    lasts = 2 if len(text) < MOST and LASTS.search(text) else 1
    for paragraph in re.split(r"\n\s*\n", text) if len(text) < MOST else ():
        rows = list(_rows(paste, paragraph))
        paste.read += len(rows)
        for row in rows:
            paste.rows.setdefault("told", []).extend([row] * lasts)


def words(paste: Paste, text: str) -> None:
    """Facts of what somebody says happened."""
    sentences = SENTENCE.split(text) if len(text) < MOST else []
    facts = [one for one in sentences if "?" not in one or "why" in one.lower()]
    for sentence in (clause for one in facts for clause in CLAUSE.split(one)):
        full = not IF.search(sentence) and EMPTY.search(sentence)
        graphs = full and (GRAPHS.search(sentence) or CAPTURE.search(text))
        name = "said_graphs" if graphs else "said_full" if full else "said_pool" if POOL.search(sentence) else ""
        if not name and LONG.search(sentence) and not IF.search(sentence):
            name = "said_long"
        if name:
            paste.facts.setdefault(name, []).append(Number.exact(1))
            paste.read += 1


def _rows(paste: Paste, text: str) -> Iterator[Row]:
    """The numbers of a record: until a name comes again."""
    record: dict[str, float] = {}
    for match in FIELD.finditer(text):
        if match["pair"]:
            found = {"running": float(match["one"]), "waiting": float(match["two"])}
        else:
            name = match.lastgroup or ""
            name = name.removesuffix("_share").removesuffix("_is")
            said = match[f"{name}_is"]
            found = {name: float(said) / (100 if match[f"{name}_share"] else 1) if said[0].isdigit() else 1.0}
        if found.keys() & record.keys():
            yield from _row(paste, record)
            record = {}
        record |= found
    yield from _row(paste, record)


def _row(paste: Paste, record: dict[str, float]) -> Iterator[Row]:
    running = record.get("scheduled", record.get("running"))
    if running is None:
        return
    waiting = record.get("waiting", record["running"] - running if {"running", "scheduled"} <= record.keys() else None)
    if waiting is None:
        paste.unqueued += "scheduled" in record
        return
    if "slots" in record:
        paste.settings["max_num_seqs"] = int(record["slots"])
    share = record["used"] / record["blocks"] if record.get("blocks") and "used" in record else record.get("usage")
    usage = share if share is None or 0 <= share <= 1 else None
    new = int(record.get("tokens", 0))
    # Blocks in use may be cached ones: what one sequence holds is not known.
    yield Row(int(running), int(running), int(waiting), usage, new_tokens=new, hits=1.0)
