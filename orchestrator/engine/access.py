"""What a caller may be shown: by policy, or by a person's yes to exactly that version.

Whatever hands out names, facts or contents takes an `Access`, and only `AccessGate` makes one; so an operation that
does not ask policy has nothing to show.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from orchestrator.core.change import PathChange, PermissionCheck, Provenance
from orchestrator.core.errors import ApprovalRequired, Denied, escaped
from orchestrator.core.events.conflicts import ApprovalRequested
from orchestrator.core.ids import Digest, Seq, WorkspacePath, show
from orchestrator.core.paths import ancestors
from orchestrator.core.policy.rules import Allow, Deny, NeedApproval
from orchestrator.core.projections.pending import Approval
from orchestrator.core.projections.state import State
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.notes import Notes
from orchestrator.engine.permissions import Permissions, denied
from orchestrator.ports.machine import Clock

Showing = Literal["list", "read", "search"]
"""The actions by which something is shown."""

WHATEVER = Seq(0)
"""In place of a version, where names and facts are asked for: a yes to these holds whatever the file becomes."""

Asks = dict[Showing, NeedApproval]
"""What a person must say yes to, by action."""

_DOING = {"list": "listing", "read": "reading", "search": "searching"}


class Access:
    """That a caller may be shown a path, as far as its name tells: no action is denied. Made by `AccessGate` alone."""

    __slots__ = ("_asks", "_call", "_gate", "approval", "caller", "path")

    def __init__(self, gate: AccessGate, caller: Caller, call: Call | None, path: WorkspacePath, asks: Asks) -> None:
        self._gate, self._call, self._asks = gate, call, asks  # without a call nobody is asked
        self.caller, self.path = caller, path
        self.approval: Seq | None = None
        """The granted request that lets it be shown."""

    @property
    def asks(self) -> bool:
        """Whether it takes a person's yes."""
        return bool(self._asks)


class NameAccess(Access):
    """That names and facts may be shown."""

    __slots__ = ()


class ContentAccess(Access):
    """That contents may be shown, each version of which is confirmed first."""

    __slots__ = ("_actions",)

    def __init__(  # made by the gate alone
        self,
        gate: AccessGate,
        caller: Caller,
        call: Call | None,
        path: WorkspacePath,
        asks: Asks,
        actions: Sequence[Showing],
    ) -> None:
        super().__init__(gate, caller, call, path, asks)
        self._actions = actions

    async def confirm(
        self, version: Seq, digest: Digest | None, *, size: int | None = None, asks: Asks | None = None
    ) -> None:
        """This version may be shown. `size`: its bytes, where the file may have had others when policy was asked.

        `asks`: what names that the file had ask besides. Raises Denied, and ApprovalRequired: a person is asked for
        this version.
        """
        known = size is None and not self._gate.tagged(self.path)  # the file may have brought tags along since
        own = self._asks if known else self._gate.asks(self.caller, self._actions, self.path, size=size)
        wanted = {**(asks or {}), **own}
        if wanted:
            self.approval = await self._gate.require(self.caller, self._call, self.path, wanted, version, digest)


class AccessGate:
    """Asks policy for what is to be shown, and a person where policy says so."""

    def __init__(self, permissions: Permissions, state: State, notes: Notes, clock: Clock) -> None:
        self._permissions, self._notes, self._clock = permissions, notes, clock
        self._pending, self._registry, self._tags = state.pending, state.registry, state.tags

    async def names(self, caller: Caller, call: Call, path: WorkspacePath, *, directory: bool = False) -> NameAccess:
        """Access to what is known of one path, and to a directory's names. Raises Denied, ApprovalRequired."""
        asks = self.asks(caller, ("list",), path, directory=directory)
        access = NameAccess(self, caller, call, path, asks)
        if asks and not self.lists(caller, path):
            access.approval = await self.require(caller, call, path, asks, WHATEVER, None, directory=directory)
        return access

    async def names_in(self, caller: Caller, call: Call, folder: WorkspacePath, hidden: WorkspacePath) -> None:
        """Access to the names in a folder in which all that there is, like `hidden`, takes a yes.

        Raises Denied, ApprovalRequired: a person is asked for the folder.
        """
        asks = self.asks(caller, ("list",), hidden)
        await self.require(caller, call, folder, asks, WHATEVER, None, directory=True)

    def content(
        self, caller: Caller, call: Call, path: WorkspacePath, actions: Sequence[Showing] = ("read",)
    ) -> ContentAccess:
        """Access to contents of one path that was named. Raises Denied."""
        return ContentAccess(self, caller, call, path, self.asks(caller, actions, path), actions)

    def content_of_many(
        self, caller: Caller, path: WorkspacePath, actions: Sequence[Showing] = ("read",)
    ) -> ContentAccess | None:
        """The same of a path that the caller did not name: nobody is asked for it. None: it is left out."""
        allowed = all(isinstance(self._permissions.verdict(caller, action, path), Allow) for action in actions)
        return ContentAccess(self, caller, None, path, {}, actions) if allowed else None

    def contents_of(
        self, caller: Caller, paths: Iterable[WorkspacePath], actions: Sequence[Showing]
    ) -> list[WorkspacePath]:
        """Those of many paths to whose contents `content_of_many` gives access."""
        allowed, allows = list[WorkspacePath](), self._permissions.allowing(caller, actions)
        for path in paths:
            allow = allows(path)
            if allow or (allow is None and self.content_of_many(caller, path, actions) is not None):
                allowed.append(path)
        return allowed

    async def require(
        self,
        caller: Caller,
        call: Call | None,
        path: WorkspacePath,
        asks: Asks,
        version: Seq,
        digest: Digest | None,
        *,
        directory: bool = False,
    ) -> Seq:
        """The granted request that lets exactly this be shown.

        Raises ApprovalRequired: a person is asked, unless `call` is None.
        """
        now = self._clock.now_ms()
        found = [self._pending.read_request(caller.agent, action, path, version, now) for action in asks]
        if any(one is not None and not _covers(one, ask) for one, ask in zip(found, asks.values(), strict=True)):
            found = [None]  # so much was not asked for
        granted = [item.seq for item in found if item is not None and item.state == "granted"]
        if len(granted) == len(found):
            return granted[0]
        if call is None:
            raise ApprovalRequired(f"{escaped(path)} needs a person's yes", details={"path": path})
        waiting = next((item.seq for item in found if item is not None and item.state == "waiting"), None)
        if waiting is None:
            checks = tuple(PermissionCheck(action, path, directory=directory) for action in asks)
            waiting = await self._ask(caller, call, PathChange(path, digest, digest), asks, checks, version)
        reason = next(iter(asks.values())).reason
        doing = " and ".join(_DOING[action] for action in asks)
        number = show(waiting)
        details = {"status": "waiting", "approval": number, "path": path}
        raise ApprovalRequired(
            f"{doing} {escaped(path)} needs a person's yes: {reason}",
            hint=f"It waits as {number}. Call again when it is granted, or await_change('{number}'); "
            "go on with other work until then.",
            details=details if version == WHATEVER else {**details, "version_id": show(version)},
        )

    async def _ask(
        self,
        caller: Caller,
        call: Call,
        content: PathChange,
        asks: Asks,
        checks: tuple[PermissionCheck, ...],
        version: Seq,
    ) -> Seq:
        policy = self._permissions.policy
        request = ApprovalRequested(
            provenance=Provenance(operation=call.operation.name),
            paths=(content,),
            rule="; ".join(dict.fromkeys(f"{ask.rule}: {ask.reason}" for ask in asks.values())),
            permissions=checks,
            expires_at=self._clock.now_ms() + policy.limits.approval_ttl_s * 1000,
            read_version=version,
        )
        recorded = await self._notes.append(caller.aside(call), (f"approval:{content.path}", request))
        return recorded[0].seq

    def asks(
        self,
        caller: Caller,
        actions: Sequence[Showing],
        path: WorkspacePath,
        *,
        directory: bool = False,
        size: int | None = None,
    ) -> Asks:
        """What a person must say yes to. Raises Denied."""
        asks: Asks = {}
        for action in actions:
            verdict = self._permissions.verdict(caller, action, path, directory=directory, size=size)
            if isinstance(verdict, Deny):
                raise denied(action, path, verdict)
            if isinstance(verdict, NeedApproval):
                asks[action] = verdict
        return asks

    def tagged(self, path: WorkspacePath) -> bool:
        """Whether tags were set on a path."""
        return bool(self._tags.of(path))

    def lists(self, caller: Caller, path: WorkspacePath) -> bool:
        """Whether the caller may know of a path without asking any more; a yes to a directory is to all in it."""
        verdict = self._permissions.verdict(caller, "list", path)
        if not isinstance(verdict, NeedApproval):
            return isinstance(verdict, Allow)
        return any(self._granted(caller, "list", name, WHATEVER) for name in (path, *ancestors(path)))

    def listed(self, caller: Caller, changes: Iterable[tuple[WorkspacePath, Seq]]) -> list[tuple[WorkspacePath, Seq]]:
        """Those of the changes that the caller may know of, by path. A count of others would tell of them."""
        return sorted(change for change in changes if self.lists(caller, change[0]))

    def asks_to_list(self, caller: Caller, path: WorkspacePath) -> bool:
        """Whether it takes a person's yes to let the caller know of a path, and nobody said it yet."""
        verdict = self._permissions.verdict(caller, "list", path)
        return isinstance(verdict, NeedApproval) and not self.lists(caller, path)

    def may_be_counted(self, caller: Caller, path: WorkspacePath) -> bool:
        """Whether an answer that leaves a path out may say so: a count of what a glob names tells of its name."""
        return not isinstance(self._permissions.verdict(caller, "list", path), Deny)

    def refuse_hidden(self, caller: Caller, path: WorkspacePath) -> None:
        """Of what the caller may neither list nor read it learns nothing, whether it is there or not. Raises Denied."""
        verdict = self._permissions.verdict(caller, "list", path)
        if isinstance(verdict, Deny) and isinstance(self._permissions.verdict(caller, "read", path), Deny):
            raise denied("list", path, verdict)

    def refuse_unlisted(self, caller: Caller, paths: Iterable[WorkspacePath], what: str) -> None:
        """Of what the caller did not name itself. Raises Denied, without the names, or how many they are."""
        if not all(self.lists(caller, path) for path in paths):
            raise Denied(
                f"{what} files whose names are not shown",
                hint="Name the paths that you mean. list_files of a folder asks for its names, where policy says so.",
            )

    def shows(self, caller: Caller, path: WorkspacePath) -> bool:
        """Whether the present content may be shown without asking anybody any more."""
        verdict, entry = self._permissions.verdict(caller, "read", path), self._registry.get(path)
        if not isinstance(verdict, NeedApproval) or entry is None:
            return isinstance(verdict, Allow)
        return self._granted(caller, "read", path, entry.version)

    def _granted(self, caller: Caller, action: Showing, path: WorkspacePath, version: Seq) -> bool:
        found = self._pending.read_request(caller.agent, action, path, version, self._clock.now_ms())
        return found is not None and found.state == "granted"


def _covers(request: Approval, ask: NeedApproval) -> bool:
    """Whether what was asked for is all that is asked for now: a limit of a profile is lifted for so many lines."""
    return not ask.rule.startswith("profile.") or ask.reason in request.request.rule
