"""`--out`: never into the workspace or the state directory, and never over a file that is there."""

from __future__ import annotations

import pytest

from tests.daemon.cli import command
from tests.daemon.daemon_process import RunningDaemon

WRITERS = (("journal", "checkpoint"), ("journal", "export"))


@pytest.mark.parametrize("words", WRITERS, ids=" ".join)
@pytest.mark.parametrize(
    ("cwd", "out", "applies"),
    [
        ("work", "{base}/work/out", "the workspace"),
        ("work", "out", "the workspace"),
        ("outside", "../work/sub/../out", "the workspace"),
        ("outside", "linked/out", "the workspace"),
        ("outside", "dangling", "the workspace"),
        ("outside", "{base}/state/out", "the state directory"),
        ("state", "out", "the state directory"),
        ("state", "journal.db", "the state directory"),
    ],
)
def test_not_into_either(daemon: RunningDaemon, words: tuple[str, ...], cwd: str, out: str, applies: str) -> None:
    outside = daemon.base / "outside"
    outside.mkdir()
    (daemon.workspace / "sub").mkdir()
    (outside / "linked").symlink_to(daemon.workspace)
    (outside / "dangling").symlink_to(daemon.workspace / "out")
    code, reported = command(daemon, *words, "--out", out.format(base=daemon.base), cwd=daemon.base / cwd)
    assert (code, reported["code"]) == (1, "output_path_refused")
    assert applies in reported["message"]
    assert "outside of the workspace" in reported["hint"]
    assert [item.name for item in daemon.workspace.iterdir()] == ["sub"]
    assert not (daemon.state_dir / "out").exists()
    assert (daemon.state_dir / "journal.db").read_bytes().startswith(b"SQLite format 3")


@pytest.mark.parametrize("words", WRITERS, ids=" ".join)
def test_beside_them(daemon: RunningDaemon, words: tuple[str, ...]) -> None:
    assert command(daemon, *words, "--out", "out", cwd=daemon.base)[0] == 0
    assert (daemon.base / "out").stat().st_size > 0


@pytest.mark.parametrize("words", WRITERS, ids=" ".join)
def test_never_over_a_file(daemon: RunningDaemon, words: tuple[str, ...]) -> None:
    (daemon.base / "out").write_text("older")
    assert command(daemon, *words, "--out", "out", cwd=daemon.base)[0] == 2
    assert (daemon.base / "out").read_text() == "older"


def test_an_export_is_its_owners(daemon: RunningDaemon) -> None:
    assert command(daemon, "journal", "export", "--out", "out", cwd=daemon.base)[0] == 0
    assert (daemon.base / "out").stat().st_mode & 0o777 == 0o600


def test_a_refused_export_leaves_nothing(daemon: RunningDaemon) -> None:
    assert command(daemon, "journal", "export", "--since", "yesterday", "--out", "out", cwd=daemon.base)[0] == 1
    assert not (daemon.base / "out").exists()


@pytest.mark.parametrize("into", ["state/out", "linked/out", "work/out"])
def test_no_tree_is_rebuilt_into_either(daemon: RunningDaemon, into: str) -> None:
    (daemon.base / "linked").symlink_to(daemon.state_dir)
    more = ("--to", "current", "--into", str(daemon.base / into))
    code, reported = command(daemon, "replay", *more, cwd=daemon.base)
    assert (code, reported["code"]) == (1, "output_path_refused"), reported
    assert not (daemon.base / into).exists()
