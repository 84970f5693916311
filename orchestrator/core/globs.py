"""A list of globs that selects files for a caller, a lease or a route; `!` marks exceptions."""

from __future__ import annotations

import re
from collections.abc import Iterable

from orchestrator.core.glob_pattern import Glob, any_of
from orchestrator.core.ids import WorkspacePath


class Globs:
    """A compiled list of globs: the last one that names a path, or a directory above it, decides.

    Exceptions alone mean everything but these. A malformed glob names nothing, as in git.
    """

    def __init__(self, globs: Iterable[str]) -> None:
        patterns = [Glob(text) for text in globs]
        if patterns and all(pattern.exception for pattern in patterns):
            patterns.insert(0, Glob("**"))
        self._meant = any_of(pattern.covering for pattern in patterns if not pattern.exception)
        self._last_first: tuple[tuple[bool, re.Pattern[str]], ...] = ()
        if any(pattern.exception for pattern in patterns):
            self._last_first = tuple((not item.exception, any_of([item.covering])) for item in reversed(patterns))

    def match(self, path: WorkspacePath) -> bool:
        """Whether a file's path is one of those meant."""
        if self._meant.match(path) is None:
            return False
        return next((meant for meant, regex in self._last_first if regex.match(path)), True)
