"""`make e2e`: install the agents, have each do the scenario, and check what is left behind; one table."""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import anyio

from orchestrator.clients.python import FileAccess
from tests.end_to_end.agents.model import FakeModel, listening
from tests.end_to_end.agents.programs import OWN_FILE, PROGRAMS, Ground, NotInstalled, Program, install
from tests.end_to_end.agents.scenario import LINES, PROTECTED, Scenario
from tests.end_to_end.agents.wires import Call, Turn
from tests.end_to_end.workspace_factory import Place

FOLDER = Path(".bench/agents")
RUN_TIMEOUT_S = 240
COLD_STARTS = 10
"""How often each agent is started where no daemon runs; it must have the tools each time."""


class Outcome(NamedTuple):
    """A line of the table; `troubles` are told below it."""

    agent: str
    version: str = ""
    spoken: str = ""
    passed: str = ""
    cold: str = ""
    notes: str = ""
    troubles: tuple[str, ...] = ()


def carried_out(program: Program, *, keep: bool) -> Outcome:
    """Install an agent and let it work in a fresh place."""
    try:
        binary, version = install(program, FOLDER)
    except NotInstalled as error:
        return Outcome(program.name, program.version, notes=f"skipped: {error}")
    base = Path(tempfile.mkdtemp(prefix="o-", dir="/tmp")).resolve()
    place = Place(base)
    try:
        outcome = _worked(program, place, binary, version, keep=keep)
        starts = [_cold_start(program, binary) for _ in range(COLD_STARTS)]
        bad = [trouble for trouble in starts if trouble]
        cold = f"{COLD_STARTS - len(bad)}/{COLD_STARTS}"
        return outcome._replace(cold=cold, troubles=(*outcome.troubles, *(f"a cold start: {each}" for each in bad)))
    finally:
        place.clear()
        if keep:
            print(f"{program.name}: kept {base}", file=sys.stderr)
        else:
            shutil.rmtree(base, ignore_errors=True)


def _one_look(turn: Turn) -> Call | str:
    """A script of one call, whose answer is the last that the model needs."""
    return "All done." if turn.results else Call("list_files", {})


def _cold_start(program: Program, binary: str) -> str:
    """Start an agent where no daemon runs and let it call one tool; what is wrong with that."""
    base = Path(tempfile.mkdtemp(prefix="o-", dir="/tmp")).resolve()
    place = Place(base)
    try:
        (place.workspace / "notes.txt").write_text("notes\n")
        model = FakeModel(program.wire, _one_look)
        with listening(model):
            env = {**place.env, "HTTPS_PROXY": model.url, "NO_PROXY": "127.0.0.1,localhost"}
            ground = Ground(place.home, place.workspace, model.url, _transport(place, program.name), env)
            program.resolve(ground, binary)
            ended = _ran(program, ground, place.base, binary)
        if model.last is None:
            return f"the model was never offered our tools; it ended with {ended}"
        text = "".join(model.last.results)
        return "" if "notes.txt" in text else f"the call was answered with {text[:300]!r}"
    finally:
        place.clear()
        shutil.rmtree(base, ignore_errors=True)


def _worked(program: Program, place: Place, binary: str, version: str, *, keep: bool) -> Outcome:
    scenario = Scenario(place, program)
    scenario.lay_out()
    model = FakeModel(program.wire, scenario)
    heard = place.base / "heard.jsonl"
    with listening(model):
        env = {**place.env, "HTTPS_PROXY": model.url, "NO_PROXY": "127.0.0.1,localhost"}
        ground = Ground(place.home, place.workspace, model.url, _tapped(_transport(place, program.name), heard), env)
        try:
            program.resolve(ground, binary)
        except subprocess.SubprocessError as error:
            return Outcome(program.name, version, notes="not set up", troubles=(f"its settings: {error}",))
        ended = _ran(program, ground, place.base, binary)
    if keep:
        (place.base / "sent.jsonl").write_bytes(b"\n".join(sent.body for sent in model.sent))
    steps = list(scenario.judged())
    troubles = [f"{step.name}: {trouble}" for step, trouble in steps if trouble]
    if troubles:
        troubles += [*model.troubles, f"it ended with {ended}"]
    troubles += [f"{count} requests hold the secret" for count in [model.keeps(scenario.secret)] if count]
    troubles += anyio.run(_left, place, program)
    notes = []
    if model.last is not None:
        own = sorted(tool.name for tool in model.last.tools if not tool.ours)
        notes.append(f"own tools offered: {' '.join(own) or 'none'}")
    notes.append(f"a conflict's lines: {'as a block' if scenario.conflict_has_block else 'in its diff'}")
    if model.outward:
        notes.append(f"kept from: {' '.join(sorted(set(model.outward)))}")
    passed = f"{sum(not trouble for _, trouble in steps)}/{len(steps)}"
    return Outcome(program.name, version, _spoken(heard), passed, notes="; ".join(notes), troubles=tuple(troubles))


def _transport(place: Place, agent: str) -> tuple[str, ...]:
    command = Path(sys.executable).parent / "orchestrator"
    return (str(command), "mcp", "--workspace", str(place.workspace), "--agent", agent)


def _tapped(transport: tuple[str, ...], heard: Path) -> tuple[str, ...]:
    """The same transport, with what the agent says to it kept in a file."""
    return ("/bin/sh", "-c", f"tee -a {shlex.quote(str(heard))} | {shlex.join(transport)}")


def _ran(program: Program, ground: Ground, base: Path, binary: str) -> str:
    with (base / "agent.log").open("wb") as log:
        try:
            code = subprocess.run(
                [binary, *program.arguments],
                check=False,
                cwd=ground.workspace,
                env={**ground.env, **program.environment(ground)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                timeout=RUN_TIMEOUT_S,
            ).returncode
        except subprocess.TimeoutExpired:
            return f"a timeout of {RUN_TIMEOUT_S} s"
    said = (base / "agent.log").read_text(errors="replace")
    return f"{code}: {said[-600:]!r}"


def _spoken(heard: Path) -> str:
    """The protocol and the name that a client gives itself in its first messages."""
    protocol = name = ""
    for line in heard.read_text().splitlines() if heard.exists() else ():
        message = json.loads(line)
        params = message.get("params") or {}
        meta = params.get("_meta") or {}
        if message.get("method") == "initialize":
            protocol, name = params["protocolVersion"], params["clientInfo"]["name"]
        elif "io.modelcontextprotocol/protocolVersion" in meta and not protocol:
            protocol = meta["io.modelcontextprotocol/protocolVersion"]
            name = meta.get("io.modelcontextprotocol/clientInfo", {}).get("name", "")
    return f"{protocol} ({name})" if protocol else "nothing"


async def _left(place: Place, program: Program) -> list[str]:
    """What is wrong with the files and the records afterwards."""
    troubles = []
    wanted = LINES.replace("line 20\n", "line twenty\n")
    if (place.workspace / "notes.txt").read_text() != wanted:
        troubles.append("notes.txt is not as the scenario leaves it")
    if (place.workspace / program.protected).read_text() != PROTECTED.replace("pytest", "pytest -q"):
        troubles.append(f"{program.protected} is not as the scenario leaves it")
    async with FileAccess.connect(str(place.workspace), socket=str(place.location["socket"])) as person:
        acts = await person.journal_query(agent=program.name, kind="change_applied")
        if len(acts.entries) != 4:
            troubles.append(f"the journal has {len(acts.entries)} changes of {program.name}, not 4")
        reads = await person.journal_query(agent=program.name, kind="file_read")
        if not reads.entries:
            troubles.append(f"the journal has no read of {program.name}")
        check = await person.workspace_check()
        strange = [each.path for each in check.differences if each.path != OWN_FILE]
        if strange:
            troubles.append(f"disk and journal differ: {' '.join(strange)}")
        if not (await person.journal_verify()).ok:
            troubles.append("the journal does not verify")
    return troubles


def table(outcomes: list[Outcome]) -> str:
    """The outcomes, one a line, and then what went wrong."""
    head = ("agent", "version", "protocol spoken", "steps", "cold starts", "notes")
    rows = [head, *(outcome[:6] for outcome in outcomes)]
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    lines = [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[5]]) for row in rows
    ]
    lines += [f"{outcome.agent}: {trouble}" for outcome in outcomes for trouble in outcome.troubles]
    return "\n".join(line.rstrip() for line in lines)


def main() -> int:
    """0 where every agent that could be had did every step."""
    parser = argparse.ArgumentParser(prog="python -m tests.end_to_end.agents", description=__doc__)
    parser.add_argument("agents", nargs="*", choices=[[], *PROGRAMS], help="which; all without it")
    parser.add_argument("--keep", action="store_true", help="keep each agent's place, and all that the model was sent")
    given = parser.parse_args()
    outcomes = []
    for name in given.agents or PROGRAMS:
        print(f"running: {name}", file=sys.stderr, flush=True)
        outcomes.append(carried_out(PROGRAMS[name], keep=given.keep))
    print(table(outcomes))
    return 1 if any(outcome.troubles for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
