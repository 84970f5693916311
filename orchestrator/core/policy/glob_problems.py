"""What is wrong with a glob of a policy."""

from __future__ import annotations

import re
import unicodedata

from orchestrator.core.glob_pattern import MOST_CHARACTERS, Glob
from orchestrator.core.policy.match import fold_pattern

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
