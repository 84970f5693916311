"""`make demo`: the story goes as it is told, on a small repository and on this one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from demo import checks
from demo.stage import stage
from demo.telling import Teller

ROOT = Path(__file__).parent.parent.parent
TIMEOUT_S = 120


def played(source: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "demo", str(source)],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )


def reported_all(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stdout + done.stderr
    for said in (
        "fitted by: shifted",
        "→ conflict",
        "orchestrator conflicts resolve @",
        "→ waiting",
        "orchestrator approvals approve @",
        "alice: revert @",
        "orchestrator blame ",
        "orchestrator rollback --agent bob",
        "sent again by the transport",
        "ok  journal verify",
        "ok  journal rebuild --check",
        "ok  journal compare",
        "ok  nothing else changed",
    ):
        assert said in done.stdout, f"{said!r} is missing:\n{done.stdout}"


def test_on_this_project() -> None:
    reported_all(played(ROOT))


@pytest.mark.soak
def test_on_a_small_repository_with_a_makefile(base: Path) -> None:
    repository = base / "small"
    repository.mkdir()
    (repository / "Makefile").write_text("all:\n\ttrue\n")
    (repository / "poem.txt").write_text("".join(f"verse {n} of many\r\n" for n in range(10, 80)), newline="")
    (repository / "logo.bin").write_bytes(bytes(range(256)))
    (repository / "kept out.txt").write_text("not tracked\n" * 60)
    for command in (["init", "-q"], ["add", "Makefile", "poem.txt", "logo.bin"]):
        subprocess.run(["git", "-C", str(repository), *command], check=True)
    before = {path.name: path.read_bytes() for path in repository.iterdir() if path.is_file()}
    done = played(repository)
    reported_all(done)
    assert "read poem.txt" in done.stdout
    assert "kept out" not in done.stdout
    assert {path.name: path.read_bytes() for path in repository.iterdir() if path.is_file()} == before


@pytest.mark.soak
def test_on_a_folder_with_nothing_suitable(base: Path) -> None:
    folder = base / "bare"
    folder.mkdir()
    (folder / "short.txt").write_text("one line\n")
    done = played(folder)
    reported_all(done)
    assert "read orchestrator-demo.md" in done.stdout


def test_a_folder_that_is_not_there(base: Path) -> None:
    done = played(base / "absent")
    assert done.returncode == 2
    assert "is not a folder" in done.stderr


def test_a_difference_is_reported(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = base / "small"
    folder.mkdir()
    (folder / "a.txt").write_text("as it was\n")
    with stage(folder) as made:
        made.up("--no-watch")  # else the journal would soon know of it
        before = checks.snapshot(made.workspace)
        made.person("journal", "compare")
        (made.workspace / "a.txt").write_text("not by the daemon\n")
        assert not checks.agree(made, Teller(), before, frozenset())
    out = capsys.readouterr().out
    assert "NOT OK journal compare: [{'path': 'a.txt'" in out
    assert "NOT OK nothing else changed: ['a.txt']" in out
