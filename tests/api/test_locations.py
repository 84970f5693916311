"""Where the workspace, its state and its socket are."""

from __future__ import annotations

import json
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from orchestrator.api import framing, locations, sockets
from orchestrator.api.locations import Location


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="o-", dir="/tmp")).resolve()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    yield folder
    shutil.rmtree(folder)


def tree(home: Path, *names: str) -> None:
    for name in names:
        (home / name).mkdir(parents=True, exist_ok=True) if name.endswith("/") else (home / name).touch()


def located(root: Path, *, path: str = "/nowhere/x.sock", state: str = "running") -> Location:
    location = Location(str(root), "/state", path, 1, "running" if state == "running" else "stopped")
    locations.write_location(location)
    return location


@pytest.mark.parametrize(
    ("names", "cwd", "found"),
    [
        pytest.param(["a/b/", "a/.git/"], "a/b", "a", id="git above"),
        pytest.param(["a/b/.hg/", "a/.git/"], "a/b", "a/b", id="the nearer of two"),
        pytest.param(["a/b/", "a/.git"], "a/b", "a", id="a worktree's .git file"),
        pytest.param(["a/b/", "a/.jj/", "a/b/package.json"], "a/b", "a", id="VCS before a nearer other marker"),
        pytest.param(["a/b/c/", "a/b/pyproject.toml", "a/go.mod"], "a/b/c", "a/b", id="nearest other marker"),
        pytest.param(["a/b/"], "a/b", "a/b", id="no marker: the folder itself"),
        pytest.param(["a/", ".git/"], "a", "a", id="the home folder's own .git doesn't count"),
        pytest.param(["a/", "Makefile"], "a", "a", id="nor its other markers"),
    ],
)
def test_find_workspace(home: Path, names: list[str], cwd: str, found: str) -> None:
    tree(home, *names)
    assert locations.find_workspace(cwd=str(home / cwd)) == str(home / found)


@pytest.mark.parametrize(
    ("text", "names", "found"),
    [
        pytest.param("WORKSPACE\n", ["a/WORKSPACE", "a/b/.git/"], "a", id="in place of git's"),
        pytest.param("# ours\n\n  pyproject.toml \n.git\n", ["a/.git/", "a/b/pyproject.toml"], "a/b", id="of one rank"),
        pytest.param("WORKSPACE\n", ["a/Makefile"], "a/b/c", id="in place of the others, too"),
        pytest.param("# none\n", ["a/.git/"], "a", id="none are named"),
        pytest.param("WORKSPACE\n", ["WORKSPACE"], "a/b/c", id="the home folder's does not count"),
    ],
)
def test_the_users_own_markers(home: Path, text: str, names: list[str], found: str) -> None:
    tree(home, "a/b/c/", ".config/orchestrator/", *names)
    (home / ".config/orchestrator/root_markers").write_text(text)
    assert locations.find_workspace(cwd=str(home / "a/b/c")) == str(home / found)


def test_the_markers_are_documented() -> None:
    told = Path("docs/connecting.md").read_text(encoding="utf-8")
    assert [name for name in (*locations.VCS_MARKERS, *locations.MARKERS) if f"`{name}`" not in told] == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(b"src/.git\n", "no name", id="a path"),
        pytest.param(b"..\n", "no name", id="the folder above"),
        pytest.param(b"\xff\n", "can't be read", id="no text"),
    ],
)
def test_markers_that_are_none(home: Path, text: bytes, message: str) -> None:
    tree(home, "a/", ".config/orchestrator/")
    (home / ".config/orchestrator/root_markers").write_bytes(text)
    with pytest.raises(locations.WorkspaceUnknown, match=message):
        locations.find_workspace(cwd=str(home / "a"))
    assert locations.find_workspace(str(home / "a")) == str(home / "a"), "a folder that is given needs none"


@pytest.mark.parametrize(
    ("served", "found"),
    [
        pytest.param("a/b", "a/b", id="nearer than the VCS"),
        pytest.param("a", "a/b/c", id="farther than the VCS"),
    ],
)
def test_a_folder_that_had_a_daemon_is_a_marker(home: Path, served: str, found: str) -> None:
    tree(home, "a/b/c/d/", "a/b/c/.git/" if served == "a" else "a/.git/")
    located(home / served, state="stopped")
    assert locations.find_workspace(cwd=str(home / "a/b/c/d")) == str(home / found)


def test_home_and_root_only_when_given(home: Path) -> None:
    tree(home, ".git/")
    for never in ("/", str(home)):
        with pytest.raises(locations.WorkspaceUnknown) as caught:
            locations.find_workspace(cwd=never)
        assert "--workspace" in caught.value.hint
    assert locations.find_workspace(str(home)) == str(home)
    assert locations.find_workspace("/") == "/"


def test_a_given_workspace_is_a_folder_and_real(home: Path) -> None:
    tree(home, "a/", "f")
    (home / "link").symlink_to(home / "a")
    assert locations.find_workspace(str(home / "link")) == str(home / "a")
    assert locations.find_workspace("~/a") == str(home / "a")
    for wrong in ("f", "absent"):
        with pytest.raises(locations.WorkspaceUnknown):
            locations.find_workspace(str(home / wrong))


def test_a_name_that_is_no_text_is_refused(home: Path) -> None:
    os.mkdir(os.fsencode(home) + b"/\xff")
    with pytest.raises(locations.WorkspaceUnknown, match="UTF-8"):
        locations.find_workspace(os.fsdecode(os.fsencode(home) + b"/\xff"))


def test_workspace_id() -> None:
    assert locations.workspace_id("/") == "8a5edab282632443"


@pytest.mark.parametrize(
    ("xdg", "given", "expected"),
    [
        pytest.param(None, None, "{home}/.local/state/orchestrator/{id}", id="home"),
        pytest.param("/xdg", None, "/xdg/orchestrator/{id}", id="XDG"),
        pytest.param("xdg", None, "{home}/.local/state/orchestrator/{id}", id="a relative XDG doesn't count"),
        pytest.param("/xdg", "/given", "/given", id="given"),
    ],
)
def test_state_directory(
    home: Path, monkeypatch: pytest.MonkeyPatch, xdg: str | None, given: str | None, expected: str
) -> None:
    if xdg is not None:
        monkeypatch.setenv("XDG_STATE_HOME", xdg)
    assert locations.state_directory("1d", given) == expected.format(home=home, id="1d")


def test_state_stays_where_it_was(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    located(home / "a")
    monkeypatch.setenv("XDG_STATE_HOME", "/elsewhere")
    assert locations.state_directory(locations.workspace_id(str(home / "a"))) == "/state"


def test_location_round_trip(home: Path) -> None:
    location = located(home / "a b")
    identity = locations.workspace_id(str(home / "a b"))
    path = home / ".local/state/orchestrator" / f"{identity}.location"
    assert locations.read_location(identity) == location
    assert json.loads(path.read_text()) == location.plain()
    assert path.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"workspace": 1}', '{"state": "gone"}'])
def test_a_broken_location_is_none(home: Path, text: str) -> None:
    located(home / "a")
    identity = locations.workspace_id(str(home / "a"))
    Path(locations.location_file(identity)).write_text(text)
    assert locations.read_location(identity) is None


def test_socket_path(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = home / "run"
    run.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(run))
    assert sockets.socket_path("1d") == f"{run}/orchestrator/1d.sock"
    assert (run / "orchestrator").stat().st_mode & 0o777 == 0o700
    assert sockets.socket_path("1d", str(run / "own" / "s")) == f"{run}/own/s"


@pytest.mark.parametrize("name", ["absent", "relative", "far" * 30])
def test_runtime_directory_where_xdg_cannot_serve(home: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    if name.startswith("far"):
        (home / name).mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", name if name == "relative" else str(home / name))
    monkeypatch.setenv("TMPDIR", str(home))
    assert sockets.runtime_directory() == f"/tmp/orchestrator-{os.getuid()}"


def test_a_long_socket_path_is_refused(home: Path) -> None:
    with pytest.raises(sockets.SocketPathTooLong, match="bytes"):
        sockets.socket_path("1d", str(home / ("x" * 100)))


@pytest.mark.parametrize("mode", [0o750, 0o701, 0o777])
def test_a_directory_that_others_can_enter_is_refused(home: Path, mode: int) -> None:
    (home / "run").mkdir()
    (home / "run").chmod(mode)
    with pytest.raises(sockets.SocketDirectoryUnsafe, match=f"mode 0{mode:o}"):
        sockets.socket_path("1d", str(home / "run" / "s"))


def test_a_link_or_another_users_directory_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "run").mkdir(mode=0o700)
    (home / "link").symlink_to(home / "run")
    with pytest.raises(sockets.SocketDirectoryUnsafe, match="not a directory"):
        sockets.check_socket_directory(str(home / "link"))
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    with pytest.raises(sockets.SocketDirectoryUnsafe, match="belongs to uid"):
        sockets.connect(str(home / "run" / "s"))


@pytest.fixture
def listening(home: Path) -> Iterator[str]:
    (home / "run").mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(home / "run" / "s"))
        listener.listen(0)
        yield str(home / "run" / "s")


def test_answers(home: Path, listening: str) -> None:
    assert sockets.answers(listening)
    assert not sockets.answers(f"{listening}.not")
    assert not sockets.answers("/nowhere/s")
    (home / "run" / "file").touch()
    assert not sockets.answers(str(home / "run" / "file"))


@pytest.mark.parametrize(
    ("served", "root", "conflict"),
    [
        pytest.param("a", "a/b", True, id="around"),
        pytest.param("a/b/c", "a", True, id="inside"),
        pytest.param("a", "a", False, id="the same"),
        pytest.param("a", "ab", False, id="a name that begins alike"),
        pytest.param("a", "c", False, id="beside"),
    ],
)
def test_nested(home: Path, listening: str, served: str, root: str, conflict: bool) -> None:
    location = located(home / served, path=listening)
    assert locations.nested(str(home / root)) == (location if conflict else None)


def test_only_what_answers_is_nested(home: Path, listening: str) -> None:
    assert locations.nested(str(home / "a")) is None
    located(home / "a", path=f"{listening}.dead")
    located(home / "b", path=listening, state="stopped")
    assert locations.nested(str(home / "a/x")) is None
    assert locations.nested(str(home / "b/x")) is None


def test_preamble_is_what_the_daemon_reads() -> None:
    line = sockets.preamble("mcp", agent="a", token="t", session="s", client="c", toolset="full", structured=True)
    assert line.endswith(b"}\n")
    said = msgspec.json.decode(line, type=framing.Preamble)
    assert said == framing.Preamble(
        orchestrator=1,
        transport="mcp",
        agent="a",
        token="t",
        session="s",
        client="c",
        toolset="full",
        structured=True,
    )
    least = msgspec.json.decode(sockets.preamble("rpc", person=True), type=framing.Preamble)
    assert least == framing.Preamble(orchestrator=1, transport="rpc", person=True)
