"""What commands take of each policy, read off the signatures."""

import pytest

from course import Workload, policies, serve, steptime
from course.cli import knobs
from course.policies import registry

SECOND = steptime.PowerLaw(t0=1, c=0, alpha=1)
LOAD = Workload([0.0, 0.0, 1.0], [5, 6, 7], [3, 4, 1])


@pytest.mark.parametrize("name", registry.POLICIES)
def test_every_policy_is_built_from_its_options_and_shows_itself(name):
    given = {option.name: option.default for option in knobs.OPTIONS}
    policy = knobs.build(name, given)
    assert type(policy) is registry.POLICIES[name] and getattr(policies, type(policy).__name__) is type(policy)
    assert policy.max_num_seqs == 64
    shown = repr(policy)
    assert shown.startswith(f"{type(policy).__name__}(") and "max_num_seqs=64" in shown
    assert len(serve(LOAD, policy, SECOND)) == 3


def test_settings_of_time_are_given_in_milliseconds():
    given = {option.name: option.default for option in knobs.OPTIONS}
    assert given["window_ms"] == 6 and given["max_queue_delay_ms"] == 100
    assert knobs.build("window", {**given, "window_ms": 250}).window == 0.25
    with pytest.raises(ValueError, match="window must be a number"):
        knobs.build("window", {**given, "window_ms": "soon"})
    with pytest.raises(ValueError, match="no policy is called 'fastest'; there are continuous, "):
        knobs.build("fastest", given)
    (slots,) = [option for option in knobs.OPTIONS if option.name == "max_num_seqs"]
    assert set(slots.policies) == set(registry.POLICIES) and not slots.help.startswith("continuous")
