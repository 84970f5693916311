"""What is wrong with a glob of a policy."""

from __future__ import annotations

import re
import unicodedata

from orchestrator.core.policy.match import Pattern, fold_pattern

_MOST_STARS = 4  # in one glob: each more multiplies the cost of matching a long name
_CLASS = re.compile(r"(?<!\\)\[[!^]?\]?[^\]]*?(?:\[|--|&&|\|\||~~)")


def glob_problem(glob: str) -> str | None:
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
    if any(segment.count("*") > _MOST_STARS for segment in segments) or segments.count("**") > _MOST_STARS:
        return f"more than {_MOST_STARS} stars in one part, or {_MOST_STARS} '**'"
    if any(_open_bracket(segment) for segment in segments):
        return r"'[' is never closed; write \[ for the character (in single quotes)"
    if _CLASS.search(body):
        return "a bracket holds '[', '--', '&&', '||' or '~~', which mean different things to different readers"
    try:
        Pattern(glob)
        Pattern(fold_pattern(glob))  # "[Z-a]" is a range only as long as case counts
    except (ValueError, re.error) as error:
        return f"is no glob, with or without regard to case: {error}"
    return None


def _open_bracket(segment: str) -> bool:
    """Whether a `[` in a glob has no `]`; gitignore then drops the whole glob."""
    rest = re.sub(r"\\.", "", segment)
    return "[" in re.sub(r"\[[!^]?\]?[^\]]*\]", "", rest)
