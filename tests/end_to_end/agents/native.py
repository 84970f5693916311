"""Agents with their own tools on, and our hooks around them, as `orchestrator connect --native` sets them up."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tests.end_to_end.agents.programs import CLAUDE, CODEX_DEFERRED, GEMINI, OPENCODE, PROMPT, Program, own
from tests.end_to_end.agents.scenario import LINES
from tests.end_to_end.agents.story import Step
from tests.end_to_end.agents.wires import Call, Turn
from tests.end_to_end.workspace_factory import Place

MAKEFILE = "test:\n\tpytest\nbuild:\n\tsed -i s/30/thirty/ notes.txt\n\techo made > made.txt\n"
POLICY = """
name = "ours"
extends = "run_tests"

[[rule]]
name = "shows"
agents = ["*"]
actions = ["run"]
paths = ["**"]
commands = ["cat **"]
verdict = "allow"
"""


class OwnTools(NamedTuple):
    """How an agent's own tools are called. Paths are absolute."""

    read: Callable[[str], Call]
    edit: Callable[[str, str, str], Call]
    write: Callable[[str, str], Call]
    shell: Callable[[str], Call]


class NativeAgent(NamedTuple):
    """An agent that may use its own tools without asking. `offers`: one of them, by which its real turns are known.

    `stale`: the line of its stale edit, and what its model reads of it. `reads`: whether it has a tool that only reads,
    which is judged.
    """

    program: Program
    tools: OwnTools
    offers: str
    stale: tuple[str, tuple[str, ...]] = ("line 10\n", ("by somebody", "-line 20", "+line 20, by somebody"))
    reads: bool = True


class NativeScenario:
    """The script for one agent on one place, and what it leaves."""

    def __init__(self, place: Place, agent: NativeAgent) -> None:
        self._place, self._agent, self._name, self._tools = place, agent, agent.program.client, agent.tools
        self.secret = f"s3cret-{secrets.token_hex(8)}"
        self.steps = tuple(self._steps())
        self._begun = -1
        self._results: tuple[str, ...] = ()
        self.approver = ""

    def lay_out(self) -> None:
        """The files, and the approver's code."""
        for name, text in (("notes.txt", LINES), ("Makefile", MAKEFILE), ("key.pem", f"{self.secret}\n")):
            (self._place.workspace / name).write_text(text)
        policy = self._place.home / ".config/orchestrator/policy.toml"
        policy.parent.mkdir(parents=True)
        policy.write_text(POLICY)
        self.approver = self._place.up()["approver_code"]

    def __call__(self, turn: Turn) -> Call | str:
        """The call of this turn's step."""
        number = len(turn.results)
        self._results = max(self._results, turn.results, key=len)
        if number >= len(self.steps):
            return "All done."
        if number > self._begun:
            self._begun = number
            self.steps[number].before()
        return self.steps[number].call()

    def judged(self) -> Iterator[tuple[Step, str]]:
        """Each step with its trouble, "" for none."""
        for number, step in enumerate(self.steps):
            yield step, step.trouble(self._results[number]) if number < len(self._results) else "not reached"

    def _steps(self) -> Iterator[Step]:
        tools = self._tools
        notes, makefile, later, secret, new = (
            str(self._place.workspace / name) for name in ("notes.txt", "Makefile", "later.txt", "key.pem", "new.txt")
        )
        yield Step("read", lambda: tools.read(notes), _holds("line 3"))
        yield Step("edit", lambda: tools.edit(notes, "line 3\n", "line three\n"), self._has("notes.txt", "line three"))
        yield Step(
            "stale edit", lambda: tools.edit(notes, self._agent.stale[0], "stale\n"),
            _holds("Denied", *self._agent.stale[1]),
            before=self._somebody_edits,
        )  # fmt: skip
        yield Step("read again", lambda: tools.read(notes), _now_known)
        yield Step(
            "edit again", lambda: tools.edit(notes, "line 10\n", "line ten\n"), self._has("notes.txt", "line ten")
        )
        yield Step("new file", lambda: tools.write(new, "new\n"), self._has("new.txt", "new\n"))
        yield Step(
            "shell", lambda: tools.shell("make build"),
            lambda text: self._has("notes.txt", "line thirty")(text) or self._has("made.txt", "made")(text),
        )  # fmt: skip
        yield Step("shell, asked", lambda: tools.shell(f"rm {notes}"), _holds("Denied", "needs a person's yes"))
        yield Step(
            "secret", lambda: tools.read(secret) if self._agent.reads else tools.write(secret, "x\n"), self._no_secret
        )
        yield Step("protected", lambda: tools.read(makefile), _holds("pytest"))
        yield Step(
            "protected edit", lambda: tools.edit(makefile, "\tpytest", "\tpytest -q"), _holds("Approval pending as @")
        )
        yield Step(
            "granted", lambda: tools.read(makefile), _holds("pytest -q"),
            before=self._approve,
        )  # fmt: skip
        yield Step(
            "no daemon", lambda: tools.write(later, "later\n"), _holds("Denied", "orchestrator up"),
            before=self._place.kill_daemon,
        )  # fmt: skip
        yield Step(
            "a daemon again", lambda: tools.write(later, "later\n"), self._has("later.txt", "later\n"),
            before=self._place.up,
        )  # fmt: skip

    # --- what happens around the agent

    def _somebody_edits(self) -> None:
        self._cli("edit", "notes.txt", "--search", "line 20", "--replace", "line 20, by somebody", agent="somebody")

    def _approve(self) -> None:
        said = self._results[[step.name for step in self.steps].index("protected edit")]
        number = said.partition("Approval pending as ")[2].split(".")[0]
        for words in ("show", "approve"):
            self._cli("approvals", words, number, approver=self.approver)

    # --- what the model reads, and what is there

    def _no_secret(self, text: str) -> str:
        return "the secret was shown" if self.secret in text else _holds("Denied")(text)

    def _has(self, name: str, wanted: str) -> Callable[[str], str]:
        return lambda text: "" if wanted in self._text(name) else f"{name} lacks {wanted!r}; it read {text[:400]!r}"

    def _text(self, name: str) -> str:
        path = self._place.workspace / name
        return path.read_text() if path.exists() else ""

    def _cli(self, *words: str, approver: str = "", agent: str = "", code: int = 0) -> Any:
        ran = self._place.cli(*words, "--json", approver=approver, agent=agent)
        assert ran.code == code, ran
        return ran.json

    # --- what is on record afterwards

    def left(self) -> Iterator[str]:
        """What is wrong with blame, log and the rollback."""
        for name, line, author in (
            ("notes.txt", 1, None),
            ("notes.txt", 3, self._name),
            ("notes.txt", 10, self._name),
            ("notes.txt", 20, "somebody"),
            ("notes.txt", 30, self._name),
            ("new.txt", 1, self._name),
            ("made.txt", 1, self._name),
            ("Makefile", 2, self._name),
            ("later.txt", 1, self._name),
        ):
            if not self._text(name):
                yield f"{name} is not there"
                continue
            (part,) = self._cli("blame", name, "--start", str(line), "--end", str(line))["ranges"]
            if part["agent"] != author:
                yield f"blame names {part['agent']} for line {line} of {name}, not {author}"
        logged = [version["agent"] for version in self._cli("log", "notes.txt")["versions"]]
        if logged != [self._name, self._name, "somebody", self._name, None]:
            yield f"log names {logged} for notes.txt"
        undo = self._cli("rollback", "--agent", self._name, code=3)
        for words in ("show", "approve"):
            self._cli("approvals", words, undo["approval"], approver=self.approver)
        wanted = {"notes.txt": LINES.replace("line 20\n", "line 20, by somebody\n"), "Makefile": MAKEFILE}
        for name in ("notes.txt", "Makefile", "new.txt", "made.txt", "later.txt"):
            if self._text(name) != wanted.get(name, ""):
                yield f"rolled back, {name} is {self._text(name)[:300]!r}"
        if not self._cli("journal", "verify")["ok"]:
            yield "the journal does not verify"


def _now_known(text: str) -> str:
    """Claude Code tells its model by itself what changed in a file that it read, and does not show it again then."""
    return "" if "unchanged since your last Read" in text else _holds("line 20, by somebody")(text)


def _holds(*parts: str) -> Callable[[str], str]:
    def trouble(text: str) -> str:
        missing = [part for part in parts if part not in text]
        return f"lacks {missing}: {text[:400]!r}" if missing else ""

    return trouble


def _patch(text: str) -> Call:
    return own("apply_patch", input=f"*** Begin Patch\n{text}\n*** End Patch")


NATIVE = {
    "claude": NativeAgent(
        CLAUDE._replace(
            arguments=("-p", PROMPT, "--permission-mode", "acceptEdits", "--allowedTools", "Read,Edit,Write,Bash")
        ),
        OwnTools(
            read=lambda path: own("Read", file_path=path),
            edit=lambda path, old, new: own("Edit", file_path=path, old_string=old, new_string=new),
            write=lambda path, text: own("Write", file_path=path, content=text),
            shell=lambda command: own("Bash", command=command, description="work"),
        ),
        "Edit",
    ),
    "codex-deferred": NativeAgent(
        CODEX_DEFERRED._replace(
            arguments=("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", PROMPT)
        ),
        OwnTools(
            read=lambda path: own("exec_command", cmd=f"cat {path}"),
            edit=lambda path, old, new: _patch(f"*** Update File: {path}\n@@\n-{old.rstrip()}\n+{new.rstrip()}"),
            write=lambda path, text: _patch(f"*** Add File: {path}\n+{text.strip()}"),
            shell=lambda command: own("exec_command", cmd=command),
        ),
        "apply_patch",
        stale=("line 20\n", ("line 20",)),  # a patch is stale only where what it quotes is gone
        reads=False,
    ),
    "gemini": NativeAgent(
        GEMINI._replace(arguments=(*GEMINI.arguments, "--yolo")),
        OwnTools(
            read=lambda path: own("read_file", file_path=path),
            edit=lambda path, old, new: own(
                "replace", file_path=path, old_string=old, new_string=new, instruction="Change it."
            ),
            write=lambda path, text: own("write_file", file_path=path, content=text),
            shell=lambda command: own("run_shell_command", command=command, description="work"),
        ),
        "replace",
    ),
    "opencode": NativeAgent(
        OPENCODE,
        OwnTools(
            read=lambda path: own("read", filePath=path),
            edit=lambda path, old, new: own("edit", filePath=path, oldString=old, newString=new),
            write=lambda path, text: own("write", filePath=path, content=text),
            shell=lambda command: own("bash", command=command, description="work"),
        ),
        "edit",
    ),
}
