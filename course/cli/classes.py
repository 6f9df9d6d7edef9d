"""Classes of requests on the command line: `--class chat:rate=9,prompt_tokens=512`, once for each class."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from course.base.settings import quote, real, whole
from course.cli.common import AsTyped
from course.workload import Workload
from course.workload.arrivals import HIGHEST_RATE, LOWEST_RATE

SETTINGS = ("rate", "prompt_tokens", "prompt_cv", "output_tokens", "output_cv", "arrival_cv", "deadline_ms")
EXAMPLE = "--class chat:rate=9,prompt_tokens=512,deadline_ms=500"


def drawn(options: Mapping[str, Any], draw: Callable[[Mapping[str, Any]], Workload]) -> Workload:
    """All classes on one clock, labelled in `class_`.

    What a class does not say is as the other options have it; of --num-requests each gets the share of its rate. The
    seed of the first is --seed, and of each next one 1 more. ValueError with a sentence for what no class can say.
    """
    asked = [_parsed(text) for text in options["request_class"]]
    names = [name for name, _ in asked]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"--class gives {quote(twice)} twice: keep one")
    total, number = sum(settings["rate"] for _, settings in asked), whole("num_requests", options["num_requests"])
    parts = {}
    for place, (name, settings) in enumerate(asked):
        own = {key: value for key, value in settings.items() if key != "deadline_ms"}
        count = max(1, round(number * settings["rate"] / total))
        part = draw({**options, **own, "num_requests": count, "seed": options["seed"] + place})
        if "deadline_ms" in settings:
            part = replace(part, deadline=np.full(len(part), settings["deadline_ms"] / 1_000))
        parts[name] = part
    return replace(Workload.mix(parts), name=f"{' and '.join(parts)}, drawn with seeds from {options['seed']}")


def _parsed(text: str) -> tuple[str, dict[str, float]]:
    name, colon, rest = (piece.strip() for piece in text.partition(":"))
    if not name or not colon:
        raise AsTyped(f"--class takes a name and settings, as in {EXAMPLE}, not {quote(text)}")
    settings: dict[str, float] = {}
    for part in filter(None, (piece.strip() for piece in rest.split(","))):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        key = key.replace("-", "_")
        if key not in SETTINGS or not equals:
            raise AsTyped(f"--class takes {', '.join(SETTINGS)}, as in {EXAMPLE}, not {quote(part)}")
        if key in settings:
            raise AsTyped(f"--class {name} gives {key} twice: keep one")
        try:
            settings[key] = float(value)
        except ValueError:
            raise AsTyped(f"--class {name}: {key} must be a number, not {quote(value)}") from None
    if "rate" not in settings:
        raise AsTyped(f"--class {name} needs a rate, as in {EXAMPLE}")
    real(f"the rate of --class {name}", settings["rate"], low=LOWEST_RATE, high=HIGHEST_RATE)
    if "deadline_ms" in settings:
        real(f"deadline_ms of --class {name}", settings["deadline_ms"], low=0, high=1e12)
    return name, settings
