"""Agents with their own tools on, and our hooks around them, as `orchestrator connect --native` sets them up."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property, partial

from tests.end_to_end.agents.answers import holds
from tests.end_to_end.agents.programs import (
    CLAUDE,
    CODEX,
    CODEX_CODE,
    CODEX_DEFERRED,
    GEMINI,
    OPENCODE,
    PROMPT,
    OwnTools,
    Program,
    own,
)
from tests.end_to_end.agents.scenario import LINES
from tests.end_to_end.agents.story import Stage, Step, Story
from tests.end_to_end.agents.wires import Call
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


class NativeScenario(Story):
    """One agent through all that a hook judges, or two on one file."""

    def __init__(self, place: Place, *programs: Program) -> None:
        super().__init__(place, tuple(program.client for program in programs))
        self._programs = programs

    def lay_out(self) -> None:
        """The files, the policy, and the approver's code."""
        for name, text in (("notes.txt", LINES), ("Makefile", MAKEFILE), ("key.pem", f"{self.secret}\n")):
            (self.place.workspace / name).write_text(text)
        policy = self.place.home / ".config/orchestrator/policy.toml"
        policy.parent.mkdir(parents=True)
        policy.write_text(POLICY)
        self.approver = self.place.up()["approver_code"]

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """One: its changes are undone together."""
        return (self._alone() if len(self._programs) == 1 else self._one_file(),)

    def _alone(self) -> Stage:
        tools, (me,) = tools_of(self._programs[0]), self.agents
        notes, makefile, later, secret, new = (
            str(self.place.workspace / name) for name in ("notes.txt", "Makefile", "later.txt", "key.pem", "new.txt")
        )
        noted = partial(self.written, "notes.txt")
        steps = (
            Step("read", lambda: tools.read(notes), holds("line 3")),
            Step("edit", lambda: tools.edit(notes, "line 3\n", "line three\n"), noted("line three")),
            Step(
                "stale edit", lambda: tools.edit(notes, "line 20\n" if tools.quotes else "line 10\n", "stale\n"),
                _denied(tools, 20, "line 20, by somebody", "somebody"),
                before=self._somebody_edits,
            ),
            Step("read again", lambda: tools.read(notes), _now_known("line 20, by somebody")),
            Step("edit again", lambda: tools.edit(notes, "line 10\n", "line ten\n"), noted("line ten")),
            Step("new file", lambda: tools.write(new, "new\n"), self.written("new.txt", "new\n")),
            Step(
                "shell", lambda: tools.shell("make build"),
                lambda text: noted("line thirty")(text) or self.written("made.txt", "made")(text),
            ),
            Step("command, asked", lambda: tools.shell("echo asked > asked.txt"), holds("Denied", "waits for it as @")),
            Step(
                "command, granted", lambda: tools.shell("echo asked > asked.txt"), self.written("asked.txt", "asked"),
                before=lambda: self._approve("command, asked", "waits for it as "),
            ),
            Step("secret", lambda: tools.read(secret) if tools.reads else tools.write(secret, "x\n"), self._no_secret),
            Step("protected", lambda: tools.read(makefile), holds("pytest")),
            Step(
                "protected edit", lambda: tools.edit(makefile, "\tpytest\n", "\tpytest -q\n"),
                holds("Approval pending as @"),
            ),
            Step(
                "granted", lambda: tools.read(makefile), holds("pytest -q"),
                before=lambda: self._approve("protected edit", "Approval pending as "),
            ),
            Step(
                "no daemon", lambda: tools.write(later, "later\n"), holds("Denied", "orchestrator up"),
                before=self.place.kill_daemon,
            ),
            Step(
                "a daemon again", lambda: tools.write(later, "later\n"), self.written("later.txt", "later\n"),
                before=self.place.up,
            ),
        )  # fmt: skip
        theirs = LINES.replace("line 20\n", "line 20, by somebody\n")
        ours = theirs.replace("line 3\n", "line three\n").replace("line 10\n", "line ten\n")
        return Stage(
            "its own tools",
            steps,
            {
                "notes.txt": ours.replace("line 30\n", "line thirty\n"),
                "Makefile": MAKEFILE.replace("\tpytest\n", "\tpytest -q\n"),
                "new.txt": "new\n",
                "made.txt": "made\n",
                "asked.txt": "asked\n",
                "later.txt": "later\n",
            },
            {
                "notes.txt": theirs,
                "Makefile": MAKEFILE,
                **dict.fromkeys(("new.txt", "made.txt", "asked.txt", "later.txt")),
            },
            (
                ("notes.txt", 1, None),
                ("notes.txt", 3, me),
                ("notes.txt", 10, me),
                ("notes.txt", 20, "somebody"),
                ("notes.txt", 30, me),
                ("new.txt", 1, me),
                ("made.txt", 1, me),
                ("asked.txt", 1, me),
                ("Makefile", 2, me),
                ("later.txt", 1, me),
            ),
        )

    def _one_file(self) -> Stage:
        (one, other), (first, second) = self.agents, map(tools_of, self._programs)
        notes, stale = str(self.place.workspace / "notes.txt"), "line 3\n" if second.quotes else "line 10\n"
        noted = partial(self.written, "notes.txt")
        steps = (
            Step("one reads", lambda: first.read(notes), holds("line 3")),
            Step("other reads", lambda: second.read(notes), holds("line 3"), who=1),
            Step(
                "one edits", lambda: first.edit(notes, "line 3\n", "line three\n"), noted("line three")
            ),
            Step(
                "other on what was", lambda: second.edit(notes, stale, "stale\n"),
                _denied(second, 3, "line three", one), who=1,
            ),
            Step("other reads again", lambda: second.read(notes), _now_known("line three"), who=1),
            Step(
                "other edits", lambda: second.edit(notes, "line 12\n", "line 12!\n"), noted("line 12!"),
                who=1,
            ),
            Step("one reads again", lambda: first.read(notes), _now_known("line 12!")),
            Step(
                "one edits again", lambda: first.edit(notes, "line 18\n", "line eighteen\n"),
                noted("line eighteen"),
            ),
        )  # fmt: skip
        others = LINES.replace("line 12\n", "line 12!\n")
        return Stage(
            "one file",
            steps,
            {"notes.txt": others.replace("line 3\n", "line three\n").replace("line 18\n", "line eighteen\n")},
            {"notes.txt": others},
            (("notes.txt", 3, one), ("notes.txt", 12, other), ("notes.txt", 18, one)),
        )

    # --- what happens around the agent

    def _somebody_edits(self) -> None:
        self._run("edit", "notes.txt", "--search", "line 20", "--replace", "line 20, by somebody", agent="somebody")

    def _approve(self, step: str, words: str) -> None:
        said = self.answer([each.name for each in self.steps].index(step)) or ""
        self.approve(re.findall(rf"{words}(@\d+)", said)[0])

    # --- what the model reads, and what is there

    def _no_secret(self, text: str) -> str:
        return "the secret was shown" if self.secret in text else holds("Denied")(text)


def tools_of(program: Program) -> OwnTools:
    """Its own tools, of one that works with them."""
    assert program.tools is not None
    return program.tools


def _denied(tools: OwnTools, line: int, now: str, author: str) -> Callable[[str], str]:
    """What the model reads of an edit of what is there no more."""
    if tools.quotes:  # Codex checks a patch that the shell is given before it asks its hooks
        return lambda text: (
            holds(f"line {line}")(text) or ("" if "Denied" in text else holds("verification failed")(text))
        )
    return holds("Denied", f"by {author}", f"-line {line}", f"+{now}")


def _now_known(wanted: str) -> Callable[[str], str]:
    """Claude Code tells its model by itself what changed in a file that it read, and does not show it again then."""
    return lambda text: "" if "unchanged since your last Read" in text else holds(wanted)(text)


def _patch(text: str) -> Call:
    return own("apply_patch", input=f"*** Begin Patch\n{text}\n*** End Patch")


def _patch_in_shell(text: str) -> Call:
    return own("exec_command", cmd=f"apply_patch <<'EOF'\n*** Begin Patch\n{text}\n*** End Patch\nEOF\n")


def codex_tools(patch: Callable[[str], Call], offers: str) -> OwnTools:
    """Its shell, and a patch that it is given in one way."""
    return OwnTools(
        offers,
        read=lambda path: own("exec_command", cmd=f"cat {path}"),
        edit=lambda path, old, new: patch(f"*** Update File: {path}\n@@\n-{old[:-1]}\n+{new[:-1]}"),
        write=lambda path, text: patch(f"*** Add File: {path}\n+{text[:-1]}"),
        shell=lambda command: own("exec_command", cmd=command),
        delete=lambda path: patch(f"*** Delete File: {path}"),
        quotes=True,
        reads=False,
    )


CLAUDE_TOOLS = OwnTools(
    "Edit",
    read=lambda path: own("Read", file_path=path),
    edit=lambda path, old, new: own("Edit", file_path=path, old_string=old, new_string=new),
    write=lambda path, text: own("Write", file_path=path, content=text),
    shell=lambda command: own("Bash", command=command, description="work"),
    delete=lambda path: own("Bash", command=f"rm {path}", description="work"),
)
GEMINI_TOOLS = OwnTools(
    "replace",
    read=lambda path: own("read_file", file_path=path),
    edit=lambda path, old, new: own(
        "replace", file_path=path, old_string=old, new_string=new, instruction="Change it."
    ),
    write=lambda path, text: own("write_file", file_path=path, content=text),
    shell=lambda command: own("run_shell_command", command=command, description="work"),
    delete=lambda path: own("run_shell_command", command=f"rm {path}", description="work"),
)
OPENCODE_TOOLS = OwnTools(
    "edit",
    read=lambda path: own("read", filePath=path),
    edit=lambda path, old, new: own("edit", filePath=path, oldString=old, newString=new),
    write=lambda path, text: own("write", filePath=path, content=text),
    shell=lambda command: own("bash", command=command, description="work"),
    delete=lambda path: own("bash", command=f"rm {path}", description="work"),
)
PATCH_TOOLS, SHELL_TOOLS = codex_tools(_patch, "apply_patch"), codex_tools(_patch_in_shell, "exec_command")
"""For models that Codex knows, and for those that it gives a shell alone."""

_claude = CLAUDE._replace(
    arguments=("-p", PROMPT, "--permission-mode", "acceptEdits", "--allowedTools", "Read,Edit,Write,Bash"),
    tools=CLAUDE_TOOLS,
)
_codex = partial(
    Program._replace,
    arguments=("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", PROMPT),
)

NATIVE = {
    program.name: program
    for program in (
        _claude,
        OPENCODE._replace(tools=OPENCODE_TOOLS),
        GEMINI._replace(arguments=(*GEMINI.arguments, "--yolo"), tools=GEMINI_TOOLS),
        _codex(CODEX, tools=SHELL_TOOLS),
        _codex(CODEX_DEFERRED, tools=PATCH_TOOLS),
        _codex(CODEX_CODE, tools=PATCH_TOOLS),
    )
}
