"""A TIFF directory's values, held to the kind that Pillow takes.

In: the wanted entries of a directory. Out: integers, or a refusal that names the
tag. What a tag means is the caller's.
"""

from service.codec.directory import Directory, Entry
from service.errors import CorruptImage, TruncatedImage

MAX_VALUES = 12
"""Values of a tag that has one for each sample; Pillow reads six samples at most."""


class Tags:
    """Values of a directory's tags, as Pillow takes them."""

    def __init__(self, directory: Directory) -> None:
        self._entries = directory.entries
        self._whole = directory.whole

    def entry(self, tag: int) -> Entry | None:
        return self._entries.get(tag)

    def integers(self, tag: int, default: tuple[int, ...]) -> tuple[int, ...]:
        entry = self._entries.get(tag)
        if entry is None:
            return default
        if entry.count > MAX_VALUES:
            raise CorruptImage(f"tag {tag} has too many values")
        values = entry.integers()
        if values is None:
            raise CorruptImage(f"tag {tag} holds no integers")
        return values

    def integer(self, tag: int, default: int) -> int:
        entry = self._entries.get(tag)
        if entry is None:
            return default
        value = entry.first()
        if not isinstance(value, int):
            raise CorruptImage(f"tag {tag} holds no integer")
        return value

    def required(self, tag: int) -> int:
        if tag not in self._entries:
            if not self._whole:
                raise TruncatedImage("the file ends before its directory does")
            raise CorruptImage("the directory gives no size")
        return self.integer(tag, 0)
