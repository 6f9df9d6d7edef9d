"""Admission windows by hand: when an idle engine begins, and what the notes' window adds before every step."""

from course import Workload, policies, serve, steptime

SECOND = steptime.PowerLaw(t0=1, c=0, alpha=1)  # every step takes one second


def run(policy, arrival, output):
    load = Workload(arrival=arrival, prompt_tokens=[1] * len(arrival), output_tokens=output)
    return serve(load, policy, SECOND)


def test_an_idle_engine_waits_for_company():
    found = run(policies.Window(3, window=5), [10.0, 12.0], [2, 2])
    assert found.admitted.tolist() == [15, 15] and found.response.tolist() == [17, 17]


def test_a_full_batch_closes_the_window():
    assert run(policies.Window(2, window=5), [10.0, 11.0], [1, 1]).admitted.tolist() == [11, 11]


def test_between_steps_nobody_waits():
    """The second one comes while the first decodes, and joins at the next step."""
    found = run(policies.Window(3, window=5), [10.0, 16.5], [4, 1])
    assert found.admitted.tolist() == [15, 17]


def test_who_has_waited_for_a_slot_waits_no_longer():
    found = run(policies.Window(2, window=5), [10.0, 10.0, 10.5], [2, 2, 1])
    assert found.admitted.tolist() == [10, 10, 12]


def test_only_as_many_come_in_as_there_are_slots():
    found = run(policies.Window(2, window=5), [10.0, 10.0, 10.0, 10.0], [1, 2, 1, 1])
    assert found.admitted.tolist() == [10, 10, 11, 12]


def test_the_window_of_the_notes_before_every_step():
    """4 s after the first arrival, then a quarter of that before each step, whoever waits."""
    found = run(policies.NoteWindow(2, window=4), [10.0], [3])
    assert found.token_times(0).tolist() == [15, 17, 19]


def test_the_window_of_the_notes_begins_again_after_the_last_step():
    """One slot: the second has waited since 16, the engine falls idle at 19, and its window begins there."""
    found = run(policies.NoteWindow(1, window=4), [10.0, 16.0], [3, 1])
    assert found.admitted.tolist() == [14, 23]
