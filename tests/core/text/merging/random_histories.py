"""Three-way merges that people's histories pose: what git merges, picks and reverts, as base, current and proposed.

A history is a list of versions of one file, the oldest first. Of two versions that follow each
other, the change between them is picked onto an earlier version (as `git cherry-pick` does) and
taken back from a later one (as `git revert` does). A merge commit gives its three sides as they
were, and what people made of them.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random

import msgspec

LEAST_LINES, MOST_LINES = 5, 5_000


class Case(msgspec.Struct, frozen=True):
    """One merge. `committed` is what people made of it, where that is known."""

    path: str
    kind: str
    base: str
    current: str
    proposed: str
    committed: str | None = None

    @property
    def sides(self) -> tuple[list[str], list[str], list[str]]:
        return self.base.splitlines(), self.current.splitlines(), self.proposed.splitlines()  # all end with \n


class Repository:
    """A git repository, read only."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._texts: dict[str, str | None] = {}

    def git(self, *arguments: str, given: bytes = b"") -> bytes:
        command = ("git", "-C", str(self._root), *arguments)
        return subprocess.run(command, input=given, capture_output=True, check=True).stdout

    def histories(self, first_commits: int) -> dict[str, list[str]]:
        """The versions of each path, as blobs, oldest first, in the first so many commits."""
        log = self.git("log", "--reverse", "--no-merges", "--no-renames", "--format=%H", "--raw", "--no-abbrev", "HEAD")
        found: dict[str, list[str]] = {}
        commits = 0
        for row in log.decode("utf-8", "replace").splitlines():
            if not row.startswith(":"):
                commits += bool(row)
                if commits > first_commits:
                    break
                continue
            fields, _, path = row.partition("\t")
            _, _, before, after, status = fields.split(" ")
            if status == "M":
                versions = found.setdefault(path, [])
                versions += [blob for blob in (before, after) if blob not in versions]
        return found

    def merges(self, first_commits: int) -> Iterator[tuple[str, str, str, str, str]]:
        """Of each merge commit the paths that both sides changed: path, base, both sides and result, as blobs."""
        commits = self.git("rev-list", "--reverse", "--parents", "HEAD").decode().splitlines()
        for row in commits[:first_commits]:
            commit, *parents = row.split()
            if len(parents) == 2:
                base = self.git("merge-base", *parents).decode().split()[0]
                trees = [self._tree(tree) for tree in (base, *parents, commit)]
                for path, blob in trees[0].items():
                    sides = [tree.get(path) for tree in trees[1:]]
                    if None not in sides and len({blob, sides[0], sides[1]}) == 3:
                        yield path, blob, *sides  # type: ignore[misc]  # none of them is None

    def _tree(self, commit: str) -> dict[str, str]:
        rows = self.git("ls-tree", "-r", "-z", commit).decode("utf-8", "replace").split("\0")
        return {path: fields.split(" ")[2] for fields, _, path in (row.partition("\t") for row in rows if row)}

    def texts(self, blobs: Sequence[str]) -> Mapping[str, str]:
        """Those that are text as merges of lines take it, whole lines of UTF-8."""
        out = self.git("cat-file", "--batch", given="\n".join(dict.fromkeys(blobs)).encode() + b"\n")
        found: dict[str, str] = {}
        at = 0
        while at < len(out):
            end = out.index(b"\n", at)
            blob, _, size = out[at:end].decode().split(" ")
            content = out[end + 1 : end + 1 + int(size)]
            at = end + 2 + int(size)
            if (text := plain(content)) is not None:
                found[blob] = text
        return found


def plain(content: bytes) -> str | None:
    """A text in which only `\\n` ends a line, and ends every line; None for any other content."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    lines = text.count("\n")
    ordinary = text.endswith("\n") and len(text.splitlines()) == lines and "\0" not in text
    return text if ordinary and LEAST_LINES <= lines <= MOST_LINES else None


def posed(path: str, versions: Sequence[str], *, reach: int = 3) -> Iterator[Case]:
    """Each change of a history picked onto versions that stood before it, and reverted from such as stood after it."""
    for at, (old, new) in enumerate(pairwise(versions)):
        for steps in range(1, reach + 1):
            if at - steps >= 0:
                yield Case(path, "pick", old, versions[at - steps], new)
            if at + 1 + steps < len(versions):
                yield Case(path, "revert", new, versions[at + 1 + steps], old)


def from_git(root: Path, first_commits: int) -> list[Case]:
    """All merges that the first commits of a repository pose."""
    repository = Repository(root)
    histories, merges = repository.histories(first_commits), list(repository.merges(first_commits))
    blobs = [blob for versions in histories.values() for blob in versions]
    texts = repository.texts([*blobs, *(blob for _, *sides in merges for blob in sides)])
    cases = [
        Case(path, "merge", *(texts[side] for side in sides))
        for path, *sides in merges
        if all(side in texts for side in sides)
    ]
    for path, versions in sorted(histories.items()):
        cases += posed(path, [texts[blob] for blob in versions if blob in texts])
    return [case for case in cases if len({case.base, case.current, case.proposed}) == 3]


def from_installed() -> dict[str, list[Case]]:
    """What releases pose that are installed beside each other: of Python's library, and of what comes with it."""
    roots = {Path(sys.base_prefix).parent, Path.home() / ".pyenv" / "versions"}
    libraries = sorted({path for root in roots for path in root.glob("*/lib/python3.*") if path.is_dir()}, key=_release)
    folders = {"Python": libraries} | {
        name: [path for library in libraries if (path := library / "site-packages" / name).is_dir()]
        for name in ("pip", "setuptools")
    }
    found = {name: from_releases(releases) for name, releases in folders.items() if len(releases) > 2}
    return {name: cases for name, cases in found.items() if cases}


def _release(library: Path) -> list[int]:
    return [int(part) for part in library.name.removeprefix("python").split(".") if part.isdigit()]


def from_releases(folders: Sequence[Path]) -> list[Case]:
    """All merges that releases of one program pose, given their folders, the oldest first."""
    names = {
        str(path.relative_to(folder))
        for folder in folders
        for path in folder.rglob("*.py")
        if "site-packages" not in path.relative_to(folder).parts
    }
    cases: list[Case] = []
    for name in sorted(names):
        contents = [(folder / name).read_bytes() for folder in folders if (folder / name).is_file()]
        versions = [text for content in contents if (text := plain(content)) is not None]
        cases += posed(name, list(dict.fromkeys(versions)))
    return [case for case in cases if len({case.base, case.current, case.proposed}) == 3]


def sample(cases: Sequence[Case], count: int, seed: str) -> list[Case]:
    """So many of them, always the same ones."""
    return Random(seed).sample(cases, min(count, len(cases)))
