"""Where things are: the workspace, its id, its state directory, and the file that names them and the socket.

The stdio transport imports this before it can answer its client, so it uses the standard
library alone, and only the cheap half of it.
"""

# Importing pathlib would take 6 ms of the stdio transport's 45.
# ruff: noqa: PTH103, PTH105, PTH109, PTH110, PTH111, PTH112, PTH117, PTH120, PTH123

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator

from orchestrator.api.sockets import answers, runtime_directory
from orchestrator.core.errors import OperatorError, escaped

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing would take 2 ms of each hook
    from typing import Any, Literal

    State = Literal["running", "stopped", "ended"]
    """`stopped`: by `orchestrator stop`. `ended`: by a signal. A daemon that was killed says `running`."""

POLICY_FILE = "policy.toml"
"""In the state directory."""

MARKERS_FILE = "root_markers"
"""Beside the user's policy: names that mark a workspace, in place of those below."""

SYSTEM_POLICY = "/etc/orchestrator/policy.toml"
"""The administrator's."""

TOOLS_MARK = "tools-by-policy"
"""In the state directory while the policy has not everybody offered the same tools: the daemon knows who is which."""

VCS_MARKERS = (".git", ".hg", ".jj")
MARKERS = (
    "pyproject.toml setup.py package.json deno.json go.mod go.work Cargo.toml CMakeLists.txt meson.build Makefile "
    "pom.xml build.gradle build.gradle.kts build.sbt Gemfile composer.json mix.exs Package.swift flake.nix MODULE.bazel"
).split()


class WorkspaceUnknown(OperatorError, code="workspace_unknown", hint="Say which folder: --workspace DIR."):
    """No folder can be taken for the workspace."""


class Location:
    """What `<id>.location` says: where the workspace's daemon keeps its state and listens, or did last."""

    def __init__(self, workspace: str, state_dir: str, socket: str, pid: int, state: State) -> None:
        self.workspace, self.state_dir, self.socket, self.pid, self.state = workspace, state_dir, socket, pid, state

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return dict(vars(self))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Location) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(tuple(vars(self).values()))


# --- the workspace ---------------------------------------------------------------------


def home_directory() -> str:
    """The caller's home: `$HOME`, else the one of the password database."""
    home = os.environ.get("HOME", "")
    if os.path.isabs(home):
        return home
    import pwd

    return pwd.getpwuid(os.getuid()).pw_dir


def find_workspace(given: str | None = None, *, cwd: str | None = None) -> str:
    """The real path of the workspace: `given`, else the nearest folder above `cwd` that is marked as one.

    First folders that had a daemon before or have a VCS marker, then those with another marker, then `cwd`
    itself; the user's own markers, where there are any, take the place of both kinds. `/` and the home folder are
    taken only when given. Raises WorkspaceUnknown.
    """
    if given is not None:
        root = os.path.realpath(os.path.expanduser(given))
        if not os.path.isdir(root):
            raise WorkspaceUnknown(f"{escaped(given)} is not a folder")
        return _readable_name(root)
    try:
        start = os.path.realpath(cwd or os.getcwd())
    except FileNotFoundError as error:
        raise WorkspaceUnknown("the current folder was removed") from error
    never = {"/", os.path.realpath(home_directory())}
    candidates = [folder for folder in _upwards(start) if folder not in never]
    own = _own_markers()
    for folder in candidates:
        if _has_marker(folder, own or VCS_MARKERS) or os.path.exists(location_file(workspace_id(folder))):
            return _readable_name(folder)
    for folder in () if own else candidates:
        if _has_marker(folder, MARKERS):
            return _readable_name(folder)
    if start in never:
        raise WorkspaceUnknown(f"{escaped(start)} is not taken for a workspace unless you say so")
    return _readable_name(start)


def workspace_id(root: str) -> str:
    """The first 16 hex digits of the SHA-256 of the workspace's real path."""
    return sha256(os.fsencode(os.path.realpath(root)))[:16]


def sha256(data: bytes) -> str:
    """In hexadecimal digits; as the standard library's own `random` does it, since hashlib loads OpenSSL for 2 ms."""
    for module in ("_sha2", "_sha256", "hashlib"):
        try:
            digest: str = __import__(module).sha256(data).hexdigest()
        except ImportError:
            continue
        return digest
    raise AssertionError("hashlib is there")


def http_port(identity: str) -> int:
    """Where a workspace is served over HTTP unless a port is named: the same each time, below those given at random."""
    return 20_000 + int(identity, 16) % 12_000


def _upwards(folder: str) -> Iterator[str]:
    while True:
        yield folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return
        folder = parent


def _own_markers() -> tuple[str, ...]:
    """The names in the user's file of markers, one a line; none where there is no file. Raises WorkspaceUnknown."""
    path = f"{_user_configuration()}/{MARKERS_FILE}"
    try:
        with open(path, encoding="utf-8") as file:
            lines = [line.strip() for line in file]
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError) as error:
        raise WorkspaceUnknown(f"{path} can't be read: {error}", hint="Mend that file, or remove it.") from error
    names = tuple(line for line in lines if line and not line.startswith("#"))
    for name in names:
        if "/" in name or "\0" in name or name in (".", ".."):
            raise WorkspaceUnknown(
                f"{path}: {escaped(name)!r} is no name of a file or folder", hint="Write one name on each line."
            )
    return names


def _has_marker(folder: str, markers: Iterable[str]) -> bool:
    return any(os.path.lexists(f"{folder}/{marker}") for marker in markers)


def _readable_name(root: str) -> str:
    try:
        root.encode()
    except UnicodeEncodeError as error:
        raise WorkspaceUnknown(f"the path {escaped(root)} is not UTF-8", hint="Rename the folder.") from error
    return root


# --- its state -------------------------------------------------------------------------


def location_file(identity: str) -> str:
    """The file that names state directory and socket, at a place no environment variable but HOME moves."""
    return f"{_home_state()}/{identity}.location"


def mark_file(identity: str) -> str:
    """The file that remembers how far the workspace's journal came, beside its location."""
    return f"{_home_state()}/{identity}.mark"


def start_lock(identity: str) -> str:
    """The file that whoever starts a daemon locks."""
    return f"{_home_state()}/{identity}.lock"


def state_directory(identity: str, given: str | None = None) -> str:
    """Where the journal lies: `given`, else where it lay last, else under XDG_STATE_HOME or the home folder.

    The name only; making it 0700 is the daemon's work.
    """
    if given is not None:
        return os.path.realpath(os.path.expanduser(given))
    known = read_location(identity)
    if known is not None:
        return known.state_dir
    return f"{_xdg_state() or _home_state()}/{identity}"


def user_policy() -> str:
    """The user's own policy file, for all their workspaces."""
    return f"{_user_configuration()}/{POLICY_FILE}"


def _user_configuration() -> str:
    configured = os.environ.get("XDG_CONFIG_HOME", "")
    folder = configured if os.path.isabs(configured) else f"{home_directory()}/.config"
    return f"{folder}/orchestrator"


def policy_files(
    state_dir: str, system: str = SYSTEM_POLICY
) -> tuple[tuple[Literal["system", "user", "state"], str], ...]:
    """Where an operator's policy files may lie; the later ones are laid over the earlier ones."""
    return (("system", system), ("user", user_policy()), ("state", f"{state_dir}/{POLICY_FILE}"))


def read_location(identity: str) -> Location | None:
    """What the location file says; None where there is none, or none that can be used."""
    try:
        with open(location_file(identity), encoding="utf-8") as file:
            return _location(json.load(file))
    except (OSError, ValueError):
        return None


def write_location(location: Location) -> None:
    """Put the location file in place, whole and synced, 0600. Raises OSError."""
    path = location_file(workspace_id(location.workspace))
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    draft = f"{path}.{os.getpid()}"
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "w") as file:
        json.dump(location.plain(), file)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)


def own_places(state_dir: str, socket: str | None = None) -> tuple[str, ...]:
    """The real paths of all that daemons keep on this machine: the state root, state directories and sockets.

    Some of them may not exist yet.
    """
    places = {state_dir, _home_state(), _xdg_state() or _home_state(), runtime_directory(), socket or state_dir}
    for found in _locations():
        if os.path.exists(f"{found.state_dir}/journal.db"):
            places |= {found.state_dir, found.socket}
    return tuple(sorted({os.path.realpath(place) for place in places}))


def refuse_own(root: str, places: tuple[str, ...]) -> None:
    """Raises WorkspaceUnknown for a workspace that is, or lies in, what daemons keep."""
    for place in places:
        if root == place or _around(place, root):
            raise WorkspaceUnknown(f"{escaped(root)} lies in {escaped(place)}, where daemons keep their own files")


def make_state_root() -> None:
    """Make the directory of location files if that is possible, so that its inode is protected from agents."""
    try:
        os.makedirs(_home_state(), mode=0o700, exist_ok=True)
    except OSError:
        return


def _locations() -> Iterator[Location]:
    """What the location files say, by workspace id."""
    try:
        names = os.listdir(_home_state())
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in sorted(names):
        found = read_location(name.removesuffix(".location")) if name.endswith(".location") else None
        if found is not None:
            yield found


def nested(root: str) -> Location | None:
    """A daemon that answers for a workspace inside or around `root`, if there is one."""
    root = os.path.realpath(root)
    for found in _locations():
        if found.state != "running" or found.workspace == root:
            continue
        if (_around(found.workspace, root) or _around(root, found.workspace)) and answers(found.socket):
            return found
    return None


def _around(outer: str, inner: str) -> bool:
    return inner.startswith(outer.rstrip("/") + "/")


def _home_state() -> str:
    return f"{home_directory().rstrip('/')}/.local/state/orchestrator"


def _xdg_state() -> str | None:
    """Where state directories lie if the environment says so."""
    xdg = os.environ.get("XDG_STATE_HOME", "")
    return f"{xdg.rstrip('/')}/orchestrator" if os.path.isabs(xdg) else None


def _location(data: object) -> Location | None:
    match data:
        case {
            "workspace": str(workspace),
            "state_dir": str(state_dir),
            "socket": str(path),
            "pid": int(pid),
            "state": ("running" | "stopped" | "ended") as state,
        }:
            return Location(workspace, state_dir, path, pid, state)
        case _:
            return None
