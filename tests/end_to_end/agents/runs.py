"""One run: agents installed, connected in one of three forms, led to the model, and judged by what they leave."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import anyio

from orchestrator.clients.python import FileAccess
from tests.end_to_end.agents.acp import ACP, AcpScenario
from tests.end_to_end.agents.model import FakeModel, listening
from tests.end_to_end.agents.native import NATIVE, NativeScenario
from tests.end_to_end.agents.programs import OWN_FILE, PROGRAMS, Ground, NotInstalled, Program, install
from tests.end_to_end.agents.scenario import HEARD, Scenario
from tests.end_to_end.agents.story import Story
from tests.end_to_end.agents.wires import Call, Turn
from tests.end_to_end.workspace_factory import Place

FOLDER = Path(".bench/agents")
RUN_TIMEOUT_S = 240

TAPPED = """\
#!{python}
import os, shlex, sys
if sys.argv[1] == "mcp":
    command = shlex.join([sys.executable, "-m", "orchestrator", *sys.argv[1:]])
    os.execl("/bin/sh", "sh", "-c", f"tee -a {heard} | {{command}}")
from orchestrator.__main__ import main
sys.exit(main())
"""


class Form(NamedTuple):
    """How agents are connected. `options`: of `orchestrator connect`; None: they are launched by us instead."""

    programs: Mapping[str, Program]
    pairs: tuple[tuple[str, str], ...]  # that work on one file
    story: Callable[..., Story]
    options: tuple[str, ...] | None = ()


FORMS = {
    "mcp": Form(PROGRAMS, (("claude", "codex"), ("opencode", "gemini")), Scenario),
    "hooks": Form(NATIVE, (("claude", "codex-deferred"), ("opencode", "gemini")), NativeScenario, ("--native",)),
    "acp": Form(ACP, (("claude", "codex-deferred"), ("opencode", "gemini")), AcpScenario, None),
}


class Outcome(NamedTuple):
    """A line of the table; `troubles` are told below it."""

    agent: str
    form: str
    version: str = ""
    passed: str = ""
    took: str = ""
    cold: str = ""
    spoken: str = ""
    notes: str = ""
    troubles: tuple[str, ...] = ()


def carried_out(name: str, names: tuple[str, ...], *, cold_starts: int, keep: bool) -> Outcome:
    """Install agents and let them work in a fresh place, connected in the form of this name."""
    form, agent = FORMS[name], " + ".join(names)
    programs = tuple(form.programs[each] for each in names)
    try:
        binaries = [install(program, FOLDER) for program in programs]
    except NotInstalled as error:
        return Outcome(agent, name, notes=f"skipped: {error}")
    began = time.monotonic()
    with _fresh(agent, keep=keep) as place:
        outcome = _worked(Outcome(agent, name), form, programs, place, binaries, keep=keep)
    outcome = outcome._replace(
        version=" + ".join(program.version for program in programs), took=f"{time.monotonic() - began:.0f} s"
    )
    if len(programs) > 1 or name != "mcp":
        return outcome
    starts = [_cold_start(programs[0], binaries[0]) for _ in range(cold_starts)]
    bad = [f"a cold start: {trouble}" for trouble in starts if trouble]
    return outcome._replace(cold=f"{cold_starts - len(bad)}/{cold_starts}", troubles=(*outcome.troubles, *bad))


@contextmanager
def _fresh(agent: str, *, keep: bool = False) -> Iterator[Place]:
    base = Path(tempfile.mkdtemp(prefix="o-", dir="/tmp")).resolve()
    place = Place(base)
    try:
        yield place
    finally:
        place.clear()
        if keep:
            print(f"{agent}: kept {base}", file=sys.stderr)
        else:
            shutil.rmtree(base, ignore_errors=True)


def _one_look(turn: Turn) -> Call | str:
    """A script of one call, whose answer is the last that the model needs."""
    return "All done." if turn.results else Call("list_files", {})


def _cold_start(program: Program, binary: str) -> str:
    """Start an agent where no daemon runs and let it call one tool; what is wrong with that."""
    with _fresh(program.name) as place:
        (place.workspace / "notes.txt").write_text("notes\n")
        model = FakeModel(program.wire, _one_look)
        with listening(model):
            ground = led(program, place, model, binary)
            connect(program, place, ground)
            stopped = place.cli("stop")
            assert stopped.code == 0, stopped
            ended = _ran(program, ground, binary)
        if model.last is None:
            return f"the model was never offered our tools; it ended with {ended}"
        text = "".join(model.last.results)
        return "" if "notes.txt" in text else f"the call was answered with {text[:300]!r}"


def _worked(
    outcome: Outcome, form: Form, programs: tuple[Program, ...], place: Place, binaries: list[str], *, keep: bool
) -> Outcome:
    story = form.story(place, *programs)
    story.lay_out()
    models = [
        FakeModel(program.wire, story.script(who), offers=program.tools.offers if program.tools else "")
        for who, program in enumerate(programs)
    ]

    def start(who: int) -> str:
        if isinstance(story, AcpScenario):
            return story.start(who, grounds[who], binaries[who])
        return _ran(programs[who], grounds[who], binaries[who])

    with ExitStack() as served:
        for model in models:
            served.enter_context(listening(model))
        grounds = [led(*each) for each in zip(programs, [place] * len(models), models, binaries, strict=True)]
        for each in zip(programs, grounds, strict=True):
            if form.options is not None:
                connect(each[0], place, each[1], story.approver, form.options)
        with ThreadPoolExecutor() as pool:
            ended = list(pool.map(start, range(len(programs))))
    if keep:
        sent = [sent.body for model in models for sent in model.sent]
        (place.base / "sent.jsonl").write_bytes(b"\n".join(sent))
    steps = list(story.judged())
    troubles = [f"{step}: {trouble}" for step, trouble in steps if trouble]
    troubles += story.records
    if troubles:
        troubles += [trouble for model in models for trouble in model.troubles]
        troubles += [f"it ended with {each}" for each in ended]
    troubles += [f"{count} requests hold the secret" for model in models if (count := model.keeps(story.secret))]
    troubles += anyio.run(_left, place, programs)
    passed = f"{sum(not trouble for _, trouble in steps)}/{len(steps)}"
    outcome = outcome._replace(passed=passed, troubles=tuple(troubles))
    if type(story) is not Scenario or len(programs) > 1:
        return outcome
    notes = []
    if (last := models[0].last) is not None:
        own = sorted(tool.name for tool in last.tools if not tool.ours)
        notes.append(f"own tools offered: {' '.join(own) or 'none'}")
    notes.append(f"a conflict's lines: {'as a block' if story.conflict_has_block else 'in its diff'}")
    if models[0].outward:
        notes.append(f"kept from: {' '.join(sorted(set(models[0].outward)))}")
    return outcome._replace(spoken=_spoken(place.base / HEARD), notes="; ".join(notes))


def led(program: Program, place: Place, model: FakeModel, binary: str) -> Ground:
    """Lead the agent to the model, and to a program beside it that keeps what it says to our transport."""
    command = place.base / "orchestrator"
    if not command.exists():
        command.write_text(TAPPED.format(python=sys.executable, heard=str(place.base / HEARD)))
        command.chmod(0o755)
    path = f"{Path(binary).parent}:{place.env['PATH']}"
    env = {**place.env, "PATH": path, "HTTPS_PROXY": model.url, "NO_PROXY": "127.0.0.1,localhost"}
    ground = Ground(place.home, place.workspace, model.url, env)
    program.to_model(ground)
    return ground


def connect(program: Program, place: Place, ground: Ground, approver: str = "", options: tuple[str, ...] = ()) -> None:
    """Have `orchestrator connect` write all else, as a person would."""
    done = subprocess.run(
        [
            *(str(place.base / "orchestrator"), "--workspace", str(place.workspace), "connect", program.client),
            *(*options, "--yes", "--json"),
        ],
        check=False,
        capture_output=True,
        text=True,
        env={**ground.env, "ORCHESTRATOR_APPROVER": approver} if approver else ground.env,
        timeout=RUN_TIMEOUT_S,
    )
    assert done.returncode == 0, done
    said = json.loads(done.stdout)
    assert bool(said["token_file"]) == bool(approver), said
    (place.base / HEARD).write_text("")  # what `connect` itself said to try it


def _ran(program: Program, ground: Ground, binary: str) -> str:
    log = ground.home.parent / f"{program.name}.log"
    with log.open("wb") as out:
        try:
            code = subprocess.run(
                [binary, *program.arguments],
                check=False,
                cwd=ground.workspace,
                env={**ground.env, **program.environment(ground)},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                timeout=RUN_TIMEOUT_S,
            ).returncode
        except subprocess.TimeoutExpired:
            return f"a timeout of {RUN_TIMEOUT_S} s"
    return f"{code}: {log.read_text(errors='replace')[-600:]!r}"


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


async def _left(place: Place, programs: tuple[Program, ...]) -> list[str]:
    """What is wrong with the records afterwards."""
    troubles = []
    place.up()
    async with FileAccess.connect(str(place.workspace), socket=str(place.location["socket"])) as person:
        for program in programs:
            reads = await person.journal_query(agent=program.client, kind="file_read")
            if not reads.entries and (program.tools is None or program.tools.reads):
                troubles.append(f"the journal has no read of {program.name}")
        check = await person.workspace_check()
        if strange := [each.path for each in check.differences if each.path != OWN_FILE]:
            troubles.append(f"disk and journal differ: {' '.join(strange)}")
        if not (await person.journal_verify()).ok:
            troubles.append("the journal does not verify")
    return troubles
