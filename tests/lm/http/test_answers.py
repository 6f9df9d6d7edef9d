"""What the server answers: the model's words, whole and as a stream, for one and for many at once."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from course import policies, results
from tests.lm.http.conftest import serving

ASK, LONG = "Count from 3 to 9.", "Count from 1 to 40."


def completion(**fields):
    return {"model": "course-lm", "prompt": ASK, "max_tokens": 60, "temperature": 0, **fields}


def chat(*turns, **fields):
    messages = [{"role": "assistant" if i % 2 else "user", "content": turn} for i, turn in enumerate(turns or (ASK,))]
    return {"model": "course-lm", "messages": messages, "temperature": 0, **fields}


def events(response):
    lines = [line for line in response.text.split("\n\n") if line]
    assert all(line.startswith("data: ") for line in lines) and lines[-1] == "data: [DONE]"
    return [json.loads(line[6:]) for line in lines[:-1]]


def test_a_completion(server, model):
    found = server.client.post("/v1/completions", json=completion()).raise_for_status().json()
    assert found["object"] == "text_completion" and found["model"] == "course-lm"
    assert found["choices"] == [{"index": 0, "logprobs": None, "finish_reason": "stop", "text": model.answer(ASK)}]
    prompt = len(model.prompt(ASK))
    length = len(model.tokenizer.encode(model.answer(ASK))) + 1
    assert found["usage"] == {
        "prompt_tokens": prompt, "completion_tokens": length, "total_tokens": prompt + length,
    }  # fmt: skip


def test_a_conversation(server, model):
    turns = ["My name is Mia.", "Hello Mia! It is nice to meet you.", "What is my name?"]
    found = server.client.post("/v1/chat/completions", json=chat(*turns)).raise_for_status().json()
    assert found["object"] == "chat.completion"
    assert found["choices"][0]["message"] == {"role": "assistant", "content": model.answer(turns)}
    assert "Mia" in found["choices"][0]["message"]["content"]


def test_parts_and_an_empty_system_message(server, model):
    messages = [
        {"role": "system", "content": ""},
        {"role": "user", "content": [{"type": "text", "text": "Count from "}, {"type": "text", "text": "3 to 9."}]},
    ]
    found = server.client.post("/v1/chat/completions", json={"messages": messages, "temperature": 0}).json()
    assert found["choices"][0]["message"]["content"] == model.answer(ASK)


# What load generators send beyond a prompt


@pytest.mark.parametrize("role", ["system", "developer"])
def test_a_system_message_stands_before_the_users_first_words(server, model, role):
    messages = [{"role": role, "content": "You are kind."}, {"role": "user", "content": ASK}]
    found = server.client.post("/v1/chat/completions", json={"messages": messages, "temperature": 0}).json()
    assert found["choices"][0]["message"]["content"] == model.answer(f"You are kind.\n{ASK}")
    assert found["usage"]["prompt_tokens"] == len(model.prompt(f"You are kind.\n{ASK}"))


def test_several_prompts_and_several_answers(server, model):
    texts = ["Count from 3 to 9.", "Spell owl."]
    found = server.client.post("/v1/completions", json=completion(prompt=texts, n=2)).json()
    assert [choice["index"] for choice in found["choices"]] == [0, 1, 2, 3]
    assert [choice["text"] for choice in found["choices"]] == [model.answer(text) for text in texts for _ in range(2)]
    lengths = [2 * (len(model.tokenizer.encode(model.answer(text))) + 1) for text in texts]
    prompts = sum(len(model.prompt(text)) for text in texts)
    assert found["usage"] == {
        "prompt_tokens": prompts, "completion_tokens": sum(lengths), "total_tokens": prompts + sum(lengths),
    }  # fmt: skip
    server.wait_for(lambda: server.metric("vllm:num_requests_running") == 0)


def test_several_answers_in_a_stream(server, model):
    asked = completion(prompt=["Spell owl.", ASK], stream=True, stream_options={"include_usage": True})
    *pieces, usage = events(server.client.post("/v1/completions", json=asked))
    texts = ["", ""]
    for piece in pieces:
        texts[piece["choices"][0]["index"]] += piece["choices"][0]["text"]
    assert texts == [model.answer("Spell owl."), model.answer(ASK)]
    assert usage["usage"]["completion_tokens"] == len(pieces)


def test_answers_drawn_for_one_request_differ_and_come_again(server):
    asked = completion(n=3, temperature=4.0, seed=5, max_tokens=20)
    first, second = (
        [choice["text"] for choice in server.client.post("/v1/completions", json=asked).json()["choices"]] for _ in "ab"
    )
    assert first == second and len(set(first)) == 3


def test_more_answers_than_may_be_here_are_refused_together(server):
    assert server.client.post("/v1/completions", json=completion(n=100)).status_code == 429
    server.wait_for(lambda: not server.service._here)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("stop", ["7", ["no such text", ", 7"], [" 5, 6", "9"], ["3", ""]])
def test_a_stop_text_ends_the_answer_before_it(server, model, stop, stream):
    whole = model.answer(ASK)
    ends = [whole.index(one) for one in ([stop] if isinstance(stop, str) else stop) if one and one in whole]
    response = server.client.post("/v1/completions", json=completion(stop=stop, stream=stream))
    choices = [one["choices"][0] for one in (events(response) if stream else [response.json()])]
    assert "".join(choice["text"] for choice in choices) == whole[: min(ends)]
    assert choices[-1]["finish_reason"] == "stop"


def test_a_stop_text_that_does_not_come_changes_nothing(server, model):
    for stop in ("", [], "9x", whole_and_more(model)):
        found = server.client.post("/v1/completions", json=completion(stop=stop)).json()
        assert found["choices"][0]["text"] == model.answer(ASK)


def whole_and_more(model):
    return model.answer(ASK) + "x"


def test_top_p(server, model):
    def ask(**fields):
        found = server.client.post("/v1/completions", json=completion(temperature=4.0, seed=3, max_tokens=20, **fields))
        return found.json()["choices"][0]["text"]

    assert ask(top_p=1e-9) == ask(top_k=1) and ask(top_p=1) == ask() != ask(top_p=1e-9)
    assert model.answer(ASK).startswith(ask(top_p=1e-9)[:3])


def test_what_cannot_matter_is_ignored_and_a_header_says_so(server, model):
    for stream in (False, True):
        asked = completion(top_p=0.9, top_k=5, user="me", seed=3, stream=stream)
        response = server.client.post("/v1/completions", json=asked).raise_for_status()
        assert response.headers["X-Ignored-Fields"] == "seed, top_k, top_p, user"
    assert "X-Ignored-Fields" not in server.client.post("/v1/completions", json=completion()).headers


@pytest.mark.parametrize("kind", ["completions", "chat/completions"])
def test_a_stream(server, model, kind):
    asked = completion() if kind == "completions" else chat()
    asked |= {"stream": True, "stream_options": {"include_usage": True}}
    response = server.client.post(f"/v1/{kind}", json=asked).raise_for_status()
    assert response.headers["content-type"].startswith("text/event-stream")
    *pieces, usage = events(response)
    assert len(pieces) == usage["usage"]["completion_tokens"]
    assert usage["choices"] == []
    choices = [piece["choices"][0] for piece in pieces]
    texts = [one["text"] if kind == "completions" else one["delta"]["content"] for one in choices]
    assert "".join(texts) == model.answer(ASK)
    assert [one["finish_reason"] for one in choices] == [None] * (len(pieces) - 1) + ["stop"]
    assert len({piece["id"] for piece in pieces}) == 1
    assert "usage" not in pieces[0]


def test_running_usage(server):
    options = {"include_usage": True, "continuous_usage_stats": True}
    found = events(server.client.post("/v1/completions", json=completion(stream=True, stream_options=options)))
    assert [one["usage"]["completion_tokens"] for one in found] == [*range(1, len(found)), len(found) - 1]


def test_max_tokens(server, model):
    found = server.client.post("/v1/completions", json=completion(max_tokens=4)).json()
    assert found["choices"][0]["finish_reason"] == "length" and found["usage"]["completion_tokens"] == 4
    assert model.answer(ASK).startswith(found["choices"][0]["text"])
    default = server.client.post("/v1/completions", json=completion(prompt=LONG, max_tokens=None)).json()
    assert default["usage"]["completion_tokens"] == 16
    more = server.client.post("/v1/chat/completions", json=chat(LONG)).json()
    assert more["usage"]["completion_tokens"] > 16 and more["choices"][0]["finish_reason"] == "stop"


def test_ignore_eos_gives_the_length_that_was_asked(server, model):
    found = server.client.post("/v1/completions", json=completion(max_tokens=80, ignore_eos=True)).json()
    assert found["usage"]["completion_tokens"] == 80 and found["choices"][0]["finish_reason"] == "length"
    assert found["choices"][0]["text"].startswith(model.answer(ASK))


def test_the_same_seed_gives_the_same_words(server):
    def ask(seed):
        asked = completion(temperature=4.0, seed=seed, max_tokens=20)
        return server.client.post("/v1/completions", json=asked).json()["choices"][0]["text"]

    assert ask(1) == ask(1) != ask(2)


def test_many_at_once_get_their_own_words(server, prompts):
    def ask(one):
        found = server.client.post("/v1/chat/completions", json=chat(*one.turns))
        return found.json()["choices"][0]["message"]["content"] if found.status_code == 200 else found.status_code

    some = prompts[:12]
    with ThreadPoolExecutor(12) as threads:
        assert list(threads.map(ask, some)) == [one.answer for one in some]


@pytest.mark.parametrize("policy", [policies.Static(3), policies.Dynamic(3, 0.02), policies.Window(3, 0.02)])
def test_other_policies(model, prompts, policy):
    with serving(model, policy) as server:

        def ask(one):
            return server.client.post("/v1/chat/completions", json=chat(*one.turns)).json()

        # Two full batches: a static one waits for its last member.
        with ThreadPoolExecutor(6) as threads:
            found = [one["choices"][0]["message"]["content"] for one in threads.map(ask, prompts[:6])]
        assert found == [one.answer for one in prompts[:6]]
        gaps = server.metric("vllm:inter_token_latency_seconds_count")
        assert (gaps == 0) == policy.padded


def test_models_and_health(server):
    (one,) = server.client.get("/v1/models").json()["data"]
    assert one["id"] == "course-lm" and one["max_model_len"] == 512
    assert server.client.get("/health").status_code == 200


def test_metrics_under_the_names_of_vllm(model, tmp_path):
    with serving(model, policies.Continuous(4, 128)) as server:
        lengths = [
            server.client.post("/v1/completions", json=completion(max_tokens=n)).json()["usage"]["completion_tokens"]
            for n in (1, 5, 60)
        ]
        server.wait_for(lambda: server.metric("vllm:num_requests_running") == 0)
        page = server.client.get("/metrics")
    assert page.headers["content-type"].startswith("text/plain")
    path = tmp_path / "metrics.txt"
    path.write_text(page.text)
    found = results.read(path)
    totals = found.totals
    assert totals["requests"] == 3 and totals["output_tokens"] == sum(lengths)
    assert totals["prompt_tokens"] == 3 * len(model.prompt(ASK))
    assert found.setup["model"] == "course-lm" and found.setup["block_size"] == 16
    for name, count in (
        ("time_to_first_token_seconds", 3), ("e2e_request_latency_seconds", 3), ("request_queue_time_seconds", 3),
        ("request_time_per_output_token_seconds", 2), ("inter_token_latency_seconds", sum(lengths) - 3),
    ):  # fmt: skip
        assert f'vllm:{name}_count{{engine="0",model_name="course-lm"}} {count}.0' in page.text
