"""What the daemon needs of the machine, looked at without a daemon."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from orchestrator.api.diagnosis import Check
from orchestrator.workspace import landlock, ripgrep
from orchestrator.workspace.command_confinement import find_confinement
from orchestrator.workspace.disk import Disk, ignore_lease_breaks

FEW_WATCHES, FEW_INSTANCES = 16_384, 32
"""One watch is used for each folder, one instance for each daemon; editors use many of both."""

_LIMITS = Path("/proc/sys/fs/inotify")


def system_checks(root: str) -> Iterator[Check]:
    """The kernel's features, the programs that are used, and the limits of watching."""
    yield from _kernel()
    yield _commands()
    health = ripgrep.health_of(root)
    yield (
        Check(subject="ripgrep", status="ok", finding="trees are searched with it")
        if health == "on"
        else Check(subject="ripgrep", status="warning", finding=health, next="Install it: searches are slower without.")
    )
    yield _watching()


def _kernel() -> Iterator[Check]:
    ignore_lease_breaks()  # else no lease can be had
    lacks = Disk().degraded
    for sentence in lacks:
        yield Check(subject="kernel", status="warning", finding=sentence, next="Use Linux 5.6 or newer.")
    if not lacks:
        yield Check(subject="kernel", status="ok", finding="openat2, exchanging renames and leases")
    try:
        yield Check(subject="Landlock", status="ok", finding=f"version {landlock.abi()}")
    except OSError as error:
        to_do = "Boot with `lsm=landlock,…`, or use Linux 5.19 or newer; our own checks hold without it."
        yield Check(subject="Landlock", status="warning", finding=landlock.why_not(error), next=to_do)


def _commands() -> Check:
    found = find_confinement()
    finding = f"commands of agents are confined by {found.shown}"
    if found.by in ("namespaces", "bubblewrap"):
        return Check(subject="commands", status="ok", finding=finding)
    to_do = "Allow unprivileged user namespaces, or install the package bubblewrap."
    return Check(subject="commands", status="warning", finding=finding, next=to_do)


def _watching() -> Check:
    try:
        watches, instances = (int((_LIMITS / f"max_user_{name}").read_text()) for name in ("watches", "instances"))
    except (OSError, ValueError):
        return Check(subject="inotify", status="warning", finding="the system has none, or does not say its limits")
    finding = f"{watches} watches and {instances} instances for each user"
    if watches >= FEW_WATCHES and instances >= FEW_INSTANCES:
        return Check(subject="inotify", status="ok", finding=finding)
    names = f"fs.inotify.max_user_watches={FEW_WATCHES * 8} fs.inotify.max_user_instances={FEW_INSTANCES * 8}"
    return Check(subject="inotify", status="warning", finding=finding, next=f"sudo sysctl -w {names}")
