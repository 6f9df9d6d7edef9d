"""The colours of the course: one meaning each, the same in every lab.

They are those of Okabe and Ito (2008) and, for the origin of numbers, of Paul Tol's "muted" scheme. Both keep their
distinctions under the common kinds of colour blindness. Text in a light colour would be hard to read on white, so
labels use `ink(colour)`, the same hue made dark enough.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from types import MappingProxyType

COLOURS: Mapping[str, str] = MappingProxyType(
    {
        # what a step, a slot or a request is doing
        "prefill": "#E69F00",
        "decode": "#0072B2",
        "waiting": "#999999",
        "wasted": "#D55E00",
        # the policies
        "static": "#CC79A7",
        "dynamic": "#56B4E9",
        "continuous": "#009E73",
        # where a number comes from
        "measured": "#882255",
        "recorded": "#6B6B00",
        "modelled": "#332288",
        "theory": "#000000",
    }
)

BADGES: Mapping[str, str] = MappingProxyType(
    {
        "modelled": "computed by a model of the hardware",
        "recorded": "recorded earlier on the card named here",
        "measured": "measured just now on this machine",
        "theory": "computed from a formula",
    }
)

PAPER = "#FFFFFF"
INK = "#222222"
NIGHT = "#111111"
"""The paper of JupyterLab's dark theme."""


def badge_html(badge: str) -> str:
    """Return the badge that says where numbers come from, as HTML; the part after a colon is free text.

    badge: "modelled", "recorded", "measured" or "theory", perhaps with a detail: "recorded: H100, 2025-01". What begins
    with "simulated" has the colour of a model, whatever its steps are.
    """
    kind, _, detail = badge.partition(":")
    meaning = detail.strip() or BADGES.get(kind.strip(), "")
    colour, name = ink(origin(kind)), "modelled" if kind.startswith("simulated") else kind.strip()
    look = f"border:2px solid {colour};border-radius:4px;color:{colour};padding:1px 8px;font-weight:600"
    more = f' <span style="color:var(--course-soft, #555)">{escape(meaning)}</span>' if meaning else ""
    return f'<span class="course-badge-{escape(name)}" style="{look}">{escape(kind.strip())}</span>{more}'


def origin(kind: str) -> str:
    """Return the colour of where a number comes from; INK for a word that is none of BADGES."""
    return COLOURS.get("modelled" if kind.startswith("simulated") else kind.strip(), INK)


def contrast(colour: str, background: str = PAPER) -> float:
    """Return the contrast ratio of two #RRGGBB colours, from 1 to 21, as WCAG 2.2 defines it."""
    light, dark = sorted((_luminance(colour), _luminance(background)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def ink(colour: str, ratio: float = 4.5) -> str:
    """Darken a colour until text in it reads well on white (WCAG asks for a contrast of 4.5).

    colour: a key of COLOURS or a #RRGGBB colour. ratio: the contrast wanted.
    """
    colour = COLOURS.get(colour, colour)
    channels = _channels(colour)
    while contrast(colour) < ratio:
        channels = tuple(value * 0.95 for value in channels)
        colour = "#" + "".join(f"{round(value):02X}" for value in channels)
    return colour


def on_dark(colour: str, ratio: float = 4.5) -> str:
    """Lighten a colour until it stands out from the paper of a dark page.

    colour: a key of COLOURS or a #RRGGBB colour. ratio: the contrast wanted, 4.5 for a text and 3 for a mark.
    """
    colour = COLOURS.get(colour, colour)
    channels = _channels(colour)
    while contrast(colour, NIGHT) < ratio:
        channels = tuple(255 - (255 - value) * 0.95 for value in channels)
        colour = "#" + "".join(f"{round(value):02X}" for value in channels)
    return colour


def _channels(colour: str) -> tuple[float, ...]:
    try:
        if len(colour) != 7 or colour[0] != "#":
            raise ValueError
        return tuple(float(int(colour[at : at + 2], 16)) for at in (1, 3, 5))
    except (TypeError, ValueError):
        raise ValueError(
            f"{colour!r} is not a colour: give one of {', '.join(COLOURS)} or a form such as #0072B2"
        ) from None


def _luminance(colour: str) -> float:
    linear = [
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in (channel / 255 for channel in _channels(colour))
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
