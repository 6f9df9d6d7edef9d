"""The live executor of a card, and the step time of its captured steps: for `tests/bench/live.py`."""
