"""Kernels that came with an image, on a file system that nobody may write to.

For NUMBA_CACHE_LOCATOR_CLASSES, by which numba is told where caches are. Its
own locators write a file before they trust a folder, and without one that they
can write to numba compiles everything at each start. This one only reads.
"""

from pathlib import Path

from numba.core.caching import UserProvidedCacheLocator


class ShippedCacheLocator(UserProvidedCacheLocator):
    """NUMBA_CACHE_DIR, as it is."""

    def ensure_cache_path(self) -> None:
        """Raises FileNotFoundError, which numba takes for "not here"."""
        path = Path(self._cache_path)
        if not path.is_dir():
            raise FileNotFoundError(path)
