"""Rules by size, by task, and by whose work it is, as an agent meets them on a real daemon."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from orchestrator.clients.python import FileAccess, RemoteError, Replacement
from tests.daemon.daemon_process import RunningDaemon, running

pytestmark = pytest.mark.anyio

RULES = """
name = "ours"
extends = "default"

[[rule]]
name = "read small files"
agents = ["class:cloud"]
actions = ["read", "search"]
paths = ["**"]
max_bytes = 1000
verdict = "deny"
reason = "too large for this model"

[[rule]]
name = "write small files"
agents = ["class:cloud"]
actions = ["create", "write"]
paths = ["*.md"]
max_bytes = 100
verdict = "ask"

[[rule]]
name = "release freeze"
agents = ["*"]
actions = ["write"]
paths = ["src"]
task = "release *"
verdict = "deny"
reason = "a release changes no source"
"""


@asynccontextmanager
async def under(base: Path, policy: str) -> AsyncIterator[tuple[RunningDaemon, FileAccess]]:
    (base / "state").mkdir(exist_ok=True)
    (base / "state/policy.toml").write_text(policy)
    with running(base) as daemon:
        async with daemon.client("alice") as alice:
            yield daemon, alice


async def test_an_agent_deletes_and_moves_what_it_made_alone(daemon: RunningDaemon) -> None:
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        await alice.write_file("a.txt", "one\n", mode="create")
        await alice.edit_file("a.txt", [Replacement(search="one", replace="two")])
        assert (await alice.move_file("a.txt", "b.txt")).status == "applied"
        assert (await bob.delete_file("b.txt", preview=True)).would_be == "waiting"
        assert (await alice.delete_file("b.txt")).status == "applied"


@pytest.mark.parametrize("touch", ["found", "bob", "shell", "restored"])
async def test_what_others_touched_asks(daemon: RunningDaemon, touch: str) -> None:
    file = daemon.workspace / "a.txt"
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        if touch == "found":
            file.write_text("one\n")
        else:
            await alice.write_file("a.txt", "one\n", mode="create")
        if touch == "bob":
            await bob.edit_file("a.txt", [Replacement(search="one", replace="two")])
        if touch == "shell":
            file.write_text("two\n")
        if touch == "restored":
            await bob.write_file("b.txt", "bob's\n", mode="create")
            asked = (await alice.delete_file("b.txt")).approval or ""
            async with daemon.client() as person:
                await person.approvals_show(asked)
                done = await person.approve(asked, approver=await daemon.make_approver())
            await alice.revert(done.change or "")
            assert (await alice.delete_file("b.txt", preview=True)).would_be == "waiting"
            return
        await alice.read_file("a.txt")
        assert (await alice.delete_file("a.txt")).status == "waiting"
        assert (await alice.move_file("a.txt", "b.txt", preview=True)).would_be == "waiting"


async def test_a_folder_goes_without_asking_where_all_in_it_is_ones_own(daemon: RunningDaemon) -> None:
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        for name in ("d/a.txt", "d/e/b.txt"):
            await alice.write_file(name, "x\n", mode="create")
        assert (await alice.delete_file("d", preview=True)).would_be == "applied"
        await bob.write_file("d/c.txt", "x\n", mode="create")
        assert (await alice.delete_file("d", preview=True)).would_be == "waiting"


async def test_it_is_known_after_a_restart(base: Path) -> None:
    with running(base) as daemon:
        async with daemon.client("alice") as alice:
            await alice.write_file("a.txt", "one\n", mode="create")
            await alice.write_file("b.txt", "one\n", mode="create")
    (base / "work/b.txt").write_text("two\n")
    with running(base) as daemon:
        async with daemon.client("alice") as alice:
            assert (await alice.delete_file("a.txt")).status == "applied"
            assert (await alice.delete_file("b.txt")).status == "waiting"


async def test_rules_by_size(base: Path) -> None:
    async with under(base, RULES) as (daemon, alice):
        (daemon.workspace / "large.txt").write_text("needle\n" + "x" * 1000)
        with pytest.raises(RemoteError) as refused:
            await alice.read_file("large.txt")
        assert (refused.value.code, refused.value.details["rule"]) == ("denied", "read small files")
        assert not (await alice.search_content("needle")).hits
        (daemon.workspace / "large.txt").write_text("needle\n")
        assert (await alice.read_file("large.txt")).total_lines == 1
        assert (await alice.write_file("a.md", "x" * 100, mode="create")).status == "applied"
        grown = await alice.write_file("a.md", "y", mode="append")
        assert grown.status == "waiting"
        person = await alice.edit_file("a.md", [Replacement(search="x" * 100, replace="short")], preview=True)
        assert person.would_be == "applied"


async def test_a_granted_change_is_judged_by_its_size_again(base: Path) -> None:
    async with under(base, RULES) as (daemon, alice):
        asked = (await alice.write_file("a.md", "x" * 101, mode="create")).approval or ""
        code = await daemon.make_approver()
        (base / "state/policy.toml").write_text(RULES.replace('verdict = "ask"', 'verdict = "deny"'))
        async with daemon.client() as person:
            await person.policy_reload(approver=code)
            await person.approvals_show(asked)
            await person.approve(asked, approver=code)
        assert (await alice.await_change(asked, timeout_s=0)).status == "dropped"
        assert not (daemon.workspace / "a.md").exists()


async def test_a_rule_holds_while_its_task_runs(base: Path) -> None:
    async with under(base, RULES) as (daemon, alice):
        (daemon.workspace / "src").mkdir()
        (daemon.workspace / "src/a.py").write_text("a = 1\n")
        change = [Replacement(search="a = 1", replace="a = 2")]
        task = (await alice.begin_task("Release 4")).task
        with pytest.raises(RemoteError) as refused:
            await alice.edit_file("src/a.py", change)
        assert refused.value.details["rule"] == "release freeze"
        await alice.end_task(task, outcome="done")
        await alice.begin_task("mend a")
        assert (await alice.edit_file("src/a.py", change)).status == "applied"
