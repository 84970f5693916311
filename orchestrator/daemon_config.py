"""The settings of one run of the daemon, and the arguments that give them."""

from __future__ import annotations

import argparse
import os

import msgspec

from orchestrator.api import locations


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one run. All paths are absolute."""

    workspace: str
    state_dir: str
    socket: str
    workspace_id: str
    ready_fd: int | None = None  # where to report, once, that the daemon listens
    watch: bool = True  # note what others do to files as it happens
    http_port: int | None = None  # where MCP is served over HTTP, on loopback; 0: any, None: nowhere
    system_policy: str = locations.SYSTEM_POLICY
    variables_fd: int | None = None  # a file of variables for the policy's programs; never read here


def parse(argv: list[str]) -> Config:
    """The arguments that `clients/running_daemon.py` gives."""
    parser = argparse.ArgumentParser(prog="orchestrator daemon")
    parser.add_argument("--workspace", required=True)
    parser.add_argument("--state-dir", required=True)
    parser.add_argument("--socket", required=True)
    parser.add_argument("--ready-fd", type=int)
    parser.add_argument("--variables-fd", type=int)
    parser.add_argument("--http", type=int, metavar="PORT", help="serve MCP over HTTP, on loopback")
    parser.add_argument("--system-policy", default=locations.SYSTEM_POLICY, help="the administrator's policy file")
    parser.add_argument("--no-watch", action="store_true", help="note others' changes only at a start and where met")
    given = parser.parse_args(argv)
    root = os.path.realpath(given.workspace)
    return Config(
        workspace=root,
        state_dir=os.path.abspath(given.state_dir),  # noqa: PTH100  # links in it are kept
        socket=given.socket,
        workspace_id=locations.workspace_id(root),
        ready_fd=given.ready_fd,
        watch=not given.no_watch,
        http_port=given.http,
        system_policy=os.path.abspath(given.system_policy),  # noqa: PTH100  # as above
        variables_fd=given.variables_fd,
    )
