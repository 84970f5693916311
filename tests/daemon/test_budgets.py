"""What an agent may take in a session and in a day: refused when it is spent, noted once, known after a restart."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from orchestrator.clients.python import FileAccess, RemoteError
from orchestrator.core.projections.usage import DAY_MS
from tests.daemon.daemon_process import RunningDaemon, running

pytestmark = pytest.mark.anyio


def limit(base: Path, *limits: str) -> None:
    (base / "state").mkdir(mode=0o700, exist_ok=True)
    profile = "\n".join(('[[profile]]\nname = "small"\nagents = ["alice"]', *limits))
    (base / "state/policy.toml").write_text(f'name = "ours"\nextends = "default"\n{profile}\n')


async def left(agent: FileAccess) -> dict[tuple[str, str], int]:
    return {(item.budget, item.period): item.left for item in (await agent.session_status()).budgets}


async def noted(daemon: RunningDaemon) -> int:
    async with daemon.client() as person:
        return len((await person.journal_query(kind="budget_exceeded")).entries)


async def refused(agent: FileAccess) -> RemoteError:
    with pytest.raises(RemoteError) as error:
        await agent.read_file("a.txt")
    return error.value


async def test_calls_of_a_session(base: Path) -> None:
    limit(base, "max_calls_per_session = 2")
    with running(base) as daemon:
        (daemon.workspace / "a.txt").write_text("one\n")
        async with daemon.client("alice") as alice:
            await alice.read_file("a.txt")
            await alice.read_file("a.txt")
            for _ in range(3):
                error = await refused(alice)
                assert (error.code, error.details["period"], error.details["most"]) == ("budget_exceeded", "session", 2)
            assert "resets with a new session" in (error.hint or "")
            assert (await left(alice))["calls", "session"] == 0
        async with daemon.client("alice") as again, daemon.client("bob") as bob:
            await again.read_file("a.txt")
            await bob.read_file("a.txt")
        assert await noted(daemon) == 1


async def test_diffs_context_and_previews_count_as_reads_do(base: Path) -> None:
    limit(base, "max_tokens_per_day = 100000")
    with running(base) as daemon:
        (daemon.workspace / "a.txt").write_text("".join(f"line {number}\n" for number in range(100)))
        async with daemon.client("alice") as alice:
            calls: list[Callable[[], Awaitable[object]]] = [
                lambda: alice.read_file("a.txt"),
                lambda: alice.get_diff("a.txt", from_="@0"),
                lambda: alice.get_diff(from_="@0"),
                lambda: alice.search_content("line 50", path="a.txt", context_lines=50),
                lambda: alice.delete_file("a.txt", preview=True),
            ]
            before = 100_000
            for call in calls:
                await call()
                now = (await left(alice))["tokens", "day"]
                assert before - now > 100
                before = now


async def test_a_day_goes_on_after_a_restart(base: Path) -> None:
    limit(base, "max_tokens_per_day = 10", "max_calls_per_day = 1000")
    with running(base) as daemon:
        (daemon.workspace / "a.txt").write_text("one two three four\n" * 5)
        async with daemon.client("alice") as alice:
            await alice.read_file("a.txt")
            before = await left(alice)
            assert before["tokens", "day"] == 0
            assert (await refused(alice)).details["resets_at"] % DAY_MS == 0
    with running(base) as daemon:
        async with daemon.client("alice") as alice:
            assert (await left(alice))["tokens", "day"] == 0
            error = await refused(alice)
            assert error.code == "budget_exceeded"
            assert "00:00 UTC" in (error.hint or "")
            assert (await alice.write_file("b.txt", "x", mode="create")).status == "applied"  # shows nothing
        assert await noted(daemon) == 1


async def test_bytes_of_changes(base: Path) -> None:
    limit(base, "max_bytes_per_session = 10", "max_bytes_per_day = 25")
    with running(base) as daemon:
        async with daemon.client("alice") as alice:
            await alice.write_file("a.txt", "x" * 10, mode="create")
            assert await left(alice) == {("bytes", "session"): 0, ("bytes", "day"): 15}
            with pytest.raises(RemoteError) as error:
                await alice.write_file("b.txt", "x", mode="create", request_id="r1")
            assert error.value.details["budget"] == "bytes"
            await alice.read_file("a.txt")
        limit(base, "max_bytes_per_day = 25")
        async with daemon.client() as person:
            await person.policy_reload(approver=await daemon.make_approver())
        async with daemon.client("alice") as alice:  # the refusal was for then: the same request may run now
            assert (await alice.write_file("b.txt", "x", mode="create", request_id="r1")).status == "applied"
