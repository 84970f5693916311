"""What there is on this machine to confine commands with, and how one command is confined by it."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Literal, NamedTuple

from orchestrator.core.errors import escaped
from orchestrator.ports.commands import CommandSpec
from orchestrator.workspace import landlock, namespaces
from orchestrator.workspace.git_config import configs_with_credentials

MOST_READABLE = 10_000
"""Rules of Landlock for one command: each takes some microseconds at its start."""

SHOWN_PATHS = 3
PROBE_S = 5.0

_TERMINALS = "/dev/pts"
"""Whoever reads there reads what a person types."""

_SERVICES = "/run"
"""Where services listen that would start programs for the command, outside: of the session, of containers."""

_KEPT_OF_SERVICES = ("/run/current-system", "/run/systemd/resolve")
"""What programs only read there: NixOS' programs, the name servers."""

_LISTENS = 0x10000
"""Of the flags of a socket in /proc/net/unix."""

_BUBBLEWRAP = (
    *("--die-with-parent", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"),
    *("--unshare-cgroup-try", "--cap-drop", "ALL", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
)
_KINDS = {"empty": "--tmpfs", "private": "--tmpfs", "read": "--ro-bind", "write": "--bind", "hidden": "--ro-bind"}


class Confinement(NamedTuple):
    """What there is, and why not the better one."""

    by: Literal["namespaces", "bubblewrap", "landlock", "nothing"]
    program: str = ""  # bubblewrap's
    lacking: str = ""

    @property
    def shown(self) -> str:
        name = "namespaces and landlock" if self.by == "namespaces" else self.by
        return f"{name}: {self.lacking}" if self.by == "nothing" else "; ".join(filter(None, (name, self.lacking)))


def find_confinement() -> Confinement:
    """Blocking: namespaces are tried once, as they may be off for programs without privileges."""
    lacking = []
    try:
        landlock.abi()
        if not (why := _failure(sys.executable, "-I", "-S", namespaces.__file__)):
            return Confinement("namespaces")
        lacking.append(f"namespaces do not work here ({why})")
    except OSError as error:
        lacking.append(f"no Landlock: {landlock.why_not(error)}")
    program = shutil.which("bwrap")
    if program is None:
        lacking.append("bubblewrap is not installed")
    elif why := _failure(program, *_BUBBLEWRAP, "--unshare-net", "--size", "4096", "--tmpfs", "/tmp", "true"):
        lacking.append(f"bubblewrap does not work here ({why})")
    else:
        return Confinement("bubblewrap", program, "; ".join(lacking))
    by: Literal["landlock", "nothing"] = "nothing" if lacking[0].startswith("no Landlock") else "landlock"
    return Confinement(by, lacking="; ".join(lacking))


def _failure(*argv: str) -> str:
    """Why a program fails; nothing if it does not."""
    try:
        subprocess.run(argv, check=True, capture_output=True, timeout=PROBE_S, cwd="/")
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", None) or str(error).encode()
        return escaped(said.decode(errors="replace").strip())[-200:]
    return ""


class Prepared(NamedTuple):
    """What the launcher is to do; and what that can't keep from the command."""

    argv: Sequence[str]
    temporary_seen: str  # TMPDIR, as the command sees it
    temporary: str | None = None  # a folder that goes with the command
    landlock: tuple[list[str], list[str] | None, bool] | None = None
    mounts: list[tuple[str, str]] | None = None
    not_kept: tuple[str, ...] = ()


class CommandConfinement:
    """Confines the commands of one workspace. `own`: the daemon's own files, closed to every command."""

    def __init__(self, confinement: Confinement, *, workspace: str, own: Sequence[str], prefix: str) -> None:
        self._confinement, self._workspace, self._own, self._prefix = confinement, workspace, tuple(own), prefix

    def prepare(self, spec: CommandSpec) -> Prepared:
        """How one is confined here. Raises FileNotFoundError, OSError."""
        argv = (_program(spec), *spec.argv[1:])
        hidden = _there((*self._own, *spec.hidden))
        if spec.layers is not None and self._confinement.by != "namespaces":
            raise ValueError("only namespaces of our own can have layers")
        if self._confinement.by == "landlock":
            return self._in_landlock(spec, argv, hidden)
        if self._confinement.by == "nothing":
            temporary = self._temporary()
            return Prepared(argv, temporary, temporary)
        return self._mounted(spec, argv, hidden)

    def _temporary(self) -> str:
        return tempfile.mkdtemp(prefix=self._prefix)

    def _mounted(self, spec: CommandSpec, argv: Sequence[str], hidden: Sequence[str]) -> Prepared:
        """With a view of the files of its own. Where a folder is covered, what is in it comes back after it."""
        temporary = tempfile.gettempdir()
        kept = (*_there(_KEPT_OF_SERVICES), *_prefix(argv[0], temporary), self._workspace)
        covered = [*hidden, *_sockets((temporary, _SERVICES, self._workspace))]
        mounts = {
            temporary: "private",
            _SERVICES: "empty",
            **dict.fromkeys(kept, "read"),
            **dict.fromkeys(spec.writable, "write"),
        }
        read_only = [path for path in _there(spec.read_only) if path not in hidden]
        for path in (*read_only, *hidden):  # what something is mounted on can't be renamed; folders above it can
            mounts |= dict.fromkeys(_between(path, spec.writable), "write")
        mounts |= dict.fromkeys(read_only, "read")
        mounts |= {path: "empty" if os.path.isdir(path) else "hidden" for path in covered}
        mounts |= {path: "write" for path in spec.writable if _is_below(path, covered)}
        copies, copied = self._git_configs(read_only)
        mounts |= copied
        order = [(mounts[path], path) for path in sorted(mounts, key=lambda path: path.count("/"))]
        if spec.layers is not None:
            order.insert(0, ("layers", spec.layers))
        not_kept = [path for path in read_only if os.path.islink(path)]
        if self._confinement.by == "namespaces":
            writable = [*spec.writable, temporary, *(f"/dev/{name}" for name in (*namespaces.DEVICES, "shm", "pts"))]
            landlocked = (writable, None, spec.network)
            return Prepared(argv, temporary, copies, landlocked, order, not_kept=_some(not_kept))
        if spec.network:
            not_kept.append("abstract Unix sockets")
        arguments = _bubblewrap(self._confinement.program, order, spec, argv)
        return Prepared(arguments, temporary, copies, not_kept=_some(not_kept))

    def _git_configs(self, read_only: Iterable[str]) -> tuple[str | None, dict[str, str]]:
        """Git needs its configuration, a command none of the passwords in it: copies without, and what comes where."""
        folders = dict.fromkeys([f"{self._workspace}/.git", *(path for path in read_only if path.endswith("/.git"))])
        found = {path: shown for folder in folders for path, shown in configs_with_credentials(folder)}
        if not found:
            return None, {}
        folder = self._temporary()
        for number, shown in enumerate(found.values()):
            Path(folder, str(number)).write_bytes(shown)
        return folder, {path: f"{namespaces.FROM}{folder}/{number}" for number, path in enumerate(found)}

    def _in_landlock(self, spec: CommandSpec, argv: Sequence[str], hidden: Sequence[str]) -> Prepared:
        """Landlock knows no exceptions: what is hidden is closed by opening all that lies beside it.

        So nothing is hidden in a folder that the command writes to: it could not read what it makes there. What is
        read-only in the top of such a folder is kept from it by opening only what lies beside that.
        """
        inside = [path for path in hidden if _is_below(path, spec.writable)]
        if not {*inside}.isdisjoint(self._own):
            raise PermissionError(errno.EACCES, "the daemon's own files lie where the command would write", argv[0])
        closed = [_TERMINALS, *map(str, Path("/dev").glob("tty?*"))]
        readable = _readable_beside([*closed, *(path for path in hidden if path not in inside)], most=MOST_READABLE)
        if readable is None:
            inside = [path for path in hidden if path not in self._own]
            readable = _readable_beside([*closed, *self._own], most=None)
        read_only = _there(spec.read_only)
        top = {path for path in read_only if os.path.dirname(path) in spec.writable}
        writable, closed_tops = list[str](), list[str]()
        for folder in spec.writable:
            if folder in read_only:
                continue
            if any(os.path.dirname(path) == folder for path in top):
                closed_tops.append(f"it makes, renames and removes nothing in {escaped(folder)} itself")
                with os.scandir(folder) as entries:
                    writable += (item.path for item in entries if item.path not in top and not item.is_symlink())
            else:
                writable.append(folder)
        temporary = self._temporary()
        writable += (temporary, *(f"/dev/{name}" for name in (*namespaces.DEVICES, "shm")))
        git = ("passwords in .git",) if any(configs_with_credentials(f"{self._workspace}/.git")) else ()
        open_still = [
            *inside,
            *(f"changes of {escaped(path)}" for path in read_only if path not in top and path not in spec.writable),
        ]
        not_kept = (*_some(open_still), *git, "Unix sockets", "modes and times of your other files")
        network = () if spec.network else ("UDP",)
        return Prepared(
            argv,
            temporary,
            temporary,
            (writable, readable, spec.network),
            not_kept=(*not_kept, *network, *closed_tops),
        )


def _bubblewrap(program: str, mounts: Iterable[tuple[str, str]], spec: CommandSpec, argv: Sequence[str]) -> list[str]:
    arguments = [program, *_BUBBLEWRAP, *(() if spec.network else ("--unshare-net",))]
    empty = []
    for kind, path in mounts:
        size = ("--size", str(spec.file_bytes)) if kind == "private" else ()
        copied = kind.startswith(namespaces.FROM)
        place = os.devnull if kind == "hidden" else kind.removeprefix(namespaces.FROM) if copied else path
        source = () if kind in ("empty", "private") else (place,)
        arguments += (*size, "--ro-bind" if copied else _KINDS[kind], *source, path)
        if kind == "empty":
            empty.append(path)
    for path in empty:
        arguments += ("--remount-ro", path)
    return [*arguments, "--chdir", spec.cwd, "--", *argv]


def _program(spec: CommandSpec) -> str:
    """The path of what is to run. Raises FileNotFoundError, PermissionError."""
    name = spec.argv[0]
    if "/" in name:
        found: str | None = os.path.join(spec.cwd, name)
    else:
        found = shutil.which(name, path=spec.environment.get("PATH", os.defpath))
    if found is None or not os.path.exists(found):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    if not os.access(found, os.X_OK) or os.path.isdir(found):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
    return found


def _prefix(program: str, temporary: str) -> Iterator[str]:
    """Where a program is installed, if that is in the folder for temporaries: `bin` and `lib` are beside each other."""
    folder = PurePath(program).parent
    for path in (folder.parent, folder):
        if path.is_relative_to(temporary) and str(path) != temporary:
            yield str(path)
            return


def _there(paths: Iterable[str]) -> list[str]:
    return [path for path in dict.fromkeys(paths) if os.path.lexists(path)]


def _between(path: str, folders: Iterable[str]) -> Iterator[str]:
    """The folders above a path that lie in one of some others."""
    return (str(above) for above in PurePath(path).parents if _is_below(str(above), folders))


def _sockets(elsewhere: Sequence[str]) -> Iterator[str]:
    """Where programs listen, with no regard to who may connect; not below some folders."""
    try:
        lines = Path("/proc/net/unix").read_text(encoding="utf-8", errors="surrogateescape").splitlines()[1:]
    except OSError:
        return
    for line in lines:
        fields = line.split(maxsplit=7)
        if len(fields) == 8 and fields[7].startswith("/") and int(fields[3], 16) & _LISTENS:
            path = fields[7]
            if not _is_below(path, elsewhere) and os.path.realpath(path) == path and os.path.exists(path):
                yield path


def _some(paths: Sequence[str]) -> tuple[str, ...]:
    more = len(paths) - SHOWN_PATHS
    return (*map(escaped, paths[:SHOWN_PATHS]), *((f"{more} more such paths",) if more > 0 else ()))


def _is_below(path: str, folders: Iterable[str]) -> bool:
    return any(path.startswith(f"{folder.rstrip('/')}/") for folder in folders)


def _readable_beside(hidden: Iterable[str], *, most: int | None) -> list[str] | None:
    """All but what is hidden, as paths that lie beside it or its parents; None where they are too many."""
    closed = {*hidden}
    above = {str(parent) for path in closed for parent in PurePath(path).parents}
    readable: list[str] = []
    for folder in above - closed:
        with suppress(OSError), os.scandir(folder) as entries:
            beside = (entry.path for entry in entries if not entry.is_symlink())
            readable += (path for path in beside if path not in closed and path not in above)
        if most is not None and len(readable) > most:
            return None
    return readable
