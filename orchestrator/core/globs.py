"""Globs by which callers narrow a listing or a search; gitignore-style, `!` for exceptions."""

from __future__ import annotations

from collections.abc import Iterable

from pathspec import GitIgnoreSpec

from orchestrator.core.errors import ParameterInvalid
from orchestrator.core.ids import WorkspacePath

MOST_STARS = 4
"""In one part of a glob; more cost time that grows without bound."""

MOST_CHARACTERS = 1000


def _check(pattern: str, parameter: str) -> None:
    parts = pattern.split("/")
    stars = max((part.count("*") for part in parts if part != "**"), default=0)
    if len(pattern) > MOST_CHARACTERS or stars > MOST_STARS or parts.count("**") > MOST_STARS:
        raise ParameterInvalid(
            parameter,
            f"a glob has at most {MOST_CHARACTERS} characters, and {MOST_STARS} stars in one part of it",
            hint="Split it into several globs, or search for a part of the name.",
        )


class Globs:
    """A compiled list of globs. Raises ParameterInvalid for one that can't be read."""

    def __init__(self, globs: Iterable[str], *, parameter: str = "globs") -> None:
        patterns = list(globs)
        for pattern in patterns:
            _check(pattern, parameter)
        if patterns and all(pattern.startswith("!") for pattern in patterns):
            patterns.insert(0, "**")  # only exceptions: everything but these
        try:
            self._spec = GitIgnoreSpec.from_lines(patterns)
        except ValueError as error:
            raise ParameterInvalid(parameter, f"{error}") from error

    def match(self, path: WorkspacePath) -> bool:
        """Whether a file's path is one of those meant."""
        return self._spec.match_file(path)
