"""Secrets in a change: lines that its author was not shown stay as they are, and what it brings is flagged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import NamedTuple

from anyio import to_thread

from orchestrator.core.change import PathChange
from orchestrator.core.decisions.costs import size_of
from orchestrator.core.decisions.decision import Apply, Facts
from orchestrator.core.errors import CallerError, escaped, plural
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.policy.rules import NeedApproval
from orchestrator.core.text.encoding import Document, decode
from orchestrator.core.text.redact import MARKER
from orchestrator.engine.caller import REVIEWER, Caller
from orchestrator.engine.redaction import Redaction
from orchestrator.engine.services import OFF_LOOP_BYTES

MOST_FLAGGED = 5
"""Lines that a warning names."""


class _Touched(NamedTuple):
    """What a change does to the lines of one path."""

    change: PathChange
    before: Document | None
    brought: list[tuple[int, str]]  # by their 0-based numbers
    marked: int | None  # the first of them that holds a marker which the file did not hold


class SecretLines:
    """Looks at the lines that a change takes and brings."""

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction

    async def guarded(self, caller: Caller, plan: Apply, facts: Mapping[WorkspacePath, Facts]) -> Apply:
        """The plan, with a warning for secrets that it brings. Raises RedactedLine, MarkerWritten, TextTooCostly."""
        # of a reviewer's answer the markers that it was sent are the secrets again
        guards = self._redaction.level(caller) is not None and not caller.agent.startswith(REVIEWER)
        warnings = list[str]()
        for touched in await _touched(plan, facts):
            change = touched.change
            if guards and touched.before is not None:
                path = change.moved_from or change.path
                hidden = await self._redaction.within(caller, path, touched.before, change.hunks)
                if hidden:
                    raise RedactedLine(change.path, hidden[0] + 1)
            if guards and touched.marked is not None:
                raise MarkerWritten(change.path, touched.marked + 1)
            warnings += await self._flags(touched)
        return plan.fitted(warnings=(*plan.fit.warnings, *warnings)) if warnings else plan

    async def asks(self, plan: Apply) -> tuple[NeedApproval, ...]:
        """A person's yes to a plan that brings secrets."""
        flags = [flag for touched in await _touched(plan, {}) for flag in await self._flags(touched)]
        return (NeedApproval("edits.secrets", flags[0]),) if flags else ()

    async def _flags(self, touched: _Touched) -> list[str]:
        path, brought = touched.change.path, touched.brought
        found = (await self._redaction.search([line for _, line in brought])).found
        if not found:
            return []
        named = ", ".join(f"line {brought[one.line - 1][0] + 1} ({one.kind})" for one in found[:MOST_FLAGGED])
        many = plural(len(found), "secret")
        return [f"{escaped(path)}: {many} by its form: {named}; it is kept in the journal as well"]


async def _touched(plan: Apply, facts: Mapping[WorkspacePath, Facts]) -> list[_Touched]:
    """Of each path whose lines a plan writes; of large texts beside the event loop."""
    large = max(size_of(facts), *(len(content.data) for content in plan.contents.values()), 0) > OFF_LOOP_BYTES
    work = partial(_lines_of, plan, facts)
    return await to_thread.run_sync(work) if large else work()


def _lines_of(plan: Apply, facts: Mapping[WorkspacePath, Facts]) -> list[_Touched]:
    found = []
    for change in () if plan.reverts else plan.paths:
        after = _after(plan, change)
        if after is not None:
            before = _before(change, facts)
            brought = [(n, after.lines[n]) for n in _brought(change, after)]
            found.append(_Touched(change, before, brought, _marked(before, brought)))
    return found


def _before(change: PathChange, facts: Mapping[WorkspacePath, Facts]) -> Document | None:
    here = facts.get(change.moved_from or change.path)
    return here.held.text if here is not None and here.held is not None and change.before is not None else None


def _after(plan: Apply, change: PathChange) -> Document | None:
    content = plan.content(change)
    return (content.document or decode(content.data)) if content is not None else None


def _brought(change: PathChange, after: Document) -> Iterator[int]:
    """The lines, 0-based, that a change brings; of a new file all."""
    if change.before is None:
        yield from range(after.line_count)
    for hunk in change.hunks if change.before is not None else ():
        yield from range(hunk.new_start, hunk.new_start + hunk.new_len)


def _marked(before: Document | None, brought: list[tuple[int, str]]) -> int | None:
    for number, line in brought:
        match = MARKER.search(line)
        if match is not None and not (before is not None and any(match[0] in known for known in before.lines)):
            return number
    return None


class RedactedLine(
    CallerError,
    code="redacted_line",
    hint="Change the lines around it, or ask the person you work for to change this one.",
):
    """The change would replace a line with a secret that its author was not shown."""

    def __init__(self, path: WorkspacePath, line: int) -> None:
        super().__init__(
            f"{escaped(path)}: line {line} holds a secret that you were not shown, and the change would replace it",
            details={"path": path, "line": line},
        )


class MarkerWritten(
    CallerError,
    code="redaction_marker",
    hint="A marker only stands for a secret where it is shown. Leave that line out of the change: it stays as it is.",
):
    """The change would write the marker that was shown in place of a secret."""

    def __init__(self, path: WorkspacePath, line: int) -> None:
        super().__init__(
            f"{escaped(path)}: line {line} of the new content holds a redaction marker, not the secret",
            details={"path": path, "line": line},
        )
