"""One line's list of imported names, and its merge."""

from __future__ import annotations

import re
from typing import Final

import msgspec

_SCRIPT = re.compile(r"(?P<head>\s*import\s+(?:type\s+)?\{\s*)(?P<names>[\w\s,$]*\w)(?P<tail>\s*,?\s*\}\s*from\b.*)\Z")
_LANGUAGES: Final = {
    "python": re.compile(r"(?P<head>\s*from\s+[\w.]+\s+import\s+)(?P<names>[\w\s,]*\w)(?P<tail>\s*(?:#.*)?)\Z"),
    "javascript": _SCRIPT,
    "typescript": _SCRIPT,
    "tsx": _SCRIPT,
    "rust": re.compile(
        r"(?P<head>\s*(?:pub\b.*\s)?use\s+[\w:]+::\{\s*)(?P<names>[\w\s,]*\w)(?P<tail>\s*,?\s*\}\s*;\s*)\Z"
    ),
}
"""Those that import several names of one module on a line."""


class ImportList(msgspec.Struct, frozen=True):
    """The names that a line imports from one module, in its order, with their aliases as written."""

    head: str
    names: tuple[str, ...]
    tail: str

    def extends(self, other: ImportList) -> bool:
        """Whether it is the other with more names or none, wherever they stand among those."""
        rest = iter(self.names)
        return (self.head, self.tail) == (other.head, other.tail) and all(name in rest for name in other.names)

    @property
    def line(self) -> str:
        return f"{self.head}{', '.join(self.names)}{self.tail}"


def import_list(language: str, line: str) -> ImportList | None:
    """What a line lists; None where it lists nothing, or not with ", " between the names."""
    pattern = _LANGUAGES.get(language)
    match = pattern.match(line) if pattern else None
    if match is None:
        return None
    found = ImportList(match["head"], tuple(match["names"].split(", ")), match["tail"])
    return (
        found
        if all(name.strip() == name and name for name in found.names) and "," not in "".join(found.names)
        else None
    )


def with_both(base: ImportList, current: ImportList, proposed: ImportList) -> ImportList:
    """The base with what both added: the current names first, or sorted where all three are."""
    names = [*current.names, *(name for name in proposed.names if name not in current.names)]
    for key in (str, str.casefold):
        if all(list(side.names) == sorted(side.names, key=key) for side in (base, current, proposed)):
            names.sort(key=key)
            break
    return ImportList(current.head, tuple(names), current.tail)
