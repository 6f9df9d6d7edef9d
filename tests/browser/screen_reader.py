"""What a screen reader is told, from Chromium's own accessibility tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Page

CONTROLS = {
    "button", "slider", "spinbutton", "textbox", "combobox", "radio", "checkbox", "link", "image", "list", "table",
}  # fmt: skip


@dataclass
class Heard:
    """unnamed: roles of controls without a name. live: what the live regions say, in their order."""

    names: list[tuple[str, str]] = field(default_factory=list)
    unnamed: list[str] = field(default_factory=list)
    live: list[str] = field(default_factory=list)

    def named(self, role: str) -> list[str]:
        """Names of all that has this role."""
        return [name for one, name in self.names if one == role]


def heard(page: Page, title: str) -> Heard:
    """All that is said of the group whose name begins with the title.

    Raises LookupError if there is not one.
    """
    session = page.context.new_cdp_session(page)
    try:
        nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    finally:
        session.detach()
    by_id = {node["nodeId"]: node for node in nodes}
    tops = [node for node in nodes if _role(node) == "group" and _name(node).startswith(title)]
    if len(tops) != 1:
        raise LookupError(f"{len(tops)} groups are called {title!r}")
    found = Heard()
    for node in _below(tops[0], by_id):
        role, name, properties = _role(node), _name(node), _properties(node)
        if role in CONTROLS or properties.get("focusable"):
            found.names.append((role, name))
            found.unnamed += [] if name else [role]
        if properties.get("live") == "polite" and properties.get("root") is None:
            found.live.append(" ".join(_name(one) for one in _below(node, by_id) if _role(one) == "StaticText"))
    return found


def _below(node: dict[str, Any], by_id: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if not node.get("ignored"):
        yield node
    for child in node.get("childIds", []):
        if child in by_id:
            yield from _below(by_id[child], by_id)


def _role(node: dict[str, Any]) -> str:
    return node.get("role", {}).get("value", "")


def _name(node: dict[str, Any]) -> str:
    return node.get("name", {}).get("value", "").strip()


def _properties(node: dict[str, Any]) -> dict[str, Any]:
    return {one["name"]: one["value"].get("value") for one in node.get("properties", [])}
