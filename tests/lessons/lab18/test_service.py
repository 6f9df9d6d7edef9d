"""Lab 18: the requests of a day, what a design is, and what drafts do to a step."""

import json
import shlex
from dataclasses import replace

import numpy as np
import pytest

from course import KVCache, Workload, flags, policies, serve, steptime
from course.engine.speculative import Speculative
from course.lessons.lab18 import drafted, scoring, service
from course.lessons.lab18.design import APART, Design, documents
from course.lessons.lab18.search import FLAGS, REFERENCE, TUNED, drawn


def test_a_day_has_the_requests_that_are_described():
    days = [service.day(seed) for seed in (service.SEEN, 2, 3, 4, 5)]
    busier = [service.day(seed) for seed in service.UNSEEN[:5]]
    chat = [(load.class_ == service.CHAT).sum() / service.SECONDS for load in days]
    # 48 x 0.91 = 43.7 a second; gaps with a CV of 2 over 20 s vary by some 7%, five days by 3%: two of these.
    assert np.mean(chat) == pytest.approx(service.RATE * (1 - service.DOCUMENTS), rel=0.07)
    documents = [(load.class_ == service.DOCS).sum() for load in (*days, *busier)]
    # Questions that would come after the end are left out: less than a third.
    assert all(0.67 * 86 < many <= 99 for many in documents)
    assert np.mean([len(load) for load in busier]) > np.mean([len(load) for load in days]) * 0.97
    assert service.day(3) == service.day(3) and service.day(3) != service.day(4)
    assert all(load.slo[row] == service.PROMISES[load.class_[row]] for load in days for row in (0, len(load) - 1))


def test_requests_share_what_they_are_said_to_share():
    load = service.day()
    prompts = {}
    for row, prefix in enumerate(load.prefix):
        assert len(prefix) * service.BLOCK < load.prompt_tokens[row] <= service.LONGEST
        prompts.setdefault(prefix, set()).add(load.class_[row])
    assert all(len(classes) == 1 for classes in prompts.values())
    chats = [prefix for prefix, classes in prompts.items() if classes == {service.CHAT}]
    assert sorted(len(prefix) * service.BLOCK for prefix in chats) == sorted(service.ASSISTANTS)
    blocks = [block for prefix in prompts for block in prefix]
    assert len(blocks) == len(set(blocks))  # no two prefixes have a block in common


def test_a_design_is_a_command_line_that_the_course_reads_back():
    design = replace(REFERENCE, tensor_parallel_size=2)
    lines = design.command.splitlines()
    text = "\n".join(line for line in lines if not line.startswith(("#", "vllm-router")))
    words = shlex.split(text.replace("\\\n", " "))
    drafts = json.loads(words[words.index("--speculative-config") + 1])
    assert drafts["num_speculative_tokens"] == design.num_speculative_tokens
    found = flags.parse(text.split(" \\\n  --speculative-config")[0], "H100")
    assert repr(found.policy) == repr(design.policy)
    assert (found.kv.kv_cache_dtype, found.kv.tensor_parallel_size) == ("fp8", 2)
    assert found.kv.enable_prefix_caching and found.kv.max_model_len == service.LONGEST
    assert lines[-1].startswith("vllm-router --policy cache_aware") and lines[-1].count("http://") == 2
    off = replace(REFERENCE, enable_prefix_caching=False, replicas=1)
    assert "--no-enable-prefix-caching" in off.command and "vllm-router" not in off.command
    assert "for documents" in TUNED.command
    assert Design().changed() == {} and Design(replicas=3).dollars_an_hour == 3 * service.PRICES["H100"]
    assert replace(design, replicas=3).cards == 6


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"card": "B300"}, "card is one of"),
        ({"routing": "random"}, "routing is one of"),
        ({"kv_cache_dtype": "int4"}, "kv_cache_dtype is one of"),
        ({"replicas": 0}, "replicas"),
        ({"replicas": 2.5}, "replicas"),
        ({"tensor_parallel_size": 3}, "8 KV heads"),
        ({"card": "L40S", "tensor_parallel_size": 2}, "nobody recorded"),
        ({"routing": APART}, "an engine for each class"),
        ({"num_speculative_tokens": 8}, "num_speculative_tokens"),
        ({"max_num_seqs": 1_024, "max_num_batched_tokens": 512}, "max_num_batched_tokens"),
        ({"enable_prefix_caching": "yes"}, "enable_prefix_caching"),
    ],
)
def test_what_no_engine_can_be_is_refused(wrong, said):
    with pytest.raises(ValueError, match=said):
        Design(**wrong)


def test_drawn_designs_use_every_flag_and_are_the_same_each_time():
    designs = [design for seed in range(10) for design in drawn(seed)]
    assert designs == [design for seed in range(10) for design in drawn(seed)]
    for name, values in FLAGS.items():
        assert {getattr(design, name) for design in designs} == set(values), name


def test_documents_get_a_quarter_of_the_engines():
    assert [documents(many) for many in (2, 3, 4, 5, 6, 8)] == [1, 1, 1, 1, 2, 2]


def test_drafted_steps_are_those_of_the_engine_that_draws_each_draft():
    """Without a prefix cache both can run: TTFT and TPOT of the same requests, drawn twice."""
    step = steptime.recorded("h100-llama3-8b")
    load = Workload.poisson(6, 150, 700, 120, seed=3)

    def head(sequences, drafts, context):
        return drafts * (drafted.HEAD_S + drafted.HEAD_EACH_S * sequences)

    for k in (1, 4):
        policy = policies.Continuous(256, 8_192)
        one_by_one = serve(load, policies.Drafting(policy, k), Speculative(step, head, drafted.ACCEPT), KVCache(26_000))
        short = replace(load, output_tokens=drafted.decode_steps(load, k))
        run = serve(short, policy, drafted.Drafted(step, k), KVCache(26_000))
        tpot = (run.response - run.first_computed) / (load.output_tokens - 1)
        # 150 answers of 119 tokens, two draws of what is accepted: a mean within some 1%; three of these.
        assert tpot.mean() == pytest.approx(one_by_one.tpot.mean(), rel=0.03)
        assert run.ttft.mean() == pytest.approx(one_by_one.ttft.mean(), rel=0.03)


def test_steps_that_emit_follow_the_formula():
    load = Workload(np.zeros(400), [10] * 400, [1_001] * 400)
    for k, accept in ((2, 0.7), (4, 0.5)):
        steps = drafted.decode_steps(load, k, accept)
        expected = (1 - accept ** (k + 1)) / (1 - accept)
        # 400 answers of 1,000 tokens read a ring of 16,384 draws: a mean within 0.5%; three of these.
        assert 1_000 / (steps - 1).mean() == pytest.approx(expected, rel=0.015)
    ones = Workload([0.0, 0.0], [10, 10], [1, 2])
    assert drafted.decode_steps(ones, 3).tolist() == [1, 2]
    assert (drafted.decode_steps(load, 3, 0.0) == 1_001).all() and (drafted.decode_steps(load, 3, 1.0) == 251).all()


@pytest.mark.parametrize("card", service.PRICES)
def test_step_times_are_the_courses_and_fp8_halves_the_context(card):
    plain, small = scoring.step_time(card), scoring.step_time(card, kv_cache_dtype="fp8")
    base, slope = plain.decode_line(32)
    assert small.decode_line(32) == (base, slope / 2)
    whole = plain.seconds(32, 50_000, 512, 512 * 513 // 2, 512)
    assert small.seconds(32, 50_000, 512, 512 * 513 // 2, 512) == pytest.approx(whole - slope * 25_000)
    assert scoring.blocks(card, kv_cache_dtype="fp8") in range(2 * scoring.blocks(card), 2 * scoring.blocks(card) + 2)
    kind = "recorded" if card in scoring.RECORDINGS else "modelled"
    assert plain.badge.startswith(kind)
