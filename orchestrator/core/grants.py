"""Grants: what a person allowed an agent for a while, where policy would ask each time. They never lift a deny."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import ClassVar

import msgspec

from orchestrator.core.change import PermissionCheck
from orchestrator.core.errors import ParameterInvalid, VersionUnknown, escaped
from orchestrator.core.events.base import Event, RecordedLike
from orchestrator.core.events.conflicts import GrantAdded, GrantExpired, GrantRevoked
from orchestrator.core.ids import AgentName, Seq, SessionId, WorkspacePath, show
from orchestrator.core.paths import ROOT, join
from orchestrator.core.policy.matcher import Matcher
from orchestrator.core.policy.protected import literal
from orchestrator.core.policy.rules import Action, Request, Rule
from orchestrator.core.policy.tables import glob_problem
from orchestrator.core.projections.base import Projection

_Act = tuple[Action, bool]
"""An action, and whether on others' work."""


class Grant(msgspec.Struct, frozen=True, dict=True):
    """One that neither was revoked nor expired."""

    seq: Seq
    at: int  # ms since the epoch
    added: GrantAdded

    @property
    def rule(self) -> str:
        """What verdicts name it."""
        return f"grant {show(self.seq)}"

    @cached_property
    def _matcher(self) -> Matcher:
        """Its globs, ready to match as those of an allow rule: in every spelling of a path, or not at all."""
        added = self.added
        return Matcher((Rule(name="grant", agents=("*",), actions=added.actions, paths=added.globs, verdict="allow"),))

    def names(self, path: WorkspacePath, *, directory: bool = False) -> bool:
        """Whether its globs name a path, whoever asks."""
        return bool(self._matcher.matching(path, directory=directory))

    def covers(self, request: Request) -> bool:
        """Whether it allows this act, in whatever session."""
        added = self.added
        return (
            request.action in added.actions
            and request.agent == added.agent
            and (added.others_work or not request.others_work)
            and added.command == request.command
            and self.names(request.path, directory=request.directory)
        )


class Grants(Projection):
    """The grants that hold. Folds have no clock: who uses one asks for its time, too."""

    folds: ClassVar[frozenset[type[Event]]] = frozenset({GrantAdded, GrantRevoked, GrantExpired})
    _grants: dict[Seq, Grant]

    def __init__(self) -> None:
        super().__init__()
        self._of: dict[AgentName, list[Grant]] = {}

    def __iter__(self) -> Iterator[Grant]:
        return iter(tuple(self._grants.values()))

    def need(self, seq: Seq) -> Grant:
        """Raises VersionUnknown."""
        if (grant := self._grants.get(seq)) is None:
            raise VersionUnknown(f"{show(seq)} is no grant that holds", hint="`orchestrator grants list` names them.")
        return grant

    def covering(self, request: Request, session: SessionId | None, now_ms: int) -> Iterator[Grant]:
        """Those that allow an act in a session now, oldest first. Cost: the agent's grants."""
        for grant in self._of.get(AgentName(request.agent), ()):
            added = grant.added
            if added.expires_at > now_ms and added.session in (None, session) and grant.covers(request):
                yield grant

    def apply(self, recorded: RecordedLike) -> None:
        match recorded.event:
            case GrantAdded() as added:
                self._grants[recorded.seq] = Grant(recorded.seq, recorded.at, added)
            case GrantRevoked(grant=seq) | GrantExpired(grant=seq):
                self._grants.pop(seq, None)
            case _:
                return
        self.index()

    def index(self) -> None:
        self._of = {}
        for grant in self._grants.values():
            self._of.setdefault(grant.added.agent, []).append(grant)


def grants_for(
    asked: Sequence[PermissionCheck],
    *,
    agent: AgentName | None,
    pattern: str | None,
    session: SessionId | None,
    expires_at: int,
    approval: Seq,
    by: str,
    names_in: bool = False,
) -> tuple[GrantAdded, ...]:
    """What turns the yes to one request into rules: for the acts that policy asked about, each on its own paths.

    With a glob it is one, for all of these acts on whatever that names. With `names_in` a rule asked about the names
    in a directory, and not about the directory. Raises ParameterInvalid where no rule asked, or the glob names not
    all that was asked about.
    """
    if not asked or agent is None:
        why = f"no rule of the policy asks about {show(approval)} now, so there is nothing to grant"
        raise ParameterInvalid("approval", why, hint="Approve it alone.")
    if pattern is not None and (problem := glob_problem(pattern)):
        raise ParameterInvalid("pattern", f"'{escaped(pattern)}': {problem}")
    acts: dict[tuple[str, ...], dict[_Act, None]] = {}
    for check in asked:
        globs = (pattern,) if pattern is not None else _exactly(check)
        acts.setdefault(globs, {})[check.action, check.others_work] = None
    paths: dict[tuple[_Act, ...], list[str]] = {}
    for globs, done in acts.items():
        paths.setdefault(tuple(done), []).extend(globs)
    grants = tuple(
        GrantAdded(
            agent=agent,
            globs=tuple(globs),
            actions=tuple(dict.fromkeys(action for action, _ in done)),
            expires_at=expires_at,
            approval=approval,
            by=by,
            session=session,
            others_work=any(others for _, others in done),
            command=asked[0].command,
        )
        for done, globs in paths.items()
    )
    tried = [Grant(approval, 0, grant) for grant in grants]
    beside = next((c.path for c in asked if not any(_named(grant, c, names_in=names_in) for grant in tried)), None)
    if beside is not None:
        why = f"'{escaped(pattern or '')}' does not name {escaped(beside)}, which {show(approval)} is about"
        raise ParameterInvalid("pattern", why)
    return grants


def _exactly(check: PermissionCheck) -> tuple[str, ...]:
    """The globs that name one path, and nothing in it, should it be a folder; a yes to list one is to all in it."""
    if check.path == ROOT:  # the grant names the command and its directory itself
        return ("**",)
    glob = literal(check.path)
    return (glob,) if check.action == "list" else (glob, f"!{glob}/*")


def _named(grant: Grant, check: PermissionCheck, *, names_in: bool) -> bool:
    """Whether a grant's globs name what was asked about; of a directory's names one that could be any."""
    if names_in and grant.names(join(check.path, "*")):
        return True
    return grant.names(check.path, directory=check.directory)
