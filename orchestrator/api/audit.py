"""Taking the journal out: its events as lines for other programs."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.api.operation import PATHS, Operation
from orchestrator.core import errors as e

Format = Literal["jsonl"]


class JournalExport(p.JournalFilter, frozen=True):
    format: Annotated[Format, Meta(description="Entries as journal_query gives them, one a line.")] = "jsonl"
    after: Annotated[p.Version, Meta(description="'@N': only what came later; `after` of the last page.")] = "@0"
    limit: Annotated[int, Meta(description="Most events in one page.", ge=1, le=1000)] = 500


class ExportPage(r.Result, frozen=True, kw_only=True):
    """Events in the journal's order, as text."""

    text: str = ""
    events: int  # that are in the text
    after: str  # go on from here
    more: bool = False


JOURNAL_EXPORT = Operation(
    "journal_export",
    JournalExport,
    ExportPage,
    "Events of the journal as JSON Lines, oldest first, page by page.",
    operator_only=True,
    raises=(e.VersionUnknown, *PATHS),
)
