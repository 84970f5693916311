"""Merge rule: both sides added imports at one place.

Lines are read one by one, as people write imports; a line written in another way counts as no import.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import Final, NamedTuple

from orchestrator.core.content import Region, ThreeWay
from orchestrator.core.text.indent import indent_of, inside_strings


class ImportLine(NamedTuple):
    """A line that imports: its names by the line itself, or by what is before and behind a list of names."""

    place: str  # its indentation, and the line that opens the list around it: only equal places mix
    key: tuple[str, ...]
    names: Sequence[str]  # `_PACKAGE` before a package, which other lines may bind too


_PACKAGE: Final = "import "
_SCRIPT_LIST = r"(?P<head>import\s+(?:type\s+)?\{\s*)(?P<names>[\w\s,$]*\w)(?P<tail>\s*,?\s*\}\s*from\b.*)"
_SCRIPT = r"import\s+(?:(?:type\s+)?(?:\*\s+as\s+)?(?P<name>\w+)\s+from\s+)?(?P<quote>['\"])[^'\"]+(?P=quote)\s*;?\s*"
_INCLUDE = r"#\s*include\s*(?P<name><[^>]+>|\"[^\"]+\")\s*"

_LISTS: Final = {
    "python": r"(?P<head>from\s+(?!__future__\b)[\w.]+\s+import\s+)(?P<names>[\w ,]*\w)(?P<tail>\s*(?:#.*)?)",
    "javascript": _SCRIPT_LIST,
    "typescript": _SCRIPT_LIST,
    "tsx": _SCRIPT_LIST,
    "rust": r"(?P<head>(?:pub\b.*\s)?use\s+[\w:]+::\{\s*)(?P<names>[\w\s,]*\w)(?P<tail>\s*,?\s*\}\s*;\s*)",
}
"""A line that imports several names of one module. `import __future__` must stay first."""

IMPORTING: Final = {
    "python": r"import\s+(?:[\w.]+\s+as\s+(?P<alias>\w+)|(?P<package>\w+)(?:\.\w+)*)\s*(?:#.*)?",
    "javascript": _SCRIPT,
    "typescript": _SCRIPT,
    "tsx": _SCRIPT,
    "rust": r"(?:pub(?:\([^)]*\))?\s+)?use\s+(?:\w+::|::)*(?:\w+\s+as\s+)?(?P<name>\w+)\s*;\s*",
    "go": r"(?:import\s+)?(?:(?P<alias>\w+)\s+)?\"(?:[^\"]*/)?(?P<name>(?!v\d+\")[^\"/]+)(?:/v\d+)?\"\s*",
    "java": r"import\s+(?:static\s+)?[\w.]+\.(?P<name>\w+)\s*;\s*",
    "c": _INCLUDE,
    "cpp": _INCLUDE,
}
"""A line that imports one thing, with the name that it binds if any."""

_MARKS: Final = {"rust": "use", "go": '"', "c": "include", "cpp": "include"}
"""What every line of the above holds; in the other languages `import`."""

_WORD = re.compile(r"\w+")
_MEMBER = re.compile(r"(?:type\s+)?\w+(?:\s+as\s+\w+)?\s*,\s*")
_OPENING = re.compile(r"(?:from\s+[\w.]+\s+import\s*\(|import\s+(?:type\s+)?\{|(?:pub\b.*\s)?use\s+[\w:]+::\{)\s*")


class ImportMerge:
    """The imports of three texts in one language of `IMPORTING`."""

    def __init__(self, sides: ThreeWay[Sequence[str]], language: str) -> None:
        self._sides = sides
        self._imports = sides.map(lambda lines: list(_imports(language, lines)))
        self._quoted = sides.map(inside_strings)
        words = [_words(compress(lines, read)) for lines, read in zip(sides, self._imports, strict=True)]
        self._gone = (words[0] - words[1]) | (words[0] - words[2])

    def merged(self, region: Region) -> tuple[str, ...] | None:
        """The lines of a region with what either side added: in the current order, the proposal's after. None: no rule.

        Only where every line of the region imports, outside of strings, at one depth and in one list; where both sides
        kept each name that the base imports; where no new name is bound twice; and where no new line names what one
        side imports no more, anywhere in the text: it may have another name there.
        """
        places: set[str] = set()
        found: list[dict[tuple[str, ...], Sequence[str]]] = []
        for read, span, quoted in zip(self._imports, region, self._quoted, strict=True):
            lines = [
                line for at, line in enumerate(read[span.start : span.end], span.start) if line and at not in quoted
            ]
            places.update(line.place for line in lines)
            found.append({line.key: line.names for line in lines})
            if len(found[-1]) < span.length:
                return None  # something else is there, or a line twice
        base, current, proposed = found
        if len(places) != 1:
            return None
        if not all(_keeps(side.get(key, ()), names) for side in (current, proposed) for key, names in base.items()):
            return None
        merged = dict(current)
        for key, names in proposed.items():
            merged[key] = _united(base.get(key, ()), current.get(key, ()), names)
        bound, known = _bound(merged), _bound(base)
        if any(bound[name] > 1 for name in bound - known):
            return None
        depth = indent_of(*places)
        result = [depth + (key[0] if len(key) == 1 else ", ".join(names).join(key)) for key, names in merged.items()]
        new = set(result).difference(region.base.of(self._sides.base))
        return tuple(result) if self._gone.isdisjoint(_words(new)) else None


def _imports(language: str, lines: Sequence[str]) -> Iterator[ImportLine | None]:
    """For each line what it imports; None for others, those that open and close a list too."""
    opening, mark = "", _MARKS.get(language, "import")
    for line in lines:
        if not opening and mark not in line:
            yield None
            continue
        text = line.lstrip(" \t")
        if opening and _MEMBER.fullmatch(text):
            yield ImportLine(indent_of(line) + opening, (text,), [text.rstrip(" ,")])
        else:
            opening = text if language in _LISTS and _OPENING.fullmatch(text) else ""
            yield _alone(language, line, text)


def _alone(language: str, line: str, text: str) -> ImportLine | None:
    if language in _LISTS and (found := re.fullmatch(_LISTS[language], text)) is not None:
        names = found["names"].split(", ")
        whole = len(set(names)) == len(names) and all(name == name.strip() and "," not in name for name in names)
        return ImportLine(indent_of(line), (found["head"], found["tail"]), names) if whole else None
    if (found := re.fullmatch(IMPORTING[language], text)) is None:
        return None
    package, alias, name = map(found.groupdict().get, ("package", "alias", "name"))
    bound = _PACKAGE + package if package else alias or name
    return ImportLine(indent_of(line), (text,), [bound] if bound and bound != "_" else [])


def _words(lines: Iterable[str]) -> frozenset[str]:
    """All words of lines, and what is between blanks: the path of a module."""
    text = " ".join(lines)
    return frozenset(_WORD.findall(text)).union(text.split())


def _bound(imports: Mapping[tuple[str, ...], Sequence[str]]) -> Counter[str]:
    """How often each name is bound; `import a.b` and `import a.c` both bind the package `a`."""
    names = [name for names in imports.values() for name in names]
    packages = {name for name in names if name.startswith(_PACKAGE)}
    return Counter(name.split()[-1] for name in (*packages, *(name for name in names if name not in packages)))


def _keeps(names: Sequence[str], base: Sequence[str]) -> bool:
    """Whether all names of the base are among these, in its order."""
    rest = iter(names)
    return all(name in rest for name in base)


def _united(*sides: Sequence[str]) -> list[str]:
    """The names of all sides, sorted if each of them is."""
    names = list(dict.fromkeys(name for side in sides[1:] for name in side))
    for key in (str, str.casefold):
        if all(list(side) == sorted(side, key=key) for side in sides):
            return sorted(names, key=key)
    return names
