"""The operations by which agents say where they work."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from orchestrator.api.operation import Operation
from orchestrator.api.parameters import MOST_ENTRIES, GlobText, Params, Reason, RequestId, Version
from orchestrator.api.results import LeaseInfo, Result
from orchestrator.core import errors as e
from orchestrator.core.events.sessions import LeaseMode

LeaseStatus = Literal["granted", "renewed", "clash", "released", "ended"]


class ReservePaths(Params, frozen=True):
    globs: Annotated[
        tuple[GlobText, ...],
        Meta(
            description="gitignore-style: 'src/api' and all in it, '/a.py' in the root only, '*.sql' at any depth, "
            "'!x' excepts.",
            min_length=1,
            max_length=MOST_ENTRIES,
        ),
    ]
    ttl_s: Annotated[
        int,
        Meta(description="Seconds; the same call again renews it.", ge=1, le=30 * 86_400),
    ] = 600
    mode: Annotated[
        LeaseMode,
        Meta(description="exclusive: you alone change them; shared: nobody may have them exclusively."),
    ] = "exclusive"
    reason: Reason = ""
    request_id: RequestId = None


class ReleasePaths(Params, frozen=True):
    lease: Annotated[Version, Meta(description="'@N' of the lease.")]
    request_id: RequestId = None


class LeaseAnswer(Result, frozen=True, kw_only=True):
    """`lease` is null with status `clash`: nothing was reserved, and `clashes` says who is there."""

    status: LeaseStatus
    message: str
    lease: str | None = None
    fencing: int | None = None  # grows with each lease; of two on one path, the higher is the later
    expires_at: int | None = None
    mode: LeaseMode | None = None
    globs: tuple[str, ...] = ()
    clashes: tuple[LeaseInfo, ...] = ()


RESERVE_PATHS = Operation(
    "reserve_paths",
    ReservePaths,
    LeaseAnswer,
    "Say where you work for a while, so that others keep away: a lease on paths. Others' changes there are "
    "warned, refused, queued or merged, as policy says. Where others were first: status clash, lease null.",
    writes=True,
    weight="tree",
    raises=(e.PathReserved, e.ParameterInvalid, e.RequestIdReused),
    command="lease reserve",
)

RELEASE_PATHS = Operation(
    "release_paths",
    ReleasePaths,
    LeaseAnswer,
    "Give a lease back before its time is over.",
    writes=True,
    raises=(e.VersionUnknown, e.NotPermitted, e.RequestIdReused),
    command="lease release",
)
