"""Several globs at once: a list that selects files, and an index of the few that may match a name."""

from __future__ import annotations

import re
from collections.abc import Iterable

from orchestrator.core.glob_pattern import STAR, Glob, any_of, literal_of, name_source
from orchestrator.core.ids import WorkspacePath


class Globs:
    """A list of globs of a caller, a lease or a route: the last that names a path, or a directory above it, decides.

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


class GlobIndex:
    """Which globs may match a path, by its last part; each glob has bits, and answers are bit sets."""

    __slots__ = ("_always", "_any_wildcard", "_literals", "_suffixes", "_tails", "_wildcards")

    def __init__(self, globs: Iterable[tuple[int, Glob]]) -> None:
        self._always = 0
        self._literals: dict[str, int] = {}
        suffixes: dict[str, int] = {}
        wildcards: dict[str, int] = {}
        for bits, glob in globs:
            if glob.flaw:
                continue
            if glob.universal or glob.tail is None:
                self._always |= bits
                continue
            literal, suffix = literal_of([glob.tail]), literal_of([glob.tail[1:]])
            if literal is not None:
                self._literals[literal] = self._literals.get(literal, 0) | bits
            elif suffix is not None and glob.tail[0] == STAR:
                suffixes[suffix] = suffixes.get(suffix, 0) | bits
            else:
                source = name_source(glob.tail) + r"\Z"
                wildcards[source] = wildcards.get(source, 0) | bits
        self._suffixes = tuple(suffixes.items())
        self._tails = tuple(suffixes)
        self._wildcards = tuple((any_of([source]), bits) for source, bits in wildcards.items())
        self._any_wildcard = any_of(wildcards)

    def candidates(self, name: str) -> int:
        """The bits of all globs that might name a path whose last component is `name`."""
        found = self._always | self._literals.get(name, 0)
        if name.endswith(self._tails):
            for suffix, bits in self._suffixes:
                if name.endswith(suffix):
                    found |= bits
        if self._any_wildcard.match(name):
            for regex, bits in self._wildcards:
                if regex.match(name):
                    found |= bits
        return found
