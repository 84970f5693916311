"""The settings of each client, as docs/connecting.md shows them: those that `connect` writes, with paths to fill in."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.clients.connect.settings_file import by_hand
from orchestrator.clients.connect.templates import TEMPLATES, Client, Target, Template

HOME = "/home/you"
EXAMPLE = Target(
    workspace="/path/to/project",
    home=HOME,
    command=(
        "/path/to/orchestrator",
        "mcp",
        "--workspace",
        "/path/to/project",
        "--token-file",
        "/path/to/claude.token",
    ),
    denied=(".env", "*.pem"),
)


CONTAINER = ("/usr/bin/docker", "exec", "--interactive", "workspace-orchestrator", "orchestrator", "mcp")
"""How an agent on the host starts the transport in the container of deploy/compose.yaml."""


def clients() -> str:
    """A section for each client."""
    return "\n\n".join("\n".join(_section(client)) for client in TEMPLATES)


def container_clients() -> str:
    """The files of each client, for a daemon in a container."""
    return "\n".join("\n".join(_in_container(client)) for client in TEMPLATES)


def _section(client: Client) -> Iterator[str]:
    template = TEMPLATES[client]
    command = (*EXAMPLE.command[:-1], f"/path/to/{client}.token")
    yield f"## {template.title}\n"
    yield f"```sh\norchestrator connect {client}\n{template.start}\n```\n"
    yield from _files(template, EXAMPLE._replace(command=command))
    yield f"Its own tools that are off: {template.off}. What still goes past the daemon:\n"
    yield "\n".join(f"- {each}" for each in template.past)


def _in_container(client: Client) -> Iterator[str]:
    yield f"### {TEMPLATES[client].title}\n"
    command = (*CONTAINER, "--workspace", "/workspace", "--agent", client)
    yield from _files(TEMPLATES[client], EXAMPLE._replace(command=command))


def _files(template: Template, to: Target) -> Iterator[str]:
    for file in template.files(to):
        yield f"`{_shown(file.path)}`, {file.about}:\n"
        yield f"```{file.form}\n{by_hand(file)}```\n"


def _shown(path: str) -> str:
    return path.replace(HOME, "~").removeprefix(f"{EXAMPLE.workspace}/")
