"""`POST /plan`: pictures, their first bytes or their sizes in, what they will come to out.

The same bodies as /preprocess, or `{"images": [{"width": …, "height": …}, …]}`. With
`head=true` the files may be cut off anywhere. No pixel is decoded, so a plan takes no
share of the pixel budget.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from service import forecast
from service.errors import BadJson, BadParameter, at_item
from service.forecast import Forecast
from service.http import intake, json_body, parameters
from service.http.intake import Unpack
from service.http.items import Pairs, check_count
from service.http.posted import Posted, Query
from service.job import Request, terms
from service.plan.choices import Settled
from service.pool.permit import Permit
from service.types import Head, Header, Item, ItemType, Limits, Size, Sized

IMAGES = "images"
HEAD = "head"
SWITCH = {"true": True, "false": False, True: True, False: False}
MAX_SIDE = 2**31 - 1


class Plan(Posted):
    """Answers every request on /plan."""

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._worked(scope, receive, PARSERS, self._start) as told:
            await JSONResponse(told)(scope, receive, send)

    def _start(self, query: Query, _: Permit) -> Callable[[Unpack], dict[str, Any]]:
        parameters.parse(_without_head(query), parameters.OF_PLANS)

        def work(unpack: Unpack) -> dict[str, Any]:
            items, pairs = unpack()
            together = (*query, *pairs)
            asked = parameters.parse(_without_head(together), parameters.OF_PLANS)
            cut_off = _head(together)
            tools = self._state.ready_tools()
            if isinstance(items, Sizes):
                request = Request((), asked)
                found = forecast.of_sizes(request, items.sizes, tools)
                kinds = [each.type for each in items.sizes]
            else:
                request = Request(items, asked)
                of = forecast.of_heads if cut_off else forecast.of_files
                found = of(request, tools)
                kinds = [item.type for item in items]
            profile, form = terms(request, tools)
            return {
                "model": profile.name,
                "dtype": form.dtype,
                "layout": form.layout,
                "order": asked.order,
                "items": [
                    _told(index, kind, each, form)
                    for index, (kind, each) in enumerate(zip(kinds, found, strict=True))
                ],
            }

        return work


@dataclass(frozen=True, slots=True)
class Sizes:
    """A body that names sizes instead of holding pictures."""

    sizes: tuple[Sized, ...]


def _json(body: bytes, limits: Limits) -> tuple[tuple[Item, ...] | Sizes, Pairs]:
    loaded = json_body.load(body)
    if not isinstance(loaded, Mapping) or IMAGES not in loaded:
        return json_body.read(loaded, limits)
    if "items" in loaded:
        raise BadJson("the body has items or images, not both")
    entries = loaded[IMAGES]
    if not isinstance(entries, list):
        raise BadJson("images is a list of sizes")
    check_count(entries, IMAGES, limits)
    sizes = []
    for index, entry in enumerate(entries):
        with at_item(index):
            sizes.append(_size(entry))
    return Sizes(tuple(sizes)), tuple(pair for pair in loaded.items() if pair[0] != IMAGES)


PARSERS: intake.Parsers = {**intake.PARSERS, "application/json": _json}


def _size(entry: object) -> Sized:
    """`{"width", "height"}`, and for a video chunk how many `frames` of that size it has."""
    fault = BadJson("an image is a map of width, height and perhaps frames, whole numbers from 1")
    if not isinstance(entry, Mapping) or not {"width", "height"} <= set(entry):
        raise fault
    if not set(entry) <= {"width", "height", "frames"}:
        raise fault
    if any(type(value) is not int or not 1 <= value <= MAX_SIDE for value in entry.values()):
        raise fault
    kind = ItemType.VIDEO_CHUNK if "frames" in entry else ItemType.IMAGE
    return Sized(kind, Size(entry["height"], entry["width"]), entry.get("frames", 1))


def _without_head(pairs: Sequence[tuple[str, object]]) -> list[tuple[str, object]]:
    return [pair for pair in pairs if pair[0] != HEAD]


def _head(pairs: Sequence[tuple[str, object]]) -> bool:
    """Whether the files may be cut off: `head`, where it is given."""
    given = {SWITCH.get(value) for name, value in pairs if name == HEAD and _is_plain(value)}
    if any(name == HEAD and not _is_plain(value) for name, value in pairs) or None in given:
        raise BadParameter("head is true or false")
    if len(given) > 1:
        raise BadParameter("head is given twice, with different values")
    return bool(given and given.pop())


def _is_plain(value: object) -> bool:
    return isinstance(value, str | bool)


def _told(index: int, kind: ItemType, each: Forecast, form: Settled) -> dict[str, Any]:
    plan = each.plan
    return {
        "index": index,
        "type": kind,
        "source": _source(each.source),
        "resized": [each.resized.height, each.resized.width] if each.resized else None,
        "grid_thw": [plan.grid.t, plan.grid.h, plan.grid.w] if plan else None,
        "num_patches": plan.grid.patches if plan else None,
        "num_tokens": plan.num_tokens if plan else None,
        "bytes": form.element_bytes(plan) if plan else None,
        "digest": each.digest,
        "reason": each.reason,
    }


def _source(source: Head | Header | None) -> dict[str, Any] | None:
    if source is None:
        return None
    upright = source.size
    return {
        "format": source.format,
        "height": upright and upright.height,
        "width": upright and upright.width,
        "orientation": source.orientation,
        "more_frames": source.more_frames,
    }
