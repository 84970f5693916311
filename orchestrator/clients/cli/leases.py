"""Who works where: reserving paths, giving them back, and who holds what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import click

from orchestrator.api import leases as a
from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.clients import render
from orchestrator.clients.cli.context import Settings, shared
from orchestrator.core.errors import escaped


@click.group()
def lease() -> None:
    """Who works where: paths that somebody reserved for a while."""


@lease.command("reserve")
@click.argument("globs", metavar="GLOB...", nargs=-1, required=True)
@click.option("--ttl", "ttl_s", type=int, default=600, show_default=True, help="For how many seconds.")
@click.option("--shared", "others_too", is_flag=True, help="Only keep others from having them alone.")
@click.option("--reason", default="", help="Why; others see it.")
@shared
@click.pass_obj
def lease_reserve(settings: Settings, *, globs: tuple[str, ...], ttl_s: int, others_too: bool, reason: str) -> int:
    """Reserve paths (gitignore-style globs, from the workspace's root); the same again renews."""
    mode: Literal["exclusive", "shared"] = "shared" if others_too else "exclusive"
    params = a.ReservePaths(globs=globs, ttl_s=ttl_s, mode=mode, reason=reason)
    answer = settings.call("reserve_paths", params, a.LeaseAnswer)
    return settings.show(answer, _lines(answer))


@lease.command("release")
@click.argument("lease", metavar="@N")
@shared
@click.pass_obj
def lease_release(settings: Settings, lease: str) -> int:
    """Give a lease back; a person may end anybody's."""
    answer = settings.call("release_paths", a.ReleasePaths(lease=lease), a.LeaseAnswer)
    return settings.show(answer, _lines(answer))


@lease.command("list")
@shared
@click.pass_obj
def lease_list(settings: Settings) -> int:
    """All leases that hold; for people (an agent's `session` shows those that concern it)."""
    status = settings.call("status", p.Status(), r.StatusInfo)
    return settings.show(Held(leases=status.leases), _table(status.leases))


class Held(r.Result, frozen=True, kw_only=True):
    """What `lease list --json` prints."""

    leases: tuple[r.LeaseInfo, ...]


def _lines(answer: a.LeaseAnswer) -> Iterator[str]:
    yield f"{answer.status}: {escaped(answer.message)}"
    if answer.expires_at is not None:
        yield f"  until {render.when(answer.expires_at)}"
    yield from (f"  {line}" for line in _table(answer.clashes))


def _table(leases: Iterable[r.LeaseInfo]) -> Iterator[str]:
    return render.table(
        (x.lease, x.agent, x.mode, " ".join(x.globs), render.when(x.expires_at), x.reason) for x in leases
    )
