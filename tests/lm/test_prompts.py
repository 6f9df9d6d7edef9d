"""The committed prompts in tokens: what a simulator is fed is what the model says."""

from __future__ import annotations

import numpy as np

from course import lm, policies
from course.lm.prompts import as_workload


def test_a_workload_has_the_lengths_of_what_the_model_says(model, prompts):
    few = [prompts[place] for place in (0, 4, 16, 20, 43, 55)]  # one of them a conversation
    arrival = np.arange(len(few)) / 1000
    load = as_workload(few, arrival)
    asked = lm.Questions([prompt.turns for prompt in few], arrival)
    run = lm.serve_live(asked, policies.Continuous(4, 256), model, waits=False, clock=lm.step_clock())
    assert (load.arrival == run.arrival).all()
    assert (load.prompt_tokens == run.workload.prompt_tokens).all()
    assert (load.output_tokens == run.workload.output_tokens).all()
