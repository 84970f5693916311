"""Calls under way have a bound, whatever the transport, and so have answers that nobody reads."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Literal

import anyio
import pytest

from orchestrator.servers.dispatch import MAX_OPEN_CALLS
from tests.daemon.daemon_process import RunningDaemon
from tests.daemon.raw_socket import Talk

pytestmark = pytest.mark.anyio

Transport = Literal["rpc", "mcp"]
TRANSPORTS = pytest.mark.parametrize("transport", ["rpc", "mcp"])


async def reads_of(daemon: RunningDaemon, agent: str) -> list[int]:
    """The positions of an agent's reads in the journal."""
    async with daemon.client() as person:
        page = await person.journal_query(agent=agent, kind="file_read", limit=500)
        return [int(entry.seq.removeprefix("@")) for entry in page.entries]


@TRANSPORTS
async def test_a_connection_has_so_many_calls_under_way(daemon: RunningDaemon, transport: Transport) -> None:
    (daemon.workspace / "a.txt").write_text("x\n")
    code = await daemon.make_approver()
    async with daemon.client("ann") as ann:
        await ann.read_file("a.txt")
        waiting = (await ann.delete_file("a.txt")).approval
    assert waiting is not None
    talk = Talk(daemon, "bob", transport)
    for _ in range(MAX_OPEN_CALLS):
        talk.call("await_change", id=waiting, timeout_s=50)
    last = talk.call("read_file", path="a.txt")
    async with daemon.client() as person:
        for _ in range(20):
            await person.status()
        await person.deny(waiting, approver=code)
        denied = int((await person.journal_query(kind="approval_denied")).entries[0].seq.removeprefix("@"))
    answers = [talk.answer()["id"] for _ in range(MAX_OPEN_CALLS + 1)]
    talk.close()
    assert sorted(answers) == list(range(1, last + 1))
    assert [seq > denied for seq in await reads_of(daemon, "bob")] == [True]


@TRANSPORTS
async def test_who_does_not_read_gets_no_further_answers(daemon: RunningDaemon, transport: Transport) -> None:
    (daemon.workspace / "a.txt").write_text("".join(f"{n} {'x' * 60}\n" for n in range(300)))
    many = 300
    talk = Talk(daemon, "bob", transport)
    sent = [talk.call("read_file", path="a.txt", end=300) for _ in range(many)]
    with anyio.fail_after(60):
        while not await reads_of(daemon, "bob"):
            pass
        async with daemon.client() as person:
            for _ in range(100):
                await person.status()
    made = len(await reads_of(daemon, "bob"))
    assert made <= MAX_OPEN_CALLS, "about twelve of these answers fit into the socket"
    answers = [talk.answer() for _ in sent]
    talk.close()
    assert sorted(answer["id"] for answer in answers) == sent
    assert all("result" in answer for answer in answers)
    assert len(await reads_of(daemon, "bob")) == many


async def asked(daemon: RunningDaemon) -> tuple[str, str]:
    """A deletion that waits for a person, and the code to answer it with; until then a wait for it stays open."""
    (daemon.workspace / "a.txt").write_text("x\n")
    code = await daemon.make_approver()
    async with daemon.client("ann") as ann:
        await ann.read_file("a.txt")
        return (await ann.delete_file("a.txt")).approval or "", code


async def test_an_id_in_use_is_refused(daemon: RunningDaemon) -> None:
    """Calls under one id could not be counted, nor told apart by their answers."""
    waiting, code = await asked(daemon)
    talk = Talk(daemon, "bob", "mcp")
    first = talk.call("await_change", id=waiting, timeout_s=50)
    talk._last -= 1
    talk.call("read_file", path="a.txt")
    reported = talk.answer()
    assert reported["id"] == first
    assert reported["error"]["code"] == -32600
    async with daemon.client() as person:
        await person.deny(waiting, approver=code)
    assert "denied" in str(talk.answer()["result"])
    talk.close()
    assert not await reads_of(daemon, "bob")


@pytest.mark.parametrize("odd", [[1], True], ids=repr)
async def test_a_cancellation_with_an_odd_id_ends_no_call(daemon: RunningDaemon, odd: object) -> None:
    """The client has closed its side, and still gets the answer."""
    waiting, code = await asked(daemon)
    talk = Talk(daemon, "bob", "mcp")
    open_call = talk.call("await_change", id=waiting, timeout_s=50)
    assert open_call == 1
    talk._put({"method": "notifications/cancelled", "params": {"requestId": odd}})
    read = talk.call("read_file", path="a.txt")
    assert talk.answer()["id"] == read
    talk.socket.shutdown(socket.SHUT_WR)
    async with daemon.client() as person:
        await person.deny(waiting, approver=code)
    assert talk.answer()["id"] == open_call
    talk.close()


@pytest.mark.parametrize("written", [int, str])
async def test_a_cancelled_call_is_open_no_more(daemon: RunningDaemon, written: Callable[[int], object]) -> None:
    """The SDK takes "1" for 1, so this must; else the connection waits for an answer that never comes."""
    waiting, _ = await asked(daemon)
    talk = Talk(daemon, "bob", "mcp")
    open_call = talk.call("await_change", id=waiting, timeout_s=50)
    talk._put({"method": "notifications/cancelled", "params": {"requestId": written(open_call)}})
    talk.socket.shutdown(socket.SHUT_WR)
    assert talk.socket.recv(1) == b""
    talk.close()
