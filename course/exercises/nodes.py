"""A YAML file as nodes that know their line and their field, for `asks.py`.

The file is composed and not loaded: each scalar stays the text it is until the reader says what it must be, so `off`,
`03` and `12:30` mean what is written. Keys that stand twice, comments that cut a text off, anchors and tags are
refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import yaml

# Thousands are whole groups of three: in "0,5" the comma may be a decimal point, so that is no number.
NUMBER = re.compile(r"[-+]?(?:[1-9]\d{0,2}(?:,\d{3})+|\d[\d_]*)(\.\d+)?(e[-+]?\d+)?")


class AsksError(ValueError):
    """A fault of a file of questions; the message names the file, the line and the field."""


@dataclass(frozen=True)
class Node:
    """A part of the file. file: its name. field: the way to this part, such as "exercises.waste.rtol"."""

    raw: yaml.Node
    file: str
    field: str
    source: str

    @property
    def line(self) -> int:
        """The line on which it begins, from 1."""
        return int(self.raw.start_mark.line) + 1

    def error(self, why: object, line: int | None = None) -> AsksError:
        """Return an error about this part."""
        return AsksError(f"{self.file}, line {line or self.line}, {self.field or 'the file'}: {why}")

    @property
    def plain(self) -> bool:
        """Whether it is a scalar without quotation marks, which may be a number or a name."""
        return isinstance(self.raw, yaml.ScalarNode) and self.raw.style is None

    @property
    def is_mapping(self) -> bool:
        """Whether it is a mapping."""
        return isinstance(self.raw, yaml.MappingNode)

    @property
    def is_list(self) -> bool:
        """Whether it is a list."""
        return isinstance(self.raw, yaml.SequenceNode)

    def text(self) -> str:
        """Return the scalar as it is written. Raises AsksError: a mapping or a list."""
        if not isinstance(self.raw, yaml.ScalarNode):
            raise self.error("a text belongs here; a text with a colon and a blank in it needs quotation marks")
        return str(self.raw.value)

    def written(self) -> str:
        """Return any part in one line, as it is written."""
        return _as_written(self.raw)

    def number(self) -> float:
        """Return a number, an int if it has no fraction. Raises AsksError: anything else."""
        found = as_number(self.text()) if self.plain else None
        if found is None:
            raise self.error(f"{self.text()!r} is not a number")
        return found

    def items(self) -> list[Node]:
        """Return the entries of a list. Raises AsksError: no list."""
        if not isinstance(self.raw, yaml.SequenceNode):
            raise self.error("a list belongs here: [one, two], or lines that begin with a dash")
        return [self._inner(node, f"{self.field}[{place}]") for place, node in enumerate(self.raw.value)]

    def pairs(self) -> list[tuple[Node, Node]]:
        """Return keys and values of a mapping, in order. Raises AsksError: no mapping, or a key that stands twice."""
        if not isinstance(self.raw, yaml.MappingNode):
            raise self.error("a mapping belongs here: lines such as `title: Padding`")
        seen: dict[str, int] = {}
        found = []
        for key, value in self.raw.value:
            name = _as_written(key)
            inner = self._inner(value, f"{self.field}.{name}".lstrip("."))
            if name in seen:
                line = key.start_mark.line + 1
                raise inner.error(f"the key stands twice, first on line {seen[name]}", line)
            seen[name] = key.start_mark.line + 1
            found.append((self._inner(key, inner.field), inner))
        return found

    def entries(self) -> dict[str, Node]:
        """Return a mapping whose keys are texts. Raises AsksError as `pairs`, or for a key that is no text."""
        return {key.text(): value for key, value in self.pairs()}

    def fields(self, *known: str, needs: Sequence[str] = ()) -> dict[str, Node]:
        """Return a mapping whose keys are these fields.

        known: fields that may be there. needs: those that must. Raises AsksError: an unknown field, or one missing.
        """
        found = {}
        for key, node in self.pairs():
            if key.text() not in (*known, *needs):
                raise node.error(f"there is no such field; there are {', '.join((*needs, *known))}", key.line)
            found[key.text()] = node
        missing = [name for name in needs if name not in found]
        if missing:
            raise self.error(f"the field {missing[0]!r} is missing")
        return found

    def _inner(self, raw: yaml.Node, field: str) -> Node:
        return Node(raw, self.file, field, self.source)


def read(source: str, file: str) -> Node:
    """Return the mapping that a YAML text holds.

    source: the text. file: its name, for errors. Raises AsksError: no YAML, no mapping, an anchor, alias or tag, or a
    comment behind a text.
    """
    try:
        for token in yaml.scan(source, Loader=yaml.SafeLoader):
            if isinstance(token, yaml.AnchorToken | yaml.AliasToken | yaml.TagToken | yaml.DirectiveToken):
                said = "a text that begins with one of & * ! % needs quotation marks"
                raise AsksError(f"{file}, line {token.start_mark.line + 1}: {said}")
        raw = yaml.compose(source, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        line = f", line {mark.line + 1}" if mark is not None else ""
        why = getattr(error, "problem", None) or str(error).splitlines()[0]
        hint = "a text with a colon, and within braces one with a comma, ? or {, needs quotation marks"
        raise AsksError(f"{file}{line}: this is no YAML ({why}); {hint}") from error
    except RecursionError as error:
        raise AsksError(f"{file}: its brackets are nested too deeply") from error
    if raw is None:
        raise AsksError(f"{file}, line 1: the file is empty")
    node = Node(raw, file, "", source)
    node.pairs()
    for scalar in scalars(raw):
        rest = source[scalar.end_mark.index :].split("\n", 1)[0]
        if scalar.style is None and re.match(r"[ \t]+#", rest):
            raise AsksError(
                f"{file}, line {scalar.end_mark.line + 1}: a comment cuts the text {scalar.value[-30:]!r} off at"
                f" {rest.strip()[:30]!r}; put the text in quotation marks, or the comment on a line of its own"
            )
    return node


def as_number(text: str) -> float | None:
    """Return the number in a text such as 12, 1,024 or 2.5e-3, None if it is none; an int if it has no fraction."""
    match = NUMBER.fullmatch(text)
    if match is None:
        return None
    digits = text.replace(",", "").replace("_", "")
    return float(digits) if match[1] or match[2] else int(digits)


def scalars(raw: yaml.Node) -> Iterator[yaml.ScalarNode]:
    """Yield every scalar of a part, keys as well."""
    if isinstance(raw, yaml.ScalarNode):
        yield raw
    elif isinstance(raw, yaml.SequenceNode):
        for item in raw.value:
            yield from scalars(item)
    elif isinstance(raw, yaml.MappingNode):
        for pair in raw.value:
            for item in pair:
                yield from scalars(item)


def _as_written(raw: yaml.Node) -> str:
    if isinstance(raw, yaml.ScalarNode):
        return str(raw.value)
    inner = raw.value if isinstance(raw, yaml.SequenceNode) else [part for pair in raw.value for part in pair]
    return "{" + ": ".join(_as_written(part) for part in inner) + "}"
