"""What another policy would have said of what happened: the acts of past events, judged by both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import msgspec

from orchestrator.core.change import PathChange, PermissionCheck, running
from orchestrator.core.commands import CommandLine
from orchestrator.core.errors import PathError
from orchestrator.core.events.base import CallDetails, Event, Recorded
from orchestrator.core.events.codec import tag_of
from orchestrator.core.events.commands import CommandStarted
from orchestrator.core.events.conflicts import ApprovalRequested
from orchestrator.core.events.files import (
    ChangeIntended,
    ChangeRefused,
    ContentSearched,
    ContentShown,
    DiffShown,
    DirectoryListed,
    FileRead,
    ReadRefused,
)
from orchestrator.core.events.sessions import AgentClass
from orchestrator.core.ids import AgentName, Seq, WorkspacePath
from orchestrator.core.paths import parse_path
from orchestrator.core.policy.evaluate import evaluate, evaluation_of
from orchestrator.core.policy.rules import ACTIONS, BY_SIZE, Action, Answer, Policy, Request

_TELLING: tuple[type[Event], ...] = (
    *(FileRead, ContentShown, DiffShown, ContentSearched, DirectoryListed, ReadRefused),
    *(ChangeIntended, ChangeRefused, ApprovalRequested, CommandStarted),
)
TAGS = tuple(tag_of(event) for event in _TELLING)
"""The events with acts on paths."""

_LISTS = ("list_files", "find_files", "file_info", "directory_stats")


class ChangedVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """An act that another policy answers otherwise, and how often it was tried."""

    seq: Seq  # of the first event
    times: int
    agent: AgentName
    action: Action
    path: WorkspacePath
    argv: tuple[str, ...] = ()  # of a command
    old: Answer
    new: Answer
    rule: str  # that decides now


class Simulation:
    """Judges events as they come."""

    def __init__(
        self,
        old: Policy,
        new: Policy,
        class_of: Callable[[AgentName], AgentClass],
        tags_of: Callable[[WorkspacePath], tuple[str, ...]] = lambda path: (),
    ) -> None:
        self._old, self._new, self._class_of, self._tags_of = old, new, class_of, tags_of
        self.events = self.acts = 0
        self.counts: dict[tuple[Answer, Answer], int] = {}
        self._changed: dict[tuple[AgentName, PermissionCheck], ChangedVerdict] = {}

    @property
    def changed(self) -> tuple[ChangedVerdict, ...]:
        """Every act that is answered otherwise, the earliest first."""
        return tuple(self._changed.values())

    @property
    def asks_for_size(self) -> bool:
        """Whether what one of the two says may depend on how large a file was."""
        return evaluation_of(self._old).asks_for_size or evaluation_of(self._new).asks_for_size

    def judge(self, recorded: Recorded, sizes: Mapping[WorkspacePath, int | None]) -> None:
        """Take one event in, and what is known of the sizes of its files; one of nobody's call tells nothing."""
        agent, acts = recorded.origin.agent, tuple(acts_of(recorded))
        if agent is None or not acts:
            return
        self.events += 1
        for each in acts:
            size = each.size if each.size is not None else sizes.get(each.path)
            act = msgspec.structs.replace(each, size=None)
            request = Request(
                agent,
                self._class_of(agent),
                act.action,
                act.path,
                act.others_work,
                act.directory,
                size=size,
                tags=self._tags_of(act.path),
                command=act.command,
            )
            was, now = evaluate(self._old, request), evaluate(self._new, request)
            old, new = was.answer, now.answer
            self.acts += 1
            self.counts[old, new] = self.counts.get((old, new), 0) + 1
            if old != new:
                known = self._changed.get((agent, act))
                self._changed[agent, act] = ChangedVerdict(
                    seq=known.seq if known is not None else recorded.seq,
                    times=known.times + 1 if known is not None else 1,
                    agent=agent,
                    action=act.action,
                    path=act.path,
                    argv=act.command.argv if act.command is not None else (),
                    old=old,
                    new=new,
                    rule=now.rule,
                )


def sized_at(recorded: Recorded) -> Iterator[tuple[WorkspacePath, int]]:
    """The files of an event whose sizes policy was told, and the position at which each had that size.

    A change has its sizes from its intent on; of what goes away it is the one before.
    """
    refused = isinstance(recorded.event, ChangeRefused)
    for act in acts_of(recorded):
        if act.size is None and act.action in BY_SIZE and not (refused and act.action in ("create", "write")):
            yield act.path, recorded.seq - (act.action in ("delete", "move"))


def acts_of(recorded: Recorded) -> Iterator[PermissionCheck]:
    """What policy was asked for an event, as far as the event tells.

    Of a change or a command that a person said yes to, the request tells it.
    """
    match recorded.event:
        case ApprovalRequested(permissions=permissions, renews=None):
            for check in permissions:
                asked = check.others_work or check.action in ("delete", "move")  # for one's own nobody is asked
                yield msgspec.structs.replace(check, others_work=asked)
        case CommandStarted(argv=argv, cwd=cwd, mode=mode, approval=None):
            yield running(CommandLine(argv, cwd, mode))
        case ChangeRefused(rule=str(), details={"path": str(path), "action": str(action)}):
            yield from _refused(action, path, recorded.origin.call)
        case ChangeIntended(provenance=why, paths=paths) if why.approval is None:
            for change in paths:
                if why.reverts:
                    yield PermissionCheck("revert", change.path)
                yield PermissionCheck(_action(change, paths), change.path, directory=change.directory is not None)
        case event:
            yield from _reads(event)


def _reads(event: Event) -> Iterator[PermissionCheck]:
    match event:
        case FileRead(seen=seen) | ContentShown(seen=seen):
            yield PermissionCheck("read", seen.path)
        case DiffShown(path=path):
            yield PermissionCheck("read", path)
        case ContentSearched(seen=found):
            yield from (PermissionCheck("search", seen.path) for seen in found)
        case DirectoryListed(path=path):
            yield PermissionCheck("list", path, directory=True)
        case ReadRefused(path=path, operation=operation, rule=str()):
            yield from _refused("list" if operation in _LISTS else "read", path)
        case _:
            return


def _action(change: PathChange, paths: tuple[PathChange, ...]) -> Action:
    if not change.present:
        return "move" if any(other.moved_from == change.path for other in paths) else "delete"
    return "create" if change.before is None else "write"


def _refused(action: str, path: str, call: CallDetails | None = None) -> Iterator[PermissionCheck]:
    """An act that was refused; its path is as the caller wrote it, and may be none. A command is in its call."""
    try:
        known = parse_path(path, directory=action == "run")
    except PathError:
        return
    match call.arguments if call is not None else {}:
        case {"argv": [*argv], **more} if action == "run" and all(isinstance(word, str) for word in argv):
            yield running(CommandLine(tuple(argv), known, more.get("mode", "in_place")))
            return
    yield from (PermissionCheck(each, known) for each in ACTIONS if each == action)
