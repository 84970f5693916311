"""journal_query and journal_export: who did what, in pages."""

from __future__ import annotations

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.api.audit import ExportPage, JournalExport
from orchestrator.core.ids import parse_seq, show
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.paths import Paths
from orchestrator.engine.record.entries import Entries
from orchestrator.engine.record.event_search import EventSearch, newest, oldest
from orchestrator.engine.record.export import CSV_HEADER, csv_line, json_line
from orchestrator.engine.services import Services

PAGE_CHARACTERS = 2 * 1024 * 1024
"""A page that has grown past this ends, however few its events are; an answer has to fit into a frame."""


class Auditor:
    """Answers from the journal, never from the disk."""

    def __init__(self, services: Services, paths: Paths) -> None:
        self._s = services
        self._finder = EventSearch(services, paths)

    async def journal_query(self, caller: Caller, call: Call, params: p.JournalQuery) -> r.JournalPage:
        before = int(parse_seq(params.cursor, parameter="cursor")) if params.cursor else None
        wanted = await self._finder.wanted(caller, params)
        if wanted is None:
            return r.JournalPage(entries=())
        found = await newest(self._s.journal, wanted, before=before, limit=params.limit + 1)
        page = found.events[: params.limit]
        entries = Entries(self._s, caller)
        answer = tuple([await entries.entry(item, path=wanted.path) for item in page])
        if len(found.events) > params.limit:
            return r.JournalPage(entries=answer, cursor=answer[-1].seq)
        if found.stands is None:
            return r.JournalPage(entries=answer)
        return r.JournalPage(entries=answer, cursor=show(found.stands), partial=True)

    async def journal_export(self, caller: Caller, call: Call, params: JournalExport) -> ExportPage:
        after = parse_seq(params.after, parameter="after")
        wanted = await self._finder.wanted(caller, params)
        line_of = csv_line if params.format == "csv" else json_line
        parts, events, size = [CSV_HEADER] if after == 0 and params.format == "csv" else [], 0, 0
        stands: int | None = None
        if wanted is not None:
            found = await oldest(self._s.journal, wanted, after=after, limit=params.limit)
            entries, stands = Entries(self._s, caller), found.stands
            for item in found.events:
                text = line_of(await entries.entry(item, path=wanted.path))
                events, size = events + 1, size + len(text)
                parts.append(text)
                if size > PAGE_CHARACTERS:
                    stands = item.seq
                    break
        return ExportPage(
            format=params.format,
            text="".join(parts),
            events=events,
            after=show(self._s.journal.head if stands is None else stands),
            more=stands is not None,
        )
