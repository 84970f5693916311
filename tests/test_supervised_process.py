"""Programs below the subreaper: nothing of them outlives their end, or ours."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from orchestrator import subreaper, supervised_process
from orchestrator.clients.running_daemon import readable

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process inherit orphans"),
]

PATIENCE_S = 60
AWAY = "setsid sh -c 'echo $$; exec sleep 600' & "
"""A child that leaves its group and session, and says who it is."""


def gone(pid: int) -> bool:
    """Whether it has ended, or ends in time; it is ended in any case."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        ended = readable(process, PATIENCE_S)
        if not ended:
            signal.pidfd_send_signal(process, signal.SIGKILL)
        return ended
    finally:
        os.close(process)


@pytest.mark.parametrize("code", [0, 3])
async def test_what_a_command_leaves_behind_ends_with_it(base: Path, code: int) -> None:
    process = await supervised_process.start(
        ["sh", "-c", f"{AWAY} read go; exit {code}"],
        cwd=base,
        env={"PATH": os.environ["PATH"]},
        stdin=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    sleeper = int(await process.stdout.receive())
    os.kill(sleeper, 0)
    await process.stdin.send(b"go\n")
    with anyio.fail_after(PATIENCE_S):
        assert await process.wait() == code
    assert gone(sleeper)
    await supervised_process.end(process)


async def test_a_command_that_is_ended_takes_all_of_it_along(base: Path) -> None:
    process = await supervised_process.start(
        ["sh", "-c", f"trap '' TERM; {AWAY} wait; wait"],
        cwd=base,
        env={"PATH": os.environ["PATH"]},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
    )
    assert process.stdout is not None
    sleeper = int(await process.stdout.receive())
    with anyio.move_on_after(PATIENCE_S):
        await supervised_process.end(process)
    assert gone(sleeper)


@pytest.mark.parametrize("number", range(10))
def test_signals_that_come_while_it_ends_change_nothing(number: int) -> None:
    """However many: all that it started is gone when it is, and it says nothing."""
    command = ["sh", "-c", f"{AWAY} sleep 600"]
    arguments = [sys.executable, "-I", "-S", subreaper.__file__, str(os.getpid()), "", "", *command]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        sleeper = int(process.stdout.readline())
        while process.poll() is None:
            process.send_signal(signal.SIGTERM)
        assert process.stderr.read() == b""
        assert process.returncode == 128 + signal.SIGTERM
    assert gone(sleeper)


def test_it_ends_when_its_parent_is_killed() -> None:
    """The parent starts the subreaper and waits for it."""
    below = (sys.executable, "-I", "-S", subreaper.__file__)
    program = (
        f"import os, subprocess; subprocess.run([*{below!r}, str(os.getpid()), '', '', 'sh', '-c', {AWAY + 'wait'!r}])"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        sleeper = int(parent.stdout.readline())
        os.kill(sleeper, 0)
        parent.send_signal(signal.SIGKILL)
        assert gone(sleeper)


async def test_a_program_that_is_not_there_is_said(base: Path) -> None:
    with pytest.raises(FileNotFoundError, match="No such file"):
        await supervised_process.start(
            ["/no/such"], cwd=base, env={}, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT
        )
