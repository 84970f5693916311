"""Long work on texts, and parsing, off the thread that answers everybody."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Protocol, TypeVar

from orchestrator.core.ids import Digest, WorkspacePath
from orchestrator.core.text.symbols import Outline

T = TypeVar("T")

OWNER: ContextVar[str] = ContextVar("owner", default="")
"""For whom the present task works: the agent whose call it is, nobody for the daemon itself. Owners take turns."""

LIMIT_S = 10.0
"""For one piece of work."""


class Workers(Protocol):
    """Does pure work elsewhere."""

    async def run(self, work: Callable[[], T], *, limit_s: float = LIMIT_S) -> T:
        """The result of `work`, or what it raised; `work` is a `partial` of a function of some module.

        Its arguments and result may be copied. Raises TextTooCostly over `limit_s` or the limit of memory.
        """


class Parser(Protocol):
    """Outlines texts; remembers them by content."""

    async def outline(self, path: WorkspacePath, digest: Digest, data: bytes) -> Outline | None:
        """What a content defines, in the language of the path's name; None where the bytes are no text.

        Without a grammar, or past the limits of time and size, an outline by indentation and headings with
        `parsed` False. Raises nothing: a parser that dies is replaced.
        """
