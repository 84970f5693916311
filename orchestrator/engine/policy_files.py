"""The policy that decides now, made of its files again whenever one of them has changed.

A file that is broken changes nothing: the policy before it goes on, at a start too, from the contents that the
journal keeps. The workspace's own file counts in the content that a person said yes to, whatever it holds since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

import anyio
import msgspec

from orchestrator.core.content import digest_of
from orchestrator.core.errors import FileNotFound, OrchestratorError, PolicyInvalid, VersionUnknown
from orchestrator.core.events.base import Event, Origin
from orchestrator.core.events.codec import tag_of
from orchestrator.core.events.policies import Layer, PolicyFile, PolicyLoaded, PolicyRejected
from orchestrator.core.ids import Checksum, Digest, Seq, WorkspacePath, show
from orchestrator.core.policy.advice import openings
from orchestrator.core.policy.parse import is_workspace_file, parse_layers, parse_policy
from orchestrator.core.policy.reader import PolicyText
from orchestrator.core.policy.rules import WORKSPACE_FILE, Policy, Rule
from orchestrator.core.projections.policies import Policies
from orchestrator.core.text.unified_diff import Side, unified
from orchestrator.engine.services import Services
from orchestrator.logs import logger
from orchestrator.ports.journal import EventFilter, Journal
from orchestrator.ports.workspace import Workspace

STREAM = "policy"

MOST_BYTES = 256 * 1024
"""Of the workspace's own file."""

_NOTHING = PolicyText("workspace", WORKSPACE_FILE, "")
"""A workspace's file that is not there tightens nothing."""


class PolicyFiles(msgspec.Struct, frozen=True):
    """Where policies are read from."""

    read: Callable[[], tuple[PolicyText, ...]]  # the operator's files; raises PolicyInvalid
    signature: Callable[[], object]  # another value once one of all files, the workspace's too, may be another
    shipped: Mapping[str, str]  # the texts of those that may be extended, by name
    own_state: tuple[WorkspacePath, ...] = ()  # the daemon's own files, where the workspace holds them
    mark_tools: Callable[[bool], None] = lambda vary: None  # whether not everybody is offered the same tools


class WaitingFile(msgspec.Struct, frozen=True):
    """The workspace's file as it is, where nobody said yes to it; an empty text is a file that is not there."""

    text: PolicyText
    problem: str = ""  # why it could not be used


class LoadedPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """A policy, what it was made of, and what of the present files it leaves out."""

    policy: Policy
    texts: tuple[PolicyText, ...]
    error: PolicyInvalid | None = None  # why the operator's present files are not used
    waiting: WaitingFile | None = None
    signature: object = None


async def load(
    files: PolicyFiles, known: Policies, journal: Journal, workspace: Workspace, before: LoadedPolicy | None = None
) -> LoadedPolicy:
    """Read the files; while they are broken, `before` goes on, or at a start what was loaded last.

    Raises PolicyInvalid where there is nothing to go on with.
    """
    signature, error = files.signature(), None
    approved = await _kept("workspace", WORKSPACE_FILE, known.approved, journal) or _NOTHING
    tightening = (approved,) if approved.text else ()
    try:
        texts = (*files.read(), *tightening)
        policy = parse_layers(texts, files.shipped)
    except PolicyInvalid as invalid:
        held = before.texts if before is not None else await _last(known, journal)
        texts = (*(text for text in held if text.layer != "workspace"), *tightening)
        if len(texts) == len(tightening):
            raise
        policy, error = parse_layers(texts, files.shipped), invalid
    return LoadedPolicy(
        policy=policy.guarding(files.own_state),
        texts=texts,
        error=error,
        waiting=_waiting(workspace, approved, texts, files.shipped),
        signature=signature,
    )


async def _last(known: Policies, journal: Journal) -> tuple[PolicyText, ...]:
    """The files of the policy that was loaded last; none where one of them is not kept."""
    kept = [await _kept(file.layer, file.source, file.digest, journal) for file in known.files]
    found = tuple(text for text in kept if text is not None)
    return found if len(found) == len(kept) else ()


async def _kept(layer: Layer, source: str, digest: Digest | None, journal: Journal) -> PolicyText | None:
    data = await journal.blob(digest) if digest is not None else None
    return PolicyText(layer, source, data.decode("utf-8", "surrogatepass")) if data is not None else None


def _waiting(
    workspace: Workspace, approved: PolicyText, texts: tuple[PolicyText, ...], shipped: Mapping[str, str]
) -> WaitingFile | None:
    """The workspace's file, where it is not the one that a person said yes to."""
    present = _NOTHING
    try:
        data = workspace.read(WorkspacePath(WORKSPACE_FILE), most=MOST_BYTES).data
        present = PolicyText("workspace", WORKSPACE_FILE, data.decode())
        if present.digest == approved.digest:
            return None
        parse_layers((*(text for text in texts if text.layer != "workspace"), present), shipped)
    except FileNotFound:
        return WaitingFile(present) if approved.text else None
    except UnicodeDecodeError as error:
        return WaitingFile(present, f"{WORKSPACE_FILE} is not UTF-8 text: {error}")
    except OrchestratorError as error:
        return WaitingFile(present, error.message)
    return WaitingFile(present)


class PolicyKeeper:
    """Takes up changed files before the next call, all of them at once."""

    def __init__(self, services: Services, files: PolicyFiles, loaded: LoadedPolicy) -> None:
        self._s, self.files, self.now = services, files, loaded
        self._lock = anyio.Lock()
        self._log = logger("engine")

    async def refresh(self, *, again: bool = False) -> None:
        """Look whether a file has changed; `again`: read them all the same. Cost without a change: some 25 µs."""
        if not again and self.files.signature() == self.now.signature:
            return
        async with self._lock:
            if again or self.files.signature() != self.now.signature:
                known, journal = self._s.state.policies, self._s.journal
                now = await load(self.files, known, journal, self._s.workspace, before=self.now)
                await self._record(now)
                self.now, self._s.permissions.policy = now, now.policy

    async def record(self) -> None:
        """Journal what the start has loaded, where it is another policy than before."""
        await self._record(self.now)

    async def _record(self, now: LoadedPolicy) -> None:
        self.files.mark_tools(
            any(profile.tools_off for profile in now.policy.profiles) or any(map(_lets_approve, now.policy.rules))
        )
        known, events, blobs = self._s.state.policies, list[tuple[str, Event]](), list[tuple[Digest, bytes]]()
        for source, message in _troubles(now):
            digest = Checksum(digest_of(message.encode()))
            if known.rejected(source) != digest:
                events.append((STREAM, PolicyRejected(source=source, digest=digest, message=message[:2000])))
                self._log.warning("a policy file is not used", error=message)
        if known.digest != now.policy.digest:
            files = tuple(PolicyFile(text.layer, text.source, text.digest) for text in now.texts)
            blobs += [(text.digest, text.data) for text in now.texts]
            rules, source = len(now.policy.rules), now.policy.source
            event = PolicyLoaded(digest=now.policy.digest, source=source, rules=rules, files=files)
            events.append((STREAM, event))
        if events:
            await self._s.notes.note(Origin(), *events, blobs=tuple(blobs))

    @cached_property
    def default(self) -> Policy:
        """The shipped default, which others are compared with."""
        return parse_policy(self.files.shipped["default"], source="policies/default.toml")

    async def at(self, seq: Seq) -> tuple[LoadedPolicy, tuple[str, ...]]:
        """The policy that decided after this event, from what the journal keeps, and notes. Raises VersionUnknown."""
        loaded: PolicyLoaded | None = None
        async for recorded in self._s.journal.events(EventFilter(tags=(tag_of(PolicyLoaded),), until=seq)):
            if isinstance(recorded.event, PolicyLoaded):
                loaded = recorded.event
        files = loaded.files if loaded is not None else ()
        kept = [await _kept(file.layer, file.source, file.digest, self._s.journal) for file in files]
        texts = tuple(text for text in kept if text is not None)
        if loaded is None or len(texts) < len(kept):
            raise VersionUnknown(f"which policy held at {show(seq)} is not kept")
        policy = parse_layers(texts, self.files.shipped).guarding(self.files.own_state)
        differs = "the shipped policies were others then: the rules that come from them are those of today"
        return LoadedPolicy(policy=policy, texts=texts), () if policy.digest == loaded.digest else (differs,)

    def unused(self) -> Iterator[str]:
        """The files that can't be used, and what answers in their place."""
        for _, message in _troubles(self.now):
            yield f"not used: {message}. The policy before it goes on; mend the file"

    def notes(self) -> Iterator[str]:
        """What a person should know of the policy files, and do."""
        yield from self.unused()
        yield from (message for _, message in openings(self.now.policy, self.default))
        waiting = self.now.waiting
        if waiting is not None and not waiting.problem:
            what = "has changed" if waiting.text.text else "is gone"
            since = f"{what}, and what a person said yes to before holds on"
            if all(text.layer != "workspace" for text in self.now.texts):
                since = "is new: nobody said yes to it yet, so none of its rules holds"
            yield (
                f"{WORKSPACE_FILE} {since}: `orchestrator policy show` "
                f"shows it, `orchestrator policy approve {waiting.text.digest}` takes it up"
            )

    def beneath_state(self) -> tuple[PolicyText, ...]:
        """The operator's files over which that in the state directory is laid."""
        return tuple(text for text in self.now.texts if text.layer in ("system", "user"))

    def beside(self, text: str, source: str) -> Policy:
        """The policy that another file would make, in place of the state directory's or the workspace's own.

        Raises PolicyInvalid.
        """
        layer: Layer = "workspace" if is_workspace_file(source) else "state"
        beneath = ("system", "user") if layer == "state" else ("shipped", "system", "user", "state")
        held = {text.layer: text for text in self.now.texts}
        above = [held["workspace"]] if layer == "state" and "workspace" in held else []
        texts = (*(held[each] for each in beneath if each in held), PolicyText(layer, source, text), *above)
        return parse_layers(texts, self.files.shipped).guarding(self.files.own_state)

    def difference(self) -> str:
        """From the workspace's file that a person said yes to, to the whole of the one that waits."""
        waiting, texts = self.now.waiting, self.now.texts
        before = next((text for text in texts if text.layer == "workspace"), _NOTHING)
        if waiting is None:
            return ""
        old, new = (Side(WORKSPACE_FILE, text.text.splitlines()) for text in (before, waiting.text))
        return unified(old, new, context=MOST_BYTES).text


def _troubles(now: LoadedPolicy) -> Iterator[tuple[str, str]]:
    """The files that can't be used, and why."""
    if now.error is not None:
        yield str(now.error.details.get("source", "policy")), now.error.message
    if now.waiting is not None and now.waiting.problem:
        yield WORKSPACE_FILE, now.waiting.problem


def _lets_approve(rule: Rule) -> bool:
    """Whether agents of class review may be offered what people do."""
    return rule.verdict == "allow" and "approve" in rule.actions and set(rule.agents) != {"class:person"}
