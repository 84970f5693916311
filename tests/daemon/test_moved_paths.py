"""Calls that name a file by the path it was moved from: edits follow it, all others say where it is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.clients.python import FileAccess, RemoteError, Replacement
from tests.daemon.daemon_process import RunningDaemon, running
from tests.daemon.external_changes import seen
from tests.daemon.reviewer_servers import OPEN

pytestmark = pytest.mark.anyio

CODE = "def one():\n    return 1\n\n\ndef two():\n    return 2\n"


@pytest.fixture
def daemon(base: Path) -> Iterator[RunningDaemon]:
    """One whose policy lets agents move and delete."""
    (base / "state").mkdir(mode=0o700)
    (base / "state/policy.toml").write_text(OPEN)
    (base / "work").mkdir(mode=0o700)
    (base / "work/f.py").write_text(CODE)
    with running(base) as started:
        yield started


EDITS = [
    pytest.param(Replacement(search="return 2", replace="return 3"), id="search"),
    pytest.param(Replacement(start=6, end=6, expect="    return 2", replace="    return 3"), id="lines"),
    pytest.param(Replacement(symbol="two", content="def two():\n    return 3\n"), id="symbol"),
]


@pytest.mark.parametrize("named", [pytest.param(False, id="no base"), pytest.param(True, id="a base")])
@pytest.mark.parametrize("change", EDITS)
async def test_an_edit_follows_the_file(daemon: RunningDaemon, change: Replacement, named: bool) -> None:
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        read = await bob.read_file("f.py")
        moved = await alice.move_file("f.py", "d/g.py")
        answer = await bob.edit_file("f.py", [change], base=read.version_id if named else None)
        assert (answer.status, [path.path for path in answer.paths]) == ("applied", ["d/g.py"])
        assert answer.warnings == (f"f.py was moved to d/g.py at {moved.version_id}; the change is of that file now",)
    assert (daemon.workspace / "d/g.py").read_text() == CODE.replace("return 2", "return 3")
    assert not (daemon.workspace / "f.py").exists()


async def test_an_edit_follows_a_rename_from_outside(daemon: RunningDaemon) -> None:
    async with daemon.client("bob") as bob, daemon.client() as person:
        await bob.read_file("f.py")
        await seen(person, daemon.workspace)
        (daemon.workspace / "f.py").rename(daemon.workspace / "g.py")
        await seen(person, daemon.workspace)
        answer = await bob.edit_file("f.py", [Replacement(search="return 2", replace="return 3")])
        assert (answer.status, [path.path for path in answer.paths]) == ("applied", ["g.py"])


async def test_an_edit_does_not_follow_into_what_policy_denies(base: Path) -> None:
    rule = '[[rule]]\nname = "no"\nagents = ["bob"]\nactions = ["write"]\npaths = ["d/**"]\nverdict = "deny"\n'
    for folder in ("state", "work"):
        (base / folder).mkdir(mode=0o700)
    (base / "state/policy.toml").write_text(OPEN + rule)
    (base / "work/f.py").write_text(CODE)
    with running(base) as daemon:
        async with daemon.client("alice") as alice, daemon.client("bob") as bob:
            await bob.read_file("f.py")
            await alice.move_file("f.py", "d/g.py")
            with pytest.raises(RemoteError) as refused:
                await bob.edit_file("f.py", [Replacement(search="return 2", replace="return 3")])
            assert refused.value.code == "denied"
        assert (daemon.workspace / "d/g.py").read_text() == CODE


Call = Callable[[FileAccess, str], Awaitable[Any]]
REFUSED = [
    pytest.param(lambda bob, at: bob.write_file("f.py", "x\n", mode="truncate"), id="write"),
    pytest.param(lambda bob, at: bob.write_file("f.py", "x\n", mode="truncate", base=at), id="write with a base"),
    pytest.param(lambda bob, at: bob.write_file("f.py", "x\n", mode="append"), id="append"),
    pytest.param(lambda bob, at: bob.delete_file("f.py"), id="delete"),
    pytest.param(lambda bob, at: bob.delete_file("f.py", base=at, request_id="r"), id="delete, by name"),
    pytest.param(lambda bob, at: bob.move_file("f.py", "h.py"), id="move"),
    pytest.param(lambda bob, at: bob.read_file("f.py"), id="read"),
    pytest.param(lambda bob, at: bob.read_lines("f.py", start=1), id="read lines"),
]


@pytest.mark.parametrize("call", REFUSED)
async def test_a_refusal_names_the_new_path(daemon: RunningDaemon, call: Call) -> None:
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        read = await bob.read_file("f.py")
        moved = await alice.move_file("f.py", "d/g.py")
        with pytest.raises(RemoteError) as refused:
            await call(bob, read.version_id)
        error = refused.value
        assert error.code == "not_found"
        assert f"it was moved to d/g.py at {moved.version_id}" in str(error)
        assert (error.details["moved_to"], error.details["moved_at"]) == ("d/g.py", moved.version_id)
        assert "d/g.py" in error.hint
    assert [path.name for path in daemon.workspace.iterdir()] == ["d"]
    assert (daemon.workspace / "d/g.py").read_text() == CODE


async def test_the_hint_says_at_which_path_a_new_file_can_be_made(daemon: RunningDaemon) -> None:
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        await bob.read_file("f.py")
        await alice.move_file("f.py", "d/g.py")
        with pytest.raises(RemoteError) as refused:
            await bob.write_file(str(daemon.workspace / "f.py"), "x\n", mode="append")
    assert refused.value.hint == (
        "Send the call again with d/g.py in place of the old path, "
        'where write_file with mode "create" makes a new file.'
    )


@pytest.mark.parametrize("mode", ["create", "truncate", "append"])
async def test_a_new_file_at_the_old_path_is_no_mistake(daemon: RunningDaemon, mode: str) -> None:
    """For one who never saw the file that stood there, or who says that it is new."""
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        if mode == "create":
            await bob.read_file("f.py")
        await alice.move_file("f.py", "g.py")
        assert (await bob.write_file("f.py", "new\n", mode=mode)).status == "applied"  # type: ignore[arg-type]
    assert (daemon.workspace / "f.py").read_text() == "new\n"
    assert (daemon.workspace / "g.py").read_text() == CODE


async def test_a_path_that_may_not_be_read_is_not_named(base: Path) -> None:
    rule = '[[rule]]\nname = "no"\nagents = ["bob"]\nactions = ["read"]\npaths = ["d/**"]\nverdict = "deny"\n'
    for folder in ("state", "work"):
        (base / folder).mkdir(mode=0o700)
    (base / "state/policy.toml").write_text(OPEN + rule)
    (base / "work/f.py").write_text(CODE)
    with running(base) as daemon:
        async with daemon.client("alice") as alice, daemon.client("bob") as bob:
            await bob.read_file("f.py")
            await alice.move_file("f.py", "d/g.py")
            for call in (bob.read_file("f.py"), bob.delete_file("f.py")):
                with pytest.raises(RemoteError) as refused:
                    await call
                assert refused.value.code == "not_found"
                assert "d/g.py" not in f"{refused.value} {refused.value.hint} {refused.value.details}"


# --- refusals that promise what they show -----------------------------------------------------


async def test_nearest_places_are_shown_where_there_are_some(daemon: RunningDaemon) -> None:
    async with daemon.client("bob") as bob:
        await bob.read_file("f.py")
        shown = []
        for search in ("zqx ~~ 98765 %%", "def two()::"):
            with pytest.raises(RemoteError) as refused:
                await bob.edit_file("f.py", [Replacement(search=search, replace="x")])
            assert "if any are like them" in refused.value.hint
            shown.append(bool(refused.value.details.get("nearest")))
        assert shown == [False, True]


async def test_lines_that_are_only_added_need_a_line_of_context(daemon: RunningDaemon) -> None:
    async with daemon.client("bob") as bob:
        await bob.read_file("f.py")
        with pytest.raises(RemoteError) as refused:
            await bob.apply_patch("--- a/f.py\n+++ b/f.py\n@@ def two():\n+    # two\n")
        assert refused.value.code == "search_ambiguous"
        assert "a line of context" in refused.value.hint
        assert "heading" not in refused.value.hint


async def test_more_is_not_appended_to_what_was_deleted(daemon: RunningDaemon) -> None:
    (daemon.workspace / "a.txt").write_text("one\ntwo\n")
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        await bob.read_file("a.txt")
        await alice.delete_file("a.txt")
        with pytest.raises(RemoteError) as refused:
            await bob.write_file("a.txt", "three\n", mode="append")
        assert refused.value.code == "not_found"
        assert not (daemon.workspace / "a.txt").exists()
        assert (await bob.write_file("b.txt", "new\n", mode="append")).status == "applied"


@pytest.mark.parametrize("last", [pytest.param(None, id="seen whole"), pytest.param(1, id="a part alone")])
async def test_what_was_seen_whole_is_so_under_its_new_name(daemon: RunningDaemon, last: int | None) -> None:
    async with daemon.client("alice") as alice:
        await alice.read_lines("f.py", start=1, end=last)
        assert (await alice.move_file("f.py", "g.py")).status == "applied"
        if last is None:
            assert (await alice.write_file("g.py", "new\n", mode="truncate")).status == "applied"
        else:
            with pytest.raises(RemoteError) as refused:
                await alice.write_file("g.py", "new\n", mode="truncate")
            assert refused.value.code == "base_required"
