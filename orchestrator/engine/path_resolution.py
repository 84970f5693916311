"""Paths as callers write them, to paths as the workspace knows them."""

from __future__ import annotations

import re

from orchestrator.core.errors import ParameterInvalid, escaped
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.paths import check_new_name, parse_path
from orchestrator.core.policy.tables import glob_problem

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
