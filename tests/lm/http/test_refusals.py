"""Whatever is asked wrongly gets a sentence and its status, and whoever goes away gives the slot back."""

from __future__ import annotations

import json
import socket
import time

import httpx
import pytest

from course import KVCache, policies
from course.lm.http import app, run
from course.lm.http.run import open_port
from course.policies import Policy
from tests.helpers.sizes import PATIENCE
from tests.lm.http.conftest import TOKEN, serving
from tests.lm.http.test_answers import ASK, chat, completion

LONG = {"prompt": "Count from 1 to 95.", "max_tokens": 480, "ignore_eos": True, "temperature": 0}


def sentence(response, status):
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert error["code"] == status and error["message"].endswith(".") and len(error["message"]) > 20
    return error["message"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"max_tokens": 0}, "max_tokens must be a whole number of at least 1, not 0"),
        ({"max_tokens": -3}, "max_tokens"),
        ({"max_tokens": 2.5}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"max_tokens": "7"}, "max_tokens"),
        ({"max_tokens": 511}, "The context has 512 tokens"),
        ({"n": 0}, "n must be a whole number of at least 1, not 0"),
        ({"n": 129}, "129 answers to one request are too many"),
        ({"n": 65, "prompt": ["one", "two"]}, "130 answers to one request are too many"),
        ({"prompt": ["one"] * 129}, "129 prompts in one request are too many"),
        ({"best_of": 2}, "best_of=2"),
        ({"stop": [1]}, "stop must be a text or a list of texts, not [1]"),
        ({"stop": 3}, "stop must be a text"),
        ({"logprobs": 5}, "logprobs=5"),
        ({"echo": True}, "echo=True"),
        ({"top_p": 0, "temperature": 1}, "top_p must be above 0"),
        ({"top_p": 1.5, "temperature": 1}, "top_p"),
        ({"top_p": "x", "temperature": 1}, "top_p"),
        ({"min_p": 0.1, "temperature": 1}, "min_p=0.1 is not supported"),
        ({"tools": [{"type": "function"}]}, "tools="),
        ({"wishes": "many"}, "'wishes' is unknown"),
        ({"temperature": -1}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"temperature": [1]}, "temperature"),
        ({"top_k": "x"}, "top_k must be a whole number"),
        ({"seed": "x"}, "seed"),
        ({"seed": -1}, "seed"),
        ({"stream": "yes"}, "stream must be true or false"),
        ({"stream_options": 3}, "stream_options"),
        ({"ignore_eos": 1}, "ignore_eos"),
        ({"prompt": None}, "prompt must be a text or a list of texts"),
        ({"prompt": 3}, "prompt must be a text or a list of texts"),
        ({"prompt": []}, "prompt must be a text or a list of texts"),
        ({"prompt": ["one", 2]}, "prompt must be a text or a list of texts"),
        ({"prompt": [1, 2, 3]}, "prompt must be a text or a list of texts"),
        ({"prompt": ""}, "empty"),
        ({"prompt": "  \n"}, "empty"),
        ({"prompt": "owl " * 600}, "no room"),
        ({"prompt": "\ud800"}, "surrogate"),
        ({"messages": []}, "other endpoint"),
    ],
)
def test_fields(server, fields, said):
    body = json.dumps(completion(**fields))
    assert said in sentence(server.client.post("/v1/completions", content=body), 400)


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        (None, "at least one message"),
        ([], "at least one message"),
        ("Hello.", "at least one message"),
        ([3], "message 0 must be an object"),
        ([{"role": "user"}], "content"),
        ([{"role": "user", "content": [{"type": "image_url"}]}], "parts of type text"),
        ([{"role": "user", "content": ""}], "empty"),
        ([{"role": "assistant", "content": "Hi."}], "must alternate"),
        ([{"role": "user", "content": "Hi."}] * 2, "must alternate"),
        ([{"role": "tool", "content": "Hi."}], "must alternate"),
        ([{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello!"}], "last message"),
        ([{"role": "system", "content": "Be kind."}], "last message"),
    ],
)
def test_messages(server, messages, said):
    asked = {"model": "course-lm", "messages": messages}
    assert said in sentence(server.client.post("/v1/chat/completions", json=asked), 400)


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"[1]", b'"text"', b"[" * 100_000, b'{"prompt": NaN1}'])
def test_bad_json(server, body):
    assert "JSON" in sentence(server.client.post("/v1/completions", content=body), 400)


def test_other_names(server):
    assert "course-lm" in sentence(server.client.post("/v1/completions", json=completion(model="gpt-9")), 404)
    sentence(server.client.get("/v1/embeddings"), 404)
    sentence(server.client.get("/v1/completions"), 405)
    sentence(server.client.get("/"), 404)


def test_the_token(server):
    with httpx.Client(base_url=server.client.base_url) as stranger:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": TOKEN}, {"Authorization": "Bearer é"}):
            encoded = {name: value.encode() for name, value in headers.items()}
            response = stranger.post("/v1/completions", json=completion(), headers=encoded)
            assert "API key" in sentence(response, 401) and response.headers["www-authenticate"] == "Bearer"
        assert stranger.get("/health").status_code == 200


@pytest.mark.parametrize(
    "host", ["example.org", "example.org:80", "127.0.0.1.example.org", "169.254.0.1", "", "[::2]:80"]
)
def test_a_foreign_host(server, host):
    for path in ("/v1/models", "/metrics", "/health"):
        assert "127.0.0.1" in sentence(server.client.get(path, headers={"Host": host}), 421)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "127.0.0.1", "[::1]:9"])
def test_hosts_of_this_machine(server, host):
    assert server.client.get("/v1/models", headers={"Host": host}).status_code == 200


def test_a_huge_body(server):
    big = completion(prompt="owl " * (app.MAX_BODY // 4))
    assert "longer than" in sentence(server.client.post("/v1/completions", json=big), 413)
    # In pieces, so that nobody says beforehand how long it is.
    pieces = (b" " * 65_536 for _ in range(app.MAX_BODY // 65_536 + 2))
    assert "longer than" in sentence(server.client.post("/v1/completions", content=pieces), 413)
    assert server.client.get("/health").status_code == 200


def test_a_body_that_does_not_come(server, monkeypatch):
    monkeypatch.setattr(app, "BODY_SECONDS", 0.2)
    with raw(server, "POST /v1/completions", "Content-Length: 100") as one:
        one.sendall(b'{"prompt":')
        assert b"408" in one.recv(4_096)


def test_overload_is_refused_with_429(model):
    with serving(model, policies.Continuous(2, 64), max_waiting=1) as server:
        streams = [server.client.stream("POST", "/v1/completions", json={**LONG, "stream": True}) for _ in range(3)]
        for one in streams:
            assert one.__enter__().status_code == 200
        response = server.client.post("/v1/completions", json=completion())
        assert "no more may wait" in sentence(response, 429) and response.headers["retry-after"] == "1"
        for one in streams:
            one.__exit__(None, None, None)
        server.wait_for(lambda: not server.service._here)
        assert server.client.post("/v1/completions", json=completion()).status_code == 200


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_goes_away_frees_its_slot(model, stream):
    """One slot, and an answer of 480 tokens in it: once its reader has gone the next one gets the slot at once."""
    with serving(model, policies.Continuous(1, 600)) as server:
        body = json.dumps({**LONG, "stream": stream}).encode()
        with raw(server, "POST /v1/completions", f"Content-Length: {len(body)}") as one:
            one.sendall(body)
            server.wait_for(lambda: server.metric("vllm:num_requests_running") == 1)
        response = server.client.post("/v1/completions", json=completion())
        assert response.status_code == 200
        assert server.metric("vllm:request_success_total") == 2
        assert 'finished_reason="abort",model_name="course-lm"} 1.0' in server.client.get("/metrics").text
        assert server.metric("vllm:generation_tokens_total") < 480
        assert server.service._engine.pool.free == server.service.cache.num_blocks


def test_who_waits_and_goes_away_leaves_the_queue(model):
    with serving(model, policies.Continuous(1, 600)) as server:
        with server.client.stream("POST", "/v1/completions", json={**LONG, "stream": True}):
            body = json.dumps(completion()).encode()
            with raw(server, "POST /v1/completions", f"Content-Length: {len(body)}") as one:
                one.sendall(body)
                server.wait_for(lambda: server.metric("vllm:num_requests_waiting") == 1)
            server.wait_for(lambda: server.metric("vllm:num_requests_waiting") == 0)
        server.wait_for(lambda: not server.service._here)


def test_padding_goes_on_where_a_member_of_a_static_batch_goes_away(model):
    with serving(model, policies.Static(2)) as server:
        body = json.dumps({**LONG, "stream": True}).encode()
        with raw(server, "POST /v1/completions", f"Content-Length: {len(body)}") as one:
            one.sendall(body)
            server.wait_for(lambda: server.metric("vllm:num_requests_waiting") == 1)
            with server.client.stream("POST", "/v1/completions", json={**completion(), "stream": True}) as other:
                one.close()
                text = "".join(other.iter_text())
        assert "[DONE]" in text
        server.wait_for(lambda: not server.service._here)


def test_a_slow_reader_holds_nobody_up(model, monkeypatch):
    """Its socket takes next to nothing, and it never reads. Its slot is free when its answer is computed."""
    monkeypatch.setattr(app, "SLOW", 0.5)
    with serving(model, policies.Continuous(1, 600)) as server:
        body = json.dumps({**LONG, "stream": True}).encode()
        with raw(server, "POST /v1/completions", f"Content-Length: {len(body)}", buffer=1_024) as one:
            one.sendall(body)
            server.wait_for(lambda: server.metric("vllm:num_requests_running") == 1)
            assert server.client.post("/v1/completions", json=completion()).status_code == 200
            server.wait_for(lambda: not server.service._here)


class Breaks(Policy):
    """Gives too much to the first request, and so is refused by the engine."""

    max_num_seqs, calls = 2, 0

    def schedule(self, state):
        type(self).calls += 1
        if self.calls == 1:
            raise RuntimeError("no idea")
        return policies.Continuous(2, 600).schedule(state)


def test_a_policy_that_breaks_off_is_said_and_the_next_request_is_served(model):
    with serving(model, Breaks()) as server:
        said = sentence(server.client.post("/v1/completions", json=completion()), 500)
        assert "no idea" in said
        assert server.client.post("/v1/completions", json=completion()).status_code == 200


def test_a_cache_that_is_too_small_for_a_request(model):
    with serving(model, policies.Continuous(2, 600), cache=KVCache(4, 16)) as server:
        assert "do not fit the KV cache" in sentence(server.client.post("/v1/completions", json=LONG), 400)
        assert server.client.post("/v1/completions", json=completion(max_tokens=20)).status_code == 200
        assert "KV cache" in sentence(server.client.post("/v1/chat/completions", json=chat(ASK)), 400)


def test_a_prompt_that_no_step_has_room_for(model):
    with serving(model, policies.Continuous(2, 40, enable_chunked_prefill=False)) as server:
        for stream in (True, False):
            asked = completion(prompt="owl " * 60, stream=stream)
            assert "max_num_batched_tokens is 40" in sentence(server.client.post("/v1/completions", json=asked), 400)
        assert server.client.post("/v1/completions", json=completion(max_tokens=5)).status_code == 200


def test_a_port_that_is_taken():
    with open_port(0) as one, pytest.raises(ValueError, match="cannot be used"):
        open_port(one.getsockname()[1])


def test_the_end_of_the_server_is_said(model):
    with serving(model, policies.Continuous(1, 600)) as server:
        with server.client.stream("POST", "/v1/completions", json={**LONG, "stream": True}) as one:
            pieces = one.iter_lines()
            next(pieces)
            server.service.__exit__()
            assert any("going down" in line for line in pieces)
        sentence(server.client.post("/v1/completions", json=completion()), 429)


class raw:
    """A connection on which a request has begun. buffer: bytes that its receiver keeps."""

    def __init__(self, server, line, *headers, buffer=None):
        self.socket = socket.socket()
        if buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.socket.connect(("127.0.0.1", server.port))
        head = [f"{line} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {TOKEN}", *headers, "", ""]
        self.socket.sendall("\r\n".join(head).encode())

    def __enter__(self):
        self.socket.settimeout(PATIENCE)
        return self.socket

    def __exit__(self, *_):
        self.socket.close()
        time.sleep(0)


@pytest.mark.parametrize("begun", [b"", b"POST /v1/completions HTTP/1.1\r\nHost: loc"], ids=["nothing", "half a head"])
def test_a_connection_on_which_no_request_begins_is_closed(model, monkeypatch, begun):
    monkeypatch.setattr(run, "IDLE_SECONDS", 0.05)
    monkeypatch.setattr(run, "MOST_CONNECTIONS", 3)
    with serving(model, policies.Continuous(1, 64), max_waiting=0) as server:
        silent = [socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE / 10) for _ in range(8)]
        try:
            for one in silent:
                one.sendall(begun)
            assert [one.recv(1) for one in silent] == [b""] * len(silent), "closed by the server"
            assert server.client.post("/v1/completions", json=completion()).status_code == 200
        finally:
            for one in silent:
                one.close()
