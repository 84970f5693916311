"""`make e2e`: install the agents, have each do the scenario, and check what is left behind; one table."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import anyio

from orchestrator.clients.python import FileAccess
from tests.end_to_end.agents.model import FakeModel, listening
from tests.end_to_end.agents.native import NATIVE, NativeAgent, NativeScenario
from tests.end_to_end.agents.programs import OWN_FILE, PROGRAMS, Ground, NotInstalled, Program, install
from tests.end_to_end.agents.scenario import HEARD, Scenario
from tests.end_to_end.agents.wires import Call, Turn
from tests.end_to_end.workspace_factory import Place

HOOKS = "hooks, its own tools"
FOLDER = Path(".bench/agents")
RUN_TIMEOUT_S = 240

PAIRS = (["claude", "codex"], ["opencode", "gemini"])
"""Those that work on one file."""

TAPPED = """\
#!{python}
import os, shlex, sys
if sys.argv[1] == "mcp":
    command = shlex.join([sys.executable, "-m", "orchestrator", *sys.argv[1:]])
    os.execl("/bin/sh", "sh", "-c", f"tee -a {heard} | {{command}}")
from orchestrator.__main__ import main
sys.exit(main())
"""


class Outcome(NamedTuple):
    """A line of the table; `troubles` are told below it."""

    agent: str
    version: str = ""
    spoken: str = ""
    passed: str = ""
    cold: str = ""
    notes: str = ""
    troubles: tuple[str, ...] = ()


def carried_out(programs: tuple[Program, ...], *, cold_starts: int, keep: bool) -> Outcome:
    """Install agents and let them work in a fresh place."""
    name = " + ".join(program.name for program in programs)
    try:
        installed = [install(program, FOLDER) for program in programs]
    except NotInstalled as error:
        return Outcome(name, notes=f"skipped: {error}")
    base = Path(tempfile.mkdtemp(prefix="o-", dir="/tmp")).resolve()
    place = Place(base)
    try:
        outcome = _worked(name, programs, place, [binary for binary, _ in installed], keep=keep)
        outcome = outcome._replace(version=" + ".join(version for _, version in installed))
        if len(programs) > 1:
            return outcome
        starts = [_cold_start(programs[0], installed[0][0]) for _ in range(cold_starts)]
        bad = [trouble for trouble in starts if trouble]
        cold = f"{cold_starts - len(bad)}/{cold_starts}"
        return outcome._replace(cold=cold, troubles=(*outcome.troubles, *(f"a cold start: {each}" for each in bad)))
    finally:
        place.clear()
        if keep:
            print(f"{name}: kept {base}", file=sys.stderr)
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
            ground = connected(program, place, model, binary)
            stopped = place.cli("stop")
            assert stopped.code == 0, stopped
            ended = _ran(program, ground, place.base, binary)
        if model.last is None:
            return f"the model was never offered our tools; it ended with {ended}"
        text = "".join(model.last.results)
        return "" if "notes.txt" in text else f"the call was answered with {text[:300]!r}"
    finally:
        place.clear()
        shutil.rmtree(base, ignore_errors=True)


def _worked(name: str, programs: tuple[Program, ...], place: Place, binaries: list[str], *, keep: bool) -> Outcome:
    scenario = Scenario(place, *programs)
    scenario.lay_out()
    models = [FakeModel(program.wire, scenario.script(who)) for who, program in enumerate(programs)]
    with ExitStack() as served:
        for model in models:
            served.enter_context(listening(model))
        grounds = [
            connected(*each, scenario.approver)
            for each in zip(programs, [place] * len(models), models, binaries, strict=True)
        ]
        with ThreadPoolExecutor() as pool:
            bases = [place.base] * len(models)
            ended = list(pool.map(_ran, programs, grounds, bases, binaries))
    if keep:
        sent = [sent.body for model in models for sent in model.sent]
        (place.base / "sent.jsonl").write_bytes(b"\n".join(sent))
    steps = list(scenario.judged())
    troubles = [f"{step}: {trouble}" for step, trouble in steps if trouble]
    troubles += scenario.records
    if troubles:
        troubles += [trouble for model in models for trouble in model.troubles]
        troubles += [f"it ended with {each}" for each in ended]
    troubles += [f"{count} requests hold the secret" for model in models if (count := model.keeps(scenario.secret))]
    troubles += anyio.run(_left, place, programs)
    passed = f"{sum(not trouble for _, trouble in steps)}/{len(steps)}"
    outcome = Outcome(name, passed=passed, troubles=tuple(troubles))
    if len(programs) > 1:
        return outcome
    notes = []
    if (last := models[0].last) is not None:
        own = sorted(tool.name for tool in last.tools if not tool.ours)
        notes.append(f"own tools offered: {' '.join(own) or 'none'}")
    notes.append(f"a conflict's lines: {'as a block' if scenario.conflict_has_block else 'in its diff'}")
    if models[0].outward:
        notes.append(f"kept from: {' '.join(sorted(set(models[0].outward)))}")
    return outcome._replace(spoken=_spoken(place.base / HEARD), notes="; ".join(notes))


def connected(
    program: Program,
    place: Place,
    model: FakeModel,
    binary: str,
    approver: str = "",
    options: tuple[str, ...] = (),
) -> Ground:
    """Lead the agent to the model, and have `orchestrator connect` write all else, as a person would.

    Between the agent and our transport stands a program that keeps what the agent says.
    """
    command = place.base / "orchestrator"
    if not command.exists():
        command.write_text(TAPPED.format(python=sys.executable, heard=str(place.base / HEARD)))
        command.chmod(0o755)
    path = f"{Path(binary).parent}:{place.env['PATH']}"
    env = {**place.env, "PATH": path, "HTTPS_PROXY": model.url, "NO_PROXY": "127.0.0.1,localhost"}
    ground = Ground(place.home, place.workspace, model.url, env)
    program.to_model(ground)
    done = subprocess.run(
        [str(command), "--workspace", str(place.workspace), "connect", program.client, *options, "--yes", "--json"],
        check=False,
        capture_output=True,
        text=True,
        env={**env, "ORCHESTRATOR_APPROVER": approver} if approver else env,
        timeout=RUN_TIMEOUT_S,
    )
    assert done.returncode == 0, done
    said = json.loads(done.stdout)
    assert bool(said["token_file"]) == bool(approver), said
    (place.base / HEARD).write_text("")  # what `connect` itself said to try it
    return ground


def _ran(program: Program, ground: Ground, base: Path, binary: str) -> str:
    with (base / f"{program.name}.log").open("wb") as log:
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
    said = (base / f"{program.name}.log").read_text(errors="replace")
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


def with_hooks(agent: NativeAgent, *, keep: bool) -> Outcome:
    """Install an agent and let it work with its own tools, our hooks around them."""
    program = agent.program
    try:
        binary, version = install(program, FOLDER)
    except NotInstalled as error:
        return Outcome(program.name, program.version, HOOKS, notes=f"skipped: {error}")
    base = Path(tempfile.mkdtemp(prefix="o-", dir="/tmp")).resolve()
    place = Place(base)
    try:
        scenario = NativeScenario(place, agent)
        model = FakeModel(program.wire, scenario, offers=agent.offers)
        with listening(model):
            scenario.lay_out()
            ground = connected(program, place, model, binary, scenario.approver, options=("--native",))
            ended = _ran(program, ground, place.base, binary)
        if keep:
            (place.base / "sent.jsonl").write_bytes(b"\n".join(sent.body for sent in model.sent))
        steps = list(scenario.judged())
        troubles = [f"{step.name}: {trouble}" for step, trouble in steps if trouble]
        if troubles:
            troubles += [*model.troubles, f"it ended with {ended}"]
        troubles += [f"{count} requests hold the secret" for count in [model.keeps(scenario.secret)] if count]
        troubles += scenario.left()
        passed = f"{sum(not trouble for _, trouble in steps)}/{len(steps)}"
        return Outcome(program.name, version, HOOKS, passed, troubles=tuple(troubles))
    finally:
        place.clear()
        if keep:
            print(f"{program.name}: kept {base}", file=sys.stderr)
        else:
            shutil.rmtree(base, ignore_errors=True)


async def _left(place: Place, programs: tuple[Program, ...]) -> list[str]:
    """What is wrong with the records afterwards."""
    troubles = []
    place.up()
    async with FileAccess.connect(str(place.workspace), socket=str(place.location["socket"])) as person:
        for program in programs:
            reads = await person.journal_query(agent=program.client, kind="file_read")
            if not reads.entries:
                troubles.append(f"the journal has no read of {program.name}")
        check = await person.workspace_check()
        if strange := [each.path for each in check.differences if each.path != OWN_FILE]:
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
    parser.add_argument(
        "agents", nargs="*", choices=[[], *PROGRAMS, *map("+".join, PAIRS)], help="which; all without it"
    )
    parser.add_argument("--form", choices=("mcp", "hooks"), help="how they are connected; both without it")
    parser.add_argument("--keep", action="store_true", help="keep each agent's place, and all that the model was sent")
    parser.add_argument(
        "--cold-starts",
        type=int,
        default=10,
        help="how often each is started where no daemon runs, and must have our tools (10)",
    )
    given = parser.parse_args()
    outcomes = []
    for names in [each.split("+") for each in given.agents] or [*([name] for name in PROGRAMS), *PAIRS]:
        print(f"running: {' + '.join(names)}", file=sys.stderr, flush=True)
        if given.form != "hooks":
            programs = tuple(PROGRAMS[name] for name in names)
            outcomes.append(carried_out(programs, cold_starts=given.cold_starts, keep=given.keep))
        if given.form != "mcp" and len(names) == 1 and names[0] in NATIVE:
            outcomes.append(with_hooks(NATIVE[names[0]], keep=given.keep))
    print(table(outcomes))
    return 1 if any(outcome.troubles for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
