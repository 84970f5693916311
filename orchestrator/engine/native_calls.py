"""Calls of agents' own tools, as the hooks of their clients tell of them: their sessions, and what each may change.

A hook is a race, no lock: between its answer and the tool's write another program may write. What is found on the
disk has the last word.
"""

from __future__ import annotations

from orchestrator.api import native_edits as n
from orchestrator.core.ids import SessionId, WorkspacePath
from orchestrator.core.text.forms.begin_patch import parse_begin_patch
from orchestrator.core.text.forms.hunks import FilePatch
from orchestrator.core.text.forms.recognise import joined
from orchestrator.core.text.forms.rows import Rows
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.external.batches import ExternalBatch
from orchestrator.engine.external.native_claims import Key, NativeClaim, NativeClaims
from orchestrator.engine.services import Services
from orchestrator.engine.sessions import SessionLifecycle

IDLE_MS = 1_800_000
"""A session of a client's hooks ends after so long without a call."""

MOST_SESSIONS = 1_000
"""That hooks keep open; the one that was quiet for longest ends first."""


class NativeCalls:
    """The calls that are under way, and the sessions that they are of."""

    def __init__(self, services: Services, claims: NativeClaims, lifecycle: SessionLifecycle) -> None:
        self._s, self._claims, self._lifecycle = services, claims, lifecycle
        self._held: dict[SessionId, tuple[Caller, int]] = {}
        """Sessions whose hooks come and go, and when they last came; the newest is the last one."""

    async def hold(self, caller: Caller) -> None:
        """Keep the session open between the calls of its hooks; those that are idle end."""
        now = self._s.clock.now_ms()
        if self._held.pop(caller.session, None) is None:
            self._lifecycle.hold(caller)
        self._held[caller.session] = (caller, now)
        for session, (idle, since) in tuple(self._held.items()):
            if since >= now - IDLE_MS and len(self._held) <= MOST_SESSIONS:
                break
            del self._held[session]
            await self._lifecycle.closed(idle)

    def group(self, caller: Caller, call: Call, params: n.NativeCall) -> ExternalBatch:
        """What one call changes."""
        return ExternalBatch(self._s, "hook", caller.aside(call), f"{params.client} {params.tool}")

    def begin(self, caller: Caller, params: n.NativeCall, claim: NativeClaim) -> None:
        """From here on what fits the claim is this call's."""
        self._claims.begin(self._key(caller, params, claim.path), claim)

    def get(self, caller: Caller, params: n.NativeCall, path: WorkspacePath | None) -> NativeClaim | None:
        """What the call may do to this path, or to any; None where it said nothing before."""
        return self._claims.get(self._key(caller, params, path))

    def end(self, caller: Caller, params: n.NativeCall, path: WorkspacePath | None) -> None:
        """It did what it did."""
        self._claims.end(self._key(caller, params, path))

    def patches(self, params: n.NativeCall) -> tuple[tuple[WorkspacePath, WorkspacePath, FilePatch], ...]:
        """The files of a patch, each with its name afterwards. Raises PatchInvalid, the PathError family."""
        found = []
        for patch in joined(parse_begin_patch(Rows(params.patch or ""))):
            old, new = patch.old_path, patch.new_path
            source = self._s.paths.file(old or new or "", may_create=True)
            target = self._s.paths.file(new or old or "", may_create=True) if patch.renames else source
            found.append((source, target, patch))
        return tuple(found)

    @staticmethod
    def _key(caller: Caller, params: n.NativeCall, path: WorkspacePath | None) -> Key:
        return caller.session, f"{params.call}\0{path or ''}"
