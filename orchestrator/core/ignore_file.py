"""One ignore file, with git's rule: the last matching line decides.

Git compares bytes (`?` is half of an `é`), so both sides are bytes here, written as Latin-1.
"""

from __future__ import annotations

from orchestrator.core.globs import Glob, GlobIndex, any_of

MOST_BYTES = 1024 * 1024
MOST_RULES = 10_000
MOST_WILDCARD_BYTES = 32 * 1024
"""All rules with wildcards together. Every name is compared with them; the others cost it nothing."""


class IgnoreFileOverBudget(Exception):
    """Comparing names with these rules would take too long. The message says which limit they break."""


class IgnoreFile:
    """A `.gitignore`, compiled. It speaks of a name itself: what lies in an ignored directory is never asked about."""

    def __init__(self, data: bytes) -> None:
        """Raises IgnoreFileOverBudget."""
        if len(data) > MOST_BYTES:
            raise IgnoreFileOverBudget(f"it is larger than {MOST_BYTES:,} bytes")
        rules = _rules(data)
        if len(rules) > MOST_RULES:
            raise IgnoreFileOverBudget(f"it holds {len(rules):,} rules, of at most {MOST_RULES:,}")
        globs = [(rule, glob) for rule in rules if not (glob := Glob(rule)).flaw]
        self._globs = tuple(glob for _, glob in globs)
        self.wildcard_bytes = sum(len(rule) for rule, glob in globs if glob.literal is None)
        if self.wildcard_bytes > MOST_WILDCARD_BYTES:
            raise IgnoreFileOverBudget(
                f"its rules with wildcards hold {self.wildcard_bytes:,} bytes, of at most {MOST_WILDCARD_BYTES:,}"
            )
        self._always = self._any_name = 0
        self._paths: dict[str, int] = {}
        by_tail: list[tuple[int, Glob]] = []
        any_name: list[str] = []
        for at, glob in enumerate(self._globs):
            bit = 1 << at
            if glob.universal:
                self._always |= bit
            elif glob.literal is not None and not glob.by_name:
                self._paths[glob.literal] = self._paths.get(glob.literal, 0) | bit
            elif glob.tail is None:
                self._any_name |= bit
                any_name.append(glob.source)
            else:
                by_tail.append((bit, glob))
        self._index = GlobIndex(by_tail)
        self._any_name_regex = any_of(any_name)

    def __bool__(self) -> bool:
        return bool(self._globs)

    def verdict(self, path: str, name: str, *, directory: bool) -> bool | None:
        """True: ignored; False: taken in again; None: no line fits.

        `path` is relative to the directory that holds the file; both are as `as_bytes` gives them.
        """
        fitting = self._always | self._index.candidates(name) | self._paths.get(path, 0)
        if self._any_name and self._any_name_regex.match(path):
            fitting |= self._any_name
        while fitting:
            last = fitting.bit_length() - 1
            glob = self._globs[last]
            if glob.names(path, directory=directory):
                return not glob.exception
            fitting ^= 1 << last
        return None


def as_bytes(text: str) -> str:
    """A name or path with one character for each byte that it has on disk."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("latin-1")


def _rules(data: bytes) -> list[str]:
    """The rules in order."""
    lines = data.removeprefix(b"\xef\xbb\xbf").decode("latin-1").split("\n")
    return [rule for line in lines if not line.startswith("#") and (rule := _trimmed(line.removesuffix("\r")))]


def _trimmed(line: str) -> str:
    """Without trailing spaces, save one that a backslash keeps."""
    bare = line.rstrip(" ")
    backslashes = len(bare) - len(bare.rstrip("\\"))
    return bare + " " if backslashes % 2 and len(bare) < len(line) else bare
