"""Which calls run now: one agent's many calls do not hold up another's few.

The daemon computes in one thread, so each running call makes every other one slower. While several agents call,
each has one running call at most; an agent that calls alone has more. What is over that waits, and the agents take
turns, whichever connections their calls came by. Heavy calls have a scheduler of their own, which runs one at a time.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable

import anyio
import msgspec

from orchestrator.api.operation import AnyOperation
from orchestrator.core.fair_queue import FairQueue

HEAVY_BYTES = 1024 * 1024
"""Of a file that a call names, or of the call itself."""

LARGE_PATCH_BYTES = 64 * 1024

TREE_FILES = 2000
"""A call that goes through a workspace of so many files is heavy."""


class _Named(msgspec.Struct):
    """What the weight of a call hangs on; everything else is passed over."""

    path: str | None = None
    source: str | None = None


_NAMED = msgspec.json.Decoder(_Named)


def is_heavy(
    operation: AnyOperation,
    params: bytes | msgspec.Raw,
    size_at: Callable[[str], int | None],
    files: Callable[[], int],
) -> bool:
    """Whether a call runs one at a time with other heavy calls. Cost: microseconds.

    `size_at` is the size of a file, in bytes, None for a directory or nothing; `files` is how many there are.
    """
    size, weight = len(memoryview(params)), operation.weight
    if weight == "always" or size > HEAVY_BYTES or (weight == "patch" and size > LARGE_PATCH_BYTES):
        return True
    try:
        named = _NAMED.decode(params)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False  # it will be refused
    if weight == "tree":
        return files() > TREE_FILES
    path = named.path or named.source
    size_of_file = size_at(path) if path is not None else None
    return weight == "search" if size_of_file is None else size_of_file > HEAVY_BYTES


def is_by_pieces(
    operation: AnyOperation, params: bytes | msgspec.Raw, size_at: Callable[[str], int | None], in_memory: int
) -> bool:
    """Whether a heavy call only reads pieces of a file over `in_memory` bytes: it takes little, and may wait long."""
    if operation.weight != "lines":
        return False
    try:
        named = _NAMED.decode(params)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return named.path is not None and (size_at(named.path) or 0) > in_memory


COMPANY_US = 1_000_000
"""For so long after its last call an agent counts as one that calls."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How many calls run at a time. Those that run for longer than `long_us` count for `most_of_one` alone."""

    alone: int  # of an agent, while no other agent calls; else one: a call beside one takes twice its time at most
    most_running: int  # of all agents
    most_of_one: int  # of one agent, long ones too
    long_us: int


LIGHT = Limits(alone=8, most_running=32, most_of_one=16, long_us=250_000)
"""A light call that runs for longer waits for a lock, a disk or a worker: the others need not wait for its end."""

HEAVY = Limits(alone=1, most_running=1, most_of_one=4, long_us=2_000_000)
"""Each may hold a large file and the lines of it, and keep a thread busy. After this time it waits for something."""


class Turn(msgspec.Struct, eq=False):
    """A call that runs, or waits to run."""

    agent: str
    begun_us: int = 0
    granted: anyio.Event | None = None


class CallScheduler:
    """Gives calls their turns. Not for calls that only wait for others, nor for people's (status, approvals)."""

    def __init__(self, ticks_us: Callable[[], int], limits: Limits = LIGHT) -> None:
        self._ticks_us, self._limits = ticks_us, limits
        self._queue: FairQueue[Turn] = FairQueue()
        self._young: OrderedDict[Turn, None] = OrderedDict()  # not long yet, oldest first
        self._young_of: Counter[str] = Counter()
        self._running_of: Counter[str] = Counter()
        self._called: OrderedDict[str, int] = OrderedDict()  # agents by their last call, oldest first
        self._timer: asyncio.TimerHandle | None = None

    async def begin(self, agent: str) -> Turn:
        """Wait until a call of this agent may run; `end` it."""
        turn = Turn(agent)
        self._note(self._ticks_us())
        if not self._queue.waits(agent) and self._may(agent):
            self._start(turn)
            return turn
        turn.granted = anyio.Event()
        self._queue.put(agent, turn)
        self._grant_turns()
        try:
            await turn.granted.wait()
        except BaseException:  # cancelled
            if not self._queue.remove(agent, turn):
                self.end(turn)
            raise
        return turn

    def end(self, turn: Turn) -> None:
        """A call is answered."""
        now = self._ticks_us()
        self._note(now)
        self._running_of[turn.agent] -= 1
        if not self._running_of[turn.agent]:
            del self._running_of[turn.agent]
        if turn in self._young:
            self._grown(turn)
        self._called[turn.agent] = now
        self._called.move_to_end(turn.agent)
        self._grant_turns()

    def _start(self, turn: Turn) -> None:
        turn.begun_us = self._called[turn.agent] = self._ticks_us()
        self._called.move_to_end(turn.agent)
        self._young[turn] = None
        self._young_of[turn.agent] += 1
        self._running_of[turn.agent] += 1
        if turn.granted is not None:
            turn.granted.set()

    def _grant_turns(self) -> None:
        while (following := self._queue.take(self._may)) is not None:
            self._start(following[1])
        if self._queue and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._limits.long_us / 1e6, self._on_timer)

    def _on_timer(self) -> None:
        """Calls that run for long make room for others, also while none comes or ends."""
        self._timer = None
        self._note(self._ticks_us())
        self._grant_turns()

    def _may(self, agent: str) -> bool:
        limits, company = self._limits, len(self._called) > (agent in self._called)
        return (
            self._young_of[agent] < (1 if company else limits.alone)
            and len(self._young) < limits.most_running
            and self._running_of[agent] < limits.most_of_one
        )

    def _note(self, now_us: int) -> None:
        """What the passing of time changed."""
        while self._young and next(iter(self._young)).begun_us + self._limits.long_us <= now_us:
            self._grown(next(iter(self._young)))
        while self._called and next(iter(self._called.values())) + COMPANY_US <= now_us:
            self._called.popitem(last=False)

    def _grown(self, turn: Turn) -> None:
        del self._young[turn]
        self._young_of[turn.agent] -= 1
        if not self._young_of[turn.agent]:
            del self._young_of[turn.agent]
