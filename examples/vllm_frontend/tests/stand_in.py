"""An engine's place in the tests: it takes what an engine takes, and dies as one dies.

Speaks `POST /inference/v1/generate` of vLLM 0.32 as far as the frontend uses it.
Every request is held to `engine_rules`, which shares no code with the client; one
malformed request and all later ones get 500 too. The answer is made from
a digest of tokens and tensors, so that it depends on every one of them.
"""

import contextlib
import hashlib
import importlib.util
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

ROOT = Path(__file__).parents[3]
PLAIN_WORDS = ["a ", "rote ", "Кошка ", "on\u2028", "the ", "mat "]
"""Some are not ASCII, and one has a line's end that is none in a stream of events."""


def client_test_module(name: str) -> ModuleType:
    """A helper of the client's tests; its package has the name of this one, so by path."""
    path = ROOT / "client" / "tests" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"client_{name}", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


rules = client_test_module("engine_rules")


@dataclass
class Engine:
    """What the stand-in was told and what it saw."""

    dtype: str
    url: str = ""
    seen: list[dict[str, Any]] = field(default_factory=list)
    died_of: str | None = None
    say: tuple[int, bytes] | None = None
    """Status and body in place of any answer."""
    retry_after: str | None = None
    """The header of that name, beside `say`."""
    break_stream: bytes | None = None
    """Comes after two events of a stream, and then nothing more."""
    hold_after: int | None = None
    """So many events of an answer are sent, and then nothing until the caller leaves."""
    holding: threading.Event = field(default_factory=threading.Event)
    left: threading.Event = field(default_factory=threading.Event)


def words_for(request: dict[str, Any]) -> list[str]:
    """What the engine says: as many words as it may, by digest."""
    features = request.get("features") or {}
    content = [request["token_ids"], features.get("kwargs_data"), features.get("mm_placeholders")]
    digest = hashlib.sha256(json.dumps(content).encode()).digest()
    count = request["sampling_params"].get("max_tokens", 3)
    return [PLAIN_WORDS[digest[place % 32] % len(PLAIN_WORDS)] for place in range(count)]


def choice(request: dict[str, Any], words: list[str], finish: str | None) -> dict[str, Any]:
    content = [{"token": word, "logprob": -len(word) / 8, "top_logprobs": []} for word in words]
    asked = request["sampling_params"].get("logprobs") is not None
    return {
        "index": 0,
        "text": "".join(words),
        "logprobs": {"content": content} if asked else None,
        "finish_reason": finish,
        "token_ids": [len(word) for word in words],
    }


class Handler(BaseHTTPRequestHandler):
    engine: ClassVar[Engine]

    def log_message(self, *_: object) -> None:
        """Nothing on stderr."""

    def do_GET(self) -> None:
        self._answer(500 if self.engine.died_of else 200, b"")

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        engine = self.engine
        engine.seen.append(request)
        if engine.say:
            self._answer(*engine.say)
            return
        try:
            rules.check(request, engine.dtype)
        except rules.Fatal as fatal:
            engine.died_of = str(fatal)
        if engine.died_of or self.path != "/inference/v1/generate":
            self._answer(500, b'{"error": {"message": "EngineCore died"}}')
            return
        assert request["output_mode"] == "text"
        words = words_for(request)
        prompt, made = len(request["token_ids"]), len(words)
        usage = {
            "prompt_tokens": prompt,
            "completion_tokens": made,
            "total_tokens": prompt + made,
        }
        if not request.get("stream"):
            answer = {"choices": [choice(request, words, "length")], "usage": usage}
            self._answer(200, json.dumps(answer).encode())
            return
        events: list[dict[str, Any]] = [
            {"choices": [choice(request, [word], "length" if place == made - 1 else None)]}
            for place, word in enumerate(words)
        ]
        if (request.get("stream_options") or {}).get("include_usage"):
            events.append({"choices": [], "usage": usage})
        data = [json.dumps(event, ensure_ascii=False) for event in events]
        body = "".join(f"data: {each}\n\n" for each in [*data, "[DONE]"]).encode()
        if engine.break_stream is not None:
            body = b"\n\n".join([*body.split(b"\n\n")[:2], engine.break_stream])
        self._answer(200, body, "text/event-stream")

    def _answer(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if self.engine.retry_after is not None:
            self.send_header("Retry-After", self.engine.retry_after)
        held = self.engine.hold_after
        if held is None:
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            return
        self.end_headers()
        self.wfile.write(b"\n\n".join([*body.split(b"\n\n")[:held], b""]))
        self._hold()

    def _hold(self) -> None:
        """Work on until the caller leaves, as an engine does."""
        self.engine.holding.set()
        if not self.connection.recv(1):
            self.engine.left.set()


@contextlib.contextmanager
def running(dtype: str) -> Iterator[Engine]:
    """A stand-in that listens until the block ends."""
    engine = Engine(dtype)
    handler = type("Bound", (Handler,), {"engine": engine})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    engine.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield engine
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
