"""Leases by a clock that the test moves."""

from __future__ import annotations

import msgspec
import pytest

from orchestrator.api.operations import BY_NAME
from orchestrator.api.parameters import Params
from orchestrator.api.session_operations import LeaseAnswer, ReleasePaths, ReservePaths
from orchestrator.core.errors import NotPermitted, ParameterInvalid, PathReserved, VersionUnknown
from orchestrator.core.events.codec import tag_of
from orchestrator.core.ids import AgentName, SessionId, WorkspacePath
from orchestrator.core.policy.profiles import OnLeaseOverlap
from orchestrator.core.projections.state import State
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.leases import Leases
from orchestrator.machine import SystemEntropy
from tests.engine.parts import services_of
from tests.in_memory.journal import MemoryJournal
from tests.in_memory.workspace import MemoryWorkspace

pytestmark = pytest.mark.anyio

START_MS = 1_700_000_000_000
FILE = WorkspacePath("src/a.py")


class MovedClock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.ms = START_MS

    def now_ms(self) -> int:
        return self.ms

    def ticks_us(self) -> int:
        return self.ms * 1000


class Desk:
    """Leases over a journal in memory, and the agents who come to it."""

    def __init__(self, policy: str = 'name = "open"\ndefault = "allow"\n') -> None:
        self.clock = MovedClock()
        self.journal = MemoryJournal(clock=self.clock, entropy=SystemEntropy())
        self._policy = policy
        self.start(State())

    def start(self, state: State) -> None:
        workspace = MemoryWorkspace()
        self.services = services_of(workspace, journal=self.journal, clock=self.clock, state=state, policy=self._policy)
        self.leases = Leases(self.services)

    async def restart(self) -> None:
        """As a new daemon on the same journal: the state is what the events say."""
        state = State()
        async for recorded in self.journal.events():
            state.apply(recorded)
        self.start(state)

    async def reserve(self, agent: str, *globs: str, ttl_s: int = 600, reason: str = "") -> LeaseAnswer:
        params = ReservePaths(globs=globs or ("src",), ttl_s=ttl_s, reason=reason)
        return await self.leases.reserve_paths(caller(agent), call("reserve_paths", params), params)

    async def release(self, agent: str, lease: str | None) -> LeaseAnswer:
        params = ReleasePaths(lease=lease or "")
        return await self.leases.release_paths(caller(agent), call("release_paths", params), params)

    async def tags(self) -> list[str]:
        return [tag_of(recorded.event) async for recorded in self.journal.events()]


def caller(agent: str, session: str = "") -> Caller:
    kind = "person" if agent.startswith("person:") else "cloud"
    name = SessionId(session or f"s-{agent}")
    return Caller(agent=AgentName(agent), agent_class=kind, session=name, transport="rpc")  # type: ignore[arg-type]


def call(name: str, params: Params) -> Call:
    return Call(operation=BY_NAME[name], params=params)


async def test_a_lease_expires_when_its_time_is_over() -> None:
    desk = Desk()
    lease = await desk.reserve("alice", ttl_s=10)
    assert (lease.status, lease.lease, lease.fencing, lease.expires_at) == ("granted", "@1", 1, START_MS + 10_000)
    assert await desk.leases.expire() == START_MS + 10_000
    desk.clock.ms += 9_999
    assert await desk.leases.expire() == START_MS + 10_000
    assert (await desk.reserve("bob")).status == "clash"
    desk.clock.ms += 1
    assert await desk.leases.expire() is None
    assert await desk.tags() == ["lease_granted", "lease_expired"]
    later = await desk.reserve("bob")
    assert later.status == "granted"
    assert (later.fencing or 0) > (lease.fencing or 0)


async def test_a_lease_whose_time_is_over_holds_nobody_off_before_it_is_noted() -> None:
    desk = Desk()
    await desk.reserve("alice", ttl_s=10)
    desk.clock.ms += 10_000
    assert (await desk.leases.crossing(caller("bob"), (FILE,))).leases == ()
    assert (await desk.reserve("bob")).status == "granted"
    assert await desk.tags() == ["lease_granted", "lease_expired", "lease_granted"]


async def test_the_same_wish_renews() -> None:
    desk = Desk()
    await desk.reserve("alice", ttl_s=10)
    desk.clock.ms += 9_000
    again = await desk.reserve("alice", ttl_s=10)
    assert (again.status, again.lease, again.fencing) == ("renewed", "@1", 1)
    assert await desk.leases.expire() == again.expires_at == START_MS + 19_000


async def test_a_restart_keeps_leases_and_expires_those_that_ended_meanwhile() -> None:
    desk = Desk()
    await desk.reserve("alice", "doc", ttl_s=10)
    await desk.reserve("alice", "src", ttl_s=20)
    await desk.restart()
    assert [lease.seq for lease in desk.services.state.leases.live()] == [1, 2]
    desk.clock.ms += 15_000
    await desk.restart()
    assert await desk.leases.expire() == START_MS + 20_000
    assert [lease.seq for lease in desk.services.state.leases.live()] == [2]


async def test_policy_bounds_the_time() -> None:
    desk = Desk('name = "brief"\ndefault = "allow"\n[leases]\nmax_ttl_s = 5\n')
    lease = await desk.reserve("alice")
    assert lease.expires_at == START_MS + 5_000
    assert "5 s at most" in lease.message


async def test_who_may_give_it_back() -> None:
    desk = Desk()
    lease = (await desk.reserve("alice")).lease
    with pytest.raises(NotPermitted):
        await desk.release("bob", lease)
    assert (await desk.release("alice", lease)).status == "released"
    with pytest.raises(VersionUnknown):
        await desk.release("alice", lease)
    assert (await desk.release("person:ada", (await desk.reserve("alice")).lease)).status == "released"


@pytest.mark.parametrize(
    ("glob", "kept"),
    [
        pytest.param("src/*.py", "src/*.py", id="as it is"),
        pytest.param("./src", "/src", id="from here"),
        pytest.param("/workspace/src", "/src", id="the workspace's own root"),
        pytest.param("/workspaces/src", "/workspaces/src", id="whole components only"),
        pytest.param(".", "**", id="everything"),
        pytest.param("/workspace", "**", id="the root itself"),
    ],
)
async def test_globs_mean_what_paths_mean(glob: str, kept: str) -> None:
    assert (await Desk().reserve("alice", glob)).globs == (kept,)


async def test_exceptions_mean_what_paths_mean() -> None:
    desk = Desk()
    assert (await desk.reserve("alice", "lib", "!./lib/x")).globs == ("lib", "!/lib/x")
    with pytest.raises(ParameterInvalid, match="exceptions only"):
        await desk.reserve("alice", "!./src")


@pytest.mark.parametrize("glob", ["", " ", "#x", "../x", "a/../b", "[x", "[z-a]", "a\nb"])
async def test_globs_that_would_reserve_nothing_are_refused(glob: str) -> None:
    with pytest.raises(ParameterInvalid):
        await Desk().reserve("alice", "ok", glob)


@pytest.mark.parametrize(
    ("on_overlap", "who", "outcome"),
    [
        pytest.param("warn", "bob", "warned", id="warn"),
        pytest.param("merge", "bob", "noted", id="merge"),
        pytest.param("deny", "bob", "refused", id="deny"),
        pytest.param("queue", "bob", "refused", id="queue, after the wait"),
        pytest.param("deny", "alice", "free", id="the holder"),
        pytest.param("deny", "person:ada", "warned", id="a person"),
    ],
)
async def test_what_becomes_of_a_change(on_overlap: OnLeaseOverlap, who: str, outcome: str) -> None:
    desk = Desk(f'name = "p"\ndefault = "allow"\n[leases]\non_overlap = "{on_overlap}"\nmax_wait_s = 0\n')
    await desk.reserve("alice", reason="a rename")
    if outcome == "refused":
        with pytest.raises(
            PathReserved, match=r"src/a.py is reserved by alice until 2023-11-14 .*Z \(lease @1\)"
        ) as no:
            await desk.leases.crossing(caller(who), (WorkspacePath("b"), FILE))
        (clash,) = no.value.details["clashes"]
        assert (no.value.details["path"], clash["lease"], clash["reason"]) == (FILE, "@1", "a rename")
        assert "a rename" not in no.value.message
        return
    crossing = await desk.leases.crossing(caller(who), (WorkspacePath("b"), FILE))
    assert crossing.leases == (() if outcome == "free" else (1,))
    assert len(crossing.warnings) == (1 if outcome == "warned" else 0)


@pytest.mark.parametrize("on_overlap", ["deny", "queue", "merge", "warn"])
async def test_a_granted_change_goes_through_with_a_warning(on_overlap: OnLeaseOverlap) -> None:
    desk = Desk(f'name = "p"\ndefault = "allow"\n[leases]\non_overlap = "{on_overlap}"\n')
    await desk.reserve("alice")
    crossing = await desk.leases.crossing(caller("bob"), (FILE,), granted=True)
    assert (crossing.leases, len(crossing.warnings)) == ((1,), 1)


async def test_a_redacted_reason_is_gone_from_the_state() -> None:
    desk = Desk()
    await desk.reserve("alice", reason="a secret")
    assert "a secret" not in msgspec.json.encode(desk.services.state.plain()).decode()
