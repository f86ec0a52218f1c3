"""A request to an engine, of any origin, refused where it is malformed or would mislead.

In comes the JSON body of `POST /inference/v1/generate` as Python objects. Nothing
comes out: a return is the proof. A malformed request kills a vLLM engine, and a
misleading one is answered with 200 and wrong tokens, so both are refused, each
with the field and the reason.
"""

from collections.abc import Mapping
from itertools import pairwise
from types import MappingProxyType

from patchmill_client.errors import BadFeatures, BadPlaceholder, BadTensor, UnknownHash
from patchmill_client.vllm.contents import Place, embeddings, metadata_tokens
from patchmill_client.vllm.engine import KIMI, Engine
from patchmill_client.vllm.prompt import Range
from patchmill_client.vllm.read import Field, read_item

MAX_TOKEN_ID = 2**31 - 1
MAX_HASH_CHARS = 256
NONE_KNOWN: Mapping[str, int] = MappingProxyType({})


def validate(
    request: Mapping[str, object],
    engine: Engine = KIMI,
    *,
    known_hashes: Mapping[str, int] = NONE_KNOWN,
    placeholder_id: int | None = None,
) -> None:
    """Raises UnsafeRequest, as the class that fits, unless the engine can take the request.

    `known_hashes` maps the hashes whose tensors the engine has to their tokens.
    `placeholder_id` None takes the first token of the first range.
    """
    _check_maps(request, known_hashes)
    token_ids = _token_ids(request.get("token_ids"))
    if not isinstance(request.get("sampling_params"), dict):
        raise BadFeatures("sampling_params", "must be an object")
    features = request.get("features")
    if features is None:
        _check_ranges([], token_ids, placeholder_id)
        return
    if request.get("content_parts") is not None:
        raise BadFeatures("content_parts", "exclude features: the engine would load them itself")
    if not isinstance(features, dict):
        raise BadFeatures("features", "must be an object")
    hashes = _hashes(_of_modality(features, "mm_hashes", engine, None))
    count = len(hashes)
    ranges = _ranges(_of_modality(features, "mm_placeholders", engine, count))
    _check_ranges(ranges, token_ids, placeholder_id)
    nothing: list[object] = [None] * count
    data, metadata = (
        nothing if features.get(name) is None else _of_modality(features, name, engine, count)
        for name in ("kwargs_data", "mm_metadata")
    )
    seen: dict[str, object] = {}
    for place, (name, span) in enumerate(zip(hashes, ranges, strict=True)):
        at = f"features.kwargs_data.{engine.traits.modality}[{place}]"
        packed, extra = data[place], metadata[place]
        if seen.setdefault(name, packed) != packed:
            raise BadFeatures(at, f"other tensors than an item before it, with one hash {name}")
        if packed is None:
            tokens = _known_tokens(name, known_hashes, at)
            if extra is not None:
                raise BadFeatures(at, "null beside metadata needs an encoder elsewhere")
        else:
            fields = read_item(packed, at)
            tokens = embeddings(fields, engine, at, Place(place, count))
            if extra is not None:
                _check_metadata(extra, fields, engine, at.replace("kwargs_data", "mm_metadata"))
        if span.length != tokens:
            raise BadPlaceholder(
                f"features.mm_placeholders[{place}]",
                f"{span.length} placeholders for {tokens} embeddings",
            )


def _check_maps(request: object, known_hashes: object) -> None:
    """Whoever passes a request on may hold anything that JSON can be."""
    if not isinstance(request, Mapping):
        raise BadFeatures("request", f"{type(request).__name__}, must be an object")
    if not isinstance(known_hashes, Mapping):
        raise BadFeatures("known_hashes", "must map hashes to their numbers of tokens")


def _token_ids(found: object) -> list[int]:
    if not isinstance(found, list) or not found:
        raise BadFeatures("token_ids", "must be a list of at least one id")
    for place, token in enumerate(found):
        if type(token) is not int or not 0 <= token <= MAX_TOKEN_ID:
            raise BadFeatures(f"token_ids[{place}]", f"{token!a} is no token id")
    return found


def _of_modality(
    features: Mapping[str, object], name: str, engine: Engine, count: int | None
) -> list[object]:
    """The list of the engine's one modality, which must be the only one."""
    at, modality = f"features.{name}", engine.traits.modality
    lists = features.get(name)
    if not isinstance(lists, dict) or list(lists) != [modality]:
        told = ", ".join(map(ascii, lists)) if isinstance(lists, dict) else ascii(lists)
        raise BadFeatures(at, f"has {told or 'nothing'}; {engine.family} has {modality} alone")
    found = lists[modality]
    if not isinstance(found, list) or not found:
        raise BadFeatures(f"{at}.{modality}", "must be a list of at least one item")
    if count is not None and len(found) != count:
        raise BadFeatures(f"{at}.{modality}", f"{len(found)} items, mm_hashes has {count}")
    return found


def _hashes(found: list[object]) -> list[str]:
    hashes: list[str] = []
    for place, name in enumerate(found):
        if not isinstance(name, str) or not 1 <= len(name) <= MAX_HASH_CHARS or not name.isascii():
            raise BadFeatures(
                f"features.mm_hashes[{place}]",
                f"must be 1 to {MAX_HASH_CHARS} characters of ASCII",
            )
        hashes.append(name)
    return hashes


def _ranges(found: list[object]) -> list[Range]:
    ranges: list[Range] = []
    for place, each in enumerate(found):
        at = f"features.mm_placeholders[{place}]"
        if not isinstance(each, dict) or set(each) != {"offset", "length"}:
            raise BadPlaceholder(at, "must be an object of offset and length")
        offset, length = each["offset"], each["length"]
        if type(offset) is not int or type(length) is not int or offset < 0 or length < 1:
            raise BadPlaceholder(at, f"offset {offset!a} and length {length!a} are no range")
        ranges.append(Range(offset, length))
    return ranges


def _check_ranges(ranges: list[Range], token_ids: list[int], placeholder_id: int | None) -> None:
    """Each range lies inside, apart from the others, and holds placeholders alone.

    No placeholder lies outside: a range that is too short or off by one is
    answered with 200 and wrong tokens.
    """
    for place, (offset, length) in enumerate(ranges):
        if offset + length > len(token_ids):
            raise BadPlaceholder(
                f"features.mm_placeholders[{place}]",
                f"ends at {offset + length}, token_ids has {len(token_ids)}",
            )
    for before, after in pairwise(sorted(ranges)):
        if before.offset + before.length > after.offset:
            raise BadPlaceholder("features.mm_placeholders", f"{before} and {after} overlap")
    if placeholder_id is None and not ranges:
        return
    wanted = token_ids[ranges[0].offset] if placeholder_id is None else placeholder_id
    for place, (offset, length) in enumerate(ranges):
        if token_ids[offset : offset + length].count(wanted) != length:
            raise BadPlaceholder(
                f"features.mm_placeholders[{place}]",
                f"covers tokens other than the placeholder {wanted}",
            )
    outside = token_ids.count(wanted) - sum(length for _, length in ranges)
    if outside:
        raise BadPlaceholder(
            "features.mm_placeholders", f"{outside} placeholders {wanted} lie outside all ranges"
        )


def _known_tokens(name: str, known_hashes: Mapping[str, int], at: str) -> int:
    if name not in known_hashes:
        raise UnknownHash(at, f"null, and {name} was not said to be known to the engine")
    return known_hashes[name]


def _check_metadata(extra: object, whole: Mapping[str, Field], engine: Engine, at: str) -> None:
    """The engine lets metadata replace the item's own fields, so they must be the same."""
    fields = read_item(extra, at)
    metadata_tokens(fields, engine, at)
    for name, field in fields.items():
        if field != whole[name]:
            raise BadTensor(f"{at}.{name}", "differs from the item's own")
