"""The plugins that the operator named: found, loaded, asked, and left out when they fail."""

from __future__ import annotations

import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, Literal

import anyio
import msgspec
import pluggy
from anyio import from_thread, lowlevel

from orchestrator.core.errors import escaped, plural
from orchestrator.core.events.base import Recorded
from orchestrator.core.events.files import ChangeApplied
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.policy.rules import Plugins
from orchestrator.extensions.hookspecs import GROUP, AppliedChange, Hooks
from orchestrator.logs import logger
from orchestrator.ports.summaries import PluginSummary

MOST_FAILURES: Final = 3
"""Of one hook, in a row; after these the plugin is not called again until the next start."""

MOST_SUMMARIES: Final = 4
"""That plugins make at a time."""

MOST_WAITING: Final = 1000
"""Changes that wait for the hooks; those over it are only counted."""


State = Literal["loaded", "failed", "switched off"]


class Plugin(msgspec.Struct):
    """One plugin that is enabled, and how it does."""

    name: str
    state: State = "failed"
    problem: str = ""
    manager: pluggy.PluginManager | None = None  # its own: no plugin's methods run for another's sake
    version: str = ""
    failures: dict[str, int] = {}  # by hook, in a row

    def __str__(self) -> str:
        return f"plugin {self.name}: {self.state}" + (f", {self.problem}" if self.problem else "")

    def hook(self, name: str) -> pluggy.HookCaller | None:
        """A hook as this one plugin answers it; None where it has none of this name, or is not called any more."""
        if self.manager is None or self.state != "loaded":
            return None
        caller: pluggy.HookCaller = getattr(self.manager.hook, name)
        return caller if caller.get_hookimpls() else None


_APPLIED: Final = "orchestrator_change_applied"
_SUMMARIZE: Final = "orchestrator_summarize"


def _installed() -> Iterable[EntryPoint]:
    return entry_points(group=GROUP)


class Extensions:
    """Whatever a plugin does, the rest goes on."""

    def __init__(self, settings: Plugins, *, found: Callable[[], Iterable[EntryPoint]] = _installed) -> None:
        self._settings, self._found = settings, found
        self._plugins: dict[str, Plugin] = {}  # in the operator's order
        self._missed = 0
        self._waiting: deque[AppliedChange] = deque()
        self._more = anyio.Event()
        self._summaries = anyio.Semaphore(MOST_SUMMARIES)
        self._log = logger("plugins")

    async def load(self) -> None:
        """Import what is enabled, and nothing else."""
        known = [*self._found()] if self._settings.enabled else []
        for name in self._settings.enabled:
            plugin = self._plugins[name] = Plugin(name)
            points = [point for point in known if point.name == name]
            if len(points) == 1:
                plugin.version = points[0].dist.version if points[0].dist is not None else ""
                plugin.manager = await self._ask(plugin, partial(_registered, points[0]), or_else="failed")
                plugin.state = "failed" if plugin.manager is None else "loaded"
            else:
                why = "several packages have a plugin of this name" if points else "no installed package has it"
                self._fail(plugin, why, "failed")

    def states(self) -> tuple[Plugin, ...]:
        """All that are enabled."""
        return tuple(self._plugins.values())

    def notes(self) -> tuple[str, ...]:
        """What `status` says."""
        lines = [str(plugin) for plugin in self.states()]
        if self._missed:
            lines.append(f"plugins were not notified of {plural(self._missed, 'change')}: they are too slow")
        return tuple(lines)

    def failures(self) -> tuple[str, ...]:
        """What `up` says: the plugins that do not work."""
        return tuple(str(plugin) for plugin in self.states() if plugin.state != "loaded")

    def observe(self, recorded: Recorded) -> None:
        """Queue each applied change for the hooks."""
        if isinstance(recorded.event, ChangeApplied):
            self.notify(_applied(recorded, recorded.event))

    def notify(self, change: AppliedChange) -> None:
        """Queue a change for the hooks; never waits."""
        if len(self._waiting) >= MOST_WAITING:
            self._missed += 1
        elif self._plugins:
            self._waiting.append(change)
            self._more.set()

    async def run(self) -> None:
        """Call the change hooks, one change after the other, until cancelled."""
        while True:
            while self._waiting:
                change = self._waiting.popleft()
                for plugin in self.states():
                    if (hook := plugin.hook(_APPLIED)) is not None:
                        self._count(plugin, _APPLIED, await self._ask(plugin, partial(hook, change=change)))
            self._more = anyio.Event()
            await self._more.wait()

    @property
    def summarizers(self) -> tuple[str, ...]:
        """See `ports.SummaryPlugins`."""
        return tuple(_named(plugin) for plugin in self.states() if plugin.hook(_SUMMARIZE) is not None)

    async def summarize(self, path: WorkspacePath, text: str, max_tokens: int) -> PluginSummary:
        """See `ports.SummaryPlugins`."""
        failures = []
        with anyio.move_on_after(self._settings.timeout_s) as waiting:
            await self._summaries.acquire()
        if waiting.cancelled_caught:
            return PluginSummary(failures=("the plugins are busy with other summaries",))
        try:
            for plugin in self.states():
                if (hook := plugin.hook(_SUMMARIZE)) is None:
                    continue
                work = partial(_said_of, hook, path, text, max_tokens)
                answers = await self._ask(plugin, work)
                self._count(plugin, _SUMMARIZE, answers)
                if answers is None:
                    failures.append(f"plugin {plugin.name}: {plugin.problem}")
                elif answers:
                    return PluginSummary(_named(plugin), answers[0])
            return PluginSummary(failures=tuple(failures))
        finally:
            self._summaries.release()

    def _count(self, plugin: Plugin, hook: str, answers: Any) -> None:
        """Switch off a plugin of which a hook fails again and again."""
        plugin.failures[hook] = 0 if answers is not None else plugin.failures.get(hook, 0) + 1
        if plugin.failures[hook] >= MOST_FAILURES:
            plugin.state, plugin.problem = "switched off", f"{MOST_FAILURES} failures in a row; {plugin.problem}"

    async def _ask(self, plugin: Plugin, work: Callable[[], Any], *, or_else: State = "loaded") -> Any:
        """What a plugin answers; None where it failed, which is logged and noted. `or_else`: its state then.

        The work is done in a thread, which is left alone when its time is over; nothing that it raises is raised here.
        """
        token, done = lowlevel.current_token(), anyio.Event()
        results: list[Any] = []
        failures: list[tuple[str, str]] = []

        def attempt() -> None:
            try:
                results.append(work())
            except BaseException as error:  # noqa: BLE001  # whatever a plugin raises, KeyboardInterrupt too
                failures.append(_failure(error))
            with suppress(anyio.RunFinishedError, RuntimeError):  # the daemon ended meanwhile
                from_thread.run_sync(done.set, token=token)

        threading.Thread(target=attempt, name=f"plugin {plugin.name}", daemon=True).start()
        with anyio.move_on_after(self._settings.timeout_s):
            await done.wait()
        if results:
            return results[0]
        why, trace = failures[0] if failures else (f"not done in {self._settings.timeout_s:g} s", "")
        self._fail(plugin, why, or_else, trace=trace)
        return None

    def _fail(self, plugin: Plugin, why: str, state: State = "loaded", *, trace: str = "") -> None:
        self._log.warning("a plugin failed", plugin=plugin.name, problem=why, trace=trace)
        if plugin.state != "switched off":  # by another hook, meanwhile
            plugin.state, plugin.problem = state, why


def _named(plugin: Plugin) -> str:
    return f"{plugin.name} {plugin.version}".strip()


def _said_of(hook: pluggy.HookCaller, path: WorkspacePath, text: str, max_tokens: int) -> list[str]:
    """What a plugin says of a text, as texts of our own. Blocking; whatever it raises."""
    answers = hook(path=str(path), text=text, max_tokens=max_tokens)
    for answer in answers:
        if not isinstance(answer, str):
            raise TypeError(f"the summary is no text, but {type(answer).__name__}")
    return [said for answer in answers if (said := str.__str__(answer).encode("utf-8", "replace").decode().strip())]


def _registered(point: EntryPoint) -> pluggy.PluginManager:
    """A manager with this plugin alone. Blocking; whatever its import and its making raise."""
    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(Hooks)
    plugin = point.load()
    manager.register(plugin() if isinstance(plugin, type) else plugin, point.name)
    manager.check_pending()
    return manager


def _applied(recorded: Recorded, event: ChangeApplied) -> AppliedChange:
    return AppliedChange(
        seq=recorded.seq,
        at=recorded.at,
        agent=recorded.agent,
        session=recorded.session,
        operation=event.provenance.operation,
        rung=event.fit.rung,
        paths=event.paths,
        reverts=event.provenance.reverts,
    )


MOST_SAID: Final = 300
MOST_TRACE: Final = 8_000


def _failure(error: BaseException) -> tuple[str, str]:
    """What foreign work raised, and its trace, as plain text: nobody calls the methods of its exception after this.

    In the thread where it was raised: its own methods may raise again, or hang.
    """
    kind, message = _said(lambda: [type(error).__name__[:MOST_SAID]]), _said(lambda: [str(error)[:MOST_SAID]])
    trace = _said(lambda: "".join(traceback.format_exception(error))[-MOST_TRACE:].split("\n"))
    return (f"{kind}: {message}" if message else kind)[:MOST_SAID], trace


def _said(lines: Callable[[], list[str]]) -> str:
    try:
        return "\n".join(map(escaped, lines()))
    except BaseException:  # noqa: BLE001  # an exception whose own methods raise
        return "(can't be shown)"
