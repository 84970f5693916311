"""`orchestrator conflicts`, as a person uses it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from orchestrator.clients.python import FileAccess, Replacement
from tests.daemon.cli import cli, run
from tests.daemon.daemon_process import RunningDaemon

pytestmark = pytest.mark.anyio

START = "one\ntwo\nthree\nfour\nfive\nsix\n"


async def two_regions(daemon: RunningDaemon) -> str:
    """A conflict with two regions, and a change of each side that clashes with nothing."""
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        await alice.write_file("a.txt", START, mode="create")
        await bob.read_file("a.txt")
        await _edit(alice, two="two, alice", five="five, alice")
        late = await bob.edit_file(
            "a.txt",
            [Replacement(search="two", replace="two, bob"), Replacement(search="five", replace="five, bob")],
        )
        assert late.status == "conflict"
        return late.conflict or ""


async def _edit(files: FileAccess, **changes: str) -> None:
    for search, replace in changes.items():
        assert (await files.edit_file("a.txt", [Replacement(search=search, replace=replace)])).status == "applied"


def editor(base: Path, script: str) -> str:
    """A program that edits as a person would; the file is its first argument."""
    place = base / "editor.py"
    place.write_text(f"import pathlib, sys\nfile = pathlib.Path(sys.argv[1])\ntext = file.read_text()\n{script}\n")
    return f"{sys.executable} {place}"


TAKE_BOTH = """\
kept = [line for line in text.splitlines() if not line.startswith(("<<<<<<<", "|||||||", "=======", ">>>>>>>"))]
file.write_text("\\n".join(kept) + "\\n")"""
BOTH = "one\ntwo, alice\ntwo\ntwo, bob\nthree\nfour\nfive, alice\nfive\nfive, bob\nsix\n"


@pytest.mark.parametrize(
    ("args", "script", "exit_code", "content"),
    [
        pytest.param(("--choose", "proposed"), "", 0, "two, bob|five, bob", id="proposed"),
        pytest.param(("--choose", "current", "--reason", "not now"), "", 0, "", id="current"),
        pytest.param(("--accept", "@1"), "", 1, "", id="no proposal to accept"),
        pytest.param(("--edit", "--choose", "current"), "", 2, "", id="two ways"),
        pytest.param(("--edit",), TAKE_BOTH, 0, BOTH, id="edit"),
        pytest.param(("--edit",), "", 1, "", id="edit, unchanged"),
        pytest.param(("--edit",), "file.write_text('')", 1, "", id="edit, emptied"),
        pytest.param(("--edit",), "file.write_text(text + 'more\\n')", 1, "", id="edit, markers left"),
    ],
)
async def test_resolve(
    daemon: RunningDaemon, base: Path, args: tuple[str, ...], script: str, exit_code: int, content: str
) -> None:
    code = await daemon.make_approver()
    number = await two_regions(daemon)
    ended, said = run(daemon, "resolve", number, *args, editor=editor(base, script), code=code)
    assert ended == exit_code, said
    held = (daemon.workspace / "a.txt").read_text()
    if "|" in content:
        two, five = content.split("|")
        assert held == START.replace("two", two).replace("five", five)
    else:
        assert held == (content or START.replace("two", "two, alice").replace("five", "five, alice"))
    async with daemon.client("bob") as bob:
        open_ones = (await bob.list_conflicts()).conflicts
        assert len(open_ones) == (exit_code != 0)
        if "--reason" in args and exit_code == 0:
            assert "not now" in (await bob.await_change(number)).message


async def test_the_editor_gets_neither_the_approver_code_nor_the_token(daemon: RunningDaemon, base: Path) -> None:
    code = await daemon.make_approver()
    number = await two_regions(daemon)
    found = base / "environment"
    script = f"import os\npathlib.Path({str(found)!r}).write_text(repr(dict(os.environ)))\n{TAKE_BOTH}"
    env = {"VISUAL": editor(base, script), "ORCHESTRATOR_APPROVER": code, "ORCHESTRATOR_TOKEN": ""}
    ended, said = cli(daemon, "conflicts", "resolve", number, "--edit", **env)
    assert ended == 0, said  # the code was there to resolve with
    assert "VISUAL" in found.read_text()
    assert "ORCHESTRATOR_APPROVER" not in found.read_text()
    assert "ORCHESTRATOR_TOKEN" not in found.read_text()


async def test_what_others_write_during_an_edit_is_kept(daemon: RunningDaemon, base: Path) -> None:
    code = await daemon.make_approver()
    number = await two_regions(daemon)
    async with daemon.client() as person, daemon.client("alice") as alice:
        (info,) = (await person.list_conflicts()).conflicts
        assert info.marked is not None
        await alice.edit_file("a.txt", [Replacement(search="six", replace="six\nseven")])
        resolved = await person.resolve_conflict(
            number, "content", content=BOTH, on=info.current_version, approver=code
        )
        assert resolved.status == "applied"
    assert (daemon.workspace / "a.txt").read_text() == BOTH + "seven\n"


async def test_list_and_show_report_how_far_it_is(daemon: RunningDaemon) -> None:
    number = await two_regions(daemon)
    ended, listed = run(daemon, "list")
    assert ended == 0
    assert number in listed
    assert "found" in listed
    assert "a person" in listed
    ended, shown = run(daemon, "show", number)
    assert ended == 0
    assert ["regions:", "2"] in [line.split() for line in shown.splitlines()]
    assert "alice" in shown
    ended, as_json = run(daemon, "show", number, "--json")
    info = json.loads(as_json)
    assert (info["state"], [party["agent"] for party in info["holders"]]) == ("found", ["alice"])
