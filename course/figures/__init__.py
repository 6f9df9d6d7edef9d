"""Figures of the labs: pure functions from data to plotly figures, all on one theme."""
