"""journal_redact: what must not stay in the journal is taken out of it, and the journal says so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anyio

from orchestrator.api.journal_operations import JournalRedact, Redacted
from orchestrator.core.annotations import brought_by, contents_of
from orchestrator.core.errors import JournalCorrupt, NotRedactable, ParameterInvalid, VersionNotKept, VersionUnknown
from orchestrator.core.events.base import Recorded
from orchestrator.core.events.journal_maintenance import ContentRedacted, PayloadRedacted
from orchestrator.core.ids import Digest, parse_digest, parse_seq, show
from orchestrator.core.payload_redaction import fields_to_blank, texts_of
from orchestrator.core.projections.state import State
from orchestrator.engine.approver import ApproverGate
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.contents import Contents
from orchestrator.engine.path_resolution import Paths
from orchestrator.ports.journal import Journal, Redaction

SHORTEST_SOUGHT = 4
"""Letters; a shorter text is in too many events to be worth a warning."""

MOST_NAMED = 20

NOT_SCRUBBED = (
    "a reader holds an older state of the journal, so its write-ahead log still has the bytes; "
    "they go with one of the next commits, at the latest when the daemon stops"
)
OTHER_COPIES = "backups, snapshots and copies of the state directory keep what they hold"


class Redactor:
    """People's alone. One redaction at a time."""

    def __init__(self, journal: Journal, contents: Contents, state: State, gate: ApproverGate, paths: Paths) -> None:
        self._journal, self._contents, self._state, self._gate, self._paths = journal, contents, state, gate, paths
        self._one_at_a_time = anyio.Lock()

    async def journal_redact(self, caller: Caller, call: Call, params: JournalRedact) -> Redacted:
        await self._gate.check(caller, params.approver)
        if (params.event is None) == (params.blob is None):
            raise ParameterInvalid("event", "name either an event or a blob")
        if params.blob is not None and params.fields:
            raise ParameterInvalid("fields", "a blob has no fields")
        if params.path is not None and (params.blob is None or parse_digest(str(params.blob)) is not None):
            raise ParameterInvalid("path", "goes with a blob that is named by '@N'")
        async with self._one_at_a_time:
            if params.event is not None:
                return await self._event(caller, call, params, params.event)
            return await self._content(caller, call, params, params.blob or "")

    # --- an event's texts -----------------------------------------------------------------

    async def _event(self, caller: Caller, call: Call, params: JournalRedact, raw: str | int) -> Redacted:
        target = await self._found(raw, parameter="event")
        fields = fields_to_blank(target.seq, target.event, params.fields)
        texts = dict.fromkeys(text for name, text in texts_of(target.event) if name in fields)
        event = PayloadRedacted(target=target.seq, fields=fields, by=caller.agent, reason=params.reason)
        done = await self._journal.redact(event, caller.origin(call))
        warnings: list[str] = []
        for text in texts:
            others = await self._journal.holding(text, limit=MOST_NAMED + 1) if len(text) >= SHORTEST_SOUGHT else ()
            if others:
                named = ", ".join(map(show, others[:MOST_NAMED])) + (" and more" if len(others) > MOST_NAMED else "")
                warnings.append(f"the same text is also in {named}: redact those too")
        return _redacted(done, warnings, event=show(target.seq), fields=fields)

    # --- a content ------------------------------------------------------------------------

    async def _content(self, caller: Caller, call: Call, params: JournalRedact, raw: str | int) -> Redacted:
        digest = parse_digest(str(raw)) or await self._digest(raw, params.path)
        if not await self._journal.has_blob(digest):
            raise VersionNotKept(f"the content {digest} is not in the journal", hint="There is nothing to take out.")
        self._refuse_needed(digest)
        try:
            size = len(await self._journal.blob(digest) or b"")
        except JournalCorrupt:
            size = 0  # a damaged content can be taken out too
        event = ContentRedacted(digest=digest, size=size, by=caller.agent, reason=params.reason)
        try:
            done = await self._journal.forget(event, caller.origin(call))
        finally:
            self._contents.drop(digest)
        return _redacted(done, list(self._still_needed(digest)), digest=digest, size=size)

    async def _digest(self, raw: str | int, raw_path: str | None) -> Digest:
        """The content that an event brought; with a path the one for that path, or else what the path had then."""
        recorded = await self._found(raw, parameter="blob")
        path = self._paths.file(raw_path) if raw_path is not None else None
        brought = {item.digest: item.path for item in brought_by(recorded.event) if path in (None, item.path)}
        if path is not None and not brought:
            row = await self._journal.version_at(path, recorded.seq)
            if row is not None and row.present and row.digest is not None:
                return row.digest
            what = "held nothing" if row is None or not row.present else "had a content that was never hashed or kept"
            raise NotRedactable(f"{path} {what} at {show(recorded.seq)}", hint="file_history lists its versions.")
        if not brought:
            raise NotRedactable(
                f"event {show(recorded.seq)} brought no content by itself",
                hint="Name its file, too (path; --path on the command line), or the content by its hash.",
            )
        if path is None and len(brought) > 1:
            few = list(brought.items())[:MOST_NAMED]
            listed = ", ".join(f"{digest} ({path})" if path is not None else digest for digest, path in few)
            raise NotRedactable(
                f"event {show(recorded.seq)} brought {len(brought)} contents", hint=f"Name one: {listed}."
            )
        return next(iter(brought))

    def _refuse_needed(self, digest: Digest) -> None:
        """A change on its way may need it again, if the daemon ends now."""
        for intent in self._state.pending.open_intents():
            if digest in contents_of(intent):
                raise NotRedactable(
                    f"the change {show(intent.seq)} is under way with this content", hint="Try again when it is done."
                )

    def _still_needed(self, digest: Digest) -> Iterator[str]:
        """Warnings: which files bring the content back, and what waits for it."""
        paths = sorted(entry.path for entry in self._state.registry.files() if entry.digest == digest)
        for path in paths[:MOST_NAMED]:
            yield (
                f"{path} holds this content now: it is kept again when it is read, or at the next start. "
                "Change the file, then redact once more"
            )
        for approval in self._state.pending.waiting():
            if any(content.digest == digest for content in brought_by(approval.request)):
                yield f"the approval {show(approval.seq)} asks for this content and can't be granted any more"
        for conflict in self._state.pending.open_conflicts():
            if digest in contents_of(conflict):
                yield f"the conflict {show(conflict.seq)} needs this content, and can't be resolved with it any more"
        yield "other versions of the same file are other contents: file_history names them"

    async def _found(self, raw: str | int, *, parameter: str) -> Recorded:
        seq = parse_seq(raw, parameter=parameter)
        recorded = await self._journal.event(seq)
        if recorded is None:
            raise VersionUnknown(f"the journal has no event {show(seq)}", hint="journal_query lists them.")
        return recorded


def _redacted(done: Redaction, warnings: list[str], **facts: Any) -> Redacted:
    """The answer, with what a redaction does not reach."""
    left = (OTHER_COPIES,) if done.scrubbed else (NOT_SCRUBBED, OTHER_COPIES)
    return Redacted(redaction=show(done.recorded.seq), scrubbed=done.scrubbed, warnings=(*warnings, *left), **facts)
