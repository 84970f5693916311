"""Globs by which callers narrow a listing or a search; gitignore-style, `!` for exceptions."""

from __future__ import annotations

from collections.abc import Iterable

from pathspec import GitIgnoreSpec

from orchestrator.core.errors import ParameterInvalid
from orchestrator.core.ids import WorkspacePath


class Globs:
    """A compiled list of globs. Raises ParameterInvalid for one that can't be read."""

    def __init__(self, globs: Iterable[str], *, parameter: str = "globs") -> None:
        patterns = list(globs)
        if patterns and all(pattern.startswith("!") for pattern in patterns):
            patterns.insert(0, "**")  # only exceptions: everything but these
        try:
            self._spec = GitIgnoreSpec.from_lines(patterns)
        except ValueError as error:
            raise ParameterInvalid(parameter, f"{error}") from error

    def match(self, path: WorkspacePath) -> bool:
        """Whether a file's path is one of those meant."""
        return self._spec.match_file(path)
