"""Tags through the real daemon: set, shown, found, kept across moves and restarts, and what policy makes of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.clients.python import RemoteError
from tests.daemon.cli import cli, command
from tests.daemon.daemon_process import RunningDaemon, running

pytestmark = pytest.mark.anyio

POLICY = """
name = "ours"
extends = "default"

[[rule]]
name = "sensitive files"
agents = ["class:cloud"]
actions = ["read", "search"]
paths = ["**"]
tags = ["sensitive", "private"]
verdict = "deny"
reason = "marked as sensitive"
"""


async def test_tags_are_shown_found_and_taken_off(daemon: RunningDaemon) -> None:
    for name in ("a.py", "b.py", "notes.txt"):
        (daemon.workspace / name).write_text("x = 1\n")
    (daemon.workspace / "sub").mkdir()
    async with daemon.client("alice") as alice:
        assert tagged(daemon) == {}
        assert (await alice.tag_file("a.py", ("todo", "reviewed"))).tags == ("reviewed", "todo")
        await alice.tag_file("notes.txt", ("todo",))
        before = (await alice.journal_query(kind="file_tagged")).entries
        await alice.tag_file("a.py", ("todo",))  # it has it already
        assert (await alice.journal_query(kind="file_tagged")).entries == before

        assert (await alice.file_info("a.py")).tags == ("code", "reviewed", "todo")
        entries = (await alice.list_files()).entries
        assert {entry.path: entry.tags for entry in entries if entry.tags} == {
            "a.py": ("code", "reviewed", "todo"),
            "b.py": ("code",),
            "notes.txt": ("doc", "todo"),
        }
        found = await alice.find_files("*", tag="todo")
        assert ([entry.path for entry in found.entries], found.total) == (["a.py", "notes.txt"], 2)
        assert [entry.path for entry in (await alice.find_files("*.py", tag="code")).entries] == ["a.py", "b.py"]
        assert [entry.path for entry in (await alice.find_files("*", tag="todo", limit=1)).entries] == ["a.py"]
        assert tagged(daemon, "--limit", "1") == {"a.py": ["reviewed", "todo"]}
        assert tagged(daemon, "--limit", "1", "--cursor", "a.py") == {"notes.txt": ["todo"]}
        assert tagged(daemon, "--tag", "reviewed") == {"a.py": ["reviewed", "todo"]}
        assert tagged(daemon, "sub") == {}

        assert (await alice.tag_file("a.py", ("todo", "other"), remove=True)).tags == ("reviewed",)
        for path, tags, code in (
            ("none.py", ("x",), "not_found"),
            ("sub", ("x",), "not_a_file"),
            ("a.py", ("code",), "invalid_parameter"),
            ("a.py", ("Big Tag",), "invalid_parameter"),
            ("a.py", tuple(f"t{number}" for number in range(20)), "invalid_parameter"),
            ("../a.py", ("x",), "path_not_canonical"),
        ):
            with pytest.raises(RemoteError) as error:
                await alice.tag_file(path, tags)
            assert error.value.code == code
    assert cli(daemon, "tags") == (0, "a.py       reviewed\nnotes.txt  todo\n")
    ended, said = cli(daemon, "tags", "todo")
    assert ended != 0
    assert "`orchestrator tags --tag todo`" in said


async def test_tags_go_with_files_that_move_and_survive_a_restart(base: Path) -> None:
    with running(base) as daemon:
        (daemon.workspace / "src").mkdir()
        async with daemon.client("alice") as alice:
            await alice.write_file("a.py", "x = 1\n", mode="create")
            await alice.write_file("src/b.py", "y = 1\n", mode="create")
            await alice.tag_file("a.py", ("todo",))
            await alice.tag_file("src/b.py", ("todo",))
            await alice.move_file("a.py", "c.py")
            assert tagged(daemon) == {"a.py": ["todo"], "c.py": ["todo"], "src/b.py": ["todo"]}
    (base / "work/c.py").rename(base / "work/d.py")
    with running(base) as daemon:
        async with daemon.client("alice") as alice:
            assert (await alice.file_info("d.py")).tags == ("code", "todo")
        assert command(daemon, "journal", "rebuild", "--check")[0] == 0


async def test_a_rule_goes_by_tags_which_people_set(base: Path) -> None:
    (base / "state").mkdir(mode=0o700)
    (base / "state/policy.toml").write_text(POLICY)
    with running(base) as daemon:
        (daemon.workspace / "a.py").write_text("quokka = 1\n")
        async with daemon.client("alice") as alice:
            first, code = await alice.read_file("a.py"), await daemon.make_approver()
            with pytest.raises(RemoteError) as error:
                await alice.tag_file("a.py", ("sensitive",))
            assert error.value.code == "denied"
            assert error.value.details["tags"] == ["sensitive"]

            ended, said = command(daemon, "tag", "a.py", "sensitive", "mine")
            assert (ended, said["code"]) == (1, "approver_code_needed")
            assert command(daemon, "tag", "a.py", "mine")[0] == 0
            assert command(daemon, "tag", "a.py", "sensitive", approver=code)[0] == 0

            for at in (None, first.version_id):
                with pytest.raises(RemoteError) as error:
                    await alice.read_file("a.py", at=at)
                assert (error.value.code, error.value.details["rule"]) == ("denied", "sensitive files")
            found = await alice.search_content("quokka")
            assert (found.hits, found.files_left_out) == ((), 1)
            assert (await alice.file_info("a.py")).sensitivity == "secret"
            _, why = command(daemon, "policy", "explain", "read", "a.py", "--agent", "alice")
            assert (why["verdict"], why["rule"]) == ("deny", "sensitive files")

            (daemon.workspace / "b.py").write_text("quokka = 2\n")
            assert (await alice.search_content("quokka")).hits[0].path == "b.py"
            ended, _ = command(daemon, "tag", "a.py", "sensitive", "--remove")
            assert ended == 1
            assert command(daemon, "tag", "a.py", "sensitive", "--remove", approver=code)[0] == 0
            assert (await alice.read_file("a.py")).text == first.text


async def test_an_agent_tags_what_it_may_write_without_asking(daemon: RunningDaemon) -> None:
    (daemon.workspace / "Makefile").write_text("all:\n")
    async with daemon.client("alice") as alice:
        with pytest.raises(RemoteError) as error:
            await alice.tag_file("Makefile", ("reviewed",))
        assert (error.value.code, error.value.details["action"]) == ("denied", "write")
    assert command(daemon, "tag", "Makefile", "reviewed")[0] == 0


def tagged(daemon: RunningDaemon, *arguments: str) -> dict[str, list[str]]:
    _, said = command(daemon, "tags", *arguments)
    return {one["path"]: one["tags"] for one in said["files"]}
