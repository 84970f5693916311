"""The same agents with their own tools, started by `orchestrator run`: `python -m tests.end_to_end.agents.over_acp`.

Each edits one file that policy lets it, and one that policy asks about, to which a person says yes elsewhere.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.end_to_end.agents.__main__ import FOLDER
from tests.end_to_end.agents.model import FakeModel, listening
from tests.end_to_end.agents.programs import CODEX, GEMINI, OPENCODE, Ground, own
from tests.end_to_end.agents.wires import SERVER, Call, Messages, Tool, Turn, Wire
from tests.end_to_end.workspace_factory import Place

NOTES, PROTECTED = "".join(f"line {number}\n" for number in range(1, 31)), "[pytest]\naddopts = -x\n"
RUN_TIMEOUT_S = 240
WAITS = re.compile(r"waits for a yes: orchestrator approvals \w+ (@\d+)")


class AcpProgram(NamedTuple):
    """An agent over ACP. `calls`: of its own tools, in `notes.txt` and in `tox.ini`, with the workspace in braces."""

    name: str
    package: str
    version: str
    binary: str
    wire: Any
    to_model: Callable[[Ground], None]
    arguments: tuple[str, ...]
    environment: Callable[[Ground], Mapping[str, str]]
    calls: Callable[[Path], tuple[Call, ...]]


def _claude(work: Path) -> tuple[Call, ...]:
    notes, tox = str(work / "notes.txt"), str(work / "tox.ini")
    return (
        own("Read", file_path=notes),
        own("Edit", file_path=notes, old_string="line 3\n", new_string="line three\n"),
        own("Read", file_path=tox),
        own("Edit", file_path=tox, old_string="-x", new_string="-q"),
    )


def _opencode_to_model(ground: Ground) -> None:
    OPENCODE.to_model(ground)
    file = ground.workspace / "opencode.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "permission": {"edit": "ask", "bash": "ask"}}))


def _opencode(work: Path) -> tuple[Call, ...]:
    notes, tox = str(work / "notes.txt"), str(work / "tox.ini")
    return (
        own("read", filePath=notes),
        own("edit", filePath=notes, oldString="line 3\n", newString="line three\n"),
        own("read", filePath=tox),
        own("edit", filePath=tox, oldString="-x", newString="-q"),
    )


def _gemini_to_model(ground: Ground) -> None:
    GEMINI.to_model(ground)
    trusted = {str(ground.workspace): "TRUST_FOLDER"}
    (ground.home / ".gemini" / "trustedFolders.json").write_text(json.dumps(trusted))


def _gemini(work: Path) -> tuple[Call, ...]:
    notes, tox = str(work / "notes.txt"), str(work / "tox.ini")
    return (
        own("read_file", file_path=notes),
        own("replace", file_path=notes, old_string="line 3\n", new_string="line three\n", instruction="three"),
        own("read_file", file_path=tox),
        own("replace", file_path=tox, old_string="-x", new_string="-q", instruction="quiet"),
    )


def _codex_to_model(ground: Ground) -> None:
    CODEX.to_model(ground)
    file = ground.home / ".codex" / "config.toml"
    known = file.read_text().replace('model = "scripted"', 'model = "gpt-5.3-codex"', 1)  # any other has no apply_patch
    # Its own sandbox needs bubblewrap, which is not everywhere; so it asks instead.
    file.write_text('approval_policy = "untrusted"\nsandbox_mode = "danger-full-access"\n' + known)


def _codex(work: Path) -> tuple[Call, ...]:
    patch = "*** Begin Patch\n*** Update File: {}\n@@\n-{}\n+{}\n*** End Patch\n"
    return (
        own("apply_patch", input=patch.format("notes.txt", "line 3", "line three")),
        own("apply_patch", input=patch.format("tox.ini", "addopts = -x", "addopts = -q")),
    )


PROGRAMS = {
    each.name: each
    for each in (
        AcpProgram(
            name="claude",
            package="@agentclientprotocol/claude-agent-acp",
            version="0.100.0",
            binary="claude-agent-acp",
            wire=Messages(),
            to_model=lambda ground: None,
            arguments=(),
            environment=lambda ground: {
                "ANTHROPIC_BASE_URL": ground.url,
                "ANTHROPIC_API_KEY": "sk-ant-scripted",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            },
            calls=_claude,
        ),
        AcpProgram(
            name="opencode",
            package=OPENCODE.package,
            version=OPENCODE.version,
            binary=OPENCODE.binary,
            wire=OPENCODE.wire,
            to_model=_opencode_to_model,
            arguments=("acp",),
            environment=OPENCODE.environment,
            calls=_opencode,
        ),
        AcpProgram(
            name="gemini",
            package=GEMINI.package,
            version=GEMINI.version,
            binary=GEMINI.binary,
            wire=GEMINI.wire,
            to_model=_gemini_to_model,
            arguments=("--acp", "-m", "gemini-2.5-flash"),
            environment=GEMINI.environment,
            calls=_gemini,
        ),
        AcpProgram(
            name="codex",
            package="@zed-industries/codex-acp",
            version="0.16.0",
            binary="codex-acp",
            wire=CODEX.wire,
            to_model=_codex_to_model,
            arguments=(),
            environment=lambda ground: {"OPENAI_API_KEY": "scripted"},
            calls=_codex,
        ),
    )
}


class OwnTools:
    """A wire on which requests that offer an agent's own tools are the ones that the script answers."""

    def __init__(self, wire: Wire, name: str) -> None:
        self._wire, self._name = wire, name
        self.calls, self.says = wire.calls, wire.says

    def turn(self, path: str, body: dict[str, Any]) -> Turn | None:
        turn = self._wire.turn(path, body)
        if turn is None or not any(tool.name == self._name for tool in turn.tools):
            return turn
        return turn._replace(tools=(*turn.tools, Tool(SERVER)))


class AcpRun:
    """One agent in one place; `troubles` are what is wrong afterwards."""

    def __init__(self, program: AcpProgram, place: Place, binary: str) -> None:
        self._program, self._place, self._binary = program, place, binary
        self._calls = program.calls(place.workspace)
        self._code = ""
        self.troubles = list[str]()
        self.said = list[str]()
        self.approved = list[str]()

    def __call__(self, turn: Turn) -> Call | str:
        """The model's script."""
        return self._calls[len(turn.results)] if len(turn.results) < len(self._calls) else "All done."

    def run(self) -> None:
        """Let it work, approve what it asks, and look at what is left."""
        for name, text in (("notes.txt", NOTES), ("tox.ini", PROTECTED)):
            (self._place.workspace / name).write_text(text)
        self._code = self._place.up()["approver_code"]
        for name in ("notes.txt", "tox.ini"):
            self._place.cli("open", name)
        model = FakeModel(OwnTools(self._program.wire, self._calls[-1].name), self)
        with listening(model):
            env = {**self._place.env, "HTTPS_PROXY": model.url, "NO_PROXY": "127.0.0.1,localhost"}
            ground = Ground(self._place.home, self._place.workspace, model.url, env)
            self._program.to_model(ground)
            answer = self._started({**env, **self._program.environment(ground)})
        self.troubles += model.troubles
        if answer.get("stop_reason") != "end_turn":
            self.troubles.append(f"it ended with {answer}")
        self._look(answer)
        if self.troubles:
            results = model.last.results if model.last is not None else ()
            self.troubles += [f"the model read: {result[:600]!r}" for result in results]
            self.troubles += self.said[-20:]

    def _started(self, env: Mapping[str, str]) -> dict[str, Any]:
        line = shlex.join((self._binary, *self._program.arguments))
        command = (str(Path(sys.executable).parent / "orchestrator"), "--json", "run", self._program.name)
        options = ("--task", "Do the work.", "--command", line, "--timeout", str(RUN_TIMEOUT_S))
        process = subprocess.Popen(
            (*command, *options),
            cwd=self._place.workspace,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        notes = threading.Thread(target=self._follow, args=(process.stderr,))
        notes.start()
        said = process.stdout.read()
        process.wait()
        notes.join()
        self._place.note()
        return json.loads(said) if said.strip() else {}

    def _follow(self, stderr: Any) -> None:
        """Say yes to what waits, where approvals are given."""
        for line in stderr:
            self.said.append(line.rstrip())
            if waits := WAITS.search(line):
                self._place.cli("approvals", "show", waits[1], approver=self._code)
                ran = self._place.cli("approvals", "approve", waits[1], approver=self._code)
                self.approved.append(waits[1])
                if ran.code:
                    self.troubles.append(f"{waits[1]} could not be approved: {ran}")

    def _look(self, answer: dict[str, Any]) -> None:
        work, name = self._place.workspace, self._program.name
        for file, wanted in (
            ("notes.txt", NOTES.replace("line 3\n", "line three\n")),
            ("tox.ini", PROTECTED.replace("-x", "-q")),
        ):
            if (work / file).read_text() != wanted:
                self.troubles.append(f"{file} is not as its edit leaves it")
            authors = [each.get("agent") for each in self._place.cli("log", file, "--json").json["versions"]]
            if authors[:1] != [name]:
                self.troubles.append(f"{file} is by {authors}")
        if not self.approved:
            self.troubles.append("nobody was asked about tox.ini")
        blamed = self._place.cli("blame", "notes.txt", "--json").json["ranges"]
        if [each["start"] for each in blamed if each.get("agent") == name] != [3]:
            self.troubles.append(f"blame says {blamed}")
        waits = self._place.cli("rollback", "--agent", name, "--json").json
        if waits.get("approval"):
            self._place.cli("approvals", "approve", waits["approval"], "--unseen", approver=self._code)
        if (work / "notes.txt").read_text() != NOTES or (work / "tox.ini").read_text() != PROTECTED:
            self.troubles.append(f"the rollback left something: {waits}")


def has(package: Path, version: str) -> bool:
    """Whether npm has put it there."""
    manifest = package / "package.json"
    return manifest.exists() and json.loads(manifest.read_text())["version"] == version


def npm(*arguments: str) -> None:
    """Raises OSError, SubprocessError."""
    subprocess.run(["npm", *arguments, "--no-audit", "--no-fund"], check=True, capture_output=True, timeout=600)


def carried_out(program: AcpProgram, *, keep: bool) -> list[str]:
    """What went wrong."""
    home = FOLDER.absolute() / "acp" / program.name
    if not has(home / "node_modules" / program.package, program.version):
        home.mkdir(parents=True, exist_ok=True)
        try:
            npm("install", "--prefix", str(home), f"{program.package}@{program.version}")
        except (OSError, subprocess.SubprocessError) as error:
            return [f"skipped: {error}"]
    base = Path(tempfile.mkdtemp(prefix="o-", dir="/tmp")).resolve()
    place = Place(base)
    try:
        run = AcpRun(program, place, str(home / "node_modules" / ".bin" / program.binary))
        run.run()
    finally:
        place.clear()
        if keep:
            print(f"{program.name}: kept {base}", file=sys.stderr)
        else:
            shutil.rmtree(base, ignore_errors=True)
    return run.troubles


def main() -> int:
    """0 where every agent that could be had did all of it."""
    parser = argparse.ArgumentParser(prog="python -m tests.end_to_end.agents.over_acp", description=__doc__)
    parser.add_argument("agents", nargs="*", choices=[[], *PROGRAMS], help="which; all without it")
    parser.add_argument("--keep", action="store_true", help="keep each agent's place")
    given = parser.parse_args()
    failed = False
    for name in given.agents or PROGRAMS:
        program = PROGRAMS[name]
        troubles = carried_out(program, keep=given.keep)
        failed |= bool(troubles)
        print(f"{name} ({program.package} {program.version}) over ACP:", *(troubles or ["well"]), sep="\n  ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
