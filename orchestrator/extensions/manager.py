"""The plugins that the operator named: found, loaded, asked, and left out when they fail."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, Literal

import anyio
import msgspec
import pluggy

from orchestrator.core.errors import plural
from orchestrator.core.events.base import Recorded
from orchestrator.core.events.files import ChangeApplied, ChangeIntended
from orchestrator.core.ids import Seq
from orchestrator.core.policy.reviewers import Plugins
from orchestrator.extensions.detached_thread import MOST_SAID, DetachedFailure, DetachedThread
from orchestrator.extensions.hookspecs import GROUP, AppliedChange, ChangedPath, Hooks
from orchestrator.logs import logger
from orchestrator.ports.reviewers import Reviewer, ReviewerUnusable

MOST_FAILURES: Final = 3
"""In a row; after these a plugin's change hook is not called again until the next start."""

MOST_WAITING: Final = 1000
"""Changes that wait for the hooks; those over it are counted, and told to nobody."""

REVIEWER: Final = "orchestrator_reviewer"
APPLIED: Final = "orchestrator_change_applied"


class PluginState(msgspec.Struct, frozen=True):
    """One plugin, as `status` tells of it."""

    name: str
    state: Literal["loaded", "failed", "switched off"]
    problem: str = ""

    def __str__(self) -> str:
        return f"plugin {self.name}: {self.state}" + (f", {self.problem}" if self.problem else "")


def _installed() -> Iterable[EntryPoint]:
    return entry_points(group=GROUP)


class Extensions:
    """Whatever a plugin does, the rest goes on."""

    def __init__(self, settings: Plugins, *, found: Callable[[], Iterable[EntryPoint]] = _installed) -> None:
        self._settings, self._found = settings, found
        self._managers: dict[str, pluggy.PluginManager] = {}  # one each: no plugin's methods run for another's sake
        self._states: dict[str, PluginState] = {}
        self._failures: dict[str, int] = {}
        self._missed = 0
        self._reasons: dict[Seq, str] = {}  # of changes without an outcome yet
        self._waiting: deque[AppliedChange] = deque()
        self._more = anyio.Event()
        self._log = logger("plugins")

    async def load(self) -> None:
        """Import what is enabled, and nothing else."""
        if not self._settings.enabled:
            return
        known: dict[str, list[EntryPoint]] = {}
        for point in self._found():
            known.setdefault(point.name, []).append(point)
        for name in self._settings.enabled:
            await self._load(name, known.get(name, []))

    async def _load(self, name: str, points: list[EntryPoint]) -> None:
        if len(points) != 1:
            why = "several packages have a plugin of this name" if points else "no installed package has it"
            self._fail(name, why)
            return
        manager = await self._asked(name, partial(_registered, name, points[0]))
        if manager is not None:
            self._managers[name] = manager
            self._states[name] = PluginState(name, "loaded")

    def states(self) -> tuple[PluginState, ...]:
        """All that are enabled, in the operator's order."""
        return tuple(self._states[name] for name in self._settings.enabled if name in self._states)

    def notes(self) -> tuple[str, ...]:
        """What `status` says."""
        lines = [str(item) for item in self.states()]
        if self._missed:
            lines.append(f"plugins were not told of {plural(self._missed, 'change')}: they are too slow")
        return tuple(lines)

    def failures(self) -> tuple[str, ...]:
        """What `up` says: the plugins that do not work."""
        return tuple(str(item) for item in self.states() if item.state != "loaded")

    # --- reviewers ----------------------------------------------------------------------

    async def reviewer(self, name: str) -> Reviewer:
        """The reviewer that a plugin makes. Raises ReviewerUnusable."""
        state = self._states.get(name)
        if state is None or state.state != "loaded":
            problem = state.problem if state else "it is not in [plugins] enabled, or was put there since the start"
            raise ReviewerUnusable(f"plugin {name} is not loaded: {problem}", hint="See `orchestrator status`.")
        made = await self._asked(name, partial(self._make, name))
        if made is None:
            raise ReviewerUnusable(f"plugin {name} made no reviewer: {self._states[name].problem or 'it has none'}")
        reviewer: Reviewer = made
        return reviewer

    def _make(self, name: str) -> Any:
        answers = self._hook(name, REVIEWER)()
        return answers[0]() if answers else None

    def note(self, name: str, problem: str, *, trace: str = "") -> None:
        """What was wrong with a plugin that stays loaded."""
        self._fail(name, problem, keep=True, trace=trace)

    # --- changes ------------------------------------------------------------------------

    def hear(self, recorded: Recorded) -> None:
        """Hand each applied change on; `reason` stands in the event of its intent."""
        event = recorded.event
        if isinstance(event, ChangeIntended):
            self._reasons[recorded.seq] = event.provenance.reason
        elif isinstance(change := getattr(event, "change", None), int):
            reason = self._reasons.pop(Seq(change), "")
            if isinstance(event, ChangeApplied):
                self.tell(_applied(recorded, event, reason))

    def tell(self, change: AppliedChange) -> None:
        """Leave a change for the hooks; never waits."""
        if not self._states:
            return
        if len(self._waiting) >= MOST_WAITING:
            self._missed += 1
            return
        self._waiting.append(change)
        self._more.set()

    async def run(self) -> None:
        """Call the change hooks, one change after the other, until cancelled."""
        while True:
            while self._waiting:
                change = self._waiting.popleft()
                for name, state in tuple(self._states.items()):
                    if state.state == "loaded" and self._hook(name, APPLIED).get_hookimpls():
                        await self._call(name, change)
            self._more = anyio.Event()
            await self._more.wait()

    async def _call(self, name: str, change: AppliedChange) -> None:
        told = await self._asked(name, partial(self._apply, name, change), keep=True)
        self._failures[name] = 0 if told is not None else self._failures.get(name, 0) + 1
        if self._failures[name] >= MOST_FAILURES:
            problem = self._states[name].problem
            self._states[name] = PluginState(name, "switched off", f"{MOST_FAILURES} failures in a row; {problem}")

    def _apply(self, name: str, change: AppliedChange) -> bool:
        self._hook(name, APPLIED)(change=change)
        return True

    # --- the fence ----------------------------------------------------------------------

    async def _asked(self, name: str, work: Callable[[], Any], *, keep: bool = False) -> Any:
        """What a plugin answers; None where it failed, which is logged and noted. `keep`: it stays loaded."""
        try:
            return await DetachedThread(work, name=f"plugin {name}").run(self._settings.timeout_s)
        except TimeoutError:
            self._fail(name, f"not done in {self._settings.timeout_s:g} s", keep=keep)
        except DetachedFailure as error:
            self._fail(name, error.fault.shown[:MOST_SAID], keep=keep, trace=error.fault.trace)
        return None

    def _fail(self, name: str, why: str, *, keep: bool = False, trace: str = "") -> None:
        self._log.warning("a plugin failed", plugin=name, problem=why, trace=trace)
        self._states[name] = PluginState(name, "loaded" if keep else "failed", why)

    def _hook(self, name: str, hook: str) -> pluggy.HookCaller:
        """A hook as this one plugin answers it."""
        caller: pluggy.HookCaller = getattr(self._managers[name].hook, hook)
        return caller


def _registered(name: str, point: EntryPoint) -> pluggy.PluginManager:
    """A manager with this plugin alone. Blocking; whatever its import and its making raise."""
    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(Hooks)
    plugin = point.load()
    manager.register(plugin() if isinstance(plugin, type) else plugin, name)
    manager.check_pending()
    return manager


def _applied(recorded: Recorded, event: ChangeApplied, reason: str) -> AppliedChange:
    return AppliedChange(
        seq=recorded.seq,
        at=recorded.at,
        agent=recorded.agent,
        session=recorded.session,
        operation=event.provenance.operation,
        rung=event.fit.rung,
        paths=tuple(ChangedPath(path.path, path.before, path.after, path.moved_from) for path in event.paths),
        reason=reason,
        reverts=event.provenance.reverts,
    )
