"""Merge rule: both sides added imports at one place.

Lines are read one by one, as people write imports; a line written in another way counts as no import.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from typing import Final

from orchestrator.core.text.indent import indent_of
from orchestrator.core.text.literals import inside_strings
from orchestrator.core.three_way import Region, Span, ThreeWay

Imports = Mapping[tuple[str, ...], Sequence[str]]
"""The names that each line imports, by the line itself, or by what is before and behind a list of names."""

_SCRIPT_LIST = r"(?P<head>import\s+(?:type\s+)?\{\s*)(?P<names>[\w\s,$]*\w)(?P<tail>\s*,?\s*\}\s*from\b.*)"
_SCRIPT = r"import\s+(?:type\s+)?(?:\*\s+as\s+)?(?P<name>\w+)\s+from\s+(?P<quote>['\"])[^'\"]+(?P=quote)\s*;?\s*"
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
    "python": r"import\s+(?:[\w.]+\s+as\s+)?(?P<name>\w+)(?:\.\w+)*\s*(?:#.*)?",
    "javascript": _SCRIPT,
    "typescript": _SCRIPT,
    "tsx": _SCRIPT,
    "rust": r"(?:pub(?:\([^)]*\))?\s+)?use\s+(?:\w+::|::)*(?:\w+\s+as\s+)?(?P<name>\w+)\s*;\s*",
    "go": r"(?:import\s+)?(?:(?P<alias>\w+)\s+)?\"(?:[^\"]*/)?(?P<name>(?!v\d+\")[^\"/]+)(?:/v\d+)?\"\s*",
    "java": r"import\s+(?:static\s+)?[\w.]+\.(?P<name>\w+)\s*;\s*",
    "c": _INCLUDE,
    "cpp": _INCLUDE,
}
"""A line that imports one thing, with the name that it binds."""

_WORD = re.compile(r"\w+")
_MEMBER = re.compile(r"(?:type\s+)?\w+(?:\s+as\s+\w+)?\s*,\s*")
_OPENING = re.compile(r"(?:from\s+[\w.]+\s+import\s*\(|import\s+(?:type\s+)?\{|(?:pub\b.*\s)?use\s+[\w:]+::\{)\s*")


class ImportMerge:
    """The imports of three texts in one language of `IMPORTING`."""

    def __init__(self, sides: ThreeWay[Sequence[str]], language: str) -> None:
        self._sides, self._language = sides, language
        self._quoted = sides.map(inside_strings)
        words = sides.map(self._words)
        self._gone = (words.base - words.current) | (words.base - words.proposed)

    def merged(self, region: Region) -> tuple[str, ...] | None:
        """The lines of a region with what either side added: in the current order, the proposal's after. None: no rule.

        Only where every line of the region imports, outside of strings, at one depth; where both sides kept each name
        that the base imports; where no new name is bound twice; and where no new line names what one side imports no
        more, anywhere in the text: it may have another name there.
        """
        read = [self._imports(*one) for one in zip(self._sides, region, self._quoted, strict=True)]
        depths = {indent_of(line) for lines, span in zip(self._sides, region, strict=True) for line in span.of(lines)}
        base, current, proposed = read
        if base is None or current is None or proposed is None or len(depths) != 1:
            return None
        if not all(_keeps(side.get(key, ()), names) for side in (current, proposed) for key, names in base.items()):
            return None
        merged = dict(current)
        for key, names in proposed.items():
            merged[key] = _united(base.get(key, ()), current.get(key, ()), names)
        bound, known = (Counter(name.split()[-1] for names in one.values() for name in names) for one in (merged, base))
        if any(bound[name] > 1 for name in bound - known):
            return None
        (depth,) = depths
        lines = [depth + (key[0] if len(key) == 1 else ", ".join(names).join(key)) for key, names in merged.items()]
        new = set(lines).difference(region.base.of(self._sides.base))
        return tuple(lines) if self._gone.isdisjoint(_WORD.findall(" ".join(new))) else None

    def _imports(self, lines: Sequence[str], span: Span, quoted: Container[int]) -> Imports | None:
        """The imports of a range; None if it holds anything else, or a line twice."""
        found: dict[tuple[str, ...], Sequence[str]] = {}
        for at in range(span.start, span.end):
            read = None if at in quoted else _read(self._language, lines, at)
            if read is None or read[0] in found:
                return None
            found[read[0]] = read[1]
        return found

    def _words(self, lines: Sequence[str]) -> frozenset[str]:
        """All words of the lines that import."""
        text = " ".join(line for at, line in enumerate(lines) if _read(self._language, lines, at) is not None)
        return frozenset(_WORD.findall(text))


def _read(language: str, lines: Sequence[str], at: int) -> tuple[tuple[str, ...], Sequence[str]] | None:
    line = lines[at].lstrip(" \t")
    if language in _LISTS and (found := re.fullmatch(_LISTS[language], line)) is not None:
        names = found["names"].split(", ")
        whole = len(set(names)) == len(names) and all(name == name.strip() and "," not in name for name in names)
        return ((found["head"], found["tail"]), names) if whole else None
    if (found := re.fullmatch(IMPORTING[language], line)) is not None:
        return (line,), [found.groupdict().get("alias") or found["name"]]
    if language in _LISTS and _MEMBER.fullmatch(line):
        above = next((text for text in reversed(lines[:at]) if not _MEMBER.fullmatch(text.strip())), "")
        return ((line,), [line.rstrip(" ,")]) if _OPENING.fullmatch(above.strip()) else None
    return None


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
