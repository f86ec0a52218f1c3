"""The one place that opens files with Pillow, and all that it sets there.

In: bytes and the one format that they are in. Out: an opened, not yet decoded
image. What Pillow keeps process-wide is set once, when this module is imported,
and never after, so that any number of threads may decode at once:

- Only the plugins imported here can open anything.
- `Image.MAX_IMAGE_PIXELS` is off: `sniff` has held the size against our own
  limit before, and the warning below twice Pillow's would only be noise.
- A picture's pixels are one block of memory, not many of 16 MB, so that `arrow`
  can hand them on without a copy.
- libtiff keeps its remarks to itself.
- AVIF decodes on the calling thread. By default libavif starts a thread for
  each core, beside those that the pool has counted.
- Plugins report damage that they can live with through `warnings`. What then
  happens hangs on filters that are global: a service run with `-W error` would
  refuse a picture that it answers without. `warnings.catch_warnings` swaps
  those filters for all threads, so the plugins get a stand-in that says it to
  the debug log instead.
"""

import ctypes
import io
import logging
from pathlib import Path
from typing import Any

import PIL
from PIL import (
    AvifImagePlugin,
    BmpImagePlugin,
    GifImagePlugin,
    Image,
    ImageFile,
    JpegImagePlugin,
    MpoImagePlugin,
    PngImagePlugin,
    TiffImagePlugin,
    WebPImagePlugin,
    features,
)

from service.types import Buffer, Format

logger = logging.getLogger(__name__)

_PLUGINS: dict[Format, str] = {
    Format.JPEG: JpegImagePlugin.JpegImageFile.format,
    Format.PNG: PngImagePlugin.PngImageFile.format,
    Format.WEBP: WebPImagePlugin.WebPImageFile.format,
    Format.GIF: GifImagePlugin.GifImageFile.format,
    Format.BMP: BmpImagePlugin.BmpImageFile.format,
    Format.TIFF: TiffImagePlugin.TiffImageFile.format,
    Format.AVIF: AvifImagePlugin.AvifImageFile.format,
}
# JPEG opens multi-picture files by this one, which it would else import on the first
_MULTI_PICTURE = MpoImagePlugin.MpoImageFile


BLOCK_BYTES = 1 << 30
"""A picture over this is copied once more."""


class _Quiet:
    """Stands in for the `warnings` module inside the plugins."""

    def warn(self, message: object, *_: Any, **__: Any) -> None:  # the signature it replaces
        logger.debug("pillow: %s", message)


def _silence_libtiff() -> None:
    """Keep libtiff from writing its warnings to standard error, past our log.

    It writes a line for every damaged row: 60,000 for one small fax picture.
    Pillow offers no switch, libtiff does (TIFFSetErrorHandler); found where the
    process has it loaded, and left alone where it is built into Pillow.
    """
    maps = Path("/proc/self/maps")
    if not maps.exists():
        return
    for path in {line.split()[-1] for line in maps.read_text().splitlines() if "libtiff" in line}:
        library = ctypes.CDLL(path)
        for handler in (library.TIFFSetErrorHandler, library.TIFFSetWarningHandler):
            handler.argtypes, handler.restype = [ctypes.c_void_p], ctypes.c_void_p
            handler(None)


def _set_up() -> None:
    _silence_libtiff()
    Image.preinit()  # else done by the first `open`, on whichever thread that is
    Image.MAX_IMAGE_PIXELS = None
    Image.core.set_block_size(BLOCK_BYTES)  # type: ignore[attr-defined] # named in its docs
    AvifImagePlugin.DEFAULT_MAX_THREADS = 1
    for module in (JpegImagePlugin, PngImagePlugin, TiffImagePlugin):
        vars(module)["warnings"] = _Quiet()


_set_up()


def open_image(data: Buffer, format_: Format) -> ImageFile.ImageFile:
    """The image in `data`, its pixels not yet decoded. Raises whatever Pillow does."""
    return Image.open(io.BytesIO(data), formats=(_PLUGINS[format_],))


def versions() -> dict[str, str]:
    """Pillow and the libraries inside it whose pixels may change with their version."""
    found = {
        "pillow": PIL.__version__,
        "libjpeg_turbo": features.version_feature("libjpeg_turbo"),
        "libwebp": features.version_module("webp"),
        "libavif": features.version_module("avif"),
        "zlib": features.version_codec("zlib"),
        "zlib_ng": features.version_feature("zlib_ng"),
        "libtiff": features.version_codec("libtiff"),
        "littlecms2": features.version_module("littlecms2"),
    }
    return {name: version for name, version in found.items() if version is not None}
