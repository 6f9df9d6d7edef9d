"""What a text says in any other shape: JSON, `name: number`, a sentence. It counts where no line of a log does.

Who only says that memory ran out, or that a length was exceeded, is taken at their word, but not after an "if".
"""

import re
from collections.abc import Iterator

from course.look.reading import LOG, WORDS, Paste, Row

MOST = 100_000  # characters: nobody tells more
STATE = "|".join(rf"(?P<{name}>(?:{words})\b)" for name, words in WORDS["state"].items())
FIELD = re.compile(
    r"(?i)\((?P<pair>running/waiting)\): (?P<one>\d{1,6}) / (?P<two>\d{1,6})"
    rf"|(?<!max[\s_-])(?<![a-z])(?:num_?(?:requests?_?)?)?(?:{STATE}){WORDS['said']}"
    r"(?P<is>\d{1,9}(?:\.\d{1,9})?(?! ?(?:[GM]i?B))|[NX]\b|growing|rising)(?P<share> ?%)?"
)
SAYS = {name: re.compile(words, re.IGNORECASE) for name, words in WORDS["told"].items()}
SENTENCE, CLAUSE = re.compile(r"(?<=[.!?;])\s+|\n+|\u3002"), re.compile(r", |\uff0c")


def read(paste: Paste, text: str) -> None:
    """Adds rows that somebody tells, twice where they last, and the slots."""
    lasts = 2 if len(text) < MOST and SAYS["lasts"].search(text) else 1
    paragraphs = re.split(r"\n\s*\n", text) if len(text) < MOST else []
    rows = [row for paragraph in paragraphs for row in _rows(paste, paragraph)]
    paste.read += len(rows)
    paste.rows |= {"told": [row for row in rows for _ in range(lasts)]} if rows else {}


def words(paste: Paste, text: str) -> None:
    """Facts of what somebody says happened."""
    sentences = SENTENCE.split(text) if len(text) < MOST else []
    facts = [one for one in sentences if "?" not in one or "why" in one.lower()]
    for sentence in (clause for one in facts for clause in CLAUSE.split(one)):
        says = {name for name, words in SAYS.items() if words.search(sentence)}
        if "full" in says and "if" not in says:
            paste.say("said_graphs" if "graphs" in says or LOG["capture"].search(text) else "said_full")
        elif "pool" in says or ("long" in says and "if" not in says):
            paste.say("said_pool" if "pool" in says else "said_long")
        else:
            continue
        paste.read += 1


def _rows(paste: Paste, text: str) -> Iterator[Row]:
    """The numbers of a record: until a name comes again."""
    record: dict[str, float] = {}
    for match in FIELD.finditer(text):
        if match["pair"]:
            found = {"running": float(match["one"]), "waiting": float(match["two"])}
        else:
            name = next(name for name in WORDS["state"] if match[name])
            found = {name: float(match["is"]) / (100 if match["share"] else 1) if match["is"][0].isdigit() else 1.0}
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
    # Blocks in use may be cached ones: what one sequence holds is not known.
    yield Row(int(running), int(running), int(waiting), usage, new_tokens=int(record.get("tokens", 0)), hits=1.0)
