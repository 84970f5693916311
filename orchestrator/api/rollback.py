"""rollback: undo of many changes at once."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from orchestrator.api import results as r
from orchestrator.api.operation import CHANGES, SHORT_BYTES, Operation
from orchestrator.api.parameters import MOMENT, MOST_ENTRIES, ChangeParams, GlobText, Name, Version
from orchestrator.core import errors as e


class Rollback(ChangeParams, frozen=True):
    agent: Annotated[Name | None, Meta(description="Only changes of this agent; 'outside': only external changes.")] = (
        None
    )
    session: Annotated[Name | None, Meta(description="Only changes of this session.")] = None
    task: Annotated[Version | None, Meta(description="Only changes of this task ('@N').")] = None
    globs: Annotated[
        tuple[GlobText, ...],
        Meta(
            description="Only these files, gitignore-style; accepts a part of a preview.",
            max_length=MOST_ENTRIES,
        ),
    ] = ()
    since: Annotated[Version | None, Meta(description=f"Only what came after: {MOMENT}.")] = None
    until: Annotated[Version | None, Meta(description=f"Only what came until then: {MOMENT}.")] = None


class UndoneFile(r.Result, frozen=True, kw_only=True):
    """One file of a rollback."""

    path: str
    status: Literal["changed", "created", "deleted", "moved", "conflict"]
    added: int | None = None  # null where its content may not be shown
    removed: int | None = None
    diff: str | None = None  # null where it may not be shown, is not text, or where the answer's room was used up
    moved_from: str | None = None
    conflict: str | None = None  # '@N', once it waits


class Dependency(r.Result, frozen=True, kw_only=True):
    """Later work in a file of which earlier changes are undone."""

    path: str
    change: str
    agent: str | None = None
    on: tuple[str, ...] = ()  # the changes that are undone
    overlaps: bool = False  # true: it is in the way, and the file is a conflict; false: it is kept


class RollbackAnswer(r.ChangeAnswer, frozen=True, kw_only=True):
    changes: tuple[str, ...] = ()  # what is undone in full
    files: tuple[UndoneFile, ...] = ()
    dependencies: tuple[Dependency, ...] = ()
    conflicts: tuple[str, ...] = ()


ROLLBACK = Operation(
    "rollback",
    Rollback,
    RollbackAnswer,
    "Undo all changes of an agent, session, task, of some files or of a span of time, as one change. "
    "Later work of others is kept; where it overlaps, the file becomes a conflict.",
    writes=True,
    destructive=True,
    weight="always",
    most_bytes=SHORT_BYTES,
    raises=(*CHANGES, e.VersionUnknown, e.RevertImpossible, e.NothingToChange, e.ParameterInvalid),
    command="rollback",
)
