"""A search and its replacement as whole lines, landed where the file has them nearly so."""

from __future__ import annotations

import msgspec

from orchestrator.core.errors import ParameterInvalid, SearchAmbiguous, SearchNotFound
from orchestrator.core.text.carrying import NotCarried
from orchestrator.core.text.encoding import Document, Edit
from orchestrator.core.text.lines import plain
from orchestrator.core.text.passages import Likeness, find_alike, not_found


class Landing(msgspec.Struct, frozen=True):
    """Lines, 0-based and half-open, at which a change lands, what it does there, and how like they are."""

    change: int
    start: int
    stop: int
    edits: tuple[Edit, ...]
    score: float


def land(doc: Document, change: int, search: str, replace: str, likeness: Likeness) -> Landing:
    """Raises SearchNotFound (`details`: `change`, `nearest`) and SearchAmbiguous (`change`, `lines`)."""
    passage, new = as_lines(search, replace)
    name = f"change {change + 1}: its search text"
    try:
        match = find_alike(doc.lines, passage, likeness, name=name)
    except (SearchNotFound, SearchAmbiguous) as error:
        error.details["change"] = change
        raise
    try:
        edits = match.edits(doc.lines, passage, new)
    except NotCarried as reason:
        refusal = not_found(doc.lines, passage, name)
        refusal.message += f" It is nearly at line {match.start + 1}, but {reason}."
        refusal.details["change"] = change
        raise refusal from None
    return Landing(change, match.start, match.stop, tuple(edits), round(match.score, 3))


def absent(doc: Document, change: int, search: str) -> SearchNotFound:
    """The refusal where nothing but the search text itself will do; it names the nearest places."""
    passage = plain(search).removesuffix("\n").split("\n")
    error = not_found(doc.lines, passage, f"change {change + 1}: its search text")
    error.details["change"] = change
    return error


def as_lines(search: str, replace: str) -> tuple[list[str], list[str]]:
    """Both texts as whole lines; a search that ends with a newline replaces lines, and '' then removes them."""
    search, replace = plain(search), plain(replace)
    if not search.strip():
        raise ParameterInvalid("search", "it holds nothing but blanks", hint="Add a neighbouring line to it.")
    if search.endswith("\n"):
        return search[:-1].split("\n"), replace.removesuffix("\n").split("\n") if replace else []
    return search.split("\n"), replace.split("\n")
