r"""The labs' formulas as MathML, which a browser draws by itself: a page without a network cannot fetch MathJax.

Only what the labs write is known: letters, numbers, `_`, `^`, `\frac`, `\sqrt`, `\bar`, `\text`, brackets, Greek.
"""

from __future__ import annotations

import re
from html import escape

FORMULA = re.compile(r"(`[^`]*`)|\$\$(.+?)\$\$|\$([^$\n]+?)\$", re.DOTALL)
TOKEN = re.compile(r"\\text\{((?:[^{}\\]|\\.)*)\}|\\([A-Za-z]+|.)|(\d+(?:[.,]\d+)*)|(\s+)|(.)", re.DOTALL)
LETTERS = ("lambda", "alpha", "mu", "sigma", "varphi", "ell")  # HTML has entities of these names
SIGNS = {"cdot": "sdot", "times": "times", "le": "le", "ge": "ge", "approx": "approx", "leftarrow": "larr",
         "dots": "hellip", "lceil": "lceil", "rceil": "rceil"}  # fmt: skip
MINUS = "&minus;"
SPACES = {"qquad": 2.0, "quad": 1.0, ",": 0.17, " ": 0.3}
NAMES = ("max", "min", "log", "exp")
Tokens = list[tuple[str, str]]


def with_formulas(markdown: str) -> str:
    """A text whose formulas, `$...$` and `$$...$$`, are MathML; code in backticks stays. ValueError as `mathml`."""

    def one(found: re.Match[str]) -> str:
        code, block, inline = found.groups()
        return code if code is not None else mathml(block or inline, block is not None)

    return FORMULA.sub(one, markdown)


def mathml(tex: str, block: bool = False) -> str:
    """A formula as a `<math>` element. ValueError for a command that the labs do not use, and for a lost brace."""
    tokens = _tokens(tex)
    row = "".join(_items(tokens, ""))
    # Markdown would take these two for emphasis.
    row = row.replace("_", "&#95;").replace("*", "&#42;")
    return f'<math display="{"block" if block else "inline"}"><mrow>{row}</mrow></math>'


def _tokens(tex: str) -> Tokens:
    """(kind, text), the next one last; kinds: text, command, number, sign."""
    found: Tokens = []
    for words, command, number, space, sign in TOKEN.findall(tex):
        if command or number or sign:
            found.append(("command", command) if command else ("number", number) if number else ("sign", sign))
        elif not space:
            found.append(("text", words))
    return found[::-1]


def _items(tokens: Tokens, end: str) -> list[str]:
    """Elements up to the closing brace `end`, or to the end of the formula."""
    out: list[str] = []
    while tokens:
        if tokens[-1] == ("sign", "}"):
            if end:
                tokens.pop()
                return out
            raise ValueError("a formula has a } without its {")
        if tokens[-1][0] == "sign" and tokens[-1][1] in "_^":
            out.append(_raised(tokens, out.pop() if out else "<mrow></mrow>"))
        else:
            out.append(_item(tokens))
    if end:
        raise ValueError("a formula has a { without its }")
    return out


def _raised(tokens: Tokens, base: str) -> str:
    """An element with what stands below and above it."""
    parts: dict[str, str] = {}
    while tokens and tokens[-1][0] == "sign" and tokens[-1][1] in "_^":
        sign = tokens.pop()[1]
        parts[sign] = _item(tokens)
    if len(parts) == 2:
        return f"<msubsup>{base}{parts['_']}{parts['^']}</msubsup>"
    ((sign, part),) = parts.items()
    name = "msub" if sign == "_" else "msup"
    return f"<{name}>{base}{part}</{name}>"


def _item(tokens: Tokens) -> str:
    """One element. Raises ValueError at the end of the formula, and for an unknown command."""
    if not tokens:
        raise ValueError("a formula ends in the middle")
    kind, text = tokens.pop()
    if kind == "text":
        return f"<mtext>{escape(text.replace(chr(92), ''))}</mtext>"
    if kind == "number":
        return f"<mn>{text}</mn>"
    if kind == "command":
        return _command(text, tokens)
    if text == "{":
        return f"<mrow>{''.join(_items(tokens, '}'))}</mrow>"
    if text.isalpha():
        return f"<mi>{text}</mi>"
    return f"<mo>{MINUS if text == '-' else escape(text)}</mo>"


def _command(name: str, tokens: Tokens) -> str:
    if name in LETTERS:
        return f"<mi>&{name};</mi>"
    if name in SIGNS:
        return f"<mo>&{SIGNS[name]};</mo>"
    if name in SPACES:
        return f'<mspace width="{SPACES[name]}em"></mspace>'
    if name in NAMES:
        return f"<mi>{name}</mi>"
    if name in ("left", "right"):  # the bracket behind them grows with what is inside in any case
        return _item(tokens)
    if name == "frac":
        return f"<mfrac>{_item(tokens)}{_item(tokens)}</mfrac>"
    if name == "sqrt":
        return f"<msqrt>{_item(tokens)}</msqrt>"
    if name == "bar":
        return f'<mover accent="true">{_item(tokens)}<mo>&macr;</mo></mover>'
    raise ValueError(f"no slide can show \\{name}: add it to course/notebooks/tex.py")
