"""An agent whose token is revoked while it is connected, or while a call of its waits, is shown nothing any more."""

from __future__ import annotations

from collections.abc import Awaitable
from pathlib import Path

import anyio
import pytest

from orchestrator.clients.python import FileAccess, RemoteError, Replacement
from tests.daemon.daemon_process import RunningDaemon, running

pytestmark = pytest.mark.anyio

POLICY = """
name = "revoking"
extends = "default"

[leases]
on_overlap = "queue"

[[rule]]
name = "config"
agents = ["*"]
actions = ["read"]
paths = ["config/**"]
verdict = "ask"
"""


def set_up(base: Path) -> RunningDaemon:
    daemon = RunningDaemon(base)
    (daemon.state_dir / "policy.toml").write_text(POLICY)
    (daemon.workspace / "config").mkdir()
    for name in ("config/a", "a.txt"):
        (daemon.workspace / name).write_text("one\ntwo\n")
    return daemon


async def refused(call: Awaitable[object]) -> RemoteError:
    with pytest.raises(RemoteError) as error:
        await call
    return error.value


async def token_of(person: FileAccess, name: str, code: str) -> str:
    return (await person.agent_add(name, approver=code)).token or ""


async def test_its_refusal_brings_no_notices(base: Path) -> None:
    daemon = set_up(base)
    with running(base):
        code = await daemon.make_approver()
        async with daemon.client() as person, daemon.client("bob") as bob:
            async with daemon.client(token=await token_of(person, "carol", code)) as carol:
                await carol.read_file("a.txt")
                await person.agent_revoke("carol", approver=code)
                await bob.edit_file("a.txt", [Replacement(search="two", replace="2")])
                why = await refused(carol.list_files())
                assert (why.code, why.notices) == ("unauthorised", ())


async def test_a_read_that_it_waits_for_is_not_granted_nor_shown(base: Path) -> None:
    daemon = set_up(base)
    with running(base):
        code = await daemon.make_approver()
        async with daemon.client() as person:
            async with daemon.client(token=await token_of(person, "carol", code)) as carol:
                number = (await refused(carol.read_file("config/a"))).details["approval"]
                ended: list[str] = []

                async def wait() -> None:
                    ended.append((await refused(carol.await_change(number, timeout_s=50))).code)

                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(wait)
                    await anyio.lowlevel.checkpoint()
                    await carol.session_status()  # sent after it, on the same connection: so it is under way
                    await person.agent_revoke("carol", approver=code)
                    assert not (await person.approvals_list()).approvals
                    closed = await refused(person.approve(number, unseen=True, approver=code))
                    assert (closed.code, "carol was revoked" in closed.message) == ("approval_closed", True)
                assert ended == ["unauthorised"]


async def test_a_change_that_waits_for_a_lease_is_not_made(base: Path) -> None:
    daemon = set_up(base)
    with running(base):
        code = await daemon.make_approver()
        async with daemon.client() as person, daemon.client("alice") as alice:
            lease = (await alice.reserve_paths(("a.txt",))).lease or ""
            async with daemon.client(token=await token_of(person, "carol", code)) as carol:
                ended: list[str] = []

                async def write() -> None:
                    change = carol.write_file("a.txt", "three\n", mode="append", request_id="late")
                    ended.append((await refused(change)).code)

                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(write)
                    await anyio.lowlevel.checkpoint()
                    await carol.session_status()  # as above
                    await person.agent_revoke("carol", approver=code)
                    await alice.release_paths(lease)
                assert ended == ["unauthorised"]
                assert (daemon.workspace / "a.txt").read_text() == "one\ntwo\n"
