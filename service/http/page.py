"""`GET /docs`: the interface as a page that loads nothing from other hosts.

Its policy names this service as the only source of scripts and styles, and the
page's one inline script by its hash, so a script that somebody manages to put
into it does not run.
"""

import base64
import hashlib
import re
from pathlib import Path

import fastapi_offline
from fastapi import FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.staticfiles import StaticFiles

from service.http.paths import ASSETS_PATH

INLINE_SCRIPT = re.compile(rb"<script>(.*?)</script>", re.DOTALL)


ASSETS = Path(fastapi_offline.__file__).parent / "static"


def install(app: FastAPI) -> None:
    """Put the page and its assets into the application."""
    app.mount(ASSETS_PATH, StaticFiles(directory=ASSETS), name="docs-assets")

    @app.get("/docs", include_in_schema=False)
    async def page(request: Request) -> HTMLResponse:
        root = request.scope.get("root_path", "")
        answer = get_swagger_ui_html(
            openapi_url=f"{root}{app.openapi_url}",
            title=app.title,
            swagger_js_url=f"{root}{ASSETS_PATH}/swagger-ui-bundle.js",
            swagger_css_url=f"{root}{ASSETS_PATH}/swagger-ui.css",
            swagger_favicon_url=f"{root}{ASSETS_PATH}/favicon.png",
        )
        answer.headers["Content-Security-Policy"] = policy(bytes(answer.body))
        return answer


def policy(page: bytes) -> str:
    """What the page may load: the service's own, images that it draws, and its inline scripts."""
    hashes = (hashlib.sha256(script).digest() for script in INLINE_SCRIPT.findall(page))
    scripts = " ".join(f"'sha256-{base64.b64encode(each).decode()}'" for each in hashes)
    return (
        f"default-src 'none'; script-src 'self' {scripts}; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
