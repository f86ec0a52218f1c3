"""The routes by name, for those who treat them differently: keys, metrics, logs, headers.

A name and not the path itself: strangers choose paths, and a metric with a
label for each would grow without bound.
"""

from enum import StrEnum

from starlette.types import Scope


class Route(StrEnum):
    """What a request's path leads to."""

    PREPROCESS = "preprocess"
    PLAN = "plan"
    MODELS = "models"
    INFO = "info"
    LIVE = "live"
    READY = "ready"
    METRICS = "metrics"
    DOCS = "docs"
    OTHER = "other"


PREPROCESS_PATH = "/preprocess"
PLAN_PATH = "/plan"
ASSETS_PATH = "/docs-assets"

ROUTES = {
    PREPROCESS_PATH: Route.PREPROCESS,
    PLAN_PATH: Route.PLAN,
    "/models": Route.MODELS,
    "/info": Route.INFO,
    "/health/live": Route.LIVE,
    "/health/ready": Route.READY,
    "/metrics": Route.METRICS,
    "/docs": Route.DOCS,
    "/openapi.json": Route.DOCS,
}

PROBES = frozenset({Route.LIVE, Route.READY})


def route(scope: Scope) -> Route:
    """The route of an HTTP request; of several spellings of a path, only the plain one counts."""
    path: str = scope["path"].removeprefix(scope.get("root_path", ""))
    if path.startswith(ASSETS_PATH + "/"):
        return Route.DOCS
    return ROUTES.get(path, Route.OTHER)
