"""The HTTP server: who may ask, how much may be asked, and what goes back while it is computed."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from course.lm.http.metrics import CONTENT_TYPE
from course.lm.http.protocol import CHAT, COMPLETION, MODEL, Asked, Refused, Reply, read
from course.lm.http.service import BROKEN, Full, Service
from course.lm.http.ticket import Ticket

MAX_BODY = 2**20  # bytes
MAX_READ = 2**24  # bytes of a longer one that are read before it is refused: who still sends would not hear the answer
SLOW = 30.0  # seconds that a reader may leave a piece lying
BODY_SECONDS = 30.0  # in which a body must have come
HOSTS = ("127.0.0.1", "localhost", "[::1]")


def make_app(service: Service, token: str) -> ASGIApp:
    """The application. token: what /v1 asks for as `Authorization: Bearer ...`."""

    async def completions(request: Request) -> Response:
        return await answer(request, service, COMPLETION)

    async def chat(request: Request) -> Response:
        return await answer(request, service, CHAT)

    async def models(request: Request) -> Response:
        context = service.model.config.max_position_embeddings
        one = {"id": MODEL, "object": "model", "created": 0, "owned_by": "course", "max_model_len": context}
        return JSONResponse({"object": "list", "data": [one]})

    async def health(request: Request) -> Response:
        return Response()

    async def metrics(request: Request) -> Response:
        return Response(service.metrics.page(), media_type=CONTENT_TYPE)

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, Refused)
        return _refusal(error)

    async def not_here(request: Request, error: Exception) -> Response:
        status = getattr(error, "status_code", 404)
        what = "does not take this method" if status == 405 else "is not an endpoint of this server"
        return _refusal(Refused(f"{request.url.path} {what}.", status, "not_found_error"))

    routes = [
        Route("/v1/completions", completions, methods=["POST"]),
        Route("/v1/chat/completions", chat, methods=["POST"]),
        Route("/v1/models", models),
        Route("/health", health),
        Route("/metrics", metrics),
    ]
    app = Starlette(routes=routes, exception_handlers={Refused: refused, 404: not_here, 405: not_here})
    return _Door(app, token)


class _Door:
    """Lets in requests that name this machine as the host and, below /v1, have the token."""

    def __init__(self, app: ASGIApp, token: str):
        self.app, self.token = app, token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            refused = self._refused(scope)
            if refused is not None:
                await _refusal(refused)(scope, receive, send)
                return
        await self.app(scope, receive, send)

    def _refused(self, scope: Scope) -> Refused | None:
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1")
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        if name.lower() not in HOSTS:
            return Refused("This server answers requests for 127.0.0.1 or localhost only.", 421)
        credentials = headers.get(b"authorization", b"")
        if scope["path"].startswith("/v1") and not hmac.compare_digest(credentials, b"Bearer " + self.token):
            return Refused("The API key is missing or wrong: `course serve` printed it.", 401, "authentication_error")
        return None


def _refusal(error: Refused) -> Response:
    headers = {401: {"WWW-Authenticate": "Bearer"}, 429: {"Retry-After": "1"}, 413: {"Connection": "close"}}
    return JSONResponse(error.body(), error.status, headers.get(error.status))


async def body_of(request: Request) -> bytes:
    """The body, up to MAX_BODY. Refused for a longer one, and if it does not come."""
    too_much = Refused(f"The body is longer than {MAX_BODY:,} bytes.", 413)
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > MAX_READ:
        raise too_much
    parts, size = [], 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for part in request.stream():
                size += len(part)
                if size > MAX_READ:
                    raise too_much
                if size <= MAX_BODY:
                    parts.append(part)
    except TimeoutError:
        raise Refused(f"The body did not arrive within {BODY_SECONDS:.0f} seconds.", 408) from None
    if size > MAX_BODY:
        raise too_much
    return b"".join(parts)


async def answer(request: Request, service: Service, kind: str) -> Response:
    """Submit, and answer as tokens come, or at the end."""
    try:
        question = read(await body_of(request), kind, service.model)
    except ClientDisconnect:
        return Response(status_code=499)
    loop, heard = asyncio.get_running_loop(), Heard()

    def ticket_of(place: int) -> Ticket:
        def said(text: str, ended: str) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the server goes down
                loop.call_soon_threadsafe(heard.put_nowait, (place, text, ended))

        return Ticket(
            question.choices[place], said, question.max_tokens, question.sampling, question.numbers[place],
            question.ignore_end, question.stop,
        )  # fmt: skip

    tickets = [ticket_of(place) for place in range(len(question.choices))]

    def give_up() -> None:
        for ticket in tickets:
            service.cancel(ticket)

    try:
        for ticket in tickets:
            service.submit(ticket)
    except ValueError as error:
        give_up()
        raise Refused(str(error), *((429, "rate_limit_error") if isinstance(error, Full) else ())) from None
    headers = {"X-Ignored-Fields": ", ".join(question.ignored)} if question.ignored else {}
    if question.stream:
        return _Stream(_pieces(question, heard), give_up, headers)
    return await _whole(request, question, heard, give_up, headers)


Heard = asyncio.Queue[tuple[int, str, str]]
"""(which answer, text, how it ended or "")."""


async def _whole(
    request: Request, question: Asked, heard: Heard, give_up: Callable[[], None], headers: dict[str, str]
) -> Response:
    async def collect() -> Response:
        texts: list[list[str]] = [[] for _ in question.choices]
        ends = [""] * len(texts)
        while not all(ends):
            place, text, ended = await heard.get()
            if ended == BROKEN:
                raise Refused(text, 500, "internal_error")
            texts[place].append(text)
            ends[place] = ended
        return JSONResponse(Reply(question).whole(list(zip(texts, ends, strict=True))), headers=headers)

    async def gone() -> Response:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        return Response(status_code=499)

    both = [asyncio.ensure_future(collect()), asyncio.ensure_future(gone())]
    try:
        finished, _ = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        return (both[0] if both[0] in finished else both[1]).result()
    finally:
        for one in both:
            one.cancel()
        give_up()


async def _pieces(question: Asked, heard: Heard) -> AsyncIterator[bytes]:
    reply, left = Reply(question), len(question.choices)
    while left:
        place, text, ended = await heard.get()
        if ended == BROKEN:
            yield _event(Refused(text, 500, "internal_error").body())
            return
        yield _event(reply.piece(place, text, ended))
        left -= bool(ended)
    if question.usage:
        yield _event(reply.last())
    yield b"data: [DONE]\n\n"


def _event(what: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(what, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"


class _Stream(StreamingResponse):
    """Server-sent events. A client that goes away, or takes a piece too late, gives the slot back."""

    def __init__(self, pieces: AsyncIterator[bytes], give_up: Callable[[], None], headers: dict[str, str]):
        super().__init__(pieces, media_type="text/event-stream", headers={"Cache-Control": "no-store", **headers})
        self._give_up = give_up

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def in_time(message: Any) -> None:
            async with asyncio.timeout(SLOW):
                await send(message)

        both = [
            asyncio.ensure_future(self.stream_response(in_time)),
            asyncio.ensure_future(self.listen_for_disconnect(receive)),
        ]
        try:
            finished, _ = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if both[0] in finished:
                with contextlib.suppress(TimeoutError, OSError):
                    both[0].result()
        finally:
            for one in both:
                one.cancel()
            self._give_up()
