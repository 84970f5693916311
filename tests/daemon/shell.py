"""One process that runs commands of `orchestrator` one after another, so that a table of them costs one start."""

from __future__ import annotations

import json
import os
import runpy
import select
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO

from tests.daemon.daemon_process import RunningDaemon
from tests.daemon.forked_process import ForkedProcess

TIMEOUT_S = 60
_STREAMS = (1, 2)


class Shell:
    """A person's or an agent's shell beside the daemon, without a terminal."""

    def __init__(self, daemon: RunningDaemon, cwd: Path, **env: str) -> None:
        theirs, to = os.pipe()
        back, ours = os.pipe()
        self._process = ForkedProcess(
            ("tests.daemon.shell",),
            {"--commands": theirs},
            env={**daemon.env, "PYTHONPATH": os.getcwd(), **env},
            out=ours,
            err=2,
            cwd=cwd,
        )
        os.close(theirs)
        os.close(ours)
        self._commands, self._answers = open(to, "w"), open(back, encoding="utf-8")  # noqa: SIM115  # descriptors

    def run(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        """Run one command to its end."""
        print(json.dumps(arguments), file=self._commands, flush=True)
        assert select.select([self._answers], [], [], TIMEOUT_S)[0], f"no answer to {arguments}"
        code, *printed = json.loads(self._answers.readline())
        return subprocess.CompletedProcess(arguments, code, *map(os.fsencode, printed))

    def close(self) -> None:
        """End its input, and wait for it."""
        self._commands.close()
        self._process.wait(TIMEOUT_S)
        self._answers.close()


def _serve(commands: IO[str]) -> None:
    answers, env = os.fdopen(os.dup(1), "w"), dict(os.environ)
    for line in commands:
        os.environ.clear()  # a command takes its secrets out
        os.environ.update(env)
        print(json.dumps(_ran(json.loads(line))), file=answers, flush=True)


def _ran(arguments: list[str]) -> list[object]:
    """The exit code, and what was printed on either stream."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        for number, file in zip(_STREAMS, (out, err), strict=True):
            os.dup2(file.fileno(), number)
        sys.argv = ["", *arguments]
        try:
            runpy.run_module("orchestrator", run_name="__main__", alter_sys=True)
        except SystemExit as ended:
            code = ended.code
        sys.stdout.flush()
        sys.stderr.flush()
        return [
            code,
            *(os.fsdecode(os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0)) for file in (out, err)),
        ]


if __name__ == "__main__":
    with open(int(sys.argv[2]), encoding="utf-8") as given:
        _serve(given)
