"""What every projection that lives in memory can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, get_origin, get_type_hints

import msgspec

from orchestrator.core.events.base import Event, RecordedLike


class Projection(ABC):
    """A fold over the journal: no I/O, no clock; dropped and replayed it is the same.

    `folds` are the kinds of events that can change it, or their bases: no other is shown to it. Its whole state
    are the dicts that its class declares: `_files: dict[…]` is the table `files`, empty at first, and that type
    reads it back from a snapshot. An entry that changes in place has `copy`. A snapshot holds `part_entries` of a
    table in one piece.
    """

    folds: ClassVar[frozenset[type[Event]]]
    part_entries: ClassVar[int] = 500
    tables: ClassVar[Mapping[str, Any]]

    def __init_subclass__(cls) -> None:
        kinds = get_type_hints(cls)
        cls.tables = {name[1:]: kinds[name] for name in cls.__annotations__ if get_origin(kinds[name]) is dict}

    def __init__(self) -> None:
        for name in self.tables:
            setattr(self, f"_{name}", {})

    @abstractmethod
    def apply(self, recorded: RecordedLike) -> None:
        """Take one event in; events come in the journal's order."""

    def table(self, name: str) -> dict[Any, Any]:
        """The entries of one table, in the order that the history alone determines."""
        entries: dict[Any, Any] = getattr(self, f"_{name}")
        return entries

    def plain(self, table: str) -> Any:
        """The entries of one table as plain data."""
        return msgspec.to_builtins(self.table(table), str_keys=True)

    def index(self) -> None:  # noqa: B027  # most projections hold nothing but their tables
        """Compute what else it holds from its tables, after they were read from a snapshot."""
