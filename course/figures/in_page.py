"""The style sheet for figures in a page of JupyterLab: how they look in its dark theme, and where their buttons stand.

A figure is stored with the colours of a light page. In the dark theme the sheet puts another colour in the place of
each one that the course uses, and leaves the figure as it is: what is stored, what is live and what an explorer holds
all follow a change of theme at once. Colours that mean something stay where they can be seen; the darkest are lighter.
"""

from __future__ import annotations

from functools import cache

from course.figures.colours import BADGES, COLOURS, INK, NIGHT, PAPER, ink, on_dark, origin
from course.figures.theme import GRID

DARK_PAPER = f"var(--jp-layout-color0, {NIGHT})"
DARK_INK, DARK_GRID, DARK_AXIS = "#E0E0E0", "#3A3A3A", "#A0A0A0"
AXIS = "#666666"
TEXT, MARK = 4.5, 3.0
"""Contrasts that WCAG asks of a text and of a mark."""

PAGE = '[data-jp-theme-light="false"]'
PLOT = f"{PAGE} :is(.js-plotly-plot, .course-ghost)"
# The boxes that appear under the mouse have colours of their own, chosen by plotly to be read on each other.
DRAWN = ":not(.hoverlayer *)"

# The buttons of a figure lay over its legend. Right of the axes there is room for two; to zoom one drags.
BUTTONS = (
    ".js-plotly-plot .modebar-container { top: 40% !important; height: 0 !important; }\n"
    ".js-plotly-plot .modebar { right: 0; top: 0; width: 22px; }\n"
    ".js-plotly-plot .modebar-group { padding-left: 0 !important; }\n"
    ".js-plotly-plot .modebar-group .modebar-btn { display: block; padding: 2px; }\n"
    ".js-plotly-plot .modebar-group .modebar-btn:not([data-title^=Download], [data-title^=Reset]) { display: none; }\n"
)
# JupyterLab breaks stored texts anywhere, "gai n" too. Here between words; a word longer than a line is still cut.
WORDS = ".jp-OutputArea-output.jp-RenderedText pre { word-break: normal !important; overflow-wrap: anywhere; }\n"


@cache
def sheet() -> str:
    """Return the style sheet: the buttons of figures, texts that break between words, and the dark theme's colours."""
    rules = [
        f'{PLOT} .main-svg[style*="background: {_rgb(PAPER)}"] {{ background: transparent !important; }}',
        f"{PLOT} text:not(.bartext-inside){DRAWN} {{ fill: {DARK_INK} !important; }}",
        # A number in a pale or a white bar is dark ink, and with the paper such a bar becomes dark.
        f'{PLOT} .point:has(> path:is([style*="opacity: 0."], [style*="fill: {_rgb(PAPER)}"])) .bartext-inside '
        f"{{ fill: {DARK_INK} !important; }}",
        f"{PLOT} .modebar-btn .icon path {{ fill: {DARK_AXIS} !important; }}",
        f"{PLOT} .modebar-group {{ background: transparent !important; }}",
    ]
    for light, dark in sorted(_marks().items()):
        for part in ("fill", "stroke"):
            drawn = f':not(text, tspan, .bartext-inside *)[style*="{part}: {_rgb(light)}"]{DRAWN}'
            rules.append(f"{PLOT} {drawn} {{ {part}: {dark} !important; }}")
    for light, dark in sorted(_texts().items()):
        said = [f'text:not(.bartext-inside)[style*="fill: {_rgb(light)}"]', f'tspan[style*="fill:{light}" i]']
        rules.append(f"{PLOT} :is({', '.join(said)}){DRAWN} {{ fill: {dark} !important; }}")
    for badge in BADGES:
        colour = _texts()[origin(badge)]
        rules.append(
            f"{PAGE} .course-badge-{badge} {{ color: {colour} !important; border-color: {colour} !important; }}"
        )
    return BUTTONS + WORDS + "\n".join(rules) + "\n"


def _marks() -> dict[str, str]:
    """From the colour of a line, a mark or an area on white to the one on dark paper."""
    found = {colour: on_dark(colour, MARK) for colour in {*COLOURS.values(), *map(ink, COLOURS)}}
    found |= {COLOURS["theory"]: DARK_INK, INK: DARK_INK, PAPER: DARK_PAPER, GRID: DARK_GRID, AXIS: DARK_AXIS}
    return {light: dark for light, dark in found.items() if light != dark}


def _texts() -> dict[str, str]:
    """The same for texts. Those in black ink have it from the rule for all; white ones stand on something dark."""
    found = {colour: on_dark(colour, TEXT) for colour in {*COLOURS.values(), *map(ink, COLOURS)}}
    return found | {COLOURS["theory"]: DARK_INK, INK: DARK_INK, PAPER: PAPER}


def _rgb(colour: str) -> str:
    return f"rgb({', '.join(str(int(colour[at : at + 2], 16)) for at in (1, 3, 5))})"
