"""Secrets in a change: lines that its author was not shown stay as they are, and what it brings is flagged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from orchestrator.core.change import PathChange
from orchestrator.core.decisions.decision import Apply, Facts
from orchestrator.core.errors import CallerError, escaped, plural
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.policy.rules import NeedApproval
from orchestrator.core.text.encoding import Document, decode
from orchestrator.core.text.redact import MARKER, secrets
from orchestrator.engine.caller import REVIEWER, Caller
from orchestrator.engine.redaction import Redaction

MOST_FLAGGED = 5
"""Lines that a warning names."""


class SecretLines:
    """Looks at the lines that a change takes and brings."""

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction

    def guarded(self, caller: Caller, plan: Apply, facts: Mapping[WorkspacePath, Facts]) -> Apply:
        """The plan, with a warning for secrets that it brings. Raises RedactedLine, MarkerWritten."""
        warnings = []
        for change in () if plan.reverts else plan.paths:
            after = _after(plan, change)
            if after is None:
                continue
            before = _before(change, facts)
            brought = [(n, after.lines[n]) for n in _brought(change, after)]
            # of a reviewer's answer the markers that it was sent are the secrets again
            if self._redaction.level(caller) is not None and not caller.agent.startswith(REVIEWER):
                self._check_shown(caller, change, before)
                _check_markers(change, before, brought)
            warnings += _flags(change.path, brought)
        return plan.fitted(warnings=(*plan.fit.warnings, *warnings)) if warnings else plan

    def asks(self, plan: Apply) -> tuple[NeedApproval, ...]:
        """A person's yes to a plan that brings secrets."""
        flags = [
            flag
            for change in (() if plan.reverts else plan.paths)
            if (after := _after(plan, change)) is not None
            for flag in _flags(change.path, [(n, after.lines[n]) for n in _brought(change, after)])
        ]
        return (NeedApproval("edits.secrets", flags[0]),) if flags else ()

    def _check_shown(self, caller: Caller, change: PathChange, before: Document | None) -> None:
        """Raises RedactedLine."""
        if before is None:
            return
        hidden = self._redaction.within(caller, change.moved_from or change.path, before, change.hunks)
        if hidden:
            raise RedactedLine(change.path, hidden[0] + 1)


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


def _flags(path: WorkspacePath, brought: list[tuple[int, str]]) -> list[str]:
    found = secrets([line for _, line in brought])
    if not found:
        return []
    named = ", ".join(f"line {brought[secret.line][0] + 1} ({secret.kind})" for secret in found[:MOST_FLAGGED])
    return [f"{escaped(path)}: {plural(len(found), 'secret')} by its form: {named}; it is kept in the journal as well"]


def _check_markers(change: PathChange, before: Document | None, brought: list[tuple[int, str]]) -> None:
    """Raises MarkerWritten."""
    for number, line in brought:
        match = MARKER.search(line)
        if match is not None and not (before is not None and any(match[0] in known for known in before.lines)):
            raise MarkerWritten(change.path, number + 1)


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
