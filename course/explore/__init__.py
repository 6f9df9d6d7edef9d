"""Explorers: sliders that drive a simulation, a figure and a table, in one object that a cell shows.

`Explorer` keeps the pure part (settings in, result out) apart from the widgets, so that tests, nbval and screen readers
get the same numbers as someone who moves a slider.
"""

from course.explore.controls import Choice, Slider, Toggle
from course.explore.explorer import Explorer

__all__ = ["Choice", "Explorer", "Slider", "Toggle"]
