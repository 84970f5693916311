"""An old version is shown only to who may read every name that the file had until then."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from orchestrator.clients.python import RemoteError, Replacement
from tests.daemon.daemon_process import RunningDaemon, running
from tests.daemon.external_changes import seen

pytestmark = pytest.mark.anyio

SECRET = "KEY=ZZSECRET\n"


async def test_a_secret_that_stood_under_a_plain_name_for_a_while(daemon: RunningDaemon) -> None:
    work = daemon.workspace
    async with daemon.client("spy") as spy, daemon.client() as person:
        (work / ".env").write_text(SECRET)
        await seen(person, work)
        start = (await person.file_info(".env")).version_id or ""
        (work / ".env").rename(work / "plain.txt")
        await seen(person, work)
        at = (await person.file_history("plain.txt")).versions[0].version_id
        (work / "plain.txt").rename(work / ".env")
        await seen(person, work)
        (work / "plain.txt").write_text("nothing here\n")
        await seen(person, work)
        now = (await spy.read_file("plain.txt")).version_id
        calls: dict[str, Callable[[], Awaitable[object]]] = {
            "read_file": lambda: spy.read_file("plain.txt", at=at),
            "read_lines": lambda: spy.read_lines("plain.txt", start=1, end=2, at=at),
            "blame": lambda: spy.blame("plain.txt", at=at),
            "from": lambda: spy.get_diff("plain.txt", from_=at),
            "to": lambda: spy.get_diff("plain.txt", from_="@0", to=at),
            "base": lambda: spy.edit_file("plain.txt", [Replacement(search="KEY", replace="K")], base=at),
        }
        for name, call in calls.items():
            with pytest.raises(RemoteError) as met:
                await call()
            assert met.value.code == "denied", name
            assert ".env" not in str(met.value), "nor does the refusal name it"
        history = {version.version_id: version for version in (await spy.file_history("plain.txt")).versions}
        assert (history[at].hash, history[at].size) == (None, None), "a hash lets a content be guessed"
        assert (history[now].hash, history[now].size) != (None, None)
        whole = await spy.get_diff(from_=start, to=at)
        assert "ZZSECRET" not in repr(whole)
        assert {(file.path, file.left_out) for file in whole.files if not file.path.startswith("~")} == {
            (".env", "policy"),
            ("plain.txt", "policy"),
        }
        assert (await spy.read_file("plain.txt", at=now)).text.endswith("nothing here\n")
        (work / "plain.txt").write_text("nothing there\n")
        await seen(person, work)
        older = await spy.read_file("plain.txt", at=now)
        assert older.text.endswith("nothing here\n"), "this one is another file"


async def test_a_plain_name_that_only_later_became_a_secret(daemon: RunningDaemon) -> None:
    """What it held before was open to all; so was what another file held that was only moved."""
    work = daemon.workspace
    async with daemon.client("bob") as bob, daemon.client() as person:
        (work / "notes.txt").write_text("notes\n")
        await seen(person, work)
        (work / "notes.txt").rename(work / "moved.txt")
        await seen(person, work)
        at = (await bob.read_file("moved.txt")).version_id
        (work / "moved.txt").rename(work / ".env")
        await seen(person, work)
        assert (await bob.read_file("moved.txt", at=at)).text.endswith("notes\n")


@pytest.mark.parametrize("stopped", [False, True], ids=["while it runs", "while it is stopped"])
async def test_a_folder_of_secrets_that_had_a_plain_name_for_a_while(daemon: RunningDaemon, stopped: bool) -> None:
    work = daemon.workspace
    (work / ".ssh").mkdir()
    (work / ".ssh/conf").write_text(SECRET)
    async with daemon.client() as person:
        await seen(person, work)
    if stopped:
        daemon.stop()
    (work / ".ssh").rename(work / "keys")
    if stopped:
        daemon.start()
    async with daemon.client("spy") as spy, daemon.client() as person:
        await seen(person, work)
        at = (await person.file_history("keys/conf")).versions[0].version_id
        (work / "keys").rename(work / ".ssh")
        (work / "keys").mkdir()
        (work / "keys/conf").write_text("nothing here\n")
        await seen(person, work)
        for name, call in (
            ("read", lambda: spy.read_file("keys/conf", at=at)),
            ("diff", lambda: spy.get_diff("keys/conf", from_=at)),
        ):
            with pytest.raises(RemoteError) as met:
                await call()
            assert met.value.code == "denied", name


@pytest.mark.parametrize("stopped", [False, True], ids=["while it runs", "while it is stopped"])
async def test_a_secret_that_was_renamed_over_a_plain_file(daemon: RunningDaemon, stopped: bool) -> None:
    work = daemon.workspace
    (work / "plain.txt").write_text("plain\n")
    (work / ".env").write_text(SECRET)
    async with daemon.client() as person:
        await seen(person, work)
        before = (await person.file_history("plain.txt")).versions[0].version_id
    if stopped:
        daemon.stop()
    (work / ".env").rename(work / "plain.txt")
    if stopped:
        daemon.start()
    async with daemon.client() as person:
        await seen(person, work)
        moved = (await person.file_history("plain.txt")).versions[0]
        assert (moved.moved_from, moved.version_id) != (None, before)
    if stopped:
        daemon.stop()
    (work / "plain.txt").rename(work / ".env")
    (work / "plain.txt").write_text("plain\n")
    if stopped:
        daemon.start()
    async with daemon.client("spy") as spy, daemon.client() as person:
        await seen(person, work)
        at = moved.version_id
        calls: dict[str, Callable[[], Awaitable[object]]] = {
            "read_file": lambda: spy.read_file("plain.txt", at=at),
            "blame": lambda: spy.blame("plain.txt", at=at),
            "from": lambda: spy.get_diff("plain.txt", from_=at),
            "to": lambda: spy.get_diff("plain.txt", from_=before, to=at),
        }
        for name, call in calls.items():
            with pytest.raises(RemoteError) as met:
                await call()
            assert met.value.code == "denied", name
        assert (await spy.read_file("plain.txt", at=before)).text.endswith("plain\n"), "this one was open to all"


UNLISTED = """
name = "unlisted"
default = "allow"

[[rule]]
name = "no name of it"
agents = ["spy"]
actions = ["list"]
paths = ["veiled/**"]
verdict = "deny"
"""


async def test_a_former_name_that_may_not_be_listed_is_not_named(base: Path) -> None:
    """Its content may be read: only the name is kept from the caller."""
    daemon = RunningDaemon(base)
    (daemon.state_dir / "policy.toml").write_text(UNLISTED)
    (daemon.workspace / "veiled").mkdir()
    (daemon.workspace / "veiled/a.txt").write_text("one\n")
    with running(base):
        async with daemon.client("spy") as spy, daemon.client("bob") as bob:
            start = (await bob.read_file("veiled/a.txt")).version_id
            assert (await bob.move_file("veiled/a.txt", "a.txt")).status == "applied"
            for name, answer in {
                "file_history": await spy.file_history("a.txt"),
                "blame": await spy.blame("a.txt"),
                "get_diff": await spy.get_diff(from_=start, to="current"),
                "changes_since": await spy.changes_since(start),
            }.items():
                assert "veiled" not in repr(answer), name
            assert (await bob.file_history("a.txt")).versions[0].moved_from == "veiled/a.txt"
            assert (await bob.blame("a.txt")).ranges[0].path == "veiled/a.txt"
            assert [file.moved_from for file in (await bob.get_diff(from_=start, to="current")).files] == [
                "veiled/a.txt"
            ]
