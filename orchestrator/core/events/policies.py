"""Which policy decides, which file was refused, and what a person said yes to."""

from __future__ import annotations

from typing import Literal

import msgspec

from orchestrator.core.annotations import NewContent
from orchestrator.core.events.base import Event
from orchestrator.core.ids import Checksum, Digest

Layer = Literal["shipped", "system", "user", "state", "workspace"]
"""Where a policy file lies; a later one is laid over the earlier ones, and that of the workspace can only tighten."""


class PolicyFile(msgspec.Struct, frozen=True, gc=False):
    """One file of a policy, as it was read."""

    layer: Layer
    source: str  # the file
    digest: NewContent[Digest]


class PolicyLoaded(Event, frozen=True, kw_only=True, tag="policy_loaded"):
    """From here on this policy decides; its files are kept, and hold on while a newer one is broken."""

    digest: Checksum  # of all of it
    source: str  # the last file that is not the workspace's
    rules: int
    files: tuple[PolicyFile, ...] = ()


class PolicyRejected(Event, frozen=True, kw_only=True, tag="policy_rejected"):
    """A policy file can't be used, so the policy before it goes on; noted once for each content."""

    source: str  # the file
    digest: Checksum  # of what is wrong with it
    message: str  # with lines and keys


class WorkspacePolicyApproved(Event, frozen=True, kw_only=True, tag="workspace_policy_approved"):
    """A person said yes to this content of the workspace's own policy file, and to no other."""

    digest: NewContent[Digest]
    by: str
