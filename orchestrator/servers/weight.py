"""Which calls are heavy: those that may read, search or compare much. Known before a call begins, by what it names."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from orchestrator.api.operation import AnyOperation

HEAVY_BYTES = 1024 * 1024
"""Of a file that a call names, or of the call itself."""

LARGE_PATCH_BYTES = 64 * 1024

TREE_FILES = 2000
"""A call that goes through a workspace of so many files is heavy."""


class _Named(msgspec.Struct):
    """What the weight of a call hangs on; everything else is passed over."""

    path: str | None = None
    source: str | None = None
    recursive: bool | None = None


_NAMED = msgspec.json.Decoder(_Named)


class Weigher:
    """Weighs calls; `size_at` is the size of a file, in bytes, None for a directory or nothing."""

    def __init__(self, size_at: Callable[[str], int | None], files: Callable[[], int]) -> None:
        self._size_at, self._files = size_at, files

    def heavy(self, operation: AnyOperation, params: bytes | msgspec.Raw) -> bool:
        """Whether the call runs one at a time with other heavy calls. Cost: microseconds."""
        size, weight = len(memoryview(params)), operation.weight
        if weight == "always" or size > HEAVY_BYTES or (weight == "patch" and size > LARGE_PATCH_BYTES):
            return True
        try:
            named = _NAMED.decode(params)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return False  # it will be refused
        if weight == "tree":
            return named.recursive is not False and self._files() > TREE_FILES
        path = named.path or named.source
        size_at = self._size_at(path) if path is not None else None
        if size_at is None:
            return weight == "search"
        return size_at > HEAVY_BYTES
