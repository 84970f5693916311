"""What the daemon is told at its start."""

from __future__ import annotations

import msgspec


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """Where everything is. All paths are absolute."""

    workspace: str
    state_dir: str
    socket: str
    workspace_id: str
    ready_fd: int | None = None  # where to say that the daemon listens, once
    watch: bool = True  # note what others do to files as it happens
    variables_fd: int | None = None  # a file of variables for the policy's programs; never read here
