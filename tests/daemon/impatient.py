"""A daemon that gives people no time to answer in a client: `python -m tests.daemon.impatient …`."""

from __future__ import annotations

import sys

from orchestrator import daemon
from orchestrator.servers import elicitation


def main(argv: list[str]) -> int:
    """As `orchestrator daemon`."""
    elicitation.ASK_S = 0.0
    return daemon.main(argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
