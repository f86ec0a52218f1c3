"""The frontend, put together: routes, and the way of a chat through the parts.

chat ──► template, tokenizer ──► ids ──┐
  └────► patchmill ──► patches ────────┴──► request, validated ──► vLLM ──► answer

uvicorn --factory frontend.app:create
"""

import asyncio
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

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
from frontend.presence import while_present
from frontend.prompt import Prompter
from frontend.settings import Settings


class Frontend:
    """What lives as long as the process: the tokenizer and two clients."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.model = {
            "id": settings.model,
            "object": "model",
            "created": int(time.time()),
            "owned_by": "vllm",
        }
        """As OpenAI's clients are told of it."""
        self.prompter = Prompter(settings.tokenizer, settings.family)
        self.patchmill = AsyncClient(settings.patchmill_url)
        self.engine = EngineClient(settings.engine_url, settings.timeout_s)

    async def request(self, chat: Chat) -> dict[str, Any]:
        """What the engine is sent; raises Fault, PatchmillError."""
        if chat.body.model != self.settings.model:
            raise _not_served(chat.body.model)
        token_ids = await asyncio.to_thread(self.prompter.token_ids, chat.messages)
        marked = token_ids.count(self.prompter.placeholder_id)
        if marked != len(chat.pictures):  # told before patchmill works, and without any picture too
            raise Fault(400, f"{marked} placeholders for {len(chat.pictures)} pictures")
        batch = await self._patches(chat.pictures) if chat.pictures else None
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

    async def _patches(self, pictures: list[bytes]) -> Batch:
        settings, engine = self.settings, self.settings.engine
        sized_by_budget = settings.family is Family.NEMOTRON
        # No text_len: vLLM 0.32's chat endpoint sizes pictures as if there were no text, and
        # where the budget is short a text_len gives other sizes. A prompt that then does not
        # fit is refused by the engine.
        return await self.patchmill.preprocess(
            pictures,
            model=settings.profile,
            dtype=engine.dtype,
            layout=engine.traits.layout,
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
    app.exception_handler(HTTPException)(_no_route)
    app.add_api_route("/v1/chat/completions", complete, methods=["POST"])
    app.add_api_route("/v1/models", models, methods=["GET"])
    app.add_api_route("/v1/models/{name:path}", model, methods=["GET"])
    app.add_api_route("/health", health, methods=["GET"])
    return app


async def complete(request: Request) -> Response:
    """`POST /v1/chat/completions`."""
    frontend: Frontend = request.app.state.frontend
    try:
        raw = await _body(request, frontend.settings.max_body_bytes)
        return await while_present(request, _answer(frontend, raw))
    except ClientDisconnect:
        return Response(status_code=499)  # nobody reads it; nginx's status, for the access log
    except (Fault, PatchmillError, httpx.HTTPError) as error:
        return _refusal(fault_of(error))


async def models(request: Request) -> dict[str, Any]:
    """`GET /v1/models`: the one that there is."""
    return {"object": "list", "data": [request.app.state.frontend.model]}


async def model(request: Request, name: str) -> Response:
    """`GET /v1/models/{name}`."""
    frontend: Frontend = request.app.state.frontend
    if name != frontend.settings.model:
        return _refusal(_not_served(name))
    return JSONResponse(frontend.model)


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


async def _answer(frontend: Frontend, raw: bytes) -> Response:
    name, made_at = f"chatcmpl-{uuid.uuid4().hex}", int(time.time())
    chat = await asyncio.to_thread(read_chat, raw, frontend.settings.max_images)
    asked = await frontend.request(chat)
    if not chat.body.stream:
        answer = await frontend.engine.generate(asked)
        return JSONResponse(completion(answer, chat.body.model, made_at, name))
    if options := chat.body.stream_options:
        asked["stream_options"] = options.model_dump()
    told = chunks(frontend.engine.stream(asked), chat.body.model, made_at, name)
    first = await anext(told)  # an engine's refusal comes before it, and still gets a status
    return StreamingResponse(_events(first, told), media_type="text/event-stream")


async def _events(
    first: dict[str, Any], rest: AsyncGenerator[dict[str, Any]]
) -> AsyncGenerator[str]:
    async with aclosing(rest):
        yield sse(first)
        try:
            async for chunk in rest:
                yield sse(chunk)
        except (Fault, httpx.HTTPError) as error:  # the status is sent; the stream tells it
            yield sse(fault_of(error).document())
    yield "data: [DONE]\n\n"


async def _no_route(request: Request, error: HTTPException) -> Response:
    """What the router refuses: a path that is none, or a method that it does not have."""
    fault = Fault(error.status_code, f"{request.method} {request.url.path}: {error.detail}")
    return JSONResponse(fault.document(), fault.status, error.headers)


def _not_served(name: str) -> Fault:
    return Fault(404, f"the model {name} is not served here")


def _refusal(fault: Fault) -> JSONResponse:
    wait = fault.retry_after_s
    headers = {} if wait is None else {"Retry-After": str(int(wait + 0.999))}
    return JSONResponse(fault.document(), fault.status, headers)
