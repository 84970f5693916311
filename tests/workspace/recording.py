"""A disk that tells what was asked of it, in order, and fails where it is told to."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, cast

from orchestrator.workspace.disk import Disk

_TOLD = {"write", "sync", "read", "take_lease", "open_at", "rename", "unlink_at", "make_directory", "remove_directory"}


class RecordingDisk:
    """Passes every call on to `inner`. `told` holds those that matter for durability, with names for handles.

    `fail` is asked before each call, with its sentence; an OSError that it returns is raised.
    """

    def __init__(self, inner: Disk, root: str) -> None:
        self._inner, self._root = inner, os.path.realpath(root)
        self.reported: list[str] = []
        self.fail: Callable[[str], OSError | None] = lambda sentence: None

    def __getattr__(self, name: str) -> Any:
        asked = getattr(self._inner, name)
        if name not in _TOLD:
            return asked

        def passed_on(*args: Any) -> Any:
            sentence = self._sentence(name, args)
            if sentence is not None:
                self.reported.append(sentence)
                error = self.fail(sentence)
                if error is not None:
                    raise error
            return asked(*args)

        return passed_on

    @property
    def disk(self) -> Disk:
        """This, for the type checker."""
        return cast(Disk, self)

    def _sentence(self, name: str, args: tuple[Any, ...]) -> str | None:
        match name:
            case "open_at":
                return f"create {self._name(args[0], args[1])}" if args[2] & os.O_CREAT else None
            case "read":
                return f"read {self._name(args[0])}" if args[2] == 0 else None
            case "write" | "sync":
                return f"{name} {self._name(args[0])}"
            case "take_lease":
                return f"lease {self._name(args[0])}"
            case "rename":
                from_dir, old, to_dir, new, how = args
                return f"rename {self._name(from_dir, old)} {self._name(to_dir, new)} {how}"
            case _:
                return f"{name} {self._name(args[0], args[1])}"

    def _name(self, handle: int, name: str = "") -> str:
        path = os.path.join(os.readlink(f"/proc/self/fd/{handle}"), name)
        return os.path.relpath(path, self._root)
