"""The agents: where they come from, and how each is pointed at our transport and at the scripted model.

`orchestrator connect` writes the settings, as for anybody; here is only what leads to the model.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from orchestrator.clients.connect.templates import Client
from tests.end_to_end.agents.responses import Responses
from tests.end_to_end.agents.wires import Call, Completions, Contents, Messages, Wire

INSTALL_TIMEOUT_S = 600
PROMPT = "Do the work in this folder."
OWN_FILE = "own.txt"
NOTHING_OUT = {"HTTPS_PROXY": "http://127.0.0.1:9"}
"""The discard port: nobody answers there."""


class Ground(NamedTuple):
    """Where an agent runs: its home, the workspace, the model's address, the environment.

    The environment has nothing of the caller's but the path, and a proxy that lets nothing out.
    """

    home: Path
    workspace: Path
    url: str
    env: Mapping[str, str]


class OwnTools(NamedTuple):
    """How an agent's own tools are called. Paths are absolute.

    `offers`: one of them, by which its real turns are known. `quotes`: an edit is stale only where what it quotes is
    gone. `reads`: it has a tool that only reads, which is judged.
    """

    offers: str
    read: Callable[[str], Call]
    edit: Callable[[str, str, str], Call]
    write: Callable[[str, str], Call]
    shell: Callable[[str], Call]
    delete: Callable[[str], Call]
    quotes: bool = False
    reads: bool = True


class Program(NamedTuple):
    """An agent, started in one way. `own` are calls of its own tools, which the settings should have taken away.

    `protected` is a file that our policy asks about. `tools`: where it works with its own.
    """

    name: str
    client: Client
    package: str
    version: str
    binary: str
    wire: Wire
    to_model: Callable[[Ground], None]
    arguments: tuple[str, ...]
    environment: Callable[[Ground], Mapping[str, str]]
    own: tuple[Call, ...]
    protected: str = "Makefile"
    tools: OwnTools | None = None


def own(name: str, **arguments: Any) -> Call:
    """A call of an agent's own tool."""
    return Call(name, arguments, own=True)


class NotInstalled(Exception):
    """npm did not give us the agent, or it does not start here."""


def install(program: Program, folder: Path) -> str:
    """Fetch it with npm into a folder of its own; its binary. Raises NotInstalled."""
    home = folder.absolute() / program.binary
    binary = home / "node_modules" / ".bin" / program.binary
    wanted = f"{program.package}@{program.version}"
    try:
        if not _has(home / "node_modules" / program.package, program.version):
            home.mkdir(parents=True, exist_ok=True)
            _run("npm", "install", "--no-audit", "--no-fund", "--prefix", str(home), wanted)
        _run(str(binary), "--help", env={"HOME": str(home), "PATH": os.environ["PATH"], **NOTHING_OUT})
    except (OSError, subprocess.SubprocessError) as error:
        raise NotInstalled(_why(error)) from error
    return str(binary)


def _has(package: Path, version: str) -> bool:
    manifest = package / "package.json"
    return manifest.exists() and json.loads(manifest.read_text())["version"] == version


def _run(*command: str, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> str:
    return subprocess.run(
        command,
        check=True,
        timeout=INSTALL_TIMEOUT_S,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env=env,
        cwd=cwd,
    ).stdout


def _why(error: OSError | subprocess.SubprocessError) -> str:
    said = (getattr(error, "stderr", None) or "").strip().splitlines()
    errors = [line for line in said if "npm error" in line.lower()] or said[-1:]
    return errors[0][:120] if errors else str(error)[:120]


# --- Claude Code -------------------------------------------------------------------------


CLAUDE = Program(
    name="claude",
    client="claude",
    package="@anthropic-ai/claude-code",
    version="2.1.316",
    binary="claude",
    wire=Messages(),
    to_model=lambda ground: None,
    arguments=("-p", f"{PROMPT} See @.env"),
    environment=lambda ground: {
        "ANTHROPIC_BASE_URL": ground.url,
        "ANTHROPIC_API_KEY": "sk-ant-scripted",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    },
    own=(
        own("Read", file_path=".env"),
        own("Grep", pattern="KEY=", output_mode="content"),
        own("Bash", command="cat .env; touch own.txt"),
        own("Write", file_path=OWN_FILE, content="past it"),
    ),
)


# --- opencode ----------------------------------------------------------------------------


def _opencode_to_model(ground: Ground) -> None:
    settings: dict[str, Any] = {
        "$schema": "https://opencode.ai/config.json",
        "autoupdate": False,
        "model": "scripted/model",
        "provider": {
            "scripted": {
                "npm": "@ai-sdk/openai-compatible",
                "options": {"baseURL": f"{ground.url}/v1", "apiKey": "scripted"},
                "models": {"model": {}},
            }
        },
    }
    (ground.workspace / "opencode.json").write_text(json.dumps(settings))


OPENCODE = Program(
    name="opencode",
    client="opencode",
    package="opencode-ai",
    version="1.18.33",
    binary="opencode",
    wire=Completions(),
    to_model=_opencode_to_model,
    arguments=("run", PROMPT),
    environment=lambda ground: {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"},
    own=(
        own("read", filePath=".env"),
        own("grep", pattern="KEY="),
        own("bash", command="cat .env; touch own.txt", description="look"),
        own("write", filePath=OWN_FILE, content="past it"),
        own("apply_patch", patchText=f"*** Begin Patch\n*** Add File: {OWN_FILE}\n+past it\n*** End Patch"),
    ),
)


# --- Gemini CLI --------------------------------------------------------------------------


def _gemini_to_model(ground: Ground) -> None:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"enableAutoUpdate": False},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
    }
    folder = ground.home / ".gemini"
    folder.mkdir()
    (folder / "settings.json").write_text(json.dumps(settings))


GEMINI = Program(
    name="gemini",
    client="gemini",
    package="@google/gemini-cli",
    version="0.61.0",
    binary="gemini",
    wire=Contents(),
    to_model=_gemini_to_model,
    arguments=("-m", "gemini-2.5-flash", "-p", PROMPT),
    environment=lambda ground: {"GOOGLE_GEMINI_BASE_URL": ground.url, "GEMINI_API_KEY": "scripted"},
    own=(
        own("read_file", file_path=".env"),
        own("read_many_files", include=[".env"]),
        own("grep_search", pattern="KEY="),
        own("run_shell_command", command="cat .env; touch own.txt"),
        own("write_file", file_path=OWN_FILE, content="past it"),
    ),
    protected="tox.ini",  # without a terminal, it keeps tools named edit_… from a Makefile by itself
)


# --- Codex CLI ---------------------------------------------------------------------------


def _codex_to_model(ground: Ground, model: str = "scripted") -> None:
    folder = ground.home / ".codex"
    folder.mkdir()
    (folder / "config.toml").write_text(
        f"""\
model = "{model}"
model_provider = "scripted"

[model_providers.scripted]
name = "scripted"
base_url = "{ground.url}/v1"
wire_api = "responses"
"""
    )


CODEX = Program(
    name="codex",
    client="codex",
    package="@openai/codex",
    version="0.169.0",
    binary="codex",
    wire=Responses(),
    to_model=_codex_to_model,
    arguments=("exec", "--skip-git-repo-check", PROMPT),
    environment=lambda ground: {},
    own=(
        own("exec_command", cmd="cat .env; touch own.txt"),
        own("shell_command", command="cat .env; touch own.txt"),
        own("view_image", path=".env"),
    ),
)

_PATCH = own("apply_patch", input=f"*** Begin Patch\n*** Add File: {OWN_FILE}\n+past it\n*** End Patch")
CODEX_DEFERRED, CODEX_CODE = (
    CODEX._replace(name=name, to_model=partial(_codex_to_model, model=model), own=(*CODEX.own, _PATCH))
    for name, model in (("codex-deferred", "gpt-5.5"), ("codex-code", "gpt-6.1-sol"))
)
"""Models that Codex knows: one has to search for our tools, the other calls them from JavaScript. Both get a tool
`apply_patch`."""

PROGRAMS = {each.name: each for each in (CLAUDE, OPENCODE, GEMINI, CODEX, CODEX_DEFERRED, CODEX_CODE)}
