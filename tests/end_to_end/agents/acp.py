"""The same agents with their own tools and ours, started by `orchestrator run`, over ACP.

What they ask is answered by a person elsewhere.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tests.end_to_end.agents.answers import has, holds
from tests.end_to_end.agents.native import (
    CLAUDE_TOOLS,
    GEMINI_TOOLS,
    OPENCODE_TOOLS,
    PATCH_TOOLS,
    SHELL_TOOLS,
    tools_of,
)
from tests.end_to_end.agents.programs import CLAUDE, CODEX, GEMINI, OPENCODE, Ground, Program
from tests.end_to_end.agents.scenario import ESCAPED, LINES, Scenario
from tests.end_to_end.agents.story import Stage, Step, edit
from tests.end_to_end.workspace_factory import Place

RUN_TIMEOUT_S = 240
WAITS = re.compile(r"waits for a yes: orchestrator approvals \w+ (@\d+)")


class AcpScenario(Scenario):
    """The stages of `Scenario`, with edits by the agents' own tools where it asks for a person's yes."""

    def __init__(self, place: Place, *programs: Program) -> None:
        super().__init__(place, *programs)
        self._programs = programs
        self._when_asked: list[Callable[[], object]] = []
        self.asked: list[str] = []

    def start(self, who: int, ground: Ground, binary: str) -> str:
        """Let one agent work until it ends; how it did."""
        program = self._programs[who]
        line = shlex.join((binary, *program.arguments))
        command = (str(Path(sys.executable).parent / "orchestrator"), "--json", "run", program.client)
        options = ("--task", "Do the work.", "--command", line, "--timeout", str(RUN_TIMEOUT_S))
        process = subprocess.Popen(
            (*command, *options),
            cwd=ground.workspace,
            env={**ground.env, **program.environment(ground)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        said = list[str]()
        follower = threading.Thread(target=self._follow, args=(process.stderr, said))
        follower.start()
        assert process.stdout is not None
        answer = process.stdout.read()
        process.wait()
        follower.join()
        ended = json.loads(answer) if answer.strip() else {}
        if ended.get("stop_reason") != "end_turn":
            self.records.append(f"it ended with {ended}")
        return "\n".join((str(ended), *said[-20:]))

    def _follow(self, stderr: Any, said: list[str]) -> None:
        """Say yes to what waits, where approvals are given."""
        for line in stderr:
            said.append(line.rstrip())
            if waits := WAITS.search(line):
                self.asked.append(self.steps[self._begun - 1].name)
                while self._when_asked:
                    self._when_asked.pop()()
                self.approve(waits[1])

    # --- the stages

    def _own_tools(self) -> Stage:
        tools, (me,) = tools_of(self._programs[0]), self.agents
        notes, new, words = (str(self.place.workspace / name) for name in ("notes.txt", "new.txt", "words.py"))
        noted = partial(self.written, "notes.txt")
        steps = (
            Step("read", lambda: tools.read(notes), holds("line 3")),
            Step("edit", lambda: tools.edit(notes, "line 3\n", "line three\n"), noted("line three")),
            Step("new file", lambda: tools.write(new, "new\n"), self.written("new.txt", "new\n")),
            Step("ours", lambda: edit("notes.txt", "line 20\n", "line twenty\n"), has(status="applied")),
            Step("command", lambda: tools.shell("echo made > made.txt"), self.written("made.txt", "made")),
            Step("delete", lambda: tools.delete(words), lambda text: ""),
            Step("read again", lambda: tools.read(notes), lambda text: ""),
            Step("edit again", lambda: tools.edit(notes, "line 9\n", "line nine\n"), noted("nine")),
        )  # fmt: skip
        ours = LINES.replace("line 3\n", "line three\n").replace("line 20\n", "line twenty\n")
        return Stage(
            "its tools and ours",
            steps,
            {
                "notes.txt": ours.replace("line 9\n", "line nine\n"),
                "new.txt": "new\n",
                "made.txt": "made\n",
                "words.py": None,
            },
            {"notes.txt": LINES, "new.txt": None, "made.txt": None, "words.py": ESCAPED},
            (
                *(("notes.txt", line, me) for line in (3, 9, 20)),
                ("new.txt", 1, me),
                ("made.txt", 1, me),
            ),
        )

    def _waits(self, name: str, meanwhile: Callable[[str], object]) -> Iterator[Step]:
        """An edit with its own tool, about which it asks."""
        tools, protected = tools_of(self._programs[0]), self._program.protected
        path = str(self.place.workspace / protected)

        def restarted() -> None:
            self.place.kill_daemon()
            self.place.up()

        def asked(text: str) -> str:
            return self.written(protected, f"pytest {name}")(text) or ("" if name in self.asked else "nobody was asked")

        def before() -> None:
            if "killed" in name:
                self._when_asked.append(restarted)

        yield Step(f"{name}: reads", lambda: tools.read(path), lambda text: "")
        yield Step(
            name, lambda: tools.edit(path, "\tpython -m pytest\n", f"\tpython -m pytest {name}\n"), asked, before=before
        )  # fmt: skip

    def _one_file(self) -> Stage:
        (one, other), (first, second) = self.agents, map(tools_of, self._programs)
        notes = str(self.place.workspace / "notes.txt")
        noted = partial(self.written, "notes.txt")
        steps = (
            Step("one reads", lambda: first.read(notes), holds("line 3")),
            Step("one edits", lambda: first.edit(notes, "line 3\n", "line three\n"), noted("three")),
            Step("other reads", lambda: second.read(notes), holds("line three"), who=1),
            Step(
                "other edits", lambda: second.edit(notes, "line 12\n", "line 12!\n"),
                noted("line 12!"), who=1,
            ),
            Step("one with ours", lambda: edit("notes.txt", "line 18\n", "line eighteen\n"), has(status="applied")),
            Step(
                "other on that line", lambda: edit("notes.txt", "line 18\n", "line 18!\n"),
                lambda text: has(status="conflict")(text) or holds("line eighteen")(text), who=1,
            ),
            Step(
                "other gives way",
                lambda: edit(
                    "notes.txt", "line 25\n", "line 25!\n", supersedes=self.said("other on that line", "conflict")
                ),
                has(status="applied"), who=1,
            ),
        )  # fmt: skip
        others = LINES.replace("line 25\n", "line 25!\n").replace("line 12\n", "line 12!\n")
        return Stage(
            "one file",
            steps,
            {"notes.txt": others.replace("line 3\n", "line three\n").replace("line 18\n", "line eighteen\n")},
            {"notes.txt": others},
            (("notes.txt", 3, one), ("notes.txt", 18, one), ("notes.txt", 12, other), ("notes.txt", 25, other)),
        )


# --- how each is started, and asks before it edits


def _opencode_to_model(ground: Ground) -> None:
    OPENCODE.to_model(ground)
    file = ground.workspace / "opencode.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "permission": {"edit": "ask", "bash": "ask"}}))


def _gemini_to_model(ground: Ground) -> None:
    GEMINI.to_model(ground)
    trusted = {str(ground.workspace): "TRUST_FOLDER"}
    (ground.home / ".gemini" / "trustedFolders.json").write_text(json.dumps(trusted))


def _codex_to_model(ground: Ground, model: str, features: str = "") -> None:
    CODEX.to_model(ground)
    file = ground.home / ".codex" / "config.toml"
    known = file.read_text().replace('model = "scripted"', f'model = "{model}"', 1)
    # Its own sandbox needs bubblewrap, which is not everywhere; so it asks instead.
    file.write_text('approval_policy = "untrusted"\nsandbox_mode = "danger-full-access"\n' + known + features)


_codex = partial(
    CODEX._replace,
    package="@zed-industries/codex-acp",
    version="0.16.0",
    binary="codex-acp",
    arguments=(),
    environment=lambda ground: {"OPENAI_API_KEY": "scripted"},
)

ACP = {
    program.name: program
    for program in (
        CLAUDE._replace(
            package="@agentclientprotocol/claude-agent-acp",
            version="0.100.0",
            binary="claude-agent-acp",
            arguments=(),
            tools=CLAUDE_TOOLS,
        ),
        OPENCODE._replace(to_model=_opencode_to_model, arguments=("acp",), tools=OPENCODE_TOOLS),
        GEMINI._replace(to_model=_gemini_to_model, arguments=("--acp", "-m", "gemini-2.5-flash"), tools=GEMINI_TOOLS),
        *(
            _codex(name=name, to_model=partial(_codex_to_model, model=model, features=features), tools=tools)
            for name, model, tools, features in (
                ("codex", "scripted", SHELL_TOOLS, ""),
                ("codex-deferred", "gpt-5.5", PATCH_TOOLS, ""),
                ("codex-code", "gpt-5.5", PATCH_TOOLS, "[features]\ncode_mode_only = true\n"),
            )
        ),
    )
}
