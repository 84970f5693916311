"""The approver code: shown once, and replaced with the old one, or by the owner while nothing runs."""

from __future__ import annotations

import json
import os
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from orchestrator.api.sockets import PROTOCOL
from orchestrator.clients.python import RemoteError
from orchestrator.core.projections.identities import WrongCodes
from orchestrator.engine.approver import pause_ms
from tests.daemon.cli import command
from tests.daemon.daemon_process import RunningDaemon, running
from tests.daemon.reviewer_servers import follow

pytestmark = pytest.mark.anyio


async def test_it_is_made_once_and_replaced_with_the_old_one(daemon: RunningDaemon) -> None:
    async with daemon.client() as person:
        first = (await person.approver_create()).approver_code
        assert first is not None
        assert (await person.approver_create()).approver_code is None
        with pytest.raises(RemoteError) as refused:
            await person.approver_reset(approver="wrong")
        assert refused.value.code == "approver_code_needed"
        second = (await person.approver_reset(approver=first.upper())).approver_code
        assert second not in (None, first)
        with pytest.raises(RemoteError):
            await person.approver_reset(approver=first)


async def test_a_lost_code_is_replaced_by_the_owner_while_nothing_runs(daemon: RunningDaemon) -> None:
    lost = await daemon.make_approver()

    assert command(daemon, "approver", "reset")[0] == 1  # a daemon runs, so the old code is asked for
    assert daemon.stop() == 0
    exit_code, made = command(daemon, "approver", "reset")
    assert exit_code == 0, made
    code = made["approver_code"]
    daemon.start()
    async with daemon.client() as person:
        with pytest.raises(RemoteError):
            await person.approver_reset(approver=lost)
        assert (await person.approver_reset(approver=code)).approver_code
        last = (await person.journal_query(kind="approver_set")).entries
        assert [entry.event["by"] for entry in last] == ["old_code", "owner_uid", "first_up"]
        assert all("scrypt" not in entry.event for entry in last)


async def test_a_code_of_ones_own_takes_the_place_of_the_random_one(daemon: RunningDaemon) -> None:
    first = await daemon.make_approver()
    assert len(first) == 11  # short enough to type
    async with daemon.client() as person:
        with pytest.raises(RemoteError, match="at least 12 characters"):
            await person.approver_reset(approver=first, new_code="hunter-2 hunt")
        made = await person.approver_reset(approver=first, new_code="Müde Pferde  grasen-leise")
        assert made.approver_code is None
        assert (await person.approver_reset(approver="müde pferde grasen leise")).approver_code
        resets = (await person.journal_query(kind="approver_set")).entries
    assert len(resets) == 3
    assert b"grasen" not in b"".join(path.read_bytes() for path in daemon.state_dir.glob("journal.db*"))


async def test_one_code_opens_a_session_of_one_connection(daemon: RunningDaemon) -> None:
    approver = await daemon.make_approver()
    async with daemon.client() as person, daemon.client(session=person.session) as beside:
        with pytest.raises(RemoteError, match="not the approver code"):
            await person.approver_open(approver="wrong")
        await person.approver_open(approver=approver)
        await person.policy_reload()
        with pytest.raises(RemoteError, match="this needs the approver code"):
            await beside.policy_reload()
        session = person.session
    async with daemon.client(session=session) as later:
        with pytest.raises(RemoteError, match="this needs the approver code"):
            await later.policy_reload()
        (ended,) = await follow(later, "approver_session_closed")
        assert (ended["cause"], ended["pid"]) == ("disconnected", os.getpid())
        await later.approver_open(approver=approver)
        await later.approver_reset(approver=approver)
        assert [event["cause"] for event in await follow(later, "approver_session_closed", 2)][1] == "code_replaced"


async def test_guesses_slow_each_other_down_across_connections_and_status_names_them(daemon: RunningDaemon) -> None:
    approver = await daemon.make_approver()
    for _ in range(3):  # as one who opens a new connection for each guess
        async with daemon.client() as guesser:
            with pytest.raises(RemoteError, match="not the approver code"):
                await guesser.policy_reload(approver="wrong")
    async with daemon.client() as person:
        guesses = (await person.journal_query(kind="approver_code_refused")).entries
        times = [entry.at for entry in reversed(guesses)]
        assert times[1] - times[0] >= 250
        assert times[2] - times[1] >= 500
        assert all(entry.event["pid"] == os.getpid() and entry.session for entry in guesses)
        (note,) = [note for note in (await person.status()).health.notes if "wrong approver code" in note]
        assert note.startswith("3 wrong approver codes, the last ")
        assert f"by {guesses[0].agent} in session {guesses[0].session}, process {os.getpid()}" in note
        await person.policy_reload(approver=approver)  # one that was right before waits for nobody


@pytest.mark.parametrize(
    ("count", "since_ms", "pause"),
    [
        pytest.param(1, 0, 250, id="the first"),
        pytest.param(1, 100, 150, id="some of it is over"),
        pytest.param(1, 250, 0, id="all of it is over"),
        pytest.param(4, 0, 2_000, id="twice as long each time"),
        pytest.param(8, 0, 30_000, id="up to half a minute"),
        pytest.param(10_000, 0, 30_000, id="and no longer"),
        pytest.param(4, -60_000, 2_000, id="the clock was set back"),
    ],
)
def test_the_pause_after_wrong_codes(count: int, since_ms: int, pause: int) -> None:
    wrong = WrongCodes(count, 1_700_000_000_000, None, None, 0)
    assert pause_ms(wrong, wrong.at + since_ms) == pause


async def test_who_guesses_does_not_keep_the_right_code_waiting(base: Path) -> None:
    """At first the code is in the daemon's memory; after a restart it has to be checked slowly once."""
    with running(base) as daemon:
        approver = await daemon.make_approver()
        assert await answered_before(daemon, approver, connections=20) < 20
    with running(base) as daemon:
        assert await answered_before(daemon, approver, connections=1) < 10
        assert await answered_before(daemon, approver, connections=20) < 20


GUESS = {"jsonrpc": "2.0", "id": 1, "method": "policy_reload", "params": {"approver": "wrong"}}


async def answered_before(daemon: RunningDaemon, approver: str, *, connections: int) -> int:
    """How many of 40 wrong codes, sent before the right one over some connections, were answered before it was."""
    preamble = {"orchestrator": PROTOCOL, "transport": "rpc", "person": True}
    with ExitStack() as opened:
        attackers = [opened.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(connections)]
        for attacker in attackers:
            attacker.connect(str(daemon.socket))
            attacker.sendall(json.dumps(preamble).encode() + b"\n")
            assert b'"ok":true' in attacker.recv(65_536)
        async with daemon.client() as person:
            for at in range(40):
                attackers[at % connections].sendall(json.dumps(GUESS).encode() + b"\n")
            await person.policy_reload(approver=approver)
        return sum(replies(attacker) for attacker in attackers)


def replies(attacker: socket.socket) -> int:
    """The lines that have come by now."""
    attacker.setblocking(False)
    try:
        return attacker.recv(1_000_000).count(b"\n")
    except BlockingIOError:
        return 0
