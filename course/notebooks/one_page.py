"""Lab 04's timelines as one HTML file for a room without Python: `python -m course.notebooks.one_page FILE`.

The runs are computed here, once for each place of the two sliders; the page draws them and asks nothing of a network.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from course.base import files
from course.figures.colours import COLOURS
from course.figures.timelines import spans
from course.lessons.lab04 import three_batchers

SPREADS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0)
DELAYS = (0.0, 0.1, 0.2, 0.4, 0.7, 1.0)
KINDS = ("waiting", "prefill", "decode", "wasted")
WORDS = {"waiting": "waiting", "prefill": "prefill", "decode": "decode", "wasted": "padding"}
PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Static, dynamic, continuous</title>
<style>body{font:16px system-ui,sans-serif;margin:1em;max-width:1200px}label{margin-right:2em}svg{width:100%}</style>
<h1>One trace, three policies</h1>
<p>Simulated on steps recorded on an H100. Three slots, a bar for each request; waiting stands above them.
@LEGEND</p>
<label>Spread of answers (CV) <input id="s" type="range" min="0" max="@S" value="4"> <b id="sv"></b></label>
<label>Delay of dynamic (s) <input id="d" type="range" min="0" max="@D" value="1"> <b id="dv"></b></label>
<div id="out"></div><script>const data=@DATA,spreads=@SPREADS,delays=@DELAYS,colours=@COLOURS;
const kinds=["waiting","prefill","decode","wasted"],at=id=>document.getElementById(id);
function draw(){const i=+at("s").value,j=+at("d").value;
at("sv").textContent=spreads[i];at("dv").textContent=delays[j];
let html="";const runs=data[i][j],end=Math.max(...Object.values(runs).map(r=>r.end));
for(const [name,run] of Object.entries(runs)){let bars="";
for(const [k,row,a,b,q] of run.bars){const y=k?60+22*row:8*row,
h=k?20:6,x=1200*a/end,w=1200*(b-a)/end;bars+=`<rect x="${x}" y="${y}" width="${w}" height="${h}" fill="${colours[k]}">`+
`<title>request ${q}, ${kinds[k]}, ${a} to ${b} s</title></rect>`;}
for(let t=0;t<=end;t+=0.5)bars+=`<text x="${1200*t/end}" y="144" font-size="13">${t} s</text>`;
html+=`<h3>${name}: last answer at ${run.end} s, mean time to an answer ${run.mean} s</h3>`+
`<svg viewBox="0 0 1240 148">${bars}</svg>`;}
at("out").innerHTML=html;}at("s").oninput=at("d").oninput=draw;draw();</script></html>
"""


def runs(spread: float, delay: float) -> dict[str, Any]:
    """Of each policy the bars [kind, lane, start, end, request] in ms, its last answer and its mean answer [s]."""
    found = {}
    for name, run in three_batchers.one_trace(output_cv=spread, max_queue_delay=delay).items():
        bars = [
            [kind, int(lane), round(float(start), 3), round(float(end), 3), int(request) + 1]
            for kind, one in enumerate(map(spans(run).__getitem__, KINDS))
            for request, lane, start, end in zip(one.request, one.lane, one.start, one.end, strict=True)
        ]
        found[name] = {
            "bars": bars,
            "end": round(float(run.response.max()), 3),
            "mean": round(float(run.e2e.mean()), 3),
        }
    return found


def page() -> str:
    """The file's text."""
    data = [[runs(spread, delay) for delay in DELAYS] for spread in SPREADS]
    colours = [COLOURS[kind] for kind in KINDS]
    filled = {"@DATA": data, "@SPREADS": SPREADS, "@DELAYS": DELAYS, "@COLOURS": colours,
              "@S": len(SPREADS) - 1, "@D": len(DELAYS) - 1}  # fmt: skip
    legend = " ".join(f'<span style="background:{colour}">&emsp;</span> {WORDS[kind]}'
                      for kind, colour in zip(KINDS, colours, strict=True))  # fmt: skip
    text = PAGE.replace("@LEGEND", legend)
    for hole, value in filled.items():
        text = text.replace(hole, json.dumps(value, separators=(",", ":")))
    return text


def main(arguments: list[str]) -> int:
    """Write the page into a new file; 0, or 1 with a sentence."""
    target = Path(arguments[0] if arguments else "lab04.html")
    try:
        files.write_new(target, page().encode())
    except (OSError, ValueError) as error:
        print(f"{target} cannot be written: {getattr(error, 'strerror', None) or error}", file=sys.stderr)
        return 1
    print(f"{target}: {target.stat().st_size / 1e3:,.0f} kB, needs no network")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
