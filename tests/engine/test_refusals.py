"""Settings and step times that cannot be are refused with a sentence."""

import math
from dataclasses import replace

import numpy as np
import pytest

from course import KVCache, Workload, policies, serve, steptime
from course.models import model
from course.models.gpus import gpu
from tests.helpers.asking import serve_asking

pytestmark = pytest.mark.filterwarnings("error")  # a NumPy warning would mean that a bad number got through

SECOND = steptime.PowerLaw(t0=1, c=0, alpha=1)
LOAD = Workload([0.0, 0.0, 1.0], [5, 6, 7], [3, 4, 1])
POLICY = policies.Continuous(max_num_seqs=2, max_num_batched_tokens=8)
ALL = (POLICY, policies.Static(2), policies.Dynamic(2, 0.5))
RUN = serve(LOAD, POLICY, SECOND)

NO_NUMBER = [math.nan, math.inf, -math.inf, None, True, "8", [1], 1j, np.array([1.0, 2.0]), 10**400]
NO_COUNT = [*NO_NUMBER, -1, 2.5, 10**10]

COUNTS = {  # setting -> how to give it; none of them may be 0
    "num_blocks": lambda bad: KVCache(bad),
    "block_size": lambda bad: KVCache(8, bad),
    "max_num_seqs": lambda bad: policies.Continuous(bad, 8),
    "max_num_seqs ": lambda bad: policies.Static(bad),
    "max_num_seqs  ": lambda bad: policies.Dynamic(bad, 1),
    "max_num_batched_tokens": lambda bad: policies.Continuous(2, bad),
    "num_layers": lambda bad: replace(model("llama-3.1-8b"), num_layers=bad),
    "vocab_size": lambda bad: replace(model("llama-3.1-8b"), vocab_size=bad),
    "kv_bytes_per_element": lambda bad: replace(model("llama-3.1-8b"), kv_bytes_per_element=bad),
}
COUNTS_FROM_0 = {
    "long_prefill_token_threshold": lambda bad: policies.Continuous(2, 8, long_prefill_token_threshold=bad),
    "kernels": lambda bad: steptime.Roofline("llama-3.1-8b", "H100", kernels=[] if bad is None else bad),
    "the number of a request": lambda bad: RUN.token_times(bad),
}
POSITIVE = {
    "read_bandwidth": lambda bad: replace(gpu("H100"), read_bandwidth=bad),
    "matrix_flops": lambda bad: replace(gpu("H100"), matrix_flops=bad),
    **{
        f"{name}_slo": lambda bad, name=name: RUN.summary(**{f"{name}_slo": "" if bad is None else bad})
        for name in ("ttft", "tpot", "e2e")
    },
}
FROM_0 = {
    "max_queue_delay": lambda bad: policies.Dynamic(2, bad),
    "seconds_per_kernel": lambda bad: replace(gpu("H100"), seconds_per_kernel=bad),
    "warmup": lambda bad: RUN.summary(warmup=bad),
    **{
        name: lambda bad, name=name: steptime.PowerLaw(**{"t0": 1, "c": 1, "alpha": 1, name: bad})
        for name in ("t0", "c", "alpha", "prefill", "context", "pairs")
    },
}
TIMES = {
    "start": lambda bad: RUN.little(start="" if bad is None else bad),
    "end": lambda bad: RUN.little(end="" if bad is None else bad),
}


def refused(settings, bad_values):
    return [
        pytest.param(name.strip(), give, bad, id=f"{name}={str(bad)[:20]}")
        for name, give in settings.items()
        for bad in bad_values
    ]


@pytest.mark.parametrize(
    ("name", "give", "bad"),
    refused(COUNTS, [*NO_COUNT, 0])
    + refused(COUNTS_FROM_0, NO_COUNT)
    + refused(POSITIVE, [*NO_NUMBER, 0, -1])
    + refused(FROM_0, [*NO_NUMBER, -1e-9])
    + refused(TIMES, NO_NUMBER),
)
def test_a_setting_that_is_no_usable_number_is_named(name, give, bad):
    with pytest.raises(ValueError, match=rf"^{name} must be a .*not ") as refusal:
        give(bad)
    assert len(str(refusal.value)) < 200  # a sentence, whatever was given


@pytest.mark.parametrize("bad", [1, 0, None, "yes", math.nan])
@pytest.mark.parametrize("name", ["enable_chunked_prefill", "scheduler_reserve_full_isl"])
def test_a_flag_is_true_or_false(name, bad):
    with pytest.raises(ValueError, match=f"^{name} must be True or False, not "):
        policies.Continuous(2, 8, **{name: bad})


@pytest.mark.parametrize("bad", [1e11, 1e300])
@pytest.mark.parametrize("name", ["t0", "c", "alpha", "prefill", "context", "pairs"])
def test_a_huge_constant_is_refused(name, bad):
    with pytest.raises(ValueError, match=f"^{name} must be a finite number from 0 to "):
        FROM_0[name](bad)


@pytest.mark.parametrize("constants", [(0, 0, 1), (0, 1, 1), (0, 0, 1, 1), (1e-300, 0, 1), (0, 1, 1, 1e-13)])
def test_a_step_must_take_time(constants):
    with pytest.raises(ValueError, match=r"^a step must take time, .*: give t0, or both c and prefill, a value above"):
        steptime.PowerLaw(*constants)


def test_names_that_nobody_knows():
    for bad in ("gpt-9", None, 5, ["llama-3.1-8b"]):
        with pytest.raises(ValueError, match=r"no model is called .*known models: .*llama-3.1-8b"):
            steptime.Roofline(bad, "H100")
        with pytest.raises(ValueError, match=r"no GPU is called .*; known GPUs: .*H100"):
            steptime.Roofline("llama-3.1-8b", bad)


def test_continuous_settings_that_contradict_each_other():
    with pytest.raises(
        ValueError, match="max_num_batched_tokens=7 is smaller than one decode for each of max_num_seqs=8"
    ):
        policies.Continuous(8, 7)
    with pytest.raises(ValueError, match="long_prefill_token_threshold needs enable_chunked_prefill=True"):
        policies.Continuous(8, 64, enable_chunked_prefill=False, long_prefill_token_threshold=5)


@pytest.mark.parametrize("run", [serve, serve_asking])
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (([1, 2], POLICY, SECOND), r"the first argument must be a Workload, not \[1, 2\]"),
        ((LOAD, None, SECOND), "the second argument must be a policy with a schedule method, not None"),
        ((LOAD, policies.Static, SECOND), "the second argument must be a policy, .* not the class Static itself"),
        ((LOAD, POLICY, 0.1), "the third argument must be a step time, a callable from a Step to seconds, not 0.1"),
        ((LOAD, POLICY, steptime.Roofline), "the third argument must be a step time, .* not the class Roofline itself"),
        ((LOAD, POLICY, SECOND, 100), "the cache must be a KVCache or None, not 100"),
    ],
)
def test_arguments_of_another_kind(run, arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        run(*arguments)


@pytest.mark.parametrize(("start", "end"), [(2, 1), (1, 1), (0, 1e-300), (-1, -2)])
def test_a_window_must_end_after_it_starts(start, end):
    with pytest.raises(ValueError, match="the window must end after it starts, not run from"):
        RUN.little(start, end)


def test_a_warmup_after_which_nobody_arrives():
    with pytest.raises(ValueError, match=r"no request arrives after a warm-up of 2 s: the last arrival is at 1 s"):
        RUN.summary(warmup=2)


@pytest.mark.parametrize("bad", [-1, 3, 10**30, 0.5, math.nan])
def test_there_is_no_such_request(bad):
    with pytest.raises(ValueError, match="the number of a request must be a whole number from 0 to 2, not "):
        RUN.token_times(bad)


# Step times


BAD_SECONDS = [math.nan, math.inf, -math.inf, -1.0, 0.0, 0, None, True, "1", [1.0], 1j, 1e300, 1e-300, 10**400]


@pytest.mark.parametrize("bad", BAD_SECONDS, ids=lambda bad: repr(bad)[:12])
@pytest.mark.parametrize("policy", ALL, ids=lambda policy: type(policy).__name__)
def test_a_callable_that_gives_no_usable_seconds(policy, bad):
    with pytest.raises(
        ValueError, match=r"^the step time must be .*; it was asked for Step\(decodes=0, .*prefill_chunks"
    ):
        serve(LOAD, policy, lambda step: bad)


class Model(steptime.StepTimeModel):
    """Somebody's own model, which the fast loops take as it is."""

    def __init__(self, prompt, line, alone=None):
        self.prompt, self.line, self.alone = prompt, line, alone

    def seconds(self, decodes, decode_context, tokens, pairs, prefill_context):
        if tokens:
            return self.prompt
        base, slope = self.alone or self.line
        return base + slope * decode_context

    def decode_line(self, decodes):
        return self.line


@pytest.mark.parametrize("bad", BAD_SECONDS, ids=lambda bad: repr(bad)[:12])
@pytest.mark.parametrize("policy", ALL, ids=lambda policy: type(policy).__name__)
def test_a_model_that_gives_no_usable_seconds(policy, bad):
    with pytest.raises(ValueError, match=r"^the step time must be .*; it was asked for 0 decodes over 0 tokens and "):
        serve(LOAD, policy, Model(bad, (1.0, 0.0)))


@pytest.mark.parametrize("policy", ALL, ids=lambda policy: type(policy).__name__)
@pytest.mark.parametrize(
    "line", [(math.nan, 0.0), (-1.0, 0.0), (1.0, -1e-9), (0.0, 0.0), (1.0, math.inf), (1.0, None), (1.0,), None, 5]
)
def test_a_model_whose_line_cannot_be(policy, line):
    with pytest.raises(ValueError, match=r"decode_line|the step time must be"):
        serve(LOAD, policy, Model(1.0, line, alone=(1.0, 0.0) if line in (None, 5, (1.0,)) else None))


@pytest.mark.parametrize("policy", ALL, ids=lambda policy: type(policy).__name__)
def test_a_model_whose_line_says_something_else_than_its_seconds(policy):
    with pytest.raises(ValueError, match="decode_line and seconds must agree to the last bit"):
        serve(LOAD, policy, Model(1.0, (1.0, 0.0), alone=(1.0, 1e-9)))
    good = Model(1.0, (1.0, 0.25))
    assert np.array_equal(serve(LOAD, policy, good).e2e, serve_asking(LOAD, policy, good).e2e)


def test_a_model_without_its_methods():
    with pytest.raises(NotImplementedError, match="StepTimeModel needs a method `seconds`"):
        serve(LOAD, POLICY, steptime.StepTimeModel())


def test_an_error_of_the_step_time_itself_passes():
    with pytest.raises(ZeroDivisionError):
        serve(LOAD, POLICY, lambda step: 1 / 0)


@pytest.mark.parametrize("policy", ALL, ids=lambda policy: type(policy).__name__)
@pytest.mark.parametrize("output", [1, 50])
def test_a_clock_that_stands_still(policy, output):
    late = Workload([1e9], [5], [output])  # floats are 1.2e-7 s apart there
    with pytest.raises(ValueError, match=r"the clock stands still at 1e\+09 s: floats are 1e-07 s apart there"):
        serve(late, policy, steptime.PowerLaw(t0=1e-8, c=0, alpha=1))
    assert serve(late, policy, steptime.PowerLaw(t0=1e-3, c=0, alpha=1)).makespan > 0


@pytest.mark.parametrize("policy", ALL, ids=lambda policy: type(policy).__name__)
def test_the_largest_and_the_smallest_step_times(policy):
    for step_time in (steptime.PowerLaw(1e-12, 0, 0), steptime.PowerLaw(*[1e10] * 2, 10, *[1e10] * 3)):
        summary = serve(LOAD, policy, step_time).summary()
        assert all(
            math.isfinite(value)
            for name, value in summary.items()
            if not name.startswith(("tpot", "itl", "kv", "token"))
        )
