"""Runs a client's hook once, as the client does, with events that change nothing."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterable, Mapping
from typing import Any

from orchestrator.core.errors import Denied, OperatorError, escaped

TIMEOUT_S = 10.0

MOST_SHOWN = 500

BY_POLICY = (Denied.hint, "needs a person's yes")
"""In an answer that policy gave, not a failure."""


class HookFailed(OperatorError, code="hook_failed", hint="`orchestrator doctor` looks at the daemon."):
    """The hook does not let pass what it should."""


def try_hook(command: str, events: Iterable[Mapping[str, Any]], folder: str) -> float:
    """The seconds that it took. What policy denies, or asks about, it answers as it should. Raises HookFailed."""
    started = time.monotonic()
    for event in events:
        try:
            ran = subprocess.run(
                ["/bin/sh", "-c", command],
                check=False,
                input=json.dumps(event).encode(),
                capture_output=True,
                cwd=folder,
                timeout=TIMEOUT_S,
            )
        except subprocess.TimeoutExpired as error:
            raise HookFailed(f"the hook gave no answer in {TIMEOUT_S:.0f} s: {escaped(command)}") from error
        said = (ran.stdout + ran.stderr).decode("utf-8", "replace").strip()
        if ran.returncode or (said not in ("", "{}") and not any(word in said for word in BY_POLICY)):
            why = escaped(said[:MOST_SHOWN]) or f"it ended with {ran.returncode}"
            raise HookFailed(f"the hook denies what no policy denies: {why}")
    return time.monotonic() - started
