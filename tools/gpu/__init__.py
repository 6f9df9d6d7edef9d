"""For `tests/bench`: a live executor on a card, the step time of captured steps, the recorder of the decode step."""
