"""Following the journal from a terminal, through restarts of the daemon."""

from __future__ import annotations

import time
from collections.abc import Iterator

import msgspec

from orchestrator.api.feed import FeedEvent, Subscribe
from orchestrator.clients import render
from orchestrator.clients.cli.context import DONE, Settings, echo, echo_json
from orchestrator.core.errors import DaemonRestarted, DaemonUnreachable, escaped

RECONNECT_S = 30.0
"""How long the daemon may be away while it is followed; as at the stdio door."""

PAUSE_S = 0.2


def follow(settings: Settings, wanted: Subscribe) -> int:
    """Print events as they happen, until interrupted; through a restart of the daemon without gap or repeat."""
    for event in _events(settings, wanted):
        if settings.json:
            echo_json(event)
        else:
            about = render.some([*map(escaped, event.paths)])
            echo(f"{event.seq}  {render.when(event.at)}  {escaped(event.agent or '-')}  {event.kind}  {about}".rstrip())
    return DONE


def _events(settings: Settings, wanted: Subscribe) -> Iterator[FeedEvent]:
    give_up: float | None = 0.0  # the first connection must succeed
    while True:
        try:
            with settings.connect() as connection:
                wanted = msgspec.structs.replace(wanted, after=connection.subscribe(wanted).after)
                give_up = None
                for event in connection.events():
                    wanted = msgspec.structs.replace(wanted, after=event.seq)
                    yield event
        except (DaemonRestarted, DaemonUnreachable):
            now = time.monotonic()
            give_up = now + RECONNECT_S if give_up is None else give_up
            if now > give_up:
                raise
            time.sleep(PAUSE_S)
