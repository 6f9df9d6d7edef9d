"""The live executor: its tokens are those of each request computed alone, its times those of a simulator."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course import KVCache, Workload, policies, serve, steptime
from course.engine.live import serve_live
from course.engine.step import Step as StepParts
from course.gpu.ops import numbers
from course.gpu.ops.queue import Queue
from course.gpu.transformer import Llama, Shape, Weights, reference
from course.lm.sampling import Sampling, cumulate, uniform
from course.policies import Request
from tests.helpers.strategies import examples
from tools.gpu.captured import AsCaptured, CaptureSizes, Overhead, Warmth, captured_seconds, prompt_share
from tools.gpu.live import LiveLlama, replayed, summary
from tools.gpu.padded import PaddedStep

TINY = Shape(layers=2, hidden=64, inner=96, heads=4, kv_heads=2, width=32, vocabulary=80)
SIZES = CaptureSizes(tokens=(8, 24), chunks=(1, 3), decodes=3, alone=2)
# float32 sums of 96 numbers in another order; two logits that differ by less than this could change places.
NEAR = 2e-5
LOAD = Workload([0.0, 0.0, 0.001, 0.002, 0.3], [20, 3, 33, 9, 17], [6, 12, 4, 9, 1])
PADDED = Workload([0.0, 0.0, 0.1], [3, 40, 20], [62, 9, 5])  # 40 + 62 tokens are more than the executor's longest
GROWING = Workload([0.0] * 3, [15] * 3, [12] * 3)  # of one block each, and two in the end


class Tiny:
    def __init__(self, queue: Queue, **settings):
        arrays = reference.random_arrays(TINY, 7)
        self.exact = {name: numbers.decode(numbers.encode(value, "fp32"), "fp32") for name, value in arrays.items()}
        weights = Weights.given(queue, TINY, arrays, kind="fp32")
        self.llama = Llama(queue, TINY, blocks=20, weights=weights, max_tokens=160, max_sequences=16, max_positions=96)
        self.live = LiveLlama(self.llama, longest=64, sizes=SIZES, **settings)

    def greedy(self, prompt, tokens):
        """The answer that plain NumPy gives to a prompt, and whether a tie could have changed it."""
        known, close = list(prompt), False
        for _ in range(tokens):
            logits = reference.forward(TINY, self.exact, np.array(known))[-1]
            second, first = np.sort(logits)[-2:]
            close |= first - second < NEAR * np.abs(logits).max()
            known.append(int(logits.argmax()))
        return known[len(prompt) :], close


@pytest.fixture
def tiny(on: Queue) -> Tiny:
    return Tiny(on)


@pytest.mark.parametrize(
    ("load", "policy", "cache"),
    [
        (LOAD, policies.Continuous(4, 24), KVCache(20, 16)),
        (LOAD, policies.Continuous(4, 40, enable_chunked_prefill=False), KVCache(20, 16)),
        (GROWING, policies.Continuous(5, 24), KVCache(4, 16)),
        (LOAD, policies.Static(3), KVCache(20, 16)),
        (PADDED, policies.Dynamic(2, 0.001), KVCache(20, 16)),
    ],
    ids=["chunked", "whole", "preempted", "static", "dynamic"],
)
def test_tokens_are_those_of_each_request_alone_and_times_those_of_a_simulator(tiny: Tiny, load, policy, cache) -> None:
    run = serve_live(load, policy, tiny.live, cache)
    assert run.workload == load
    if load is GROWING:
        assert run.preempted.sum() > 0
    for i in range(len(load)):
        prompt, answer = np.split(tiny.live.tokens[i], [load.prompt_tokens[i]])
        expected, close = tiny.greedy(prompt, load.output_tokens[i])
        assert close or answer.tolist() == expected
    again = serve(load, policy, replayed(tiny.live.seconds), cache)
    for name in ("ttft", "e2e", "admitted", "response"):
        assert np.array_equal(getattr(run, name), getattr(again, name), equal_nan=True), name
    assert summary(run) == pytest.approx(summary(again), rel=0, nan_ok=True)
    timings, steps = tiny.live.timings, len(tiny.live.seconds)
    assert len(timings.gpu) == len(timings.inputs) == len(timings.after) == steps == len(run.steps.start)
    parts = np.array(timings.parts)
    assert np.array_equal(parts[:, 2], run.steps.decodes) and np.array_equal(parts[:, 0], run.steps.prefill_tokens)
    spent = np.array(timings.gpu) + timings.inputs + timings.after
    assert (spent <= np.array(tiny.live.seconds)).all()


def test_two_runs_of_one_executor_and_what_was_captured_before(on: Queue) -> None:
    tiny = Tiny(on, prompts=lambda request: np.arange(request.prompt_tokens) + request.index)
    tiny.live.capture(SIZES.up_to(24, 3, 4))
    answers = []
    for _ in range(2):
        serve_live(LOAD, policies.Continuous(4, 24), tiny.live, KVCache(20, 16))
        answers.append([tiny.live.tokens[i].tolist() for i in range(len(LOAD))])
        assert not tiny.live.late
        tiny.live.start_over()
    assert answers[0] == answers[1]
    assert answers[0][1][:3] == [1, 2, 3]


def test_a_step_with_room_to_spare_gives_the_logits_of_a_step_without(tiny: Tiny) -> None:
    llama, rng = tiny.llama, np.random.default_rng(3)
    whole = PaddedStep(llama, chunk_tokens=60, chunks=3, decodes=4, longest=64)
    tight = PaddedStep(llama, chunk_tokens=7, chunks=1, decodes=0, longest=64)
    sequences = [rng.integers(0, 80, n) for n in (30, 12, 7)]
    tables = [[3, 1], [7], [2]]
    parts = {"chunks": [(30, 0), (11, 0)]}
    whole.write_parts(np.concatenate([sequences[0], sequences[1][:11]]), tables[:2], **parts)
    whole.run()
    for _ in range(2):  # what an earlier step left behind changes nothing
        whole.write_parts([*sequences[2], sequences[1][11]], [tables[2], tables[1]], chunks=[(7, 0)], lengths=[12])
        whole.run()
        found = whole.answers(whole.logits(), 1, 1)
        for row, ids in zip(found, (sequences[2], sequences[1]), strict=True):
            right = reference.forward(TINY, tiny.exact, ids)[-1]
            assert np.abs(row - right).max() < NEAR * np.sqrt((right * right).mean())
        assert whole.answers(whole.chosen(), 1, 1).tolist() == found.argmax(1).tolist()
    tight.write_parts(sequences[2], [[9]], chunks=[(7, 0)])
    tight.run()
    assert np.abs(tight.logits()[0] - found[0]).max() < NEAR * np.abs(found).max()


def test_a_sampled_step_draws_what_the_sampling_of_the_small_model_draws(on: Queue) -> None:
    how = Sampling(temperature=2.0, top_k=30, top_p=0.9, seed=5)
    tiny = Tiny(on, sampling=how)
    serve_live(LOAD, policies.Continuous(4, 24), tiny.live, KVCache(20, 16))
    right = greedy = 0
    for i in range(len(LOAD)):
        known = tiny.live.tokens[i]
        for place in range(LOAD.prompt_tokens[i], len(known)):
            logits = reference.forward(TINY, tiny.exact, known[:place])[-1:]
            # A draw as near to an edge as float32 logits are to float64's may fall to either side.
            draw = uniform(how.seed, np.array([i]), np.array([place]))
            edges = cumulate(logits, how.temperature, how.top_k, how.top_p)[0]
            near = np.abs(edges - draw).min() < NEAR
            right += near or known[place] == how.choose(logits, np.array([i]), np.array([place]))[0]
            greedy += known[place] == logits.argmax()
    assert right == LOAD.output_tokens.sum() > greedy


@given(st.integers(1, 30), st.integers(0, 5), st.integers(0, 9))
@examples(200)
def test_a_step_fits_into_its_size_and_the_size_is_among_those_captured(tokens, chunks, decodes) -> None:
    chunks = min(chunks, tokens)
    tokens = tokens if chunks else 0
    if not chunks and not decodes:
        return
    size = SIZES.of(tokens, chunks, decodes)
    assert all(place >= used for place, used in zip(size, (tokens, chunks, decodes), strict=True))
    assert size in SIZES.up_to(30, 5, 9)
    assert SIZES.of(*size) == size
    if not chunks and decodes <= 2:
        assert size == (0, 0, decodes)


def test_the_step_time_is_the_recorded_one_of_the_captured_size_and_the_overhead() -> None:
    recorded = steptime.recorded("h100-llama3-8b")
    model = AsCaptured(recorded, CaptureSizes(), Overhead(1e-4, 1e-6, 1e-5))
    alone = StepParts(20, 20_000, ())
    assert model(alone) == recorded(alone) + 1e-4 + 20e-6
    # 33 decodes run as 40, of which 7 attend to themselves.
    assert model(StepParts(33, 33_000, ())) == pytest.approx(recorded(StepParts(40, 33_007, ())) + 1.33e-4, rel=1e-12)
    # 500 prompt tokens of two prompts and 3 decodes run as 512 and 8; the pairs are those that there are.
    pairs = 300 * 301 // 2 + 200 * 201 // 2 + 200 * 50
    found = model(StepParts(3, 900, ((300, 0), (200, 50))))
    assert found == pytest.approx(recorded.seconds(8, 905, 512, pairs, 550) + 1e-4 + 3e-6 + 2e-5, rel=1e-12)


def test_the_host_is_what_the_card_does_not_explain(on: Queue) -> None:
    live = Tiny(on).live
    rng = np.random.default_rng(1)
    true = Overhead(2e-4, 5e-6, 3e-5)
    for _ in range(300):
        tokens, chunks, decodes = int(rng.integers(0, 99)), int(rng.integers(0, 4)), int(rng.integers(0, 30))
        live.timings.parts.append((tokens, chunks, decodes))
        live.timings.gpu.append(rng.uniform(1e-3, 9e-3))
        live.seconds.append(live.timings.gpu[-1] + true(decodes, chunks))
    live.seconds[17] += 0.5  # somebody else had the machine
    found = live.host()
    # Three of 300 steps are cut to the 99th percentile, which bends a constant by a percent or two.
    assert [found.step, found.decode, found.chunk] == pytest.approx([2e-4, 5e-6, 3e-5], rel=0.05)
    assert [found.prompt, found.warm, found.warm_decodes] == [0, 0, 0]


def test_the_card_is_what_the_recording_does_not_explain(on: Queue) -> None:
    """Steps as `AsCaptured` makes them, with a host of its own beside: the card's constants come back."""
    live = LiveLlama(Tiny(on).llama, longest=64)
    recorded, rng = steptime.recorded("h100-llama3-8b"), np.random.default_rng(2)
    card, host = Overhead(1e-4, 2e-6, 4e-4, -0.03, 0.15, 0.06, 0.05), Overhead(5e-4, 1e-5, 2e-4)
    together = AsCaptured(recorded, live.sizes, card.beside(host))
    assert card.beside(host)(7, 2) == pytest.approx(card(7, 2) + host(7, 2))
    with pytest.raises(ValueError, match="only a card has a warmth, not the host"):
        host.beside(card)
    while len(live.seconds) < 2_000:
        prompts = rng.random() < 0.4
        for _ in range(int(rng.integers(1, 20))):
            decodes = int(rng.integers(1, 30))
            chunks = tuple((int(rng.integers(30, 500)), 0) for _ in range(int(prompts) * int(rng.integers(1, 4))))
            step = StepParts(decodes, int(rng.integers(300, 900)) * decodes, chunks)
            live.seconds.append(together(step))
            live.timings.gpu.append(live.seconds[-1] - host(decodes, len(chunks)))
            live.timings.parts.append((step.prefill_tokens, len(chunks), decodes))
            live.timings.context.append((step.decode_context, step.prefill_pairs))
    found = live.card(recorded)
    assert found.memory == card.memory
    for name in ("step", "decode", "chunk", "prompt", "warm", "warm_decodes"):
        assert getattr(found, name) == pytest.approx(getattr(card, name), rel=1e-4), name


def test_refusals(tiny: Tiny) -> None:
    with pytest.raises(ValueError, match="request 1 grows to 65 tokens, and this executor was made for 64"):
        serve_live(Workload([0.0, 0.0], [5, 60], [1, 6]), policies.Continuous(2, 24), tiny.live, KVCache(20, 16))
    with pytest.raises(ValueError, match="give output_tokens"):
        tiny.live.expect(Request(0.0, 5), None)
    with pytest.raises(ValueError, match="sequence 0 has 20 blocks, and its table has room for 4"):
        serve_live(LOAD, policies.Continuous(2, 24), LiveLlama(tiny.llama, longest=64, sizes=SIZES), KVCache(99, 1))
    odd = LiveLlama(tiny.llama, longest=64, sizes=SIZES, prompts=lambda request: [1, 2])
    with pytest.raises(ValueError, match=r"the prompt of Request\(0, .* must be 20 tokens"):
        serve_live(LOAD, policies.Continuous(2, 24), odd, KVCache(20, 16))
    for change, sentence in [
        ({"chunk_tokens": 2, "chunks": 3}, "3 chunks of 2 prompt tokens together are impossible"),
        ({"chunk_tokens": 2, "chunks": 0}, "0 chunks of 2"),
        ({"longest": 97}, "longest"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            PaddedStep(tiny.llama, **({"chunk_tokens": 8, "chunks": 2, "decodes": 1, "longest": 64} | change))
    step = PaddedStep(tiny.llama, chunk_tokens=8, chunks=2, decodes=1, longest=32)
    good = {"ids": [1, 2, 3, 4], "tables": [[0], [1]], "chunks": [(3, 0)], "lengths": [5]}
    step.write_parts(**good)
    for change, sentence in [
        ({"chunks": [(9, 0)]}, "9 prompt tokens in 1 chunks and 1 decodes: this step was prepared for 8 in 2 and 1"),
        ({"lengths": [5, 5]}, "3 prompt tokens in 1 chunks and 2 decodes"),
        ({"ids": [1, 2, 3]}, "this takes 4 whole numbers as ids and 2 block tables"),
        ({"ids": [1, 2, 3, 80]}, "token 80 is outside the vocabulary of 80"),
        ({"tables": [[0], [20]]}, "block 20 of sequence 1 is outside the cache of 20 blocks"),
        ({"tables": [[0], []]}, "sequence 1 has 5 tokens, 0 blocks of 16"),
        ({"lengths": [0]}, "a length of 0 tokens"),
        ({"lengths": [33]}, "it must be 1 to 32"),
        ({"chunks": [(3, 30)]}, "sequence 0 has 33 tokens, 1 blocks of 16"),
        ({"tables": [[0], [0]], "lengths": [3]}, "the same slot"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            step.write_parts(**(good | change))


def test_a_card_that_computed_prompts_is_warm_and_recovers() -> None:
    warmth = Warmth(memory=0.2)
    assert [warmth.add(1.0, 0.1) for _ in range(3)] == pytest.approx([0, 1 - np.exp(-0.5), 1 - np.exp(-1.0)])
    assert warmth.add(0.0, 0.3) == pytest.approx(1 - np.exp(-1.5))
    assert warmth.now == pytest.approx((1 - np.exp(-1.5)) * np.exp(-1.5))
    assert Warmth(0.2).add(0.5, 1e9) == 0 and 0 <= warmth.now <= 1


def test_after_prompts_a_step_with_a_prompt_takes_longer() -> None:
    recorded, sizes = steptime.recorded("h100-llama3-8b"), CaptureSizes()
    prompt, decodes = StepParts(8, 8_000, ((512, 0),)), StepParts(8, 8_000, ())
    plain = AsCaptured(recorded, sizes, Overhead(1e-3, 0, 0))
    model = AsCaptured(recorded, sizes, Overhead(1e-3, 0, 0, prompt=-0.01, warm=0.1, warm_decodes=0.05, memory=0.05))
    first, *others = (model(prompt) / (plain(prompt) - 1e-3) - 1e-3 / (plain(prompt) - 1e-3) for _ in range(40))
    assert first == pytest.approx(0.99) and all(np.diff(others) > 0)
    # In the end the warmth is the share of a step that its prompt adds to the decodes.
    seconds = captured_seconds(recorded, sizes, (512, 1, 8), 8_000, prompt.prefill_pairs)
    share = prompt_share(recorded, sizes, (512, 1, 8), 8_000, seconds)
    assert share == pytest.approx(1 - captured_seconds(recorded, sizes, (0, 0, 8), 8_000, 0) / seconds)
    assert others[-1] == pytest.approx(0.99 + 0.1 * share, rel=1e-4)
    assert model(decodes) == pytest.approx((1 + 0.05 * share) * (plain(decodes) - 1e-3) + 1e-3, rel=1e-3)
    for _ in range(200):
        model(decodes)
    assert model(decodes) == pytest.approx(plain(decodes), rel=1e-6)
    assert model(prompt) == pytest.approx(0.99 * (plain(prompt) - 1e-3) + 1e-3, rel=1e-6)
