"""Parses the lines of a text that import something: source, and the names that they bind.

Read line by line, as people write imports: what is written in another way counts as no import.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from orchestrator.core.ids import WorkspacePath


class ImportLine(msgspec.Struct, frozen=True):
    """One line that imports, alone or as a member of a list over several lines."""

    place: str  # the indentation, and the opening line of the list that it stands in: only equal places mix
    source: str  # where the names come from
    names: tuple[str, ...]  # bound in this text, as far as that can be told (`#include`)
    package: bool = False  # it binds the package that holds what it imports, as other lines may too


_WORD = r"[^\W\d]\w*"
_MEMBER = re.compile(rf"\s*(?:type\s+)?({_WORD})(?:\s+as\s+({_WORD}))?\s*,?\s*\Z")
_LANGUAGES = {
    "py": "python", "pyi": "python", "js": "javascript", "mjs": "javascript", "cjs": "javascript",
    "jsx": "javascript", "ts": "typescript", "mts": "typescript", "cts": "typescript", "tsx": "tsx",
    "go": "go", "rs": "rust", "java": "java", "c": "c", "h": "c", "cc": "cpp", "cpp": "cpp", "cxx": "cpp",
    "hpp": "cpp", "hh": "cpp",
}  # fmt: skip


def language_of(path: WorkspacePath) -> str | None:
    """The language whose imports are known, by the name's suffix."""
    return _LANGUAGES.get(path.rpartition(".")[2].lower())


def import_lines(language: str, lines: Sequence[str]) -> list[ImportLine | None]:
    """For each line: what it imports, or None. The lines that open and close a list count as none."""
    reader = _READERS.get(language)
    return list(reader(lines)) if reader else [None] * len(lines)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _listed(
    lines: Sequence[str], opening: re.Pattern[str], closing: re.Pattern[str], alone: re.Pattern[str]
) -> Iterator[ImportLine | None]:
    """Lines of a language that imports names `alone`, or one a line between `opening` and `closing`."""
    opened, source = None, ""
    for line in lines:
        if opened is not None:
            member = _MEMBER.match(line)
            yield ImportLine(f"{_indent(line)}{opened}", source, (member[2] or member[1],)) if member else None
            opened = None if closing.match(line) or not (member or not line.strip()) else opened
        elif match := opening.match(line):
            opened, source = line.strip(), match["source"]
            yield None
        else:
            match = alone.match(line)
            yield _of_names(line, match) if match else None


def _of_names(line: str, match: re.Match[str]) -> ImportLine | None:
    """A line with a `source` and a list of `names`; None for `*`, which may bind any name."""
    parts = [part for part in match["names"].split(",") if part.strip()]
    members = [_MEMBER.match(part) for part in parts]
    if not parts or not all(members):
        return None
    return ImportLine(_indent(line), match["source"], tuple(m[2] or m[1] for m in members if m))


# --- Python ----------------------------------------------------------------------------

_FROM_OPEN = re.compile(r"\s*from\s+(?P<source>[\w.]+)\s+import\s*\(\s*\Z")
_CLOSE_ROUND = re.compile(r"\s*\)")
_FROM = re.compile(r"\s*from\s+(?P<source>[\w.]+)\s+import\s+(?P<names>[\w\s,]+|\*)\s*(?:#.*)?\Z")
_IMPORT = re.compile(rf"\s*import\s+(?P<names>{_WORD}(?:\.\w+)*(?:\s+as\s+{_WORD})?)\s*(?:#.*)?\Z")


def _python(lines: Sequence[str]) -> Iterator[ImportLine | None]:
    for line, listed in zip(lines, _listed(lines, _FROM_OPEN, _CLOSE_ROUND, _FROM), strict=True):
        match = None if listed else _IMPORT.match(line)
        if match:
            module, _, alias = (part.strip() for part in match["names"].partition(" as "))
            yield ImportLine(_indent(line), module, (alias or module.split(".")[0],), package=not alias)
        else:
            yield None if listed and listed.source == "__future__" else listed  # those must stand first


# --- JavaScript, TypeScript ---------------------------------------------------------------

_JS_OPEN = re.compile(r"\s*import\s+(?:type\s+)?\{(?P<source>)\s*\Z")  # which it closes with
_JS_CLOSE = re.compile(r"\s*\}")
_JS_FROM = r"\s+from\s+(?P<source>(?P<quote>['\"])[^'\"]+(?P=quote))\s*;?\s*\Z"
_JS = re.compile(rf"\s*import\s+(?:type\s+)?\{{(?P<names>[\w\s,$]+)\}}{_JS_FROM}")
_JS_ONE = re.compile(rf"\s*import\s+(?:type\s+)?(?:\*\s+as\s+)?(?P<names>{_WORD}){_JS_FROM}")
_JS_EFFECT = re.compile(r"\s*import\s+(?P<source>(['\"])[^'\"]+\2)\s*;?\s*\Z")


def _javascript(lines: Sequence[str]) -> Iterator[ImportLine | None]:
    for line, listed in zip(lines, _listed(lines, _JS_OPEN, _JS_CLOSE, _JS), strict=True):
        one = None if listed else _JS_ONE.match(line)
        effect = None if listed or one else _JS_EFFECT.match(line)
        if one:
            yield ImportLine(_indent(line), one["source"], (one["names"],))
        elif effect:
            yield ImportLine(_indent(line), effect["source"], ())
        else:
            yield listed


# --- Rust --------------------------------------------------------------------------------------

_RUST_PATH = rf"(?:pub(?:\([^)]*\))?\s+)?use\s+(?P<source>(?:::)?{_WORD}(?:::{_WORD})*)"
_RUST_OPEN = re.compile(rf"\s*{_RUST_PATH}::\{{\s*\Z")
_RUST = re.compile(rf"\s*{_RUST_PATH}::\{{(?P<names>[\w\s,]+)\}}\s*;\s*\Z")
_RUST_ONE = re.compile(rf"\s*{_RUST_PATH}(?:\s+as\s+(?P<alias>{_WORD}))?\s*;\s*\Z")


def _rust(lines: Sequence[str]) -> Iterator[ImportLine | None]:
    for line, listed in zip(lines, _listed(lines, _RUST_OPEN, _JS_CLOSE, _RUST), strict=True):
        one = None if listed else _RUST_ONE.match(line)
        if one is None:
            yield listed
        else:
            yield ImportLine(_indent(line), one["source"], (one["alias"] or one["source"].rpartition("::")[2],))


# --- Go, Java, C ---------------------------------------------------------------------------------

_GO_OPEN = re.compile(r"import\s*\(\s*\Z")
_GO = re.compile(rf"(?P<lead>\s*import\s+|\s+)(?:(?P<alias>{_WORD})\s+)?\"(?P<source>[^\"]+)\"\s*\Z")
_GO_MAJOR = re.compile(r"/v\d+\Z")
_JAVA = re.compile(r"\s*import\s+(?:static\s+)?(?P<source>[\w.]+?)\.(?P<name>\w+)\s*;\s*\Z")
_INCLUDE = re.compile(r"\s*#\s*include\s*(?P<source><[^>]+>|\"[^\"]+\")\s*\Z")


def _go(lines: Sequence[str]) -> Iterator[ImportLine | None]:
    inside = False
    for line in lines:
        match = _GO.match(line)
        if match and ("import" in match["lead"]) != inside:
            name = match["alias"] or _GO_MAJOR.sub("", match["source"]).rpartition("/")[2]
            known = match["alias"] != "_" and re.fullmatch(_WORD, name) is not None
            place = f"{_indent(line)}{'import (' if inside else ''}"
            yield ImportLine(place, match["source"], (name,) if known else ())
            continue
        inside = bool(_GO_OPEN.match(line)) or (inside and not line.strip().startswith(")"))
        yield None


def _java(lines: Sequence[str]) -> Iterator[ImportLine | None]:
    for line in lines:
        match = _JAVA.match(line)
        yield ImportLine(_indent(line), match["source"], (match["name"],)) if match else None


def _c(lines: Sequence[str]) -> Iterator[ImportLine | None]:
    for line in lines:
        match = _INCLUDE.match(line)
        yield ImportLine(_indent(line), match["source"], ()) if match else None


_READERS = {
    "python": _python,
    "javascript": _javascript,
    "typescript": _javascript,
    "tsx": _javascript,
    "rust": _rust,
    "go": _go,
    "java": _java,
    "c": _c,
    "cpp": _c,
}
