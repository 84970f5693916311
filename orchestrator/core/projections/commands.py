"""Commands that run, and the last ones that ended. What a journal may be redacted of is not kept here."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from orchestrator.core.commands import CommandStatus, Mode
from orchestrator.core.events.base import Event, RecordedLike
from orchestrator.core.events.commands import CommandEnded, CommandStarted
from orchestrator.core.ids import AgentName, Seq, SessionId
from orchestrator.core.projections.base import Projection

KEPT_ENDED = 200
"""Commands that ended; of those before them the journal has the events."""


class Command(msgspec.Struct, frozen=True, omit_defaults=True):
    """One command."""

    seq: Seq
    at: int  # ms since the epoch
    agent: AgentName | None
    session: SessionId | None
    mode: Mode
    lease: Seq | None = None
    ended: Seq | None = None  # its CommandEnded
    ended_at: int | None = None
    status: CommandStatus | None = None  # None: it runs


class Commands(Projection):
    """By the number of their start, oldest first."""

    folds: ClassVar[frozenset[type[Event]]] = frozenset({CommandStarted, CommandEnded})
    _commands: dict[Seq, Command]

    def get(self, seq: int) -> Command | None:
        return self._commands.get(Seq(seq))

    def all(self) -> tuple[Command, ...]:
        return tuple(self._commands.values())

    def open(self) -> tuple[Command, ...]:
        """Those without an end."""
        return tuple(command for command in self._commands.values() if command.ended is None)

    def apply(self, recorded: RecordedLike) -> None:
        seq, at = recorded.seq, recorded.at
        match recorded.event:
            case CommandStarted(mode=mode, lease=lease):
                self._commands[seq] = Command(seq, at, recorded.agent, recorded.session, mode, lease)
            case CommandEnded(command=started, status=status) if started in self._commands:
                known = self._commands.pop(started)  # the last to end is the last to be forgotten
                self._commands[started] = msgspec.structs.replace(known, ended=seq, ended_at=at, status=status)
                ended = [item.seq for item in self._commands.values() if item.ended is not None]
                for old in ended[:-KEPT_ENDED]:
                    del self._commands[old]
            case _:
                return
