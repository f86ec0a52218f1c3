"""What /openapi.json says beyond the routes' own signatures.

`POST /preprocess` reads its request by hand, so its bodies, parameters and
answers are described by hand, from the same tables that check them.
"""

from typing import Any

from fastapi import FastAPI

from service.http.intake import MULTIPART
from service.http.multipart_body import PICTURES
from service.http.parameters import ALLOWED, HASH, INTEGERS, MODEL_ID, OF_PLANS
from service.http.paths import PLAN_PATH, PREPROCESS_PATH
from service.http.posted import METHOD
from service.keys import Keys
from service.problem import MEDIA_TYPE as PROBLEM_TYPE
from service.types import AnswerFormat, Hash, Order
from service.wire.pack import MEDIA_TYPE as ANSWER_TYPE

JSON = "application/json"

PROBLEM_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "code", "retryable"],
    "properties": {
        "type": {"type": "string", "description": "urn:patchmill:problem:CODE"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "maxLength": 200},
        "code": {"type": "string", "description": "Stable; see docs/http.md."},
        "retryable": {"type": "boolean"},
        "item": {"type": "integer", "description": "Index of the item at fault."},
        "limit": {"type": "integer"},
        "actual": {"type": "integer"},
        "setting": {"type": "string", "description": "The variable that moves the limit."},
    },
}


def _problem(description: str) -> dict[str, Any]:
    return {"description": description, "content": {PROBLEM_TYPE: {"schema": PROBLEM_SCHEMA}}}


def _json(description: str) -> dict[str, Any]:
    return {"description": description, "content": {JSON: {"schema": {"type": "object"}}}}


_DEFAULTS = {
    "format": AnswerFormat.MSGPACK,
    "order": Order.RASTER,
    "hash": Hash.PATCHMILL,
}
"""Those that depend on nothing else."""

PARAMETER_SCHEMAS: dict[str, dict[str, Any]] = {
    "model": {"type": "string", "description": "A profile or one of its aliases; see /models."},
    "background": {
        "type": "string",
        "pattern": "^(white|drop|#[0-9a-fA-F]{6})$",
        "default": "white",
        "description": "What transparent pixels are put on; drop ignores transparency.",
    },
    **{
        name: {"type": "string", "enum": list(values)}
        | ({"default": _DEFAULTS[name]} if name in _DEFAULTS else {})
        for name, values in ALLOWED.items()
    },
    "model_id": {
        "type": "string",
        "pattern": f"^{MODEL_ID.pattern}$",
        "description": "The engine's name for its model, with hash=vllm.",
    },
    "known_hashes": {
        "type": "string",
        "pattern": f"^{HASH.pattern}(,{HASH.pattern})*$",
        "description": "Whose tensors to leave out, with format=vllm; in a map also a list.",
    },
    **{
        name: {
            "type": "integer",
            "minimum": least,
            "maximum": greatest,
            "description": "For profiles whose rule is dynamic; the profile's by default.",
        }
        for name, (least, greatest) in INTEGERS.items()
    },
}

BINARY = {"type": "string", "format": "binary"}

BASE64 = {"type": "string", "description": "base64, or a data: URL that holds base64"}


def _map(required: dict[str, Any], optional: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "required": list(required),
        "additionalProperties": False,
        "properties": {**required, **optional},
    }


def _items(
    picture: dict[str, Any], parameters: dict[str, Any], *further: dict[str, Any]
) -> dict[str, Any]:
    """A map of items whose pictures are written as `picture`, and parameters."""
    frames = {"type": "array", "minItems": 1, "items": picture}
    kinds = [
        _map({"type": {"const": "image"}, "data": picture}, {}),
        _map({"type": {"const": "video_chunk"}, "frames": frames}, {}),
        *further,
    ]
    items = {"type": "array", "minItems": 1, "items": {"oneOf": kinds}}
    return _map({"items": items}, parameters)


OPENAI_PART = _map(
    {
        "type": {"const": "image_url"},
        "image_url": _map({"url": BASE64}, {"detail": {"type": "string"}}),
    },
    {},
)

NO_KEY = {"401": _problem("There are keys, and the request has none of them.")}


def _bodies(parameters: dict[str, Any], *json: dict[str, Any]) -> dict[str, Any]:
    """Every form of a body; `json` are further maps that a JSON body may be."""
    pictures = {PICTURES: {"type": "array", "minItems": 1, "items": BINARY}}
    maps = [_items(BASE64, parameters, OPENAI_PART), *json]
    return {
        "required": True,
        "content": {
            "application/octet-stream": {"schema": BINARY},
            "image/*": {"schema": BINARY},
            MULTIPART: {"schema": _map(pictures, parameters)},
            "application/msgpack": {"schema": _items(BINARY, parameters)},
            JSON: {"schema": maps[0] if len(maps) == 1 else {"oneOf": maps}},
        },
    }


def _queries(parameters: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "query", "required": False, "schema": schema}
        for name, schema in parameters.items()
    ]


PREPROCESS: dict[str, Any] = {
    "summary": "Preprocess",
    "description": "Turn pictures into patches; docs/wire.md describes the answer.",
    "operationId": "preprocess",
    "parameters": _queries(PARAMETER_SCHEMAS),
    "requestBody": _bodies(PARAMETER_SCHEMAS),
    "responses": {
        "200": {
            "description": "As docs/wire.md describes it, and with format=vllm docs/vllm.md.",
            "content": {ANSWER_TYPE: {"schema": BINARY}, JSON: {"schema": {"type": "object"}}},
        },
        "400": _problem("The request is malformed."),
        **NO_KEY,
        "408": _problem("The body came too slowly."),
        "413": _problem("The body is too large."),
        "415": _problem("A format or an encoding that is not read here."),
        "422": _problem("A picture or a parameter that cannot be used."),
        "429": _problem("Too much at once; Retry-After says when to try again."),
        "500": _problem("The service failed."),
        "503": _problem("The service is not ready yet, or about to end."),
        "504": _problem("There was no answer in time."),
    },
}

PLAN_SCHEMAS = {name: PARAMETER_SCHEMAS[name] for name in OF_PLANS}
SIZE = _map(
    {
        "width": {"type": "integer", "minimum": 1},
        "height": {"type": "integer", "minimum": 1},
    },
    {"frames": {"type": "integer", "minimum": 1}},
)
SIZES = _map({"images": {"type": "array", "minItems": 1, "items": SIZE}}, PLAN_SCHEMAS)
HEAD = {"head": {"type": "string", "enum": ["true", "false"], "default": "false"}}
PLAN: dict[str, Any] = {
    **PREPROCESS,
    "summary": "Plan",
    "description": "Say what pictures, their first bytes or sizes will come to; docs/http.md.",
    "operationId": "plan",
    "parameters": _queries(PLAN_SCHEMAS | HEAD),
    "requestBody": _bodies(PLAN_SCHEMAS, SIZES),
    "responses": {**PREPROCESS["responses"], "200": _json("A forecast for each item.")},
}

MODELS: dict[str, Any] = {"responses": {"200": _json("The profiles."), **NO_KEY}}
INFO: dict[str, Any] = {"responses": {"200": _json("Versions, settings and kernel."), **NO_KEY}}
PROBE: dict[str, Any] = {"responses": {"200": _json("The process answers.")}}
READY: dict[str, Any] = {
    "responses": {"200": _json("Requests are taken."), "503": _problem("Not yet.")}
}


METRICS: dict[str, Any] = {
    "responses": {
        "200": {
            "description": "Every metric, as Prometheus reads them; docs/observability.md.",
            "content": {"text/plain": {"schema": {"type": "string"}}},
        },
        **NO_KEY,
    }
}

KEY = {"key": {"type": "http", "scheme": "bearer"}}


def document(app: FastAPI, keys: Keys) -> None:
    """Put the POST routes into the document that the framework makes of its own routes.

    Where a key is wanted the document says so, and the page asks for one.
    """
    of_routes = app.openapi

    def whole() -> dict[str, Any]:
        schema = of_routes()
        if keys.wanted:
            schema.setdefault("components", {})["securitySchemes"] = KEY
            schema["security"] = [{name: []} for name in KEY]
        posted = {PREPROCESS_PATH: PREPROCESS, PLAN_PATH: PLAN}
        own = {path: {METHOD.lower(): operation} for path, operation in posted.items()}
        schema["paths"] = {**own, **schema["paths"]}
        return schema

    app.openapi = whole  # type: ignore[method-assign]
