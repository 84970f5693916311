"""A disk of which one call fails, or takes half of what it is given, or none from there on works."""

from __future__ import annotations

import errno
import os
from typing import Any, Literal, cast

from orchestrator.workspace.disk import Disk

Fault = Literal["EIO", "ENOSPC", "EMFILE", "short write", "dead"]
"""`dead`: EIO at this call and at each one after it."""

_OPENS = ("open_root", "open_beneath", "open_at")
_NEVER_FAILS = ("close", "features", "open_root", "stat_root")
_TAKES_SPACE = (
    *("open_at", "write", "sync", "rename", "make_directory", "set_attribute", "set_mode", "set_owner"),
    *("unlink_at", "remove_directory"),
)
"""A full disk refuses what must write; a copying file system even an unlink."""


class FailingDisk:
    """Passes every call on to `inner`, and counts those that can have the fault since it was armed."""

    def __init__(self, inner: Disk) -> None:
        self._inner = inner
        self._fault: Fault | None = None
        self._at = 0
        self._count = 0
        self.fired: str | None = None
        """The first call that had the fault."""
        self.handles: set[int] = set()
        """Those that are open."""

    def arm(self, fault: Fault, at: int) -> None:
        """From now on, the `at`-th call (from 1) has the fault."""
        self._fault, self._at, self._count, self.fired = fault, at, 0, None

    def mend(self) -> None:
        self._fault = None

    @property
    def disk(self) -> Disk:
        """This, for the type checker."""
        return cast(Disk, self)

    def __getattr__(self, name: str) -> Any:
        asked = getattr(self._inner, name)
        if name in _NEVER_FAILS:
            return self._counted(name, asked)

        def passed_on(*args: Any) -> Any:
            if self._fault is not None and self._can(name, args, self._fault):
                self._count += 1
                if self._count == self._at or (self._fault == "dead" and self._count > self._at):
                    self.fired = self.fired or name
                    if self._fault == "short write":
                        handle, data = args
                        return asked(handle, data[: (len(data) + 1) // 2])
                    number = getattr(errno, self._fault, errno.EIO)
                    raise OSError(number, os.strerror(number))
            return self._counted(name, asked)(*args)

        return passed_on

    def _counted(self, name: str, asked: Any) -> Any:
        def counted(*args: Any) -> Any:
            if name == "close":
                self.handles.discard(args[0])
            answer = asked(*args)
            if name in _OPENS:
                self.handles.add(answer)
            return answer

        return counted

    @staticmethod
    def _can(name: str, args: tuple[Any, ...], fault: Fault) -> bool:
        if fault == "short write":
            return name == "write" and len(args[1]) > 1
        if fault == "EMFILE":
            return name in _OPENS
        if fault == "ENOSPC":
            return name in _TAKES_SPACE and (name != "open_at" or bool(args[2] & os.O_CREAT))
        return True
