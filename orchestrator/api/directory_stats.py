"""What a directory holds, in numbers."""

from __future__ import annotations

from msgspec import field

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.api.operation import PATHS, Operation
from orchestrator.core import errors as e


class DirectoryStats(p.Params, frozen=True):
    path: p.DirectoryText = "."
    globs: p.Globs = ()


class SuffixCount(r.Result, frozen=True, kw_only=True):
    """The files whose names end alike; those without a suffix have the empty one."""

    suffix: str  # in lower case, with its dot
    files: int
    size: int


class SizedFile(r.Result, frozen=True, kw_only=True):
    """A file; its size is left out where its content may not be shown."""

    path: str
    size: int | None = None
    last_modified: int = field(name="lastModified")


class DirectoryNumbers(r.Result, frozen=True, kw_only=True):
    """Of what list_files would show of the directory and all below it, dot files included."""

    path: str
    files: int
    directories: int
    others: int = 0  # links, pipes, and names that no path may hold
    size: int  # bytes of all files whose content may be shown
    unsized: int = 0  # the files that are not in `size`
    by_suffix: tuple[SuffixCount, ...] = ()  # those that hold most bytes first
    more_suffixes: int = 0
    largest: tuple[SizedFile, ...] = ()
    newest: tuple[SizedFile, ...] = ()
    unlisted: int = 0  # so many more names take a person's yes


DIRECTORY_STATS = Operation(
    "directory_stats",
    DirectoryStats,
    DirectoryNumbers,
    "How much is below a directory: files, bytes, by suffix, the largest and the newest; without ignored files.",
    opens_session=False,
    weight="tree",
    raises=(*PATHS, e.FileNotFound, e.Denied),
    command="stats files",
)
