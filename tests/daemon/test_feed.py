"""changes_since and the live feed, through the real daemon: nothing missing, nothing twice, nothing of others' own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from orchestrator.api.framing import FeedEvent
from orchestrator.api.history import PathChanged
from orchestrator.clients.python import Events, FileAccess, RemoteError
from orchestrator.core.errors import DaemonRestarted
from tests.daemon.daemon_process import RunningDaemon

pytestmark = pytest.mark.anyio

WAIT_S = 60


async def wrote(files: FileAccess, path: str, content: str = "one\n") -> str:
    answer = await files.write_file(path, content, mode="create")
    assert answer.status == "applied", answer
    assert answer.version_id is not None
    return answer.version_id


async def until(events: Events, enough: Callable[[FeedEvent], bool]) -> list[FeedEvent]:
    """What comes, up to and with the event that is meant."""
    seen: list[FeedEvent] = []
    with anyio.fail_after(WAIT_S):
        async for event in events:
            seen.append(event)
            if enough(event):
                return seen
    raise AssertionError("the feed ended")


def number(seq: str) -> int:
    return int(seq.removeprefix("@"))


# --- changes_since ------------------------------------------------------------------------------


async def test_changes_are_reported_in_order_with_who_and_how_much(daemon: RunningDaemon) -> None:
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        start = (await alice.session_status()).head
        task = await bob.begin_task("a task")
        await wrote(alice, "a.py", "one\ntwo\n")
        await wrote(bob, "b.py", "one\n")
        (daemon.workspace / "a.py").write_text("one\nTWO\n2\n")
        await alice.read_file("a.py")
        (daemon.workspace / "b.py").unlink()
        await alice.file_info("b.py")

        def short(change: PathChanged) -> tuple[object, ...]:
            return change.path, change.kind, change.agent, change.added, change.removed, change.task

        changes = await alice.changes_since(start)
        assert [short(change) for change in changes.changes] == [
            ("a.py", "created", "alice", 2, 0, None),
            ("b.py", "created", "bob", 1, 0, task.task),
            ("a.py", "changed", "outside", None, None, None),
            ("b.py", "deleted", "outside", None, None, None),
        ]
        assert not changes.more
        assert (await alice.changes_since(changes.head)).changes == ()
        only = await alice.changes_since(start, globs=["b.*"])
        assert [change.path for change in only.changes] == ["b.py", "b.py"]


async def test_pages_meet_without_gap_or_overlap(daemon: RunningDaemon) -> None:
    async with daemon.client("alice") as alice:
        head = (await alice.session_status()).head
        versions = [await wrote(alice, f"f{n}.txt") for n in range(7)]
        seen: list[str] = []
        for more in (True, True, False):
            page = await alice.changes_since(head, limit=3)
            seen += [change.version for change in page.changes]
            head = page.head
            assert page.more == more
        assert seen == versions
        with pytest.raises(RemoteError, match="which ends at @") as refused:
            await alice.changes_since("@99999")
        assert refused.value.code == "version_unknown"
        assert number(refused.value.details["head"]) > number(versions[-1])


# --- the feed -----------------------------------------------------------------------------------


async def test_events_come_as_they_happen(daemon: RunningDaemon) -> None:
    async with daemon.client() as person, daemon.client("alice") as alice:
        async with person.subscribe(kinds=["change_applied"]) as events:
            first = await wrote(alice, "a.py")
            (event,) = await until(events, lambda event: event.kind == "change_applied")
            assert (event.seq, event.path, event.agent, event.session) == (first, "a.py", "alice", alice.session)
            second = await wrote(alice, "b.py")
            assert [event.seq for event in await until(events, lambda _: True)] == [second]
            assert events.position == second
        third = await wrote(alice, "c.py")
        async with person.subscribe(after=first, globs=["c.*"]) as events:
            seen = await until(events, lambda event: event.seq == third)
        assert {event.path for event in seen} == {"c.py"}


async def test_a_person_gets_every_event_once_from_any_position(daemon: RunningDaemon) -> None:
    async with daemon.client() as person, daemon.client("alice") as alice:
        for n in range(5):
            await wrote(alice, f"f{n}.txt")
        async with person.subscribe(after=0) as events:
            last = await wrote(alice, "last.txt")
            seen = await until(events, lambda event: event.seq == last)
        assert [number(event.seq) for event in seen] == list(range(1, number(last) + 1))


async def test_a_feed_goes_on_after_a_restart(daemon: RunningDaemon) -> None:
    """Another client writes all the while; the reader is cut off twice and goes on from its position."""
    seen: list[FeedEvent] = []
    resumed: list[bool] = []
    done = anyio.Event()

    async def follow() -> None:
        after: str | int = 0
        while not (seen and seen[-1].path == "end.txt" and seen[-1].kind == "change_applied"):
            try:
                async with daemon.client() as person, person.subscribe(after=after) as events:
                    while not (seen and seen[-1].path == "end.txt" and seen[-1].kind == "change_applied"):
                        seen.append(await anext(events))
                        after = seen[-1].seq
                        came.release()
            except DaemonRestarted as ended:  # it is up again: stopping and starting it holds this loop up
                resumed.append(ended.details.get("after", after) == after)
        done.set()

    came = anyio.Semaphore(0)
    with anyio.fail_after(WAIT_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow)
            for turn in range(3):
                async with daemon.client("alice") as alice:
                    for n in range(10):
                        await wrote(alice, f"f{turn}-{n}.txt")
                    if turn == 2:
                        last = await wrote(alice, "end.txt")
                if turn < 2:
                    while not any(event.path == f"f{turn}-9.txt" for event in seen):
                        await came.acquire()
                    daemon.stop()
                    daemon.start()
            await done.wait()
    assert all(resumed)
    assert len(resumed) == 2
    assert [number(event.seq) for event in seen] == list(range(1, number(last) + 1))


async def test_a_reader_that_does_not_read_holds_nobody_up(daemon: RunningDaemon) -> None:
    """On the bare socket, so that nothing reads ahead: far more than its buffers hold is waiting for it."""
    padding = "x" * 200
    async with daemon.client("alice") as alice, await anyio.connect_unix(str(daemon.socket)) as slow:
        await slow.send(b'{"orchestrator": 1, "transport": "rpc", "person": true}\n')
        await slow.receive()
        await slow.send(b'{"jsonrpc": "2.0", "id": 1, "method": "subscribe", "params": {"after": 0}}\n')
        with anyio.fail_after(WAIT_S):
            for n in range(3000):
                await alice.begin_task(f"{n} {padding}")
            last = await wrote(alice, "last.txt")
        data = b""
        with anyio.fail_after(WAIT_S):
            while f'"seq":"{last}"'.encode() not in data:
                data += await slow.receive()
    lines = [json.loads(line) for line in data.split(b"\n")[:-1]]
    assert lines[0]["result"] == {"after": "@0"}
    numbers = [number(line["params"]["seq"]) for line in lines[1:]]
    assert numbers == list(range(1, number(last) + 1))


async def test_a_client_that_reads_late_holds_up_none_of_its_calls(daemon: RunningDaemon) -> None:
    padding = "x" * 200
    async with daemon.client() as person, daemon.client("alice") as alice, person.subscribe(after=0) as events:
        for n in range(1300):
            await alice.begin_task(f"{n} {padding}")
            if n % 100 == 0:
                await person.status()
        last = await wrote(alice, "last.txt")
        seen = await until(events, lambda event: event.seq == last)
    assert [number(event.seq) for event in seen] == list(range(1, number(last) + 1))


async def test_agents_see_their_own_events_and_what_changed(daemon: RunningDaemon) -> None:
    """Not what others read, nothing of files that they may not list, no hash of what they may not read."""
    hidden = 'default = "allow"\nname = "t"\n[[rule]]\nname = "no"\nagents = ["bob"]\n'
    hidden += 'actions = ["list", "read"]\npaths = ["hidden/"]\nverdict = "deny"\n'
    hidden += (
        '[[rule]]\nname = "unread"\nagents = ["bob"]\nactions = ["read"]\npaths = ["unread.txt"]\nverdict = "deny"\n'
    )
    (daemon.state_dir / "policy.toml").write_text(hidden)
    daemon.stop()
    daemon.start()
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        start = (await bob.session_status()).head
        async with bob.subscribe(after=start) as events:
            await wrote(alice, "hidden/a.txt")
            await wrote(alice, "unread.txt")
            await alice.read_file("unread.txt")
            mine = await bob.begin_task("mine")
            last = await wrote(alice, "seen.txt")
            seen = await until(events, lambda event: event.seq == last)
        others = [event for event in seen if event.session != bob.session]
        assert [(event.kind, event.path) for event in others] == [
            ("change_applied", "unread.txt"),
            ("change_applied", "seen.txt"),
        ]
        assert mine.task in [event.seq for event in seen]
        unread, shown = (event.event["paths"][0] for event in others)
        assert "hidden" not in str(others)
        assert "after" not in unread
        assert "hunks" not in unread
        assert shown["after"].startswith("sha256:")

        changes = await bob.changes_since(start)
        assert [(change.path, change.added) for change in changes.changes] == [("unread.txt", None), ("seen.txt", 1)]
        assert changes.left_out == 0


async def test_what_a_subscription_refuses(daemon: RunningDaemon) -> None:
    async with daemon.client("alice") as alice:
        for wanted, expected in (
            ({"after": "@99999"}, "version_unknown"),
            ({"kinds": ["nonsense"]}, "invalid_parameter"),
            ({"after": "x"}, "invalid_parameter"),
        ):
            with pytest.raises(RemoteError) as refused:
                async with alice.subscribe(**wanted):
                    pass
            assert refused.value.code == expected


async def test_no_event_follows_the_end_of_a_subscription(daemon: RunningDaemon) -> None:
    async with daemon.client() as person, daemon.client("alice") as alice:
        async with person.subscribe() as first, person.subscribe() as second:
            last = await wrote(alice, "a.py")
            await until(first, lambda event: event.seq == last)
            await until(second, lambda event: event.seq == last)
        await wrote(alice, "b.py")
        assert (await person.status()).approvals == 0


async def test_a_connection_follows_events_once_and_serves_calls_besides(daemon: RunningDaemon) -> None:
    """On the bare socket. A subscription that is refused is in the journal, whatever it was refused for."""
    async with daemon.client("alice") as alice, await anyio.connect_unix(str(daemon.socket)) as bare:
        lines = BufferedByteReceiveStream(bare)

        async def heard() -> dict[str, Any]:
            with anyio.fail_after(WAIT_S):
                message = json.loads(await lines.receive_until(b"\n", 1_000_000))
            assert isinstance(message, dict)
            return message

        async def asked(id: int, method: str, **params: object) -> dict[str, Any]:
            await bare.send(json.dumps({"id": id, "method": method, "params": params}).encode() + b"\n")
            return await heard()

        await bare.send(b'{"orchestrator": 1, "transport": "rpc", "person": true}\n')
        await heard()
        assert (await asked(1, "subscribe", kind=["x"]))["error"]["data"]["code"] == "unknown_parameter"
        assert "after" in (await asked(2, "subscribe", kinds=["change_applied"]))["result"]
        await wrote(alice, "a.py")
        assert (await heard())["params"]["path"] == "a.py"
        assert (await asked(3, "subscribe"))["error"]["data"]["code"] == "not_available"
        assert (await asked(4, "agent_list"))["result"]["agents"]
        found = (await asked(5, "journal_query", kind="call_refused"))["result"]["entries"]
        assert [entry["event"]["code"] for entry in found] == ["not_available", "unknown_parameter"]
        await wrote(alice, "b.py")
        event = await heard()
        assert (event["method"], event["params"]["path"]) == ("event", "b.py")


async def test_a_session_ends_with_its_last_connection(daemon: RunningDaemon) -> None:
    async with daemon.client() as person:

        async def closed(events: Events) -> list[str | None]:
            seen = await until(events, lambda event: event.kind == "session_closed")
            return [event.session for event in seen if event.kind == "session_closed"]

        async with person.subscribe(kinds=["session_closed"]) as ends:
            async with daemon.client("alice") as alice:
                async with alice.subscribe():
                    pass
                async with daemon.client("bob") as bob:
                    pass
                assert await closed(ends) == [bob.session], "alice's is open"
            assert await closed(ends) == [alice.session]


async def test_a_revoked_agent_is_notified_no_more(daemon: RunningDaemon) -> None:
    approver = await daemon.make_approver()
    async with daemon.client() as person:
        token = (await person.agent_add("carol", approver=approver)).token
        async with daemon.client(token=token, agent="carol") as carol, carol.subscribe() as events:
            await person.agent_revoke("carol", approver=approver)
            with pytest.raises(RemoteError) as refused, anyio.fail_after(WAIT_S):
                await until(events, lambda event: event.agent == "nobody")
        assert refused.value.code == "unauthorised"


def started(command: list[str], daemon: RunningDaemon) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, env=daemon.env, stdout=subprocess.PIPE)


async def test_the_command_line_follows_until_the_daemon_ends(daemon: RunningDaemon) -> None:
    async with daemon.client("alice") as alice:
        last = await wrote(alice, "a.py")
    command = [sys.executable, "-m", "orchestrator", "log", "--follow", "--json", "--from", "0"]
    command += ["--workspace", str(daemon.workspace)]
    with started(command, daemon) as follower:
        assert follower.stdout is not None
        seen: list[dict[str, object]] = []
        while not (seen and seen[-1]["seq"] == last):
            seen.append(json.loads(await anyio.to_thread.run_sync(follower.stdout.readline)))
        daemon.stop()
        *others, refused = map(json.loads, follower.stdout)
    assert [number(str(event["seq"])) for event in [*seen, *others]] == list(range(1, len([*seen, *others]) + 1))
    assert (refused["code"], refused["details"]["after"]) == ("daemon_restarted", f"@{len([*seen, *others])}")
    assert follower.returncode == 4
