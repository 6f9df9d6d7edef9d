"""Style sheets of the widgets, and the two kinds of sentences they show."""

from __future__ import annotations

from html import escape

# When the kernel is gone, JupyterLab marks every widget with .jupyter-widgets-disconnected and puts a broken chain
# before each. One sentence says it better: it is part of every box from the start, and shown only then.
_DEAD = """
[data-jp-theme-light="false"] .{box} {{ --course-blue: #56B4E9; --course-red: #F0A060; --course-soft: #B8B8B8;
  --course-blue-paper: #14283A; --course-red-paper: #3A2412; }}
.{box} .course-dead {{ display: none; }}
.{box}.jupyter-widgets-disconnected .course-dead {{ display: block; }}
.{box} .jupyter-widgets-disconnected::before, .{box}.jupyter-widgets-disconnected::before {{ content: none; }}
.{box} .course-notice {{ border-left: 4px solid #C05500; padding: 2px 10px; margin: 4px 0; font-size: 14px;
  line-height: 1.45; max-width: 900px; white-space: normal; }}
"""

# Text of 14 px and more stays readable on a projector.
EXPLORER = (
    "<style>"
    + _DEAD.format(box="course-explorer")
    + """
.course-explorer { --jp-widgets-font-size: 14px; padding: 4px 0; overflow: visible; }
.course-explorer .course-controls { display: grid; grid-template-columns: repeat(auto-fill, minmax(370px, 1fr));
  gap: 0 20px; align-items: center; overflow: visible; }
.course-explorer .course-blocks { display: flex; gap: 12px; align-items: flex-start; }
.course-explorer .course-blocks table { font-size: 12.5px; line-height: 17px; flex: 1 1 0; }
.course-explorer .course-blocks table th, .course-explorer .course-blocks table td { padding: 1px 4px; }
.course-explorer .course-head { justify-content: space-between; align-items: center; }
.course-explorer .widget-html:not(.course-changed):has(> .widget-html-content:empty) { display: none; }
.course-explorer .course-controls > * { margin: 0; height: 28px; }
.course-explorer .widget-readout { min-width: 52px; border: 1px solid #8a8a8a; border-radius: 3px; padding: 0 4px;
  line-height: 22px; height: 24px; }
.course-explorer .course-stops .widget-readout { border-color: transparent; pointer-events: none;
  -webkit-user-modify: read-only; }
.course-explorer .course-below { display: block; overflow: visible; }
.course-explorer .course-beside { display: grid; grid-template-columns: minmax(0, 1fr) 370px; gap: 8px;
  align-items: start; overflow: visible; }
.course-explorer table td, .course-explorer .course-below .course-grid th { white-space: nowrap; }
.course-explorer .course-below .course-blocks .course-grid th { white-space: normal; }
.course-explorer.course-words .course-below .course-grid th[role=rowheader] { white-space: normal; max-width: 230px; }
.course-explorer table { border-collapse: collapse; font-size: 13px; line-height: 1.3; margin: 0; }
.course-explorer table th { font-weight: normal; text-align: left; padding: 1px 6px; overflow-wrap: normal; }
.course-explorer table td { text-align: right; padding: 1px 6px; font-variant-numeric: tabular-nums; font-weight: 600; }
.course-explorer table thead th { text-align: right; font-weight: 600; }
.course-explorer table tr .course-before { color: var(--course-soft, #6b6b6b); font-weight: normal; }
.course-explorer .course-changed { min-height: 20px; }
.course-explorer .course-changed .widget-html-content { font-size: 13px; line-height: 20px; white-space: normal; }
.course-explorer .course-stale { opacity: 0.35; }
.course-ghost { position: absolute; left: 0; top: 0; opacity: 0.3; pointer-events: none;
  overflow: hidden; }
.course-explorer .course-hold { flex: none; height: 20px; line-height: 18px; width: auto; margin: 0 8px 0 0;
  padding: 0 8px; font-size: 13px; touch-action: none; }
.course-held { position: absolute; left: 0; top: 0; background: var(--jp-layout-color0, #fff);
  outline: 2px solid #8a8a8a; outline-offset: -2px; }
.course-explorer .course-tasks { border-left: 4px solid #0072B2; padding: 0 10px; margin: 2px 0; overflow: visible;
  min-height: 92px; }
.course-explorer .course-tasks > * { margin: 0; }
.course-explorer .course-tasks .widget-html-content { font-size: 14px; line-height: 20px; white-space: normal; }
.course-explorer .course-tasks .widget-html { height: auto; }
.course-explorer .course-task-buttons button { height: 24px; line-height: 24px; margin: 0 0 0 6px; padding: 0 10px; }
.course-explorer .course-mark { padding: 0 2px; color: var(--course-soft, #555); }
.course-explorer .course-mark.course-here { font-weight: bold; color: var(--course-blue, #0072B2); }
.course-keys .widget-slider { position: relative; }
.course-keys .course-snapped { position: absolute; right: 0; top: 100%; z-index: 5; padding: 1px 6px; font-size: 13px;
  line-height: 18px; color: var(--jp-ui-font-color1, #222); background: var(--jp-layout-color0, #fff);
  border: 1px solid #0072B2; white-space: nowrap; }
.course-keys .course-snapped:empty { display: none; }
.course-explorer .course-spoken { position: absolute; width: 1px;
  height: 1px; overflow: hidden; clip-path: inset(50%); }
.course-explorer .course-options .widget-radio, .course-explorer .course-options .widget-radio-box { width: auto;
  height: auto; margin: 0; padding: 0; }
.course-explorer .course-options { overflow: visible; }
.course-explorer .course-options .widget-radio-box label { display: flex; align-items: flex-start; gap: 6px;
  height: auto; white-space: normal; line-height: 18px; margin: 1px 0; }
.course-explorer .course-options .widget-radio-box label input { flex: none; margin: 3px 2px 0 0; order: -1;
  align-self: flex-start; height: 13px;
  float: none; }
.course-explorer .course-right { border-left: 4px solid #009E73; padding-left: 8px; }
.course-explorer .course-miss { border-left: 4px solid #C05500; padding-left: 8px; }
@media (prefers-reduced-motion: reduce) { .course-explorer * {
  transition: none !important; animation: none !important; } }
</style>"""
)

FORM = (
    "<style>"
    + _DEAD.format(box="course-form")
    + """
.course-form { --jp-widgets-font-size: 15px; border-left: 5px solid #0072B2; padding: 4px 12px; max-width: 900px; }
.course-form .widget-radio, .course-form .widget-radio-box { width: auto; max-width: 100%; height: auto; }
.course-form .widget-radio-box label { display: flex; align-items: flex-start; gap: 6px; height: auto;
  white-space: normal; line-height: 1.4; margin: 2px 0; }
.course-form .widget-radio-box label input { flex: none; margin: 0.1em 2px 0 0; order: -1; float: none; }
.course-form .widget-hbox { align-items: center; gap: 12px; }
.course-form .widget-html-content { line-height: 1.45; white-space: normal; font-size: 15px; }
.course-form .course-question { margin: 0 0 10px; overflow: visible; }
.course-form .course-right, .course-form .course-wrong { border-left: 4px solid; padding: 2px 10px; }
.course-form .course-right { border-color: #0072B2; background: var(--course-blue-paper, #E8F2F9); }
.course-form .course-wrong { border-color: #C05500; background: var(--course-red-paper, #FBEFE4); }
.course-form .course-right .course-mark { color: var(--course-blue, #0072B2); font-weight: 700; }
.course-form .course-wrong .course-mark { color: var(--course-red, #A04500); font-weight: 700; }
.course-form .course-score { font-weight: 600; }
.course-form.jupyter-widgets-disconnected .course-said { display: none; }
</style>"""
)


def notice(sentence: str) -> str:
    """Return a sentence to be noticed, which screen readers read out when it appears."""
    return f'<div class="course-notice" role="status">{escape(sentence)}</div>'


def dead(what: str) -> str:
    """Return the sentence for widgets without a kernel, hidden until then.

    The cell alone would meet a NameError, since the names of the cells above are gone as well.
    """
    sentence = (
        f"The kernel behind this has stopped, so the controls {what}. Choose Run &gt; Run All Above Selected Cell, "
        "then run this cell."
    )
    return f'<div class="course-dead course-notice">{sentence}</div>'
