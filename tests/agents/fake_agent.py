"""A scripted agent that speaks ACP version 1 on its stdio: `fake_agent.py SCRIPT`. Standard library only."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SESSION = "sess-1"
OPTIONS = [
    {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]


class Agent:
    """One conversation. `root` and `server` are those of session/new."""

    def __init__(self) -> None:
        self.last = 100
        self.root = Path()
        self.server: dict[str, Any] = {}
        self.client: dict[str, Any] = {}
        self.cancelled = False

    def send(self, **message: Any) -> None:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

    def receive(self) -> dict[str, Any]:
        line = sys.stdin.readline()
        if not line:
            sys.exit(0)
        message: dict[str, Any] = json.loads(line)
        self.cancelled |= message.get("method") == "session/cancel"
        return message

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """A request to the client; its whole answer."""
        self.last += 1
        self.send(id=self.last, method=method, params={"sessionId": SESSION, **params})
        while True:
            message = self.receive()
            if message.get("id") == self.last and "method" not in message:
                return message

    def update(self, update: str, **members: Any) -> None:
        self.send(
            method="session/update", params={"sessionId": SESSION, "update": {"sessionUpdate": update, **members}}
        )

    def say(self, text: str) -> None:
        self.update("agent_message_chunk", content={"type": "text", "text": text})

    def permission(self, title: str, kind: str, *paths: str, **more: Any) -> str:
        """What was answered: the option's id, or `cancelled`."""
        call = {"toolCallId": title, "title": title, "kind": kind, "locations": [{"path": path} for path in paths]}
        outcome = self.ask("session/request_permission", toolCall={**call, **more}, options=OPTIONS)["result"][
            "outcome"
        ]
        return str(outcome.get("optionId", outcome["outcome"]))

    def edit(
        self, path: Path, old: str | None, new: str, *, writes: str | None, ends: bool = True, asked: bool = False
    ) -> None:
        """A tool call of the agent's own: what it says that it does, and what is there then."""
        diff = {"type": "diff", "path": str(path), "oldText": old, "newText": new}
        self.update(
            "tool_call", toolCallId="e1", title=f"Edit {path.name}", kind="edit", status="pending", content=[diff]
        )
        if not asked:
            self.permission("read", "read", str(path))  # when this is answered, the edit is known to the daemon
        if writes is not None:
            path.write_text(writes)
        if ends:
            self.update("tool_call_update", toolCallId="e1", status="completed")

    def tool(self, name: str, **arguments: Any) -> dict[str, Any]:
        """A call of a tool of the MCP server that it was given."""
        environment = {**os.environ, **{item["name"]: item["value"] for item in self.server["env"]}}
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "fake", "version": "1"}}
        calls = (
            {"id": 1, "method": "initialize", "params": hello},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/call", "params": {"name": name, "arguments": arguments}},
        )
        with subprocess.Popen(
            [self.server["command"], *self.server["args"]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            for call in calls:
                print(json.dumps({"jsonrpc": "2.0", **call}), file=process.stdin, flush=True)
            while True:
                answer: dict[str, Any] = json.loads(process.stdout.readline())
                if answer.get("id") == 2:
                    process.stdin.close()
                    return answer


# --- the scripts -----------------------------------------------------------------------


def works(agent: Agent, task: str) -> None:
    """Plans, edits over MCP, and says so in pieces."""
    agent.update("plan", entries=[{"content": "edit it\x1b[2J", "status": "pending", "priority": "high"}])
    changes = [{"search": "one", "replace": "two"}]
    answer = agent.tool("edit_file", path="a.txt", changes=changes)
    assert not answer["result"].get("isError"), answer
    for piece in ("did \x1b]0;title\x07", f"{task}: ", "key AKIAQ", "3EGRZ7HS5TWPL2M\n"):
        agent.say(piece)


def permissions(agent: Agent, _: str) -> None:
    """Asks about several things, and says what was answered."""
    root = str(agent.root)
    diff = {"type": "diff", "path": f"{root}/a.txt", "oldText": (agent.root / "a.txt").read_text(), "newText": ""}
    say = [
        agent.permission("read", "read", f"{root}/a.txt"),
        agent.permission("edit", "edit", f"{root}/a.txt"),
        agent.permission("secret", "read", f"{root}/.env"),
        agent.permission("outside", "read", "/etc/passwd"),
        agent.permission("up", "read", f"{root}/../x"),
        agent.permission("shell", "execute"),
        agent.permission("mcp__orchestrator__edit_file", "other"),
        agent.permission("empty", "edit", content=[diff]),
    ]
    agent.say(" ".join(say))


def delegates(agent: Agent, _: str) -> None:
    """Reads and writes through the client."""
    read = agent.ask("fs/read_text_file", path=f"{agent.root}/a.txt")
    if "error" in read:
        agent.say(f"read {read['error']['code']}\n")
        return
    part = agent.ask("fs/read_text_file", path=f"{agent.root}/a.txt", line=2, limit=1)["result"]["content"]
    content = read["result"]["content"].replace("one", "two")
    write = agent.ask("fs/write_text_file", path=f"{agent.root}/a.txt", content=content)
    new = agent.ask("fs/write_text_file", path=f"{agent.root}/new.txt", content="new\n")
    denied = agent.ask("fs/read_text_file", path=f"{agent.root}/.env")
    unread = agent.ask("fs/write_text_file", path=f"{agent.root}/b.txt", content="over\n")
    outside = agent.ask("fs/write_text_file", path=f"{agent.root}/../x.txt", content="out\n")
    relative = agent.ask("fs/read_text_file", path="a.txt")
    told = [answer["error"]["message"].split(":")[0] for answer in (denied, unread)]
    absent = agent.ask("fs/read_text_file", path=f"{agent.root}/absent.txt")
    codes = [answer["error"]["code"] for answer in (outside, relative)]
    agent.say(json.dumps([part, absent["result"]["content"], write["result"], new["result"], told, codes]))


def waits(agent: Agent, _: str) -> None:
    """Writes a file that a person must say yes to."""
    answer = agent.ask("fs/write_text_file", path=f"{agent.root}/Makefile", content="all:\n")
    agent.say(str(answer.get("error")))


def orphaned(agent: Agent, _: str) -> None:
    """Goes on when the daemon is gone."""
    agent.say("ready\n")
    while not (agent.root / "gone").exists():
        time.sleep(0.01)
    agent.say(agent.permission("read", "read", f"{agent.root}/a.txt"))
    agent.say(str("error" in agent.ask("fs/read_text_file", path=f"{agent.root}/a.txt")))


def nothing_to_choose(agent: Agent, _: str) -> None:
    """Asks without an answer to choose from, and about more files than anybody would."""
    call = {"toolCallId": "1", "kind": "edit", "locations": [{"path": f"{agent.root}/{n}"} for n in range(20_000)]}
    agent.say(agent.ask("session/request_permission", toolCall=call, options=[])["result"]["outcome"]["outcome"])


def dies(agent: Agent, _: str) -> None:
    """Ends in the middle of a tool call."""
    agent.update("tool_call", toolCallId="e1", title="Edit", kind="edit", status="in_progress")
    print("out of \x1b[31mmemory", file=sys.stderr, flush=True)
    os._exit(7)


def garbage(_: Agent, __: str) -> None:
    """Speaks something else."""
    for _line in range(100):
        print("\x00 no json", flush=True)
    time.sleep(60)


def long_line(_: Agent, __: str) -> None:
    """One line of 50 MB, without an end."""
    for _piece in range(50):
        sys.stdout.write("x" * 1_000_000)
    sys.stdout.flush()
    time.sleep(60)


def claims(agent: Agent, _: str) -> None:
    """Reports an edit that it did not make."""
    agent.edit(agent.root / "a.txt", "one", "three", writes=None)


def edits(agent: Agent, _: str) -> None:
    """Edits with a tool of its own."""
    agent.edit(agent.root / "a.txt", "one", "two", writes="two\nlast\n")


def creates(agent: Agent, _: str) -> None:
    """Writes a file that was not there."""
    agent.edit(agent.root / "new.txt", None, "new\n", writes="new\n")


def lies(agent: Agent, _: str) -> None:
    """Writes something else than it says, to a file that it never read."""
    agent.edit(agent.root / "b.txt", "b", "c", writes="d\n")


def dies_after_its_edit(agent: Agent, _: str) -> None:
    """Makes its edit, and ends before it says so."""
    agent.edit(agent.root / "a.txt", "one", "two", writes="two\nlast\n", ends=False)
    os._exit(7)


def isolated(agent: Agent, _: str) -> None:
    """Works in a copy: without our tools, and without a question about its edits."""
    answer = agent.permission("Edit a.txt", "edit", str(agent.root / "a.txt"))
    (agent.root / "a.txt").write_text("two\nlast\n")
    (agent.root / "deep").mkdir()
    (agent.root / "deep/new.txt").write_text("new\n")
    agent.say(f"{answer} {bool(agent.server)} {(agent.root / '.env').exists()} {agent.root}")


def isolated_and_protected(agent: Agent, _: str) -> None:
    """Changes a file in its copy that policy asks about."""
    (agent.root / "Makefile").write_text("all:\n")


def isolated_and_dies(agent: Agent, _: str) -> None:
    """Ends before its turn does."""
    path = agent.root / "a.txt"
    path.write_text(path.read_text().replace("one", "two"))
    os._exit(7)


def edits_the_last_line(agent: Agent, _: str) -> None:
    """Says what it will do, and does it when others have changed the file."""
    path = agent.root / "a.txt"
    diff = {"type": "diff", "path": str(path), "oldText": "last", "newText": "the last"}
    agent.update("tool_call", toolCallId="l1", title="Edit", kind="edit", status="pending", content=[diff])
    agent.permission("read", "read", str(path))
    agent.say("ready\n")
    while not (agent.root / "gone").exists():
        time.sleep(0.01)
    agent.permission("read", "read", str(path))
    path.write_text(path.read_text().replace("last", "the last"))
    agent.tool("read_file", path="a.txt")  # the daemon meets it before it is told that it is made
    agent.update("tool_call_update", toolCallId="l1", status="completed")


def asks(agent: Agent, _: str) -> None:
    """Asks before it edits, and before it runs something, and says what it was answered."""
    path = agent.root / "a.txt"
    diff = {"type": "diff", "path": str(path), "oldText": "one", "newText": "two"}
    answer = agent.permission("Edit a.txt", "edit", str(path), content=[diff])
    if answer == "yes":
        agent.edit(path, "one", "two", writes="two\nlast\n", asked=True)
    agent.say(f"the edit: {answer}\n")
    answer = agent.permission("Shell", "execute", rawInput={"command": "make all"})
    agent.say(f"the command: {answer}\n")


def announces_and_asks(agent: Agent, _: str) -> None:
    """Says what it will do, asks whether it may, does it, and then shows it with other white space."""
    path, title = agent.root / "a.txt", "Edit a.txt"
    diff = {"type": "diff", "path": str(path), "oldText": "one", "newText": "two"}
    agent.update("tool_call", toolCallId=title, title=title, kind="edit", status="pending", content=[diff])
    if agent.permission(title, "edit", str(path)) == "yes":
        path.write_text("two\nlast\n")
    diff |= {"oldText": "one\n  last", "newText": "two\n  last"}
    agent.update("tool_call_update", toolCallId=title, status="completed", content=[diff])


def deletes(agent: Agent, _: str) -> None:
    """Deletes a file with a tool of its own, and moves another."""
    for id, kind, names in (("d1", "delete", ("a.txt",)), ("m1", "move", ("b.txt", "c.txt"))):
        paths = [agent.root / name for name in names]
        told = [{"path": str(path)} for path in paths]
        agent.update("tool_call", toolCallId=id, title=kind, kind=kind, status="pending", locations=told)
        agent.permission("read", "read", str(paths[0]))  # when this is answered, the call is known to the daemon
        if kind == "move":
            paths[0].rename(paths[1])
        else:
            paths[0].unlink()
        agent.update("tool_call_update", toolCallId=id, status="completed")


def builds(agent: Agent, _: str) -> None:
    """Runs a command that it asked about, and one that it did not."""
    if agent.permission("make", "execute", rawInput={"command": "make"}) == "yes":
        (agent.root / "built.txt").write_text("built\n")
        (agent.root / "a.txt").unlink()
    agent.update("tool_call_update", toolCallId="make", status="completed")
    agent.update("tool_call", toolCallId="x1", title="more", kind="execute", status="in_progress")
    agent.permission("read", "read", str(agent.root / "b.txt"))
    (agent.root / "b.txt").write_text("more\n")
    agent.update("tool_call_update", toolCallId="x1", status="completed")


def goes_on(agent: Agent, task: str) -> None:
    """Works on when the daemon is gone."""
    agent.say("ready\n")
    while not (agent.root / "gone").exists():
        time.sleep(0.01)
    works(agent, task)


def silent(agent: Agent, _: str) -> None:
    """Leaves a child that ignores SIGTERM, and never answers."""
    child = subprocess.Popen([sys.executable, "-c", "import signal; signal.signal(15, signal.SIG_IGN); signal.pause()"])
    (agent.root / "child.pid").write_text(str(child.pid))
    agent.say("waiting\n")
    while True:
        agent.receive()


def spends(agent: Agent, _: str) -> None:
    """Calls tools and uses tokens until it is told to end its turn."""
    agent.update("usage_update", used=5000, size=200_000)
    for number in range(3):
        agent.update("tool_call", toolCallId=f"c{number}", title="look", kind="read", status="completed")
    while not agent.cancelled:
        agent.receive()


def cancels(agent: Agent, _: str) -> None:
    """Waits to be cancelled, and ends its turn as it should."""
    agent.say("waiting\n")
    while not agent.cancelled:
        agent.receive()


SCRIPTS: dict[str, Callable[[Agent, str], None]] = {
    each.__name__: each
    for each in (
        *(works, permissions, delegates, waits, orphaned, nothing_to_choose),
        *(dies, garbage, long_line, claims, edits, silent, cancels),
        *(
            edits_the_last_line,
            creates,
            lies,
            dies_after_its_edit,
            announces_and_asks,
            asks,
            builds,
            deletes,
            goes_on,
            spends,
            isolated,
            isolated_and_protected,
            isolated_and_dies,
        ),
    )
}


def main(script: str) -> None:
    """Serve one session."""
    agent = Agent()
    while True:
        message = agent.receive()
        result: dict[str, Any] | None = {}
        match message.get("method"):
            case "initialize" if script == "mute":
                continue
            case "initialize":
                agent.client = message["params"]["clientCapabilities"]
                version = 2 if script == "newer" else 1
                result = {"protocolVersion": version, "authMethods": [{"id": "browser", "name": "Log in"}]}
                result |= {"agentCapabilities": {"loadSession": script != "forgets"}}
            case "session/load" if message["params"]["sessionId"] != SESSION:
                agent.send(
                    id=message["id"],
                    error={"code": -32603, "message": "Internal error", "data": {"details": "no such"}},
                )
                continue
            case "session/new" if script == "login":
                agent.send(id=message["id"], error={"code": -32000, "message": "Authentication required"})
                continue
            case "session/new" | "session/load" as method:
                if method == "session/load":
                    agent.say("said before\n")
                agent.root = Path(message["params"]["cwd"])
                agent.server = next(iter(message["params"]["mcpServers"]), {})
                result = {"sessionId": SESSION}
            case "session/prompt":
                SCRIPTS[script](agent, message["params"]["prompt"][0]["text"])
                result = {"stopReason": "cancelled" if agent.cancelled else "end_turn"}
            case _:
                pass
        if "id" in message:
            agent.send(id=message["id"], result=result)


if __name__ == "__main__":
    main(sys.argv[1])
