"""The body of `POST /v1/chat/completions`, read: messages for a template, pictures as files.

In come bytes, out comes a `Chat`. What is not known is refused rather than
ignored, and no address is ever fetched: pictures come as `data:` URLs.
"""

import base64
import binascii
from dataclasses import dataclass
from typing import Annotated, Any, Literal

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


class Message(Strict):
    """One message; an assistant's may be an answer as OpenAI's own client gives it back."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[Part] | None = None
    name: str | None = None
    refusal: Any = None
    annotations: Any = None
    audio: Any = None
    function_call: Any = None
    tool_calls: Any = None

    @model_validator(mode="after")
    def _is_understood(self) -> "Message":
        for field in ("refusal", "annotations", "audio", "function_call", "tool_calls"):
            if getattr(self, field):
                raise ValueError(f"{field} is not understood here")
        if self.content is None and self.role != "assistant":
            raise ValueError("content is missing")
        return self


class StreamOptions(Strict):
    include_usage: bool = False


class Body(Strict):
    """What of OpenAI's interface is understood, and some of vLLM's additions to it."""

    model: str
    messages: list[Message] = Field(min_length=1)
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    logprobs: bool | None = False
    top_logprobs: int | None = Field(default=0, ge=0, le=20)
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
    n: Literal[1] | None = 1
    user: str | None = None

    @model_validator(mode="after")
    def _options_have_their_switch(self) -> "Body":
        if self.stream_options and not self.stream:
            raise ValueError("stream_options are for stream=true alone")
        if self.top_logprobs and not self.logprobs:
            raise ValueError("top_logprobs are for logprobs=true alone")
        return self


WHITE_SPACE = str.maketrans("", "", " \t\r\n")
"""Base64 may be wrapped."""

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
        told: str | list[dict[str, str]]
        if message.content is None or isinstance(message.content, str):
            told = message.content or ""
        else:
            told = [_for_template(part) for part in message.content]
            urls = [part.image_url.url for part in message.content if isinstance(part, Image)]
            pictures += map(_picture, urls)
        role = "system" if message.role == "developer" else message.role  # no template has it
        messages.append({"role": role, "content": told})
    if len(pictures) > max_images:
        raise Fault(400, f"{len(pictures)} pictures, at most {max_images} are taken")
    return Chat(body, messages, pictures)


def _for_template(part: Text | Image) -> dict[str, str]:
    """A part as templates know it: a picture is a place, without its data."""
    if isinstance(part, Image):
        return {"type": "image"}
    return {"type": "text", "text": part.text}


def _picture(url: str) -> bytes:
    head, comma, data = url.partition(",")
    head = head.lower()
    if not (head.startswith("data:") and head.endswith(";base64") and comma):
        raise Fault(400, "image_url.url must be data:image/...;base64,...; nothing is fetched")
    try:
        return base64.b64decode(data.translate(WHITE_SPACE), validate=True)
    except (binascii.Error, ValueError) as error:
        raise Fault(400, f"image_url.url: {error}") from error
