"""The globs of a policy: what is wrong with one, and the forms in which they are compared."""

from __future__ import annotations

import re
import unicodedata

from orchestrator.core.glob_pattern import MOST_CHARACTERS, Glob
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.paths import fold

_SPECIAL = re.compile(r"[*?\[\\]")
_CLASS = re.compile(r"(?<!\\)\[[!^]?\]?[^\]]*?(?:\[|--|&&|\|\||~~)")


def glob_problem(glob: str) -> str | None:  # noqa: PLR0911  # one return for each thing that gitignore passes over
    """Why a glob cannot be used; also where gitignore would pass over it in silence."""
    body = glob.removeprefix("!")
    segments = body.strip("/").split("/")
    if not body.strip("/") or "" in segments or body.startswith("//") or body.endswith("//"):
        return "an empty glob, or an empty part of one"
    if body.startswith("#"):
        return r"begins a comment; write \# (in single quotes)"
    if not body.isprintable() or body.rstrip("/") != body.rstrip("/").rstrip():
        return "ends with a space, or holds characters that names may not have"
    if "." in segments or ".." in segments:
        return "names are relative to the workspace and never hold '.' or '..' components"
    if not unicodedata.is_normalized("NFC", body):
        return "is not in Unicode form NFC and would match nothing"
    if len(glob) > MOST_CHARACTERS:
        return f"a glob of {len(glob):,} characters, of at most {MOST_CHARACTERS:,}"
    if any(_open_bracket(segment) for segment in segments):
        return r"'[' is never closed; write \[ for the character (in single quotes)"
    if _CLASS.search(body):
        return "a bracket holds '[', '--', '&&', '||' or '~~', which mean different things to different readers"
    for spelling in map(Glob, (glob, fold_pattern(glob))):  # "[Z-a]" is a range only as long as case counts
        flaw = spelling.flaw or ("a range in brackets runs backwards" if spelling.backwards else None)
        if flaw:
            return f"is no glob, with or without regard to case: {flaw}"
    return None


def _open_bracket(segment: str) -> bool:
    """Whether a `[` in a glob has no `]`; gitignore then drops the whole glob."""
    rest = re.sub(r"\\.", "", segment)
    return "[" in re.sub(r"\[[!^]?\]?[^\]]*\]", "", rest)


def fold_pattern(text: str) -> str:
    """A glob in the form in which folded paths are compared with it."""
    mark = "!" if text.startswith("!") else ""
    segments = text[len(mark) :].split("/")
    return mark + "/".join(
        fold(s) if s and not _SPECIAL.search(s) else unicodedata.normalize("NFKC", s).casefold() for s in segments
    )


def literal(path: WorkspacePath) -> str:
    """The glob that names exactly this path (and what lies in it)."""
    return "/" + re.sub(r"([\\\[\]!*#? ])", r"\\\1", path)
