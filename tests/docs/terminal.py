"""A shell on a terminal of its own, as a person has it: sessions and the approver code depend on one."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from orchestrator.clients.running_daemon import readable

ANSWER_S = 60
_LOOP = 'trap : INT; while IFS= read -r -u 3 line; do eval "$line"; printf "\\036%s\\n" "$?"; done'
_END = re.compile(rb"\x1e(\d+)\r?\n\Z")
_CODE = re.compile(r"(?:shown this once|approver code): +(\S+)")
_PROMPT, _QUESTION = b"Approver code: ", b"? [y/N]: "


class Terminal:
    """Runs one command after the other; types the approver code where it is asked for, and yes to a question."""

    def __init__(self, folder: Path, env: dict[str, str], *, code: str = "") -> None:
        self._master, slave = os.openpty()
        commands, self._commands = os.pipe()
        os.set_inheritable(commands, True)
        self._shell = subprocess.Popen(
            ["setsid", "--ctty", "bash", "--norc", "-c", f"exec 3<&{commands}; {_LOOP}"],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            pass_fds=(commands,),
            cwd=folder,
            env={**env, "NO_COLOR": "1", "TERM": "dumb", "PAGER": "cat"},
        )
        os.close(slave)
        os.close(commands)
        self._code = code

    def run(
        self,
        command: str,
        *,
        interrupt_after: int | None = None,
        answers: Sequence[tuple[str, str | Callable[[], str]]] = (),
    ) -> tuple[list[str], int]:
        """The lines that a command wrote, and its exit code; Ctrl+C is pressed after that many lines.

        `answers`: what is waited for in turn, and what is typed then, or a function that returns it.
        """
        left, at = list(answers), 0
        os.write(self._commands, command.encode() + b"\n")
        written, asked, agreed = b"", 0, 0
        while (end := _END.search(written)) is None:
            assert readable(self._master, ANSWER_S), f"no answer to {command!r} after {written!r}"
            written += os.read(self._master, 65536)
            if written.count(_PROMPT) > asked:
                asked += 1
                os.write(self._master, self._code.encode() + b"\n")
            if written.count(_QUESTION) > agreed:
                agreed += 1
                os.write(self._master, b"y\n")
            if left and (found := written.find(left[0][0].encode(), at)) >= 0:
                at = found + len(left[0][0])
                typed = left.pop(0)[1]
                os.write(self._master, (typed if isinstance(typed, str) else typed()).encode())
            if interrupt_after is not None and written.count(b"\n") >= interrupt_after:
                interrupt_after = None
                os.write(self._master, b"\x03")
        text = written[: end.start()].decode().replace("\r\n", "\n")
        if made := _CODE.search(text):
            self._code = made[1]
        return text.removesuffix("\n").split("\n") if text else [], int(end[1])

    def close(self) -> None:
        os.close(self._commands)
        self._shell.wait(ANSWER_S)
        os.close(self._master)
