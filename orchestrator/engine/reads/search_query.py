"""Which search a cursor belongs to: a short hash of its parameters, without those that may differ from page to page."""

from __future__ import annotations

import hashlib
from collections.abc import Collection

import msgspec

from orchestrator.core.errors import ParameterInvalid


def query_of(params: msgspec.Struct, *, free: Collection[str]) -> str:
    """Of all parameters but the cursor and the `free` ones."""
    asked = {name: getattr(params, name) for name in params.__struct_fields__ if name not in ("cursor", *free)}
    return hashlib.blake2b(msgspec.json.encode(asked, order="deterministic"), digest_size=4).hexdigest()


def read_cursor(cursor: str, query: str, numbers: int) -> tuple[list[int], str]:
    """So many numbers of a cursor of this query, and the path behind them. Raises ParameterInvalid."""
    given, *found = cursor.split(":", numbers + 1)
    counts, path = found[:numbers], "".join(found[numbers:])
    if not path or not all(number.isdecimal() and number.isascii() and len(number) <= 9 for number in counts):
        raise ParameterInvalid("cursor", "is not one of ours; send the cursor of the last answer")
    if given != query:
        hint = "Send it with the parameters of the search that it came from; or no cursor, to begin a new one."
        raise ParameterInvalid("cursor", "belongs to another search", hint=hint)
    return [int(number) for number in counts], path
