"""What deploy/ holds: the unit as systemd reads it, and the image's steps, carried out in a folder in place of `/`."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from orchestrator.clients.cli.connect import CLIENT
from tests.docs.clients import CONTAINER
from tests.end_to_end.workspace_factory import Place

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
HERE = sysconfig.get_path("purelib")
COMPOSE = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")


class Step(NamedTuple):
    """An instruction of the Dockerfile."""

    word: str
    rest: str

    @property
    def json(self) -> list[str]:
        words: list[str] = json.loads(self.rest)
        return words


STEPS = [
    Step(*line.split(" ", 1))
    for line in (DEPLOY / "Dockerfile").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]
NOT_HERE = {
    "FROM": "there is no container engine, so no base image: this machine's Python stands for it",
    "RUN apt-get": "it would change this machine's packages",
    "RUN useradd": "it would change this machine's users",
    "RUN python -m pip download": "it fetches 200 MB; what this environment has, of the same lock, stands for it",
    "HEALTHCHECK": "nobody runs it at intervals here; its command is run once",
}
"""Steps that are not carried out, and why."""


@pytest.mark.parametrize("step", [step for step in STEPS if step.word in ("FROM", "RUN", "HEALTHCHECK")], ids=" ".join)
def test_which_steps_are_not_carried_out_here(step: Step) -> None:
    line = " ".join(step)
    for begin, why in NOT_HERE.items():
        if line.startswith(begin):
            pytest.skip(why)


@contextmanager
def without_server(image: Path) -> Iterator[None]:
    """Ends the daemon of the image, should the test fail in between."""
    try:
        yield
    finally:
        for file in (image / "state").rglob("*.location"):
            pid = int(json.loads(file.read_text())["pid"])
            if str(image).encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)


def in_folder(text: str, image: Path) -> str:
    """The absolute paths of a step, below the folder."""
    return re.sub(r"(?<![\w./-])/(?=(?:src|wheels|opt|state|run|workspace)\b)", f"{image}/", text)


def test_the_steps_of_the_image_make_a_daemon_that_serves_agents(base: Path) -> None:
    """Copies, installs without a registry, starts as the container does, answers as `docker exec` asks, and stops."""
    image = base / "i"
    for folder in ("src", "state", "run/orchestrator", "workspace"):
        (image / folder).mkdir(mode=0o700, parents=True)
    (image / "workspace/a.txt").write_text("seen\n")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # the base image has a `python`
    env, command = {"HOME": str(base), "PATH": path}, list[str]()
    health = list[str]()
    for step in STEPS:
        rest = in_folder(step.rest, image)
        match step.word:
            case "COPY" if not rest.startswith("--from"):
                *sources, target = rest.split()
                for source in sources:
                    _copy(ROOT / source, image / "src" / target)
            case "RUN" if not any(" ".join(step).startswith(begin) for begin in NOT_HERE):
                rest = rest.replace("pip install", "pip install --no-deps --no-build-isolation")  # they are here
                beside = {**env, "PYTHONPATH": HERE}  # for the newer setuptools
                subprocess.run(["/bin/sh", "-ec", rest], cwd=image / "src", env=beside, check=True, timeout=300)
                if "-m venv" in rest:
                    _see_this_environment(Path(shlex.split(rest)[-1]))
            case "ENV":
                env |= dict(word.split("=", 1) for word in shlex.split(rest))
            case "ENTRYPOINT" | "CMD":
                command += json.loads(rest)
            case "HEALTHCHECK":
                health = json.loads(rest.removeprefix("CMD "))
            case _:
                pass
    where = image / "workspace"
    assert shutil.which("orchestrator", path=env["PATH"]) == str(image / "opt/orchestrator/bin/orchestrator")
    assert subprocess.run(health, env=env, cwd=where, check=False, capture_output=True).returncode != 0
    with without_server(image), subprocess.Popen(command, env=env, cwd=where) as daemon:
        while subprocess.run(health, env=env, cwd=where, check=False, capture_output=True).returncode != 0:
            assert daemon.poll() is None, "it ended"
        agent = [*CONTAINER[CONTAINER.index("orchestrator") :], "--workspace", str(where), "--agent", "claude"]
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        calls: list[dict[str, object]] = [
            {"id": 1, "method": "initialize", "params": hello},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/call", "params": {"name": "read_file", "arguments": {"path": "a.txt"}}},
        ]
        lines = "".join(json.dumps({"jsonrpc": "2.0", **call}) + "\n" for call in calls)
        said = subprocess.run(agent, env=env, input=lines, capture_output=True, text=True, check=True, timeout=120)
        assert "seen" in json.loads(said.stdout.splitlines()[-1])["result"]["content"][0]["text"]
        status = subprocess.run(health, env=env, cwd=where, check=True, capture_output=True, text=True).stdout
        assert f"pid {daemon.pid}," in status, "the container's first process is the daemon that answers"
        assert str(image / "state") in status
        daemon.terminate()
        assert daemon.wait(60) == 0
    assert list((image / "state").rglob("journal*")), "its journal is in the volume"


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "build"))
    else:
        shutil.copy(source, target)


def _see_this_environment(venv: Path) -> None:
    """What the image downloads is read from here."""
    (site,) = venv.glob("lib/python*/site-packages")
    (site / "here.pth").write_text(f"{HERE}\n")


def test_compose_agrees_with_the_image_and_with_the_agents_settings() -> None:
    ways = {step.word: step.rest for step in STEPS}
    mounts = re.findall(r"^      - .*:(/\w+)$", COMPOSE, re.MULTILINE)
    assert sorted(mounts) == sorted([ways["WORKDIR"], ways["VOLUME"]])
    assert re.search(rf"container_name: {CONTAINER[3]}$", COMPOSE, re.MULTILINE)
    context, file = re.findall(r"^      (?:context|dockerfile): (.*)$", COMPOSE, re.MULTILINE)
    assert (DEPLOY / context / file).is_file()
    arguments = re.findall(r"^        (\w+): \$", COMPOSE, re.MULTILINE)
    assert arguments == [step.rest.split("=")[0] for step in STEPS if step.word == "ARG"]


def test_the_image_is_given_what_it_copies() -> None:
    """And of the project's folder nothing else: no journal, no environment."""
    given = {line[1:] for line in (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines() if line[0] == "!"}
    copied = [step.rest.split()[:-1] for step in STEPS if step.word == "COPY" and not step.rest.startswith("--from")]
    assert given == {source for sources in copied for source in sources}


def test_the_dev_container_agrees_with_the_image() -> None:
    ways = {step.word: step.rest for step in STEPS}
    said = json.loads((DEPLOY / "devcontainer.json").read_text(encoding="utf-8"))
    assert said["workspaceFolder"] == ways["WORKDIR"]
    assert f"target={ways['WORKDIR']}," in said["workspaceMount"]
    assert f"target={ways['VOLUME']}," in said["mounts"][0]
    assert (said["remoteUser"], said["overrideCommand"]) == (ways["USER"], False)
    *words, client, yes = said["postStartCommand"].split()
    assert [*words, yes] == [*Step("", ways["ENTRYPOINT"]).json, "connect", "--yes"]
    assert client in CLIENT.choices


def test_what_the_dev_container_runs_connects_its_agent(place: Place) -> None:
    said = json.loads((DEPLOY / "devcontainer.json").read_text(encoding="utf-8"))
    words = said["postStartCommand"].split()[1:]
    words[words.index("/workspace")] = str(place.workspace)
    for _ in range(2):  # as at each start
        ran = place.run(*words)
        assert ran.code == 0, ran
    written = json.loads((place.workspace / ".mcp.json").read_text())["mcpServers"]["orchestrator"]
    assert written["args"][-2:] == ["--agent", "claude"]


def test_systemd_takes_the_unit(base: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    home = base / "h"
    (home / ".local/bin").mkdir(parents=True)
    (home / ".local/bin/orchestrator").symlink_to(Path(sys.executable).with_name("orchestrator"))
    unit = home / "orchestrator@path-to-project.service"
    shutil.copy(DEPLOY / "orchestrator@.service", unit)
    (base / "r").mkdir(mode=0o700)
    env = {"HOME": str(home), "XDG_RUNTIME_DIR": str(base / "r"), "PATH": os.environ["PATH"]}
    words = ["systemd-analyze", "--user", "verify", str(unit)]
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
