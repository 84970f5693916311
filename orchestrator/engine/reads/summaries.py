"""summarize_file: the lines that say most of a file; and reads that are over a profile's limit and get them."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from orchestrator.api import context as c
from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.core.bounded_cache import BoundedCache
from orchestrator.core.content import LineRange, digest_of
from orchestrator.core.errors import FileTooLarge, escaped
from orchestrator.core.ids import Digest, show
from orchestrator.core.policy.profiles import OverLimit
from orchestrator.core.text.excerpts import Budget
from orchestrator.core.text.overview import KeyLines, key_lines
from orchestrator.core.text.regions import merged
from orchestrator.engine.access import ContentAccess
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.external.observer import Observer
from orchestrator.engine.paths import quoted
from orchestrator.engine.reads.excerpts import ShownText, seen_lines
from orchestrator.engine.reads.file_reads import Reader
from orchestrator.engine.reads.outlined_files import OutlinedFile, note_told, outlined_file
from orchestrator.engine.reads.windows import BYTES_OF_TOKEN, LargePassages
from orchestrator.engine.services import Services
from orchestrator.ports.machine import TokenCount
from orchestrator.ports.summaries import PluginSummary, SummaryPlugins

CACHE_BYTES = 4 * 1024 * 1024
"""Of what is remembered of contents: their key lines, and what plugins said of them."""

FACTS_BYTES, DEFINITION_BYTES = 500, 300
"""What the key lines of one content take, and each definition among them."""

MOST_CHARACTERS = 160
"""Of one line in a summary."""

MOST_GIVEN, MOST_PLUGIN_LINE = 1_000_000, 1_000
"""Characters of a text that plugins are given, and of one line of what they say."""

END_LINES = 20
"""At the beginning and at the end of a file that is read by pieces."""

SUMMARY_TOKENS = 800
"""Of a summary in place of a file."""


class _Facts(NamedTuple):
    key: KeyLines
    size: TokenCount


class Summarizer:
    """Answers from what is remembered by content; what a caller may not be shown is taken out for each."""

    def __init__(self, services: Services, observer: Observer, reader: Reader, plugins: SummaryPlugins) -> None:
        self._s, self._observer, self._reader, self._plugins = services, observer, reader, plugins
        self._passages = LargePassages(services, observer, reader.large)
        self._facts: BoundedCache[tuple[str, Digest, str], _Facts] = BoundedCache(CACHE_BYTES)
        self._by_plugins: BoundedCache[tuple[object, ...], PluginSummary] = BoundedCache(CACHE_BYTES)
        services.caches.add("summaries", self._facts, self._by_plugins)

    async def read_file(self, caller: Caller, call: Call, params: p.ReadFile) -> r.FileText:
        """As the profile says, the summary of a file that is too large to be read at once."""
        try:
            return await self._reader.read_file(caller, call, params)
        except OverLimit as over:
            if self._s.permissions.profile(caller).over_limit != "summary" or not await self._is_present(params):
                raise
            wanted = c.SummarizeFile(path=params.path, max_tokens=SUMMARY_TOKENS)
            try:
                told = await self.summarize_file(caller, call, wanted)
            except FileTooLarge:
                raise over from None
            way = f"{over.hint} A person is asked for all of it: {_whole(told)}."
            why = f"{over.message}: this is a summary."
            return r.FileText(
                path=told.path,
                version_id=told.version_id,
                start=0,
                end=0,
                total_lines=told.total_lines,
                text=told.text,
                encoding="",
                eol="",
                content_hash=None,
                summary=True,
                truncated=True,
                next=over.part,  # every toolset can read on; get_overview is of the full one
                redactions=told.redactions,
                warnings=(f"{why} {way}", *told.warnings),
            )

    async def _is_present(self, params: p.ReadFile) -> bool:
        """Whether a read is of the version that is there now, which alone is summarized."""
        if params.at is None:
            return True
        at = self._s.past.position(params.at, parameter="at", least=1)
        return self._s.past.is_current(await self._s.past.at(self._s.paths.file(params.path), at))

    async def summarize_file(self, caller: Caller, call: Call, params: c.SummarizeFile) -> c.Summary:
        path = self._s.paths.file(params.path)
        access = self._s.access.content(caller, call, path)
        try:
            return await self._of_outlined(access, call, params)
        except FileTooLarge as error:
            async with self._s.locks.shared(path):
                return await self._of_large(access, call, params, error)

    async def _of_large(
        self, access: ContentAccess, call: Call, params: c.SummarizeFile, error: FileTooLarge
    ) -> c.Summary:
        """Of a file that is read by pieces: its first lines and its last ones."""
        path, file = access.path, await self._passages.counted(access, error)
        head, tail = LineRange(1, min(END_LINES, file.total)), max(END_LINES, file.total - END_LINES) + 1
        lines, hidden, _ = await self._passages.lines(access.caller, path, file, head, LineRange(tail, file.total))
        budget, rows = self._budget(access, call, params, file.warnings), dict[int, str]()
        for number in (*range(1, head.end + 1), *range(file.total, tail - 1, -1)):
            row = lines.get(number, "")[:MOST_CHARACTERS]
            if (number > head.end or budget.weight >= params.max_tokens * 2) and budget.take(row):
                rows[number] = f"{number:>6}\t{row}"
        size = file.signature.size
        summary = c.Summary(
            path=path,
            version_id=show(file.version),
            language="text",
            total_lines=file.total,
            tokens=size // BYTES_OF_TOKEN,
            next=f"get_overview(path={quoted(path)})",
            warnings=(
                *file.warnings,
                f"it has {size} bytes, so its beginning and its end are all of this summary",
            ),
        )
        seen = ShownText(file.version, file.total, lines.__getitem__, hidden, file.warnings)
        return await self._showing(access, call, summary, seen, rows)

    async def _showing(
        self, access: ContentAccess, call: Call, summary: c.Summary, found: ShownText, rows: dict[int, str]
    ) -> c.Summary:
        """The summary with these rows, by line, as its text; the lines of which all is shown count as seen."""
        whole = merged(tuple(LineRange(n, n) for n in rows if len(found.line(n)) <= MOST_CHARACTERS))
        text = "".join(f"{rows[number]}\n" for number in sorted(rows))
        secrets = [secret for secret in found.hidden.found if secret.line in rows]
        seen = seen_lines(access.path, found, whole, cut=False)
        await self._s.notes.note_lines(access.caller, call, seen, text, approval=access.approval, hidden=secrets)
        return msgspec.structs.replace(summary, text=text, redactions=tuple(map(str, secrets)))

    async def _of_outlined(self, access: ContentAccess, call: Call, params: c.SummarizeFile) -> c.Summary:
        path, made = access.path, PluginSummary()
        if self._plugins.summarizers:
            async with self._s.locks.shared(path):
                found = await outlined_file(self._s, self._observer, access)
            made = await self._made(access, params, found)  # without the lock: it may take seconds
            if made.text:
                return await self._told(access, call, params, found, made)
        async with self._s.locks.shared(path):
            found = await outlined_file(self._s, self._observer, access)
            summary = await self._summary(access, call, params, found)
        notes = tuple(f"{failure}; this is the summary without plugins" for failure in made.failures)
        return msgspec.structs.replace(summary, warnings=(*summary.warnings, *notes)) if notes else summary

    async def _made(self, access: ContentAccess, params: c.SummarizeFile, found: OutlinedFile) -> PluginSummary:
        """What a plugin says of the text, which it is given without secrets; remembered by all that it depends on."""
        caller, document = access.caller, found.document
        if caller.is_person:  # what a plugin is given may go to a model
            caller = self._s.permissions.author(None, None)
        shown = await self._s.redaction.shown(caller, access.path, found.digest, document)
        text = shown.document.text
        if len(text) > MOST_GIVEN:
            return PluginSummary(failures=(f"plugins are given no text of over {MOST_GIVEN} characters",))
        given = digest_of(text.encode("utf-8", "surrogatepass"))
        key = self._plugins.summarizers, access.path, given, params.max_tokens
        made = self._by_plugins.get(key)
        if made is None:
            made = await self._plugins.summarize(access.path, text, params.max_tokens)
            if made.text:
                self._by_plugins.put(key, made, FACTS_BYTES + 4 * len(made.text))
        return made

    async def _told(
        self, access: ContentAccess, call: Call, params: c.SummarizeFile, found: OutlinedFile, made: PluginSummary
    ) -> c.Summary:
        """A plugin's summary, as far as there is room for it. No line of the file counts as seen."""
        summary, budget = await self._begun(found), self._budget(access, call, params, found.shown.warnings)
        rows = [line[:MOST_PLUGIN_LINE] for line in made.text.split("\n")]
        fits = next((at for at, row in enumerate(rows) if not budget.take(row)), len(rows))
        text = "".join(f"{row}\n" for row in rows[:fits])
        await note_told(self._s, access, call, found.shown.version, found.document.line_count, text)
        return msgspec.structs.replace(summary, text=text, by=made.by)

    async def _begun(self, found: OutlinedFile) -> c.Summary:
        """All of a summary but its text."""
        facts = await self._facts_of(found)
        return c.Summary(
            path=found.shown.path,
            version_id=show(found.shown.version),
            language=found.outline.language,
            total_lines=found.document.line_count,
            tokens=facts.size.tokens,
            tokens_by=facts.size.method,
            symbols=facts.key.symbols,
            next=f"get_overview(path={quoted(found.shown.path)})",
            warnings=found.shown.warnings,
        )

    def _budget(self, access: ContentAccess, call: Call, params: c.SummarizeFile, warned: tuple[str, ...]) -> Budget:
        tokens = self._s.permissions.answer_tokens(access.caller, params.max_tokens)
        room = call.room.framed(escaped(access.path), escaped(access.path), *warned)
        return Budget.of(tokens, room.bytes // 2 if room.typed else room.bytes, room.lines)

    async def _summary(
        self, access: ContentAccess, call: Call, params: c.SummarizeFile, found: OutlinedFile
    ) -> c.Summary:
        facts, lines = await self._facts_of(found), found.hidden.over(found.document.lines)
        budget = self._budget(access, call, params, found.shown.warnings)
        rows: dict[int, str] = {}
        for number in range(facts.key.head.start, facts.key.head.end + 1):
            if budget.weight < params.max_tokens * 4 or not budget.take(lines[number - 1][:MOST_CHARACTERS]):
                break  # half of it is for what the file defines
            rows[number] = f"{number:>6}\t{lines[number - 1][:MOST_CHARACTERS]}"
        named = set[int]()
        for one in facts.key.definitions:
            row = lines[one.at - 1][:MOST_CHARACTERS]
            if one.at not in rows and not budget.take(f"-{one.end_line}{row}"):
                break
            named.add(one.at)
            rows[one.at] = f"{one.at:>6}-{one.end_line}\t{row}"
        left_out = facts.key.symbols - sum(one.at in named for one in facts.key.definitions)
        summary = await self._begun(found)
        summary = msgspec.structs.replace(summary, left_out=left_out, next=summary.next if left_out else None)
        shown, total = found.shown, found.document.line_count
        seen = ShownText(shown.version, total, lambda number: lines[number - 1], found.hidden, shown.warnings)
        return await self._showing(access, call, summary, seen, rows)

    async def _facts_of(self, found: OutlinedFile) -> _Facts:
        vocabulary = self._s.permissions.policy.tokens.vocabulary
        key = found.outline.language, found.digest, vocabulary
        facts = self._facts.get(key)
        if facts is None:
            lines = found.document.lines
            size = await self._s.tokens.count("\n".join(lines), vocabulary)
            facts = _Facts(key_lines(found.outline, lines), size)
            self._facts.put(key, facts, FACTS_BYTES + DEFINITION_BYTES * len(facts.key.definitions))
        return facts


def _whole(told: c.Summary) -> str:
    return f"read_file(path={quoted(told.path)}, start=1, end={told.total_lines})"
