"""Programs that a policy names: started below the subreaper, so that nothing of them outlives the daemon."""

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
"""What the subreaper gets for its own end."""


async def start(
    argv: Sequence[str],
    *,
    cwd: str | Path,
    env: Mapping[str, str],
    stdin: int,
    stderr: int,
    variables: Sequence[str] = (),
    variables_fd: int | None = None,
    spares: str = "",
) -> Process:
    """Start a command below the subreaper, with its output as a pipe. Raises FileNotFoundError where there is none.

    It is looked for beside this program's Python, too: there an extra puts its programs. `variables` are added to
    its environment from `variables_fd`, which this process never reads. `spares`: a workspace whose daemon lives on,
    should one of them have started it.
    """
    found = shutil.which(argv[0], path=os.pathsep.join((env.get("PATH", os.defpath), str(Path(sys.executable).parent))))
    if found is None and not (Path(cwd) / argv[0]).is_file():
        raise FileNotFoundError(2, "No such file or directory", argv[0])
    handed = "" if variables_fd is None or not variables else ",".join((str(variables_fd), *variables))
    return await anyio.open_process(
        (sys.executable, "-I", "-S", subreaper.__file__, str(os.getpid()), handed, spares, found or argv[0], *argv[1:]),
        stdin=stdin,
        stderr=stderr,
        cwd=cwd,
        env=env,
        start_new_session=True,
        pass_fds=(variables_fd,) if handed and variables_fd is not None else (),
    )


async def end(process: Process) -> None:
    """End the command with all that it started, asked first; nothing if it has ended. What it printed is dropped."""
    await terminate(process)
    await process.aclose()


async def terminate(process: Process) -> None:
    """As `end`; what it printed can still be read."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.returncode is not None:
            break
        with suppress(ProcessLookupError):
            process.send_signal(number)
        with anyio.move_on_after(PATIENCE_S):
            await process.wait()
