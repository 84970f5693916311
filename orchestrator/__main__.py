"""The one executable. Which half of it runs is decided before anything is imported."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command that the first argument names; the exit code."""
    match sys.argv[1:2]:
        case ["mcp"]:
            from orchestrator.clients.shim import main as shim

            return shim(sys.argv[2:])
        case ["daemon"]:
            from orchestrator.daemon import main as daemon

            return daemon(sys.argv[2:])
        case _:
            from orchestrator.clients.cli import main as cli

            return cli(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
