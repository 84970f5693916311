"""Globs in gitignore syntax, matched without backtracking; one, a list that selects files, and an index of many.

A glob becomes a regular expression that never tries a wildcard's second choice. What is
between two stars is taken at its first place (an atomic group), which is right because it has a
fixed length and the star after it takes the rest. The same holds one level up for the names
between two `**`. So a match costs at most the glob's length times the path's, whatever the glob.

Text is compared character by character. Git compares bytes: who wants that (ignore files do)
gives both sides as Latin-1 text. Source: git's wildmatch.c and dir.c; a test compares with git.
One difference: git takes `a**/b` for `a` + `**/b`, its manual says `a*/b`, and so do we.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable
from functools import cached_property
from typing import Final, TypeAlias

from orchestrator.core.braces import alternatives
from orchestrator.core.ids import WorkspacePath

Segment: TypeAlias = list[str]
"""One name of a glob: single characters stand for themselves, all else is the source of an expression."""

MOST_CHARACTERS = 1000
"""That a glob from outside may have."""

STAR: Final = "[^/]*"
_ANY: Final = "[^/]"
_NEVER: Final = "(?!)"
_DOUBLE: Final[Segment] = ["**"]
_DIRECTORIES: Final = "(?:[^/]*+/)*?"

_CLASSES = {
    "alnum": string.ascii_letters + string.digits,
    "alpha": string.ascii_letters,
    "blank": " \t",
    "cntrl": "".join(chr(c) for c in (*range(32), 127)),
    "digit": string.digits,
    "graph": "".join(chr(c) for c in range(33, 127)),
    "lower": string.ascii_lowercase,
    "print": "".join(chr(c) for c in range(32, 127)),
    "punct": string.punctuation,
    "space": " \t\n\r",
    "upper": string.ascii_uppercase,
    "xdigit": string.hexdigits,
}


class Glob:
    """A glob as it is written: `!` in front makes it an exception, `/` at its end names directories only."""

    def __init__(self, text: str) -> None:
        """Never fails: `flaw` says why a malformed glob names nothing; a range that runs `backwards` is empty."""
        self.exception = text.startswith("!")
        body = text[1:] if self.exception else text
        self.directories_only = body.endswith("/")
        body = body[:-1] if self.directories_only else body
        self.by_name = "/" not in body
        read = _Reader(body.removeprefix("/"))
        self.segments, self.flaw, self.backwards = read.segments, read.flaw, read.backwards
        if self.by_name and self.segments == [_DOUBLE]:
            self.segments = [[STAR]]
        named = [segment for segment in self.segments if segment is not _DOUBLE]
        anywhere = self.by_name or self.segments[0] is _DOUBLE
        inside = self.segments[-1] is _DOUBLE
        self.universal = not self.flaw and (not named or (named == [[STAR]] and anywhere and not inside))
        self.literal = None if self.flaw or len(named) < len(self.segments) else literal_of(named)
        self.tail = None if inside or named[-1] == [STAR] else named[-1]
        """How the name of what it names must look; None where it may be any."""

    @property
    def piece(self) -> str:
        """The longest text that each path which it covers holds."""
        runs = ("".join(token if len(token) == 1 else "\0" for token in part) for part in self.segments)
        return max((piece for run in runs for piece in run.split("\0")), key=len, default="")

    @property
    def prefix(self) -> str:
        """How each path that it covers begins."""
        if self.by_name:
            return ""
        literal = "/".join("".join(token if len(token) == 1 else "\0" for token in part) for part in self.segments)
        return literal.partition("\0")[0]

    def names(self, path: str, *, directory: bool) -> bool:
        """Whether it names this path itself; what lies in a directory that it names is not asked about."""
        if self.directories_only and not directory:
            return False
        if self.universal:
            return True
        if self.by_name:
            path = path.rpartition("/")[2]
        if self.literal is not None:
            return self.literal == path
        return self._names.match(path) is not None

    @cached_property
    def _names(self) -> re.Pattern[str]:
        return re.compile(self.source, re.DOTALL)

    @property
    def source(self) -> str:
        """The expression for what it names: a name where it is `by_name`, else a path."""
        return _NEVER if self.flaw else _translated(self.segments, r"\Z")

    @property
    def covering(self) -> str:
        """The expression for paths of files that it names, or that lie in a directory that it names."""
        if self.flaw:
            return _NEVER
        segments = [_DOUBLE, *self.segments] if self.by_name else self.segments
        return _translated(segments, "/" if self.directories_only else r"(?:/|\Z)")


def any_of(sources: Iterable[str]) -> re.Pattern[str]:
    """One expression for what any of these matches."""
    return re.compile("|".join(f"(?:{source})" for source in sources) or _NEVER, re.DOTALL)


def literal_of(segments: Iterable[Segment]) -> str | None:
    """The one text that these names match; None where they hold a wildcard."""
    segments = list(segments)
    plain = all(len(token) == 1 for segment in segments for token in segment)
    return "/".join("".join(segment) for segment in segments) if plain else None


def name_source(segment: Segment) -> str:
    """The expression for one name, without its end."""
    pieces = [""]
    for token in segment:
        if token == STAR:
            pieces.append("")
        else:
            pieces[-1] += re.escape(token) if len(token) == 1 else token
    if len(pieces) == 1:
        return pieces[0]
    first, *middle, last = pieces
    return first + "".join(f"(?>[^/]*?{piece})" for piece in middle) + STAR + last


def _translated(segments: list[Segment], end: str) -> str:
    chunks: list[list[Segment]] = [[]]  # what is between two `**`
    for segment in segments:
        if segment is _DOUBLE:
            chunks.append([])
        else:
            chunks[-1].append(segment)
    *before, last = chunks
    sources = ["".join(map(_directory, chunk)) for chunk in before]
    rest = "".join(map(_directory, last[:-1])) + (name_source(last[-1]) if last else ".+") + end
    if not sources:
        return rest
    floating = "".join(f"(?>{_DIRECTORIES}{source})" for source in sources[1:] if source)
    return sources[0] + floating + (_DIRECTORIES if last else "") + rest


def _directory(segment: Segment) -> str:
    source = name_source(segment)
    return f"(?>{source}/)" if STAR in segment else source + "/"


class _Reader:
    """Reads a glob from left to right into `segments`."""

    def __init__(self, pattern: str) -> None:
        self.segments: list[Segment] = [[]]
        self.flaw = None if pattern else "it names nothing"
        self.backwards = False
        self._pattern, self._at = pattern, 0
        while self._at < len(pattern) and not self.flaw:
            self._token()

    def _token(self) -> None:
        char = self._pattern[self._at]
        if char == "*":
            self._stars()
        elif char == "[":
            self._bracket()
        else:
            self._at += char == "\\"
            if self._at == len(self._pattern):
                self.flaw = "it ends with a backslash"
            elif self._pattern[self._at] == "/":
                self.segments.append([])
            else:
                self.segments[-1].append(_ANY if char == "?" else self._pattern[self._at])
            self._at += 1

    def _stars(self) -> None:
        """A run of stars: two or more cross directories where slashes or the ends bound them."""
        length = len(self._pattern) - self._at - len(self._pattern[self._at :].lstrip("*"))
        self._at += length
        bounded = length > 1 and not self.segments[-1]
        if bounded and self._pattern[self._at : self._at + 1] in ("", "/"):
            self.segments[-1] = _DOUBLE
        elif bounded and self._pattern.startswith("\\/", self._at):  # git then wants one directory at least
            self.segments[-1:] = [[STAR], _DOUBLE]
        elif self.segments[-1][-1:] != [STAR]:
            self.segments[-1].append(STAR)

    def _bracket(self) -> None:
        try:
            negated, ranges = self._ranges()
        except IndexError:
            self.flaw = "'[' is never closed"
            return
        except KeyError as error:
            self.flaw = f"there is no class {error}"
            return
        forwards = [(first, last) for first, last in ranges if first <= last]
        self.backwards = self.backwards or len(forwards) < len(ranges)
        text = "".join(f"\\U{ord(first):08x}-\\U{ord(last):08x}" for first, last in forwards)
        accepted = f"(?!/)[{text}]" if text else _NEVER
        self.segments[-1].append(f"[^/{text}]" if negated else accepted)

    def _ranges(self) -> tuple[bool, list[tuple[str, str]]]:
        """Whether `[…]` is negated, and what it holds. IndexError: it does not end; KeyError: no such class."""
        pattern, at = self._pattern, self._at + 1
        negated = pattern[at] in "!^"
        at += negated
        ranges: list[tuple[str, str]] = []
        start = ""  # what a '-' may begin a range with
        first = True
        while first or pattern[at] != "]":
            first = False
            char = pattern[at]
            if char == "-" and start and pattern[at + 1] != "]":
                at += 1 + (pattern[at + 1] == "\\")
                ranges.append((start, pattern[at]))
                start = ""
            elif char == "[" and pattern[at + 1] == ":" and (name := _class_at(pattern, at + 2)) is not None:
                ranges += [(c, c) for c in _CLASSES[name]]
                at += len(name) + 3
                start = ""
            else:
                at += char == "\\"
                start = pattern[at]
                ranges.append((start, start))
            at += 1
        self._at = at + 1
        return negated, ranges


def _class_at(pattern: str, at: int) -> str | None:
    """The name in `[:name:]` that starts here; None if it is no such thing. IndexError: there is no `]` at all."""
    end = pattern.find("]", at)
    if end < 0:
        raise IndexError
    return pattern[at : end - 1] if end > at and pattern[end - 1] == ":" else None


class Globs:
    """A list of globs of a caller, a lease or a route: the last that names a path, or a directory above it, decides.

    Exceptions alone mean everything but these. A malformed glob names nothing, as in git. `{a,b}` means either.
    """

    def __init__(self, globs: Iterable[str]) -> None:
        given = tuple(globs)
        patterns = [Glob(text) for text in alternatives(given) or given]
        if patterns and all(pattern.exception for pattern in patterns):
            patterns.insert(0, Glob("**"))
        self._last_first = tuple((not item.exception, any_of([item.covering])) for item in reversed(patterns))
        meant = [item for item in patterns if not item.exception and not item.flaw]
        pieces = tuple(item.piece for item in meant)
        self.pieces = pieces if all(pieces) else ()
        """Each path that is meant holds one of these; none: it may be any."""
        self.prefix = meant[0].prefix if len(meant) == 1 else ""
        """How each path that is meant begins."""

    def match(self, path: WorkspacePath) -> bool:
        """Whether a file's path is one of those meant."""
        return next((meant for meant, regex in self._last_first if regex.match(path)), False)


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
