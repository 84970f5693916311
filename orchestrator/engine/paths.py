"""Paths of the workspace: as callers write them, and as a walk below a directory meets them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress

import msgspec

from orchestrator.core.errors import ParameterInvalid, PathError, escaped
from orchestrator.core.globs import Globs
from orchestrator.core.ids import Seq, WorkspacePath, show
from orchestrator.core.name_index import LAST
from orchestrator.core.paths import ROOT, check_new_name, join, parse_path
from orchestrator.core.policy.tables import glob_problem
from orchestrator.ports.workspace import FileStat, Ignore, ListedName, Workspace

_PLAIN = re.compile(r"[\w./-]+\Z", re.ASCII)


class Paths:
    """The one place where a raw path is read; `root` is the workspace's own, which callers may write before it."""

    def __init__(self, root: str) -> None:
        self._root = root

    def file(self, raw: str, *, may_create: bool = False) -> WorkspacePath:
        """The path of a file."""
        return parse_path(raw, roots=(self._root,), may_create=may_create)

    def either(self, raw: str) -> WorkspacePath:
        """The path of a directory, or of a file; `.` is the root."""
        return parse_path(raw, roots=(self._root,), directory=True)

    def new_directory(self, raw: str) -> WorkspacePath:
        """The path of a directory to make."""
        path = parse_path(raw, roots=(self._root,), directory=True, may_create=True)
        check_new_name(path)
        return path

    def new(self, raw: str) -> WorkspacePath:
        """A path that a change may create; names that other systems misread are refused."""
        path = self.file(raw, may_create=True)
        check_new_name(path)
        return path

    def globs(self, given: Sequence[str], start: WorkspacePath = ROOT) -> Globs | None:
        """Globs below a directory, each of which may have the directory's absolute path before it; None for none.

        Raises ParameterInvalid for one that begins with the path of something else in the workspace.
        """
        return Globs(self._below(raw, start) for raw in given) if given else None

    def _below(self, raw: str, start: WorkspacePath) -> str:
        body, above = raw.removeprefix("!"), self._root if start == ROOT else f"{self._root}/{start}"
        if not body.startswith(f"{self._root}/"):
            return raw
        if not body.startswith(f"{above}/"):
            raise ParameterInvalid("globs", f"'{escaped(raw)}' is not below {start}", hint="Send it with path='.'.")
        return raw[: len(raw) - len(body)] + body[len(above) :]

    def glob(self, raw: str) -> str:
        """A glob of paths: a leading `./`, or the workspace's own root, means the root (`/`).

        Raises ParameterInvalid for one that gitignore would pass over in silence.
        """
        mark = "!" if raw.startswith("!") else ""
        body = raw[len(mark) :]
        if body == self._root or body.startswith(self._root + "/"):
            body = body[len(self._root) :] or "."
        while body.startswith("./") and len(body) > 2:
            body = "/" + body[2:].lstrip("/")
        glob = mark + ("**" if body in (".", "./") else body)
        problem = glob_problem(glob)
        if problem is not None:
            raise ParameterInvalid("globs", f"'{escaped(raw)}': {problem}")
        return glob


def quoted(path: str) -> str:
    """A path as written in a call that an answer names."""
    return f'"{path}"' if _PLAIN.match(path) else repr(str(path))


def within_call(path: WorkspacePath, line: int, column: int, *, at: Seq | None = None) -> str:
    """The call that shows more of a long line."""
    version = f', at="{show(at)}"' if at is not None else ""
    return f"read_file(path={quoted(path)}, start={line}, column={column}{version})"


class Walked(msgspec.Struct, frozen=True):
    """One name; `valid` False breaks the name rule and is shown escaped, never opened."""

    path: WorkspacePath
    name: str
    stat: FileStat
    valid: bool


def below(start: WorkspacePath, path: WorkspacePath) -> WorkspacePath:
    """A path as globs see it: relative to where a walk starts."""
    return path if start == ROOT else WorkspacePath(path[len(start) + 1 :])


class Walker:
    """Walks by directory handles; blocking, so it is run in a worker thread."""

    def __init__(self, workspace: Workspace, ignore: Ignore) -> None:
        self._workspace, self._ignore = workspace, ignore

    def walk(
        self,
        start: WorkspacePath,
        *,
        depth: int | None = None,
        hidden: bool = True,
        first: str = "",
        last: str = LAST,
    ) -> Iterator[Walked]:
        """Everything below `start` in the order of the paths; a directory is read when its turn comes.

        `depth` 1 is the directory itself. Directories with nothing from `first` up to before `last` in them are not
        read. A start that is itself ignored is shown whole: who names it wants it. Raises FileNotFound, NotADirectory
        for the start only.
        """
        self._ignore.refresh()
        ignoring = start == ROOT or not self._ignore.ignored(start, directory=True)
        levels = [self._turns(start)]
        folders = [start]
        while levels:
            turn, listed = next(levels[-1], (None, None))
            if turn is None or listed is None:
                levels.pop()
                folders.pop()
                continue
            if not hidden and turn.startswith("."):
                continue
            path = join(folders[-1], listed.name)
            is_directory = listed.stat.kind == "directory"
            if ignoring and listed.valid and self._ignore.ignored(path, directory=is_directory):
                continue
            if not turn.endswith("/"):
                yield Walked(path, listed.name, listed.stat, listed.valid)
            elif len(levels) != depth and first < f"{path}0" and f"{path}/" < last:
                with suppress(PathError):  # gone, or closed to us, since its parent was read
                    levels.append(self._turns(path))
                    folders.append(path)

    def _turns(self, directory: WorkspacePath) -> Iterator[tuple[str, ListedName]]:
        """Each name in order; and of directories again, with a `/`, where what is in them has its place."""
        listed = self._workspace.names(directory)
        below = [(f"{item.name}/", item) for item in listed if item.valid and item.stat.kind == "directory"]
        return iter(sorted([*((item.name, item) for item in listed), *below], key=lambda turn: turn[0]))
