"""Programs that a policy names: started on a leash, so that nothing of them outlives us."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import anyio
from anyio.abc import Process

from orchestrator import subreaper

PATIENCE_S = subreaper.GRACE_S + 5.0
"""What the leash gets for its own end."""


async def start(argv: Sequence[str], *, cwd: str | Path, env: Mapping[str, str], stdin: int, stderr: int) -> Process:
    """Start a command below a leash, with its output as a pipe. Raises FileNotFoundError where there is none."""
    found = shutil.which(argv[0], path=env.get("PATH", os.defpath))
    if found is None and not (Path(cwd) / argv[0]).is_file():
        raise FileNotFoundError(2, "No such file or directory", argv[0])
    return await anyio.open_process(
        (sys.executable, "-I", "-S", subreaper.__file__, str(os.getpid()), *argv),
        stdin=stdin,
        stderr=stderr,
        cwd=cwd,
        env=env,
        start_new_session=True,
    )


async def end(process: Process) -> None:
    """End the command with all that it started, asked first; nothing if it has ended."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.returncode is not None:
            break
        with suppress(ProcessLookupError):
            process.send_signal(number)
        with anyio.move_on_after(PATIENCE_S):
            await process.wait()
    await process.aclose()
