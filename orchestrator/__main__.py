"""The one executable. Which half of it runs is decided before anything is imported."""

from __future__ import annotations

import os
import sys


def main() -> int:
    """Run the command that the first argument names; the exit code."""
    # No editor, pager or daemon that is started has them.
    token, approver = (os.environ.pop(name, None) for name in ("ORCHESTRATOR_TOKEN", "ORCHESTRATOR_APPROVER"))
    match sys.argv[1:2]:
        case ["mcp"]:
            from orchestrator.clients.stdio_proxy.main import main as shim

            return shim(sys.argv[2:], token)
        case ["hook"]:
            from orchestrator.clients.hooks.program import main as hook

            os._exit(hook(sys.argv[2:], token))  # to take the interpreter apart would take 3 ms of each call
        case ["daemon"]:
            arguments = sys.argv[2:]
            if arguments[-1:] == ["--detached"]:
                _detach()
                del arguments[-1]
            from orchestrator.daemon import main as daemon

            return daemon(arguments)
        case _:
            from orchestrator.clients.cli import main as cli

            return cli(sys.argv[1:], token=token, approver=approver)


def _detach() -> None:
    """Go on as a child whose parent has ended: some agents end all of their descendants when they exit."""
    if os.fork():
        os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
