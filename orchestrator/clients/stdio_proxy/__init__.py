"""`orchestrator mcp`: joins an agent's stdin and stdout to the daemon's socket. Standard library only.

- `main.py`: options, and how the daemon is reached or started.
- `relay.py`: the two directions, before the daemon is up and across its restarts. Begin here.
- `messages.py`: the little that must be read of MCP's lines: who asks, who answers, how a lost daemon is reported; and
  what is answered without the daemon: constants in `answers/`, which `make docs` writes.
"""
