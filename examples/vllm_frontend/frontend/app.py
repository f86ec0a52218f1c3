"""The frontend, put together: routes, and the way of a chat through the parts.

chat ──► template, tokenizer ──► ids ──┐
  └────► patchmill ──► patches ────────┴──► request, validated ──► vLLM ──► answer

uvicorn --factory frontend.app:create
"""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import httpx
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from patchmill_client import AsyncClient, Batch, PatchmillError
from patchmill_client.vllm import Family, generate_request
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from frontend.answers import chunks, completion, sse
from frontend.chat import Chat, read_chat
from frontend.engine import EngineClient
from frontend.faults import Fault, fault_of
from frontend.prompt import Prompter
from frontend.settings import Settings

CLIENT_LEFT = 499

Result = TypeVar("Result")


class Frontend:
    """What lives as long as the process: the tokenizer and two clients."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.made_at = int(time.time())
        self.prompter = Prompter(settings.tokenizer, settings.family)
        self.patchmill = AsyncClient(settings.patchmill_url)
        self.engine = EngineClient(settings.engine_url, settings.timeout_s)

    async def request(self, chat: Chat) -> dict[str, Any]:
        """What the engine is sent; raises Fault, PatchmillError."""
        if chat.body.model != self.settings.model:
            raise Fault(404, f"the model {chat.body.model} is not served here")
        token_ids = await asyncio.to_thread(self.prompter.token_ids, chat.messages)
        batch = await self._patches(chat) if chat.pictures else None
        # Base64 of many megabytes: not in the loop that others wait for.
        return await asyncio.to_thread(
            generate_request,
            token_ids,
            batch,
            chat.sampling_params,
            placeholder_id=self.prompter.placeholder_id,
            engine=self.settings.engine,
            start_ids=self.prompter.start_ids,
            end_ids=self.prompter.end_ids,
        )

    async def _patches(self, chat: Chat) -> Batch:
        settings, engine = self.settings, self.settings.engine
        sized_by_budget = settings.family is Family.NEMOTRON
        return await self.patchmill.preprocess(
            chat.pictures,
            model=settings.profile,
            dtype=engine.dtype,
            layout=engine.traits.layout,
            # No text_len: vLLM's own chat endpoint sizes pictures as if there were no text.
            max_model_len=settings.max_model_len if sized_by_budget else None,
        )

    async def aclose(self) -> None:
        await self.patchmill.aclose()
        await self.engine.aclose()


def create(settings: Settings | None = None) -> FastAPI:
    """The ASGI application; None reads the settings from the environment."""
    made = settings or Settings()  # type: ignore[call-arg]  # the environment has the rest

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.frontend = Frontend(made)
        yield
        await app.state.frontend.aclose()

    app = FastAPI(title="patchmill before vLLM", lifespan=lifespan, openapi_url=None)
    app.add_api_route("/v1/chat/completions", complete, methods=["POST"])
    app.add_api_route("/v1/models", models, methods=["GET"])
    app.add_api_route("/v1/models/{name:path}", model, methods=["GET"])
    app.add_api_route("/health", health, methods=["GET"])
    app.add_exception_handler(HTTPException, _frameworks)
    return app


async def complete(request: Request) -> Response:
    """`POST /v1/chat/completions`."""
    frontend: Frontend = request.app.state.frontend
    name, made_at = f"chatcmpl-{uuid.uuid4().hex}", int(time.time())
    try:
        raw = await _body(request, frontend.settings.max_body_bytes)
        chat = await asyncio.to_thread(read_chat, raw, frontend.settings.max_images)
        asked = await frontend.request(chat)
        if not chat.body.stream:
            answer = await _unless_gone(request, frontend.engine.generate(asked))
            return JSONResponse(completion(answer, chat.body.model, made_at, name))
        if options := chat.body.stream_options:
            asked["stream_options"] = options.model_dump()
        told = chunks(frontend.engine.stream(asked), chat.body.model, made_at, name)
        # The first chunk is ours, the second the engine's: its refusal still gets a status.
        first = [await anext(told), await _unless_gone(request, anext(told))]
    except ClientDisconnect:
        return Response(status_code=CLIENT_LEFT)  # which nobody gets
    except (Fault, PatchmillError, httpx.HTTPError) as error:
        return _refusal(fault_of(error))
    return StreamingResponse(_events(first, told), media_type="text/event-stream")


async def models(request: Request) -> dict[str, Any]:
    """`GET /v1/models`: the one that there is."""
    return {"object": "list", "data": [_model(request)]}


async def model(request: Request, name: str) -> dict[str, Any]:
    """`GET /v1/models/{name}`."""
    if name != request.app.state.frontend.settings.model:
        raise HTTPException(404, f"the model {name} is not served here")
    return _model(request)


def _model(request: Request) -> dict[str, Any]:
    frontend: Frontend = request.app.state.frontend
    name = frontend.settings.model
    return {"id": name, "object": "model", "created": frontend.made_at, "owned_by": "vllm"}


async def health(request: Request) -> Response:
    """`GET /health`: 200 when both servers behind are well, else 503."""
    frontend: Frontend = request.app.state.frontend
    engine = await frontend.engine.healthy()
    try:
        patchmill = await frontend.patchmill.ready()
    except PatchmillError:
        patchmill = False
    status = 200 if engine and patchmill else 503
    return JSONResponse({"engine": engine, "patchmill": patchmill}, status)


async def _body(request: Request, max_body_bytes: int) -> bytes:
    raw = bytearray()
    async for piece in request.stream():
        raw += piece
        if len(raw) > max_body_bytes:
            raise Fault(413, f"the body has more than {max_body_bytes} bytes")
    return bytes(raw)


async def _unless_gone(request: Request, work: Awaitable[Result]) -> Result:
    """The result, unless the client leaves before: then the work is cancelled, and so the engine's.

    Raises ClientDisconnect. The body must have been read.
    """
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_until_gone(request))
    try:
        await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnect
        return task.result()
    finally:
        for each in (task, gone):
            each.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _until_gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _events(
    first: list[dict[str, Any]], rest: AsyncIterator[dict[str, Any]]
) -> AsyncIterator[str]:
    for chunk in first:
        yield sse(chunk)
    try:
        async for chunk in rest:
            yield sse(chunk)
    except (Fault, httpx.HTTPError) as error:  # the status is sent; the stream tells it
        yield sse(fault_of(error).document())
    yield "data: [DONE]\n\n"


async def _frameworks(_: Request, error: Exception) -> Response:
    """404, 405 and the like in the form that OpenAI's clients read."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    return _refusal(Fault(status, str(getattr(error, "detail", "")) or "not found"))


def _refusal(fault: Fault) -> JSONResponse:
    wait = fault.retry_after_s
    headers = {} if wait is None else {"Retry-After": str(int(wait + 0.999))}
    return JSONResponse(fault.document(), fault.status, headers)
