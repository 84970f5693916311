"""One file of ignore rules, read as git reads it: what its last fitting line says of one name.

Git compares bytes (`?` is half of an `é`), so both sides are bytes here, written as Latin-1.
Source: git's wildmatch.c and dir.c; a test compares with git itself. pathspec is not used for
this: it reads POSIX classes as nested sets, and characters instead of bytes.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable
from typing import NamedTuple

_NEVER = "(?!)"
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
    "space": " \t\n\r\v\f",
    "upper": string.ascii_uppercase,
    "xdigit": string.hexdigits,
}


class _Rule(NamedTuple):
    """One line. It speaks of the name itself only: what lies below an ignored directory is never asked about."""

    regex: re.Pattern[str]
    ignores: bool
    directories_only: bool
    by_name: bool


class RuleFile:
    """A `.gitignore`, compiled."""

    def __init__(self, data: bytes) -> None:
        lines = data.removeprefix(b"\xef\xbb\xbf").decode("latin-1").split("\n")
        rules = [rule for line in lines if (rule := _rule(line.removesuffix("\r"))) is not None]
        self._by_name = _any_of(rule for rule in rules if rule.by_name)
        self._by_path = _any_of(rule for rule in rules if not rule.by_name)
        self._latest_first = tuple(reversed(rules))

    def __bool__(self) -> bool:
        return bool(self._latest_first)

    def verdict(self, path: str, name: str, *, directory: bool) -> bool | None:
        """True: ignored; False: taken in again; None: no line fits.

        `path` is relative to the directory that the file stands in; both are as `as_bytes` gives
        them. Cost: two expressions, mostly.
        """
        if not (self._by_name and self._by_name.match(name)) and not (self._by_path and self._by_path.match(path)):
            return None
        for rule in self._latest_first:
            if rule.directories_only and not directory:
                continue
            if rule.regex.match(name if rule.by_name else path):
                return rule.ignores
        return None


def as_bytes(text: str) -> str:
    """A name or path with one character for each byte that it has on disk."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("latin-1")


def _rule(line: str) -> _Rule | None:
    """None for a comment and an empty line."""
    if line.startswith("#"):
        return None
    pattern = _trimmed(line)
    ignores = not pattern.startswith("!")
    pattern = pattern if ignores else pattern[1:]
    directories_only = pattern.endswith("/")
    if directories_only:
        pattern = pattern[:-1]
    by_name = "/" not in pattern
    pattern = pattern.removeprefix("/")
    if not pattern:
        return None
    return _Rule(re.compile(_translated(pattern) + r"\Z", re.DOTALL), ignores, directories_only, by_name)


def _trimmed(line: str) -> str:
    """Without trailing spaces, save one that a backslash keeps."""
    bare = line.rstrip(" ")
    backslashes = len(bare) - len(bare.rstrip("\\"))
    return bare + " " if backslashes % 2 and len(bare) < len(line) else bare


def _any_of(rules: Iterable[_Rule]) -> re.Pattern[str] | None:
    """One expression that matches what any of the rules does."""
    parts = [rule.regex.pattern for rule in rules]
    return re.compile("|".join(f"(?:{part})" for part in parts), re.DOTALL) if parts else None


def _translated(pattern: str) -> str:
    """A glob as a regular expression; one that git calls malformed matches nothing."""
    parts: list[str] = []
    at = 0
    star = -1  # where in `parts` the last single star stands
    while at < len(pattern):
        char = pattern[at]
        if char == "*":
            if star >= 0:
                _fix(parts, star)
            part, at = _stars(pattern, at)
            star = len(parts) if part == _STAR else -1
            parts.append(part)
        elif char == "?":
            parts.append("[^/]")
            at += 1
        elif char == "[":
            try:
                accepted, at = _set(pattern, at)
            except (IndexError, KeyError):
                return _NEVER
            parts.append("[" + "".join(f"\\x{c:02x}" for c in sorted(accepted)) + "]" if accepted else _NEVER)
        else:
            at += char == "\\"
            if at == len(pattern):
                return _NEVER
            parts.append(re.escape(pattern[at]))
            at += 1
    return "".join(parts)


_STAR = "[^/]*"


def _fix(parts: list[str], star: int) -> None:
    """Let a star that another follows take the first fit for good: a pattern of many stars stays quick to refuse."""
    parts[star:] = ["(?>[^/]*?", *parts[star + 1 :], ")"]


def _stars(pattern: str, at: int) -> tuple[str, int]:
    """A run of stars, and where it ends: two or more cross directories where slashes or the ends bound them."""
    end = at
    while end < len(pattern) and pattern[end] == "*":
        end += 1
    whole = end - at > 1 and (at == 0 or pattern[at - 1] == "/")
    if whole and end == len(pattern):
        return ".*", end
    if whole and pattern[end] == "/":
        return "(?:.*/)?", end + 1
    return _STAR, end


def _set(pattern: str, at: int) -> tuple[set[int], int]:
    """The bytes that `[…]` accepts, and where it ends. IndexError: it does not; KeyError: no such class."""
    at += 1
    negated = pattern[at] in "!^"
    at += negated
    accepted: set[int] = set()
    before = ""  # what a '-' may start a range from
    first = True
    while first or pattern[at] != "]":
        first = False
        char = pattern[at]
        if char == "-" and before and pattern[at + 1] != "]":
            at += 1
            if pattern[at] == "\\":
                at += 1
            accepted.update(range(ord(before), ord(pattern[at]) + 1))
            before = ""
        elif char == "[" and pattern[at + 1] == ":" and (name := _class_at(pattern, at + 2)) is not None:
            accepted.update(map(ord, _CLASSES[name]))
            at += len(name) + 3
            before = ""
        else:
            if char == "\\":
                at += 1
            before = pattern[at]
            accepted.add(ord(before))
        at += 1
    if negated:
        accepted = set(range(256)) - accepted
    return accepted - {ord("/")}, at + 1


def _class_at(pattern: str, at: int) -> str | None:
    """The name in `[:name:]` that starts here; None if it is no such thing. IndexError: there is no `]` at all."""
    end = at
    while pattern[end] != "]":
        end += 1
    return pattern[at : end - 1] if end > at and pattern[end - 1] == ":" else None
