"""What holds for the hooks of each client, in the JSON that the real program sends; tried with the versions named."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import which
from typing import Any, NamedTuple

import anyio
import pytest

from orchestrator.clients.hooks import opencode
from orchestrator.clients.python import Replacement
from tests.daemon.cli import cli
from tests.daemon.daemon_process import RunningDaemon, running
from tests.daemon.external_changes import entries, seen
from tests.daemon.test_native_hooks import BOOT, POLICY, TEXT, Claude, authors
from tests.daemon.test_undo import agrees

pytestmark = pytest.mark.anyio

OLD, NEW = "two", "TWO"


@pytest.fixture
def daemon(base: Path) -> Iterator[RunningDaemon]:
    (base / "state").mkdir(mode=0o700)
    (base / "state/policy.toml").write_text(POLICY)
    work = RunningDaemon(base).workspace
    (work / "kept").mkdir()
    for name in ("a.txt", "asked.txt", "kept/b.txt"):
        (work / name).write_text(TEXT)
    with running(base) as daemon:
        yield daemon


class Said(NamedTuple):
    """What the program answered."""

    out: str
    denied: bool
    reason: str
    told: str


class Hooks:
    """One client's hooks around its own tools."""

    name: str
    tools: tuple[str, ...]

    def __init__(self, daemon: RunningDaemon) -> None:
        self._daemon, self.calls, self.session = daemon, 0, "5c1e0b1e-session"
        self.workspace = daemon.workspace

    async def send(self, payload: dict[str, Any] | bytes, *options: str) -> Said:
        data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        command = [sys.executable, "-I", "-S", "-c", BOOT, "hook", self.name, *options]
        done = await anyio.run_process(command, input=data, env=self._daemon.env, check=False)
        if done.returncode == 2:
            return Said("", denied=True, reason=done.stderr.decode(), told="")
        assert done.returncode == 0, done
        return self.understood(done.stdout.decode())

    async def before(self, tool: str, *options: str, **takes: Any) -> Said:
        self.calls += 1
        return await self.send(self.event(tool, takes, before=True), *options)

    async def after(self, tool: str, **takes: Any) -> Said:
        return await self.send(self.event(tool, takes, before=False))

    async def act(self, tool: str, **takes: Any) -> Said:
        """Let it act, if it may, as its client does."""
        said = await self.before(tool, **takes)
        if said.denied:
            return said
        if tool == "edit":
            path = self.workspace / takes["path"]
            path.write_text(path.read_text().replace(takes["old"], takes["new"]))
        if tool == "write":
            (self.workspace / takes["path"]).write_text(takes["content"])
        return await self.after(tool, **takes)

    def event(self, tool: str, takes: dict[str, Any], *, before: bool) -> dict[str, Any]:
        """What the client sends: of `read`, `edit`, `write` or `command`."""
        raise NotImplementedError

    def understood(self, out: str) -> Said:
        """An answer as the client takes it."""
        raise NotImplementedError


class Gemini(Hooks):
    """Gemini CLI 0.61.0."""

    name = "gemini"
    tools = ("read", "edit", "write")

    def event(self, tool: str, takes: dict[str, Any], *, before: bool) -> dict[str, Any]:
        own, given = {
            "read": ("read_file", {"file_path": takes.get("path")}),
            "edit": ("replace", {"file_path": takes.get("path"), "old_string": takes.get("old"),
                                 "new_string": takes.get("new"), "instruction": "change it"}),
            "write": ("write_file", {"file_path": takes.get("path"), "content": takes.get("content")}),
            "command": ("run_shell_command", {"command": takes.get("command")}),
            "other": ("google_web_search", {"query": "x"}),
        }[tool]  # fmt: skip
        common = {
            "session_id": self.session,
            "transcript_path": "/nowhere",
            "cwd": str(self.workspace),
            "hook_event_name": "BeforeTool" if before else "AfterTool",
            "timestamp": "2026-11-23T18:51:20.430Z",
            "tool_name": own,
            "tool_input": given,
        }
        return common if before else {**common, "tool_response": {"llmContent": TEXT, "returnDisplay": ""}}

    def understood(self, out: str) -> Said:
        given = json.loads(out) if out else {}
        told = given.get("hookSpecificOutput", {}).get("additionalContext", "")
        return Said(out, given.get("decision") == "deny", given.get("reason", ""), told)


class Opencode(Hooks):
    """opencode 1.18.33, whose plugin sends this."""

    name = "opencode"
    tools = ("read", "edit", "write")

    def event(self, tool: str, takes: dict[str, Any], *, before: bool) -> dict[str, Any]:
        path = str(self.workspace / takes.get("path", "."))
        own, given = {
            "read": ("read", {"filePath": path}),
            "edit": ("edit", {"filePath": path, "oldString": takes.get("old"), "newString": takes.get("new")}),
            "write": ("write", {"filePath": path, "content": takes.get("content")}),
            "command": ("bash", {"command": takes.get("command"), "description": "it"}),
            "other": ("webfetch", {"url": "http://x"}),
        }[tool]
        common = {
            "session": self.session,
            "cwd": str(self.workspace),
            "event": "before" if before else "after",
            "call": f"call_{self.calls:04}",
            "tool": own,
            "args": given,
        }
        return common if before else {**common, "shown": {"start": 1, "end": 6}}

    def understood(self, out: str) -> Said:
        given = json.loads(out) if out else {}
        return Said(out, "deny" in given, given.get("deny", ""), given.get("tell", ""))


class Codex(Hooks):
    """Codex CLI 0.169.0, which reads by its shell."""

    name = "codex"
    tools = ("edit", "write")

    def event(self, tool: str, takes: dict[str, Any], *, before: bool) -> dict[str, Any]:
        path = takes.get("path")
        own, given = {
            "read": ("Bash", f"cat {path}"),
            "edit": ("apply_patch", f"*** Update File: {path}\n@@\n-{takes.get('old')}\n+{takes.get('new')}"),
            "write": ("apply_patch", f"*** Add File: {path}\n+{str(takes.get('content')).rstrip()}"),
            "command": ("Bash", takes.get("command")),
            "other": ("mcp__orchestrator__read_file", "x"),
        }[tool]
        if own == "apply_patch":
            given = f"*** Begin Patch\n{given}\n*** End Patch"
        common = {
            "session_id": self.session,
            "turn_id": "01a209be",
            "transcript_path": "/nowhere",
            "cwd": str(self.workspace),
            "hook_event_name": "PreToolUse" if before else "PostToolUse",
            "model": "gpt-5.5",
            "permission_mode": "bypassPermissions",
            "tool_name": own,
            "tool_input": {"command": given},
            "tool_use_id": f"call_{self.calls:04}",
        }
        return common if before else {**common, "tool_response": "Exit code: 0"}

    def understood(self, out: str) -> Said:
        given = json.loads(out)["hookSpecificOutput"] if out else {}
        denied = given.get("permissionDecision") == "deny"
        return Said(out, denied, given.get("permissionDecisionReason", ""), given.get("additionalContext", ""))


class Cursor(Hooks):
    """Cursor, as it is documented; its model is told nothing beside a result."""

    name = "cursor"
    tools = ("read", "edit", "write")

    def event(self, tool: str, takes: dict[str, Any], *, before: bool) -> dict[str, Any]:
        path = str(self.workspace / takes.get("path", "."))
        common = {
            "conversation_id": self.session,
            "generation_id": "gen-1",
            "workspace_roots": [str(self.workspace)],
        }
        quoted = {"old_string": takes.get("old"), "new_string": takes.get("new")}
        if tool == "command":
            name = "beforeShellExecution" if before else "afterShellExecution"
            return {**common, "hook_event_name": name, "command": takes["command"], "cwd": str(self.workspace)}
        if tool == "read":
            return {**common, "hook_event_name": "beforeReadFile", "file_path": path, "content": TEXT}
        if not before:
            return {**common, "hook_event_name": "afterFileEdit", "file_path": path, "edits": [quoted]}
        given = {"file_path": path, **(quoted if tool == "edit" else {"content": takes.get("content")})}
        own = {"edit": "StrReplace", "write": "Write", "other": "Grep"}[tool]
        return {**common, "hook_event_name": "preToolUse", "tool_name": own, "tool_input": given}

    def understood(self, out: str) -> Said:
        given = json.loads(out)
        assert given.get("permission") != "allow", "it must not stand in for the person's own permission"
        return Said(out.replace("{}", "").strip(), "permission" in given, given.get("agent_message", ""), "")


CLIENTS = (Gemini, Opencode, Codex, Cursor)


async def test_what_cursor_was_seen_to_send(daemon: RunningDaemon) -> None:
    """As people report of 3.12 and of its command line: a BOM, no folder, no name of the tool; a patch."""
    client = Cursor(daemon)
    takes = {"path": "kept/b.txt", "old": OLD, "new": NEW}
    event = client.event("edit", takes, before=True)
    unnamed = {name: value for name, value in event.items() if name != "tool_name"}
    patches: list[Any] = [text := patch("*** Update File: kept/b.txt", "@@", "-two", "+TWO"), {"patch": text}]
    payloads: list[dict[str, Any] | bytes] = [
        b"\xef\xbb\xbf" + json.dumps(event).encode(),
        {**event, "cwd": ""},
        unnamed,
        *({**event, "tool_name": "ApplyPatch", "tool_input": each} for each in patches),
        {**client.event("command", {"command": "rm a.txt"}, before=True), "cwd": ""},
    ]
    for payload in payloads:
        assert "Policy decides this" in (await client.send(payload)).reason, payload
    assert "can't read the event" in (await client.send({**unnamed, "tool_input": {"path": "a.txt"}})).reason
    assert "can't read the event" in (await client.send({**event, "tool_name": "ApplyPatch"})).reason


async def test_claudes_hook_leaves_cursors_calls_to_cursors(daemon: RunningDaemon) -> None:
    """Cursor runs the hooks that Claude's settings name, too."""
    event = Cursor(daemon).event("edit", {"path": "kept/b.txt", "old": OLD, "new": NEW}, before=True)
    done = await Claude(daemon).hook({**event, "cursor_version": "3.12.29"})
    assert (done.code, done.out) == (0, "")


@pytest.fixture(params=CLIENTS, ids=lambda client: client.name)
def hooks(daemon: RunningDaemon, request: pytest.FixtureRequest) -> Hooks:
    client: Hooks = request.param(daemon)
    return client


async def test_an_edit_is_its_agents_and_can_be_undone(daemon: RunningDaemon, hooks: Hooks) -> None:
    if "read" in hooks.tools:
        assert (await hooks.act("read", path="a.txt")).out == ""
    assert not (await hooks.act("edit", path="a.txt", old=OLD, new=NEW)).denied
    assert await authors(daemon, "a.txt") == [hooks.name, None]
    async with daemon.client() as person, daemon.client(hooks.name) as own:
        (group,) = await entries(person, "external_batch_opened")
        assert group.event["trigger"] == "hook"
        assert group.event["tool"].startswith(f"{hooks.name} ")
        assert (await own.rollback(agent=hooks.name)).status == "applied"
    assert (hooks.workspace / "a.txt").read_text() == TEXT
    await agrees(daemon)


async def test_a_stale_edit_is_denied_with_what_changed(daemon: RunningDaemon, hooks: Hooks) -> None:
    await hooks.act("read", path="a.txt")
    assert not (await hooks.act("edit", path="a.txt", old=OLD, new=NEW)).denied
    async with daemon.client("bob") as bob:
        await bob.edit_file("a.txt", [Replacement(search="three", replace="drei")])
    said = await hooks.act("edit", path="a.txt", old="three", new="THREE")
    assert said.denied
    assert "by bob" in said.reason
    assert "-three\n+drei" in said.reason
    assert "THREE" not in (hooks.workspace / "a.txt").read_text()
    await hooks.act("read", path="a.txt")
    assert not (await hooks.act("edit", path="a.txt", old="drei", new="THREE")).denied


async def test_others_changes_are_told_beside_a_tools_result(daemon: RunningDaemon, hooks: Hooks) -> None:
    (hooks.workspace / "c.txt").write_text(TEXT)
    await hooks.act("read", path="a.txt")
    await hooks.act("edit", path="a.txt", old=OLD, new=NEW)
    async with daemon.client("bob") as bob:
        await bob.edit_file("a.txt", [Replacement(search=NEW, replace="zwei")])
    assert (await hooks.before("edit", path="c.txt", old="x", new="y")).told == ""  # the model would not see it
    told = (await hooks.after("edit", path="c.txt")).told
    assert ("a.txt, which you read, was changed by bob" in told) == (hooks.name != "cursor")


async def test_what_policy_denies_is_denied(hooks: Hooks) -> None:
    for tool, takes in (
        ("read", {"path": "kept/b.txt"}),
        ("edit", {"path": "kept/b.txt", "old": OLD, "new": NEW}),
        ("write", {"path": "kept/new.txt", "content": "x\n"}),
    ):
        if tool in hooks.tools:
            said = await hooks.act(tool, **takes)
            assert (said.denied, "kept" in said.reason) == (True, True), tool
    assert not (hooks.workspace / "kept/new.txt").exists()


async def test_twice_late_and_outside(daemon: RunningDaemon, hooks: Hooks) -> None:
    assert (await hooks.before("other")).out == ""
    if "read" in hooks.tools:
        assert (await hooks.before("read", path="kept")).out == ""  # a folder, which is listed
    outside = str(daemon.base / "outside.txt")
    assert (await hooks.before("write", path=outside, content="x\n")).out == ""
    path = hooks.workspace / "a.txt"
    path.write_text(path.read_text().replace(OLD, NEW))
    for _ in range(2):  # without a word before it
        assert not (await hooks.after("edit", path="a.txt", old=OLD, new=NEW)).denied
    assert len(await authors(daemon, "a.txt")) == 2
    for _ in range(2):
        assert not (await hooks.before("write", path="new.txt", content="x\n")).denied
    (hooks.workspace / "new.txt").write_text("x\n")
    assert not (await hooks.after("write", path="new.txt", content="x\n")).denied
    assert await authors(daemon, "new.txt") == [hooks.name]


DRIVER = """
import { Orchestrator } from "./plugin.mjs"
const [directory, filePath] = process.argv.slice(2)
const input = { tool: "read", sessionID: "s", callID: "c" }
const hooks = await Orchestrator({ directory })
await hooks["tool.execute.before"]({ ...input, tool: "webfetch" }, { args: {} })
try {
  await hooks["tool.execute.before"](input, { args: { filePath } })
  console.log("acts")
} catch (error) { console.log(error.message) }
process.exit()  // the time limit of a program that cannot be run goes on
"""


@pytest.mark.skipif(which("node") is None, reason="opencode brings its own JavaScript engine; this needs node")
async def test_the_plugin_of_opencode_keeps_a_tool_out(daemon: RunningDaemon) -> None:
    (daemon.base / "driver.mjs").write_text(DRIVER)
    shown = {}
    for name, command in (("hook", (sys.executable, "-I", "-S", "-c", BOOT, "hook", "opencode")), ("none", ("/none",))):
        (daemon.base / "plugin.mjs").write_text(opencode.plugin(command))
        for path in ("a.txt", "kept/b.txt"):
            run = ["node", str(daemon.base / "driver.mjs"), str(daemon.workspace), str(daemon.workspace / path)]
            done = await anyio.run_process(run, env=daemon.env, check=False)
            shown[name, path] = done.stdout.decode().strip()
    assert shown["hook", "a.txt"] == "acts"
    assert shown["hook", "kept/b.txt"].startswith("Denied: read kept/b.txt")
    assert "cannot be run" in shown["none", "a.txt"]


async def test_a_tool_that_failed_and_is_tried_again_is_its_agents(daemon: RunningDaemon) -> None:
    client = Opencode(daemon)
    await client.act("read", path="a.txt")
    assert not (await client.before("write", path="a.txt", content=NEW)).denied  # no word comes of its failure
    assert not (await client.act("write", path="a.txt", content=NEW)).denied
    assert (await authors(daemon, "a.txt"))[0] == "opencode"


async def test_rubbish_is_denied(hooks: Hooks) -> None:
    whole = hooks.event("edit", {"path": "a.txt", "old": OLD, "new": NEW}, before=True)
    for payload in (b"", b"rubbish", b"[" * 100_000, b"{}", json.dumps(whole).encode().replace(b"a.txt", b"a.txt\xff")):
        assert (await hooks.send(payload)).denied, payload[:40]
    for name in ("tool_input", "cwd", "session_id", "args", "session", "call", "conversation_id", "workspace_roots"):
        if name in whole:
            assert (await hooks.send({**whole, name: 3})).denied, name
            assert (await hooks.send({key: value for key, value in whole.items() if key != name})).denied, name


async def test_events_of_many_megabytes_are_answered(hooks: Hooks) -> None:
    assert (await hooks.send(b"x" * (10 << 20))).denied
    said = await hooks.send(hooks.event("edit", edit_to("x" * (10 << 20)), before=True))
    assert said.denied == (hooks.name == "codex"), "a patch may not be as long as a file"
    assert (await hooks.send(hooks.event("edit", edit_to("x" * (20 << 20)), before=True))).reason


def edit_to(new: str) -> dict[str, Any]:
    return {"path": "a.txt", "old": OLD, "new": new}


async def test_without_a_daemon_the_installed_rule_holds(daemon: RunningDaemon, hooks: Hooks) -> None:
    daemon.stop()
    for tool, takes in (("read", {"path": "a.txt"}), ("write", {"path": "n.txt", "content": "x"}),
                        ("command", {"command": "ls"})):  # fmt: skip
        said = await hooks.before(tool, **takes)
        assert (said.denied, "orchestrator up" in said.reason) == (True, True), tool
        assert (await hooks.before(tool, "--without-daemon", "allow", **takes)).out == "", tool


async def test_a_command_is_judged_by_policy(hooks: Hooks) -> None:
    assert not (await hooks.act("command", command="make 'a b' --all=1")).denied
    for command, why in (
        ("rm -rf a.txt", "Policy decides this"),
        ("/bin/rm a.txt", "Policy decides this"),
        ("cargo build", "waits for it as @"),
        ("make; rm a.txt", "waits for it as @"),
        ("FOO=1 make", "waits for it as @"),
        ("make $(rm a.txt)", "waits for it as @"),
        ("make 'a", "waits for it as @"),
    ):
        said = await hooks.before("command", command=command)
        assert (said.denied, why in said.reason) == (True, True), (command, said)


async def test_a_yes_lets_the_same_command_through_once(daemon: RunningDaemon, hooks: Hooks) -> None:
    refused = await hooks.before("command", command="cargo build")
    assert "is let through once" in refused.reason
    assert number_in(await hooks.before("command", command="cargo build")) == number_in(refused)
    assert number_in(await hooks.before("command", command="cargo test")) != number_in(refused)
    approve = ("approvals", "approve", number_in(refused))
    async with daemon.client(hooks.name) as own:  # the same agent, but a command that is confined
        assert (await own.run_command(["cargo", "build"])).approval != number_in(refused)
    code = await daemon.make_approver()
    assert "run cargo build\nin ., in the workspace itself\n" in cli(daemon, "approvals", "show", approve[-1])[1]
    assert cli(daemon, *approve, "--unseen", ORCHESTRATOR_APPROVER=code)[0] == 0
    assert (await hooks.before("command", command="cargo test")).denied
    assert not (await hooks.before("command", command="cargo build")).denied
    async with daemon.client() as person:
        (used,) = await entries(person, "approval_used")
        assert (used.event["tool"].partition(" ")[0], used.agent) == (hooks.name, hooks.name)
    again = await hooks.before("command", command="cargo build")
    assert (again.denied, number_in(again) != number_in(refused)) == (True, True)
    await agrees(daemon)


def number_in(said: Said) -> str:
    """The approval that a refusal names."""
    assert said.denied
    return said.reason.partition("waits for it as ")[2].partition(":")[0]


async def test_a_grant_lets_a_command_through_each_time(daemon: RunningDaemon) -> None:
    client = Gemini(daemon)
    number = number_in(await client.before("command", command="cargo build"))
    async with daemon.client() as person:
        await person.approve(number, unseen=True, for_session=True, approver=await daemon.make_approver())
    for _ in range(2):
        assert not (await client.before("command", command="cargo build")).denied


async def test_a_person_reads_where_a_command_outside_begins(daemon: RunningDaemon) -> None:
    client = Gemini(daemon)
    event = client.event("command", {"command": "cargo build"}, before=True)
    elsewhere = {**event, "cwd": str(daemon.base)}
    said = await client.send(elsewhere, "--workspace", str(daemon.workspace))
    async with daemon.client() as person:
        (waiting,) = (await person.approvals_list()).approvals
        assert (waiting.approval, waiting.command) == (number_in(said), f"sh -c 'cd {daemon.base} && cargo build'")
        await person.approve(waiting.approval, unseen=True, approver=await daemon.make_approver())
    assert (await client.send(event)).denied
    assert not (await client.send(elsewhere, "--workspace", str(daemon.workspace))).denied


def patch(*rows: str) -> str:
    return "\n".join(("*** Begin Patch", *rows, "*** End Patch"))


class Patches:
    """Sends a patch with a text of its own, by Codex or opencode, and applies it as they do."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks

    async def send(self, text: str, *, before: bool = True, shell: str = "") -> Said:
        event = self._hooks.event("edit", {"path": "x"}, before=before)
        if self._hooks.name == "codex":
            event |= {"tool_name": "Bash" if shell else "apply_patch", "tool_input": {"command": shell or text}}
        else:
            event |= {"tool": "apply_patch", "args": {"patchText": text}}
        return await self._hooks.send(event)


@pytest.fixture(params=(Codex, Opencode), ids=lambda client: client.name)
def patcher(daemon: RunningDaemon, request: pytest.FixtureRequest) -> Hooks:
    client: Hooks = request.param(daemon)
    return client


async def test_a_patch_of_several_files_is_one_act(daemon: RunningDaemon, patcher: Hooks) -> None:
    work, patches = patcher.workspace, Patches(patcher)
    async with daemon.client(patcher.name) as own:
        await own.write_file("mine.txt", "mine\n", mode="create")
    text = patch(
        "*** Update File: a.txt", "@@", " one", "-two", "+TWO", "*** Add File: sub/new.txt", "+new",
        "*** Delete File: mine.txt", f"*** Add File: {daemon.base}/outside.txt", "+x",
    )  # fmt: skip
    assert not (await patches.send(text)).denied
    (work / "a.txt").write_text(TEXT.replace("two", "TWO"))
    (work / "sub").mkdir()
    (work / "sub/new.txt").write_text("new\n")
    (work / "mine.txt").unlink()
    assert not (await patches.send(text, before=False)).denied
    async with daemon.client() as person, daemon.client(patcher.name) as own:
        for name in ("a.txt", "sub/new.txt", "mine.txt"):
            assert (await authors(daemon, name))[0] == patcher.name, name
        (group,) = [each for each in await entries(person, "external_batch_opened") if each.event.get("tool")]
        assert (await own.revert(group.seq)).status == "applied"
    assert (work / "a.txt").read_text() == TEXT
    assert (work / "mine.txt").read_text() == "mine\n"
    assert not (work / "sub/new.txt").exists()
    await agrees(daemon)


async def test_what_a_patch_may_not_do_is_denied_as_a_whole(daemon: RunningDaemon, patcher: Hooks) -> None:
    patches = Patches(patcher)
    good = ("*** Add File: good.txt", "+x")
    for rows, why in (
        (("*** Update File: kept/b.txt", "@@", "-two", "+TWO"), "kept"),
        (("*** Add File: kept/new.txt", "+x"), "kept"),
        (("*** Update File: a.txt", "*** Move to: kept/a.txt", "@@", "-two", "+TWO"), ""),
        (("*** Update File: a.txt", "*** Move to: /tmp/a.txt", "@@", "-two", "+TWO"), "out of it"),
        (("*** Add File: a.txt", "+x"), "Update File"),
        (("*** Delete File: /tmp/x", " *** Update File: kept/b.txt", "@@", "-two", "+TWO"), "blanks before it"),
        (("*** Update File: kept/../kept/b.txt", "@@", "-two", "+TWO"), "kept"),
    ):
        said = await patches.send(patch(*good, *rows))
        assert (said.denied, why in said.reason) == (True, True), (rows, said)
    assert (await patches.send(patch("*** Add File: /nowhere/x", "+x"))).out == ""
    said = await patches.send(patch("*** Update File: asked.txt", "@@", "-two", "+TWO"))
    assert "Approval pending as @" in said.reason
    code = await daemon.make_approver()
    async with daemon.client() as person:
        number = said.reason.split("Approval pending as ")[1].split(".")[0]
        await person.approvals_show(number)
        await person.approve(number, approver=code)
    assert (patcher.workspace / "asked.txt").read_text() == TEXT.replace("two", "TWO")


async def test_what_others_write_is_not_of_a_patch_that_does_not_apply(daemon: RunningDaemon, patcher: Hooks) -> None:
    await Patches(patcher).send(patch("*** Update File: a.txt", "@@", "-not there", "+x"))
    (daemon.workspace / "a.txt").write_text(NEW)  # no word comes after the patch
    async with daemon.client() as person:
        await seen(person, daemon.workspace)
    assert (await authors(daemon, "a.txt"))[0] == "outside"


async def test_a_patch_that_codex_takes_from_its_shell_is_one(daemon: RunningDaemon) -> None:
    codex = Codex(daemon)
    patches = Patches(codex)
    text = patch("*** Update File: a.txt", "@@", "-two", "+TWO")
    assert (await patches.send("", shell=f"apply_patch <<'EOF'\n{text.replace('a.txt', 'kept/b.txt')}\nEOF")).denied
    assert (await patches.send("", shell=f"cd kept && apply_patch <<EOF\n{text.replace('a.txt', 'b.txt')}\nEOF")).denied
    assert (await patches.send("", shell=f"apply_patch <<'EOF'\n{text}\nEOF\nrm a.txt")).denied
    assert not (await patches.send("", shell=f"apply_patch <<'EOF'\n{text}\nEOF")).denied
    (daemon.workspace / "a.txt").write_text(TEXT.replace("two", "TWO"))
    async with daemon.client() as person:
        await seen(person, daemon.workspace)
    assert (await authors(daemon, "a.txt"))[0] == "codex"  # no word comes after it


async def test_a_session_opens_once(daemon: RunningDaemon) -> None:
    for client in (Opencode(daemon), Gemini(daemon)):
        for name in ("a.txt", "asked.txt"):
            await client.act("read", path=name)
    async with daemon.client() as person:
        opened = await entries(person, "session_opened")
    hooks = [each.agent for each in opened if each.agent in ("opencode", "gemini")]
    assert sorted(map(str, hooks)) == ["gemini", "opencode"]
