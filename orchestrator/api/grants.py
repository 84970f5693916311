"""Grants as people see them: listed, and revoked. `approve` gives them."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.api.operation import OperatorOperation
from orchestrator.core import errors as e


class GrantInfo(r.Result, frozen=True, kw_only=True):
    """What an agent may do without asking, until when, and who said so."""

    grant: str
    agent: str
    actions: tuple[str, ...] = ()
    globs: tuple[str, ...] = ()
    session: str | None = None  # in this one alone
    since: int
    expires_at: int
    by: str
    approval: str  # the request whose yes it came with


class GrantList(r.Result, frozen=True, kw_only=True):
    grants: tuple[GrantInfo, ...] = ()  # oldest first


class GrantRevoke(p.Approving, frozen=True):
    grant: Annotated[p.Version, Meta(description="'@N' of the grant.")]
    reason: p.Reason = ""


GRANTS_LIST = OperatorOperation("grants_list", p.Params, GrantList, "What people let agents do without asking again.")

GRANT_REVOKE = OperatorOperation(
    "grant_revoke",
    GrantRevoke,
    r.Done,
    "Take a grant back: the agent is asked about again.",
    writes=True,
    command="grants revoke",
    raises=(e.VersionUnknown, e.ApproverCodeNeeded),
)
