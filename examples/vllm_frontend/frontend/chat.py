"""The body of `POST /v1/chat/completions`, read: messages for a template, pictures as files.

In come bytes, out comes a `Chat`. What is not known is refused rather than
ignored, and no address is ever fetched: pictures come as `data:` URLs.
"""

import base64
import binascii
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from frontend.faults import Fault


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Text(Strict):
    type: Literal["text"]
    text: str


class Url(Strict):
    url: str
    detail: str | None = None


class Image(Strict):
    type: Literal["image_url"]
    image_url: Url


Part = Annotated[Text | Image, Field(discriminator="type")]


Nothing = Annotated[list[Any], Field(max_length=0)] | None
"""Of a field that OpenAI's library writes into each answer, and that no answer here has."""


class Message(Strict):
    """One that a client wrote, or an answer as OpenAI's library writes it (`model_dump`)."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[Part] | None
    name: str | None = None
    refusal: Nothing = None
    annotations: Nothing = None
    audio: Nothing = None
    function_call: Nothing = None
    tool_calls: Nothing = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.content is None and self.role != "assistant":
            raise ValueError("only an assistant's content may be null")
        return self


class StreamOptions(Strict):
    include_usage: bool = False


class Body(Strict):
    """What of OpenAI's interface is understood, and some of vLLM's additions to it."""

    model: str
    messages: list[Message] = Field(min_length=1)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = Field(default=None, ge=0, le=20)
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    repetition_penalty: float | None = None
    min_tokens: int | None = None
    ignore_eos: bool | None = None
    n: Literal[1] | None = None
    user: str | None = None

    @model_validator(mode="after")
    def _options_have_what_they_are_of(self) -> Self:
        if self.stream_options and not self.stream:
            raise ValueError("stream_options are of a stream: set stream")
        if self.top_logprobs and not self.logprobs:
            raise ValueError("top_logprobs are of logprobs: set logprobs")
        return self


PASSED_ON = (
    *("temperature", "top_p", "top_k", "min_p", "seed", "stop", "presence_penalty"),
    *("frequency_penalty", "repetition_penalty", "min_tokens", "ignore_eos"),
)
"""Sampling parameters that vLLM calls by the same name."""


@dataclass(frozen=True, slots=True)
class Chat:
    """A request that was understood. `messages` are what a chat template takes."""

    body: Body
    messages: list[dict[str, Any]]
    pictures: list[bytes]

    @property
    def sampling_params(self) -> dict[str, Any]:
        """What was said, and nothing else: the engine has defaults of its own."""
        given = {name: getattr(self.body, name) for name in PASSED_ON}
        given["max_tokens"] = self.body.max_completion_tokens or self.body.max_tokens
        given["logprobs"] = (self.body.top_logprobs or 0) if self.body.logprobs else None
        return {name: value for name, value in given.items() if value is not None}


def read_chat(raw: bytes, max_images: int) -> Chat:
    """The chat of a body; raises Fault with status 400."""
    try:
        body = Body.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise Fault(400, f"{where}: {first['msg']}" if where else first["msg"]) from error
    messages: list[dict[str, Any]] = []
    pictures: list[bytes] = []
    for message in body.messages:
        messages.append(_for_template(message))
        parts = message.content if isinstance(message.content, list) else []
        pictures += [_picture(part.image_url.url) for part in parts if isinstance(part, Image)]
    if len(pictures) > max_images:
        raise Fault(400, f"{len(pictures)} pictures, at most {max_images} are taken")
    return Chat(body, messages, pictures)


def _for_template(message: Message) -> dict[str, Any]:
    """A message as templates know it: `developer` is OpenAI's newer word for `system`."""
    told: dict[str, Any] = {
        "role": "system" if message.role == "developer" else message.role,
        "content": message.content or "",
    }
    if isinstance(message.content, list):
        told["content"] = [_place(part) for part in message.content]
    return told if message.name is None else {**told, "name": message.name}


def _place(part: Text | Image) -> dict[str, str]:
    """A picture is a place, without its data."""
    if isinstance(part, Image):
        return {"type": "image"}
    return {"type": "text", "text": part.text}


def _picture(url: str) -> bytes:
    head, comma, data = url.partition(",")
    kind = head.lower()  # a scheme is one in any case
    if not (kind.startswith("data:") and kind.endswith(";base64") and comma):
        raise Fault(400, "image_url.url must be data:image/...;base64,...; nothing is fetched")
    try:
        # Without spaces and ends of lines: many tools wrap base64 at 76 characters.
        return base64.b64decode("".join(data.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise Fault(400, f"image_url.url: {error}") from error
