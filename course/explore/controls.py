"""The controls of an explorer: what may be set, between which limits, and how it is shown.

A control knows nothing of figures or simulations. `clean` is the one place where a setting is checked, whether it came
from a slider, from a cell or from a test.
"""

from __future__ import annotations

import math
import numbers
from bisect import bisect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ipywidgets as widgets

from course.explore.amounts import singular

_LABEL_FIRST = {"description_width": "initial"}
_FILL = {"width": "auto", "min_width": "0"}


def show(value: Any) -> str:
    """Write a setting for people: integers with thousands separated, floats with up to four significant digits."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return singular(str(value))


class _Unechoed:
    """A widget whose kernel does not say back to the browser what the browser has just said.

    The echo keeps several windows on one kernel in step. It would be one message more to pass on before each figure.
    """

    def trait_metadata(self, traitname: str, key: str, default: Any = None) -> Any:
        return False if key == "echo_update" else super().trait_metadata(traitname, key, default)  # type: ignore[misc]


class _FloatSlider(_Unechoed, widgets.FloatSlider):
    pass


class _IntSlider(_Unechoed, widgets.IntSlider):
    pass


class _SelectionSlider(_Unechoed, widgets.SelectionSlider):
    pass


MOST_STOPS = 10_000
"""Stops of a slider: more than pixels on any screen."""


@dataclass(frozen=True)
class Slider:
    """A number between two limits.

    The setting is an int if low, high, step and default all are, and a float otherwise.

    name: the keyword that `simulate` gets.
    label: what the learner reads, such as "Arrival rate".
    low: smallest setting.
    high: largest setting.
    step: what one key press adds; on a log slider the factor from one stop to the next (2: 1, 2, 4, 8 ...).
    default: setting at the start; on a log slider low, high and default always are stops.
    unit: shown behind the label, such as "requests/s".
    log: whether the stops grow by a factor instead of by a sum.

    Raises ValueError: limits out of order, a step that leads nowhere, or a default outside the limits.
    """

    name: str
    label: str
    low: float
    high: float
    step: float
    default: float
    unit: str = ""
    log: bool = False
    stops: tuple[float, ...] = field(init=False, repr=False, compare=False, default=())

    def __post_init__(self) -> None:
        for part in ("low", "high", "step", "default"):
            object.__setattr__(self, part, _number(getattr(self, part), f"{part} of slider {self.name!r}"))
        if not self.low < self.high:
            raise ValueError(f"slider {self.name!r} goes from {self.low} to {self.high}: make low smaller than high")
        fits, rule = self.step > 0, "the step must be above 0"
        if self.log:
            fits, rule = self.step > 1 and self.low > 0, "a log slider needs low > 0 and a factor above 1"
        if not fits:
            raise ValueError(f"slider {self.name!r} has low {self.low} and step {self.step}: {rule}")
        object.__setattr__(self, "stops", self._stops())
        object.__setattr__(self, "default", self.clean(self.default))

    @property
    def integer(self) -> bool:
        """Whether settings are whole numbers (on a log slider the factor may be fractional)."""
        parts = (self.low, self.high, self.default) if self.log else (self.low, self.high, self.default, self.step)
        return all(isinstance(part, int) for part in parts)

    def _stops(self) -> tuple[float, ...]:
        """Every setting a key press can reach, in order."""
        kind = int if self.integer else float
        span = math.log(self.high) - math.log(self.low) if self.log else float(self.high) - float(self.low)
        many = span / (math.log(self.step) if self.log else self.step)
        if not many <= MOST_STOPS:
            raise ValueError(
                f"slider {self.name!r} would have {many:.3g} stops from {self.low} to {self.high}: "
                f"make the step larger, for at most {MOST_STOPS:,}"
            )
        if self.log:
            count = math.floor(math.log(self.high / self.low) / math.log(self.step) + 1e-9)
            raw = [self.low * self.step**k for k in range(count + 1)]
            # Three significant digits read well on a slider; low, high and default are kept as they are.
            near = {kind(round(value)) if self.integer else float(f"{value:.3g}") for value in raw}
            return tuple(sorted({v for v in near if self.low <= v <= self.high} | {self.low, self.high, self.default}))
        # Rounded, so that 0.1 + 2 * 0.1 is the 0.3 that was meant; the limits are stops exactly as given.
        count = math.ceil((self.high - self.low) / self.step - 1e-9)
        inner = (kind(float(f"{self.low + k * self.step:.12g}")) for k in range(1, count))
        return (kind(self.low), *inner, kind(self.high))

    def clean(self, value: Any) -> float:
        """Return the setting as an int or float within the limits, and as a stop if it is one but for rounding.

        A browser adds the steps up in binary: the stop after 4 and 0.5 arrives as 4.500000000000001.

        Raises ValueError: not a number, NaN, outside the limits, or a fraction if whole numbers are asked for.
        """
        number = _number(value, self.name)
        if not self.low <= number <= self.high:
            unit = f" {self.unit}" if self.unit else ""
            raise ValueError(
                f"{self.name} = {show(number)} is outside its limits: "
                f"choose between {show(self.low)} and {show(self.high)}{unit}"
            )
        if not self.integer:
            nearest = min(self.stops[max(0, bisect(self.stops, number) - 1) :][:2], key=lambda stop: abs(stop - number))
            near = 1e-9 * (nearest if self.log else self.step)  # sums of 10,000 steps are off by a thousandth of this
            return float(nearest if abs(number - nearest) <= near else number)
        if number != int(number):
            raise ValueError(f"{self.name} = {number} is not whole: choose an integer")
        return int(number)

    def text(self, value: Any) -> str:
        """Return the setting with its unit, as the text form of an explorer writes it."""
        return singular(f"{show(value)} {self.unit}".rstrip())

    def at_stop(self, value: float) -> float:
        """Return the setting if the slider can stand there.

        Raises ValueError: a log slider has no stop at this value.
        """
        if self.log and value not in self.stops:
            stops = ", ".join(show(stop) for stop in self.stops)
            raise ValueError(f"{self.name} = {show(value)} is between two stops: choose one of {stops}")
        return value

    def widget(self) -> widgets.Widget:
        """Build the ipywidgets slider; arrow keys move it by one step and act at once."""
        label = f"{self.label} ({self.unit})" if self.unit else self.label
        common = {"description": label, "style": _LABEL_FIRST, "layout": _FILL, "continuous_update": True}
        if self.log:
            options = [(show(stop), stop) for stop in self.stops]
            # The class: ipywidgets lets people type into its number, and does nothing with that.
            return _SelectionSlider(options=options, value=self.default, _dom_classes=("course-stops",), **common)
        common |= {"min": self.low, "max": self.high, "step": self.step, "value": self.default}
        if self.integer:
            return _IntSlider(readout_format=",d", **common)
        decimals = max(0, -math.floor(math.log10(self.step) + 1e-9))
        # A step such as 0.25 needs one digit more than its size tells.
        while decimals < 6 and abs(round(self.step, decimals) - self.step) > 1e-9 * self.step:
            decimals += 1
        return _FloatSlider(readout_format=f",.{decimals}f", **common)


@dataclass(frozen=True)
class Choice:
    """One of several settings.

    name: the keyword that `simulate` gets.
    label: what the learner reads.
    options: the settings, as a sequence of values, of (text, value) pairs, or a mapping from text to value.
    default: setting at the start, one of the values.

    Raises ValueError: fewer than two options, a repeated text, or a default that is no option.
    """

    name: str
    label: str
    options: Any
    default: Any

    def __post_init__(self) -> None:
        pairs = self.options.items() if isinstance(self.options, Mapping) else self.options
        pairs = tuple(p if isinstance(p, tuple) and len(p) == 2 else (show(p), p) for p in pairs)
        object.__setattr__(self, "options", tuple((str(text), value) for text, value in pairs))
        if len({text for text, _ in self.options}) < max(2, len(self.options)):
            raise ValueError(f"choice {self.name!r} needs two or more options with different texts")
        self.clean(self.default)

    @property
    def stops(self) -> tuple[Any, ...]:
        """The values, in the order shown."""
        return tuple(value for _, value in self.options)

    def clean(self, value: Any) -> Any:
        """Return the setting if it is one of the options, else raise ValueError naming them."""
        for option in self.stops:
            if type(option) is type(value) and option == value:
                return option
        valid = ", ".join(repr(option) for option in self.stops)
        raise ValueError(f"{self.name} = {value!r} is not an option: choose one of {valid}")

    def text(self, value: Any) -> str:
        """Return the text of an option."""
        return next(text for text, option in self.options if option == value)

    def at_stop(self, value: Any) -> Any:
        """Return the setting: every option can be shown."""
        return value

    def widget(self) -> widgets.Widget:
        """Build the ipywidgets drop-down list; arrow keys act at once."""
        return widgets.Dropdown(
            options=list(self.options), value=self.default, description=self.label, style=_LABEL_FIRST, layout=_FILL
        )


@dataclass(frozen=True)
class Toggle:
    """A setting that is on or off.

    name: the keyword that `simulate` gets. label: what the learner reads. default: True or False.
    """

    name: str
    label: str
    default: bool = False

    def __post_init__(self) -> None:
        self.clean(self.default)

    @property
    def stops(self) -> tuple[bool, bool]:
        """Both settings."""
        return (False, True)

    def clean(self, value: Any) -> bool:
        """Return the setting as a bool, else raise ValueError."""
        if isinstance(value, bool) or type(value).__name__ == "bool":
            return bool(value)
        raise ValueError(f"{self.name} = {value!r} is neither True nor False")

    def text(self, value: Any) -> str:
        """Return "on" or "off"."""
        return show(value)

    def at_stop(self, value: bool) -> bool:
        """Return the setting: both can be shown."""
        return value

    def widget(self) -> widgets.Widget:
        """Build the ipywidgets checkbox; the space bar flips it."""
        return widgets.Checkbox(value=self.default, description=self.label, indent=False, layout=_FILL)


Control = Slider | Choice | Toggle


def check_controls(controls: Sequence[Control]) -> tuple[Control, ...]:
    """Return the controls as a tuple, or raise ValueError for what is none and if two share a name."""
    controls = tuple(controls) if isinstance(controls, Iterable) else (controls,)
    for control in controls:
        if not isinstance(control, Slider | Choice | Toggle):
            raise ValueError(f"{control!r} is not a control: give a list of Slider, Choice and Toggle")
    names = [control.name for control in controls]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"two controls are called {twice[0]!r}: give each its own name")
    return controls


def _number(value: Any, what: str) -> float:
    """Return a finite int or float, or raise ValueError with a sentence."""
    if isinstance(value, bool) or type(value).__name__ == "bool" or not isinstance(value, numbers.Real):
        raise ValueError(f"{what} = {value!r} is not a number: give a plain number")
    number = int(value) if isinstance(value, numbers.Integral) else float(value)
    try:
        finite = math.isfinite(number)
    except OverflowError:  # an int beyond every float
        raise ValueError(f"{what} is too large to compute with: give a plain number") from None
    if not finite:
        raise ValueError(f"{what} = {number} is not finite: give a plain number")
    return number
