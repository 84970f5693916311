"""Another process: the command line, the stdio transport that agents start, the Python client.

Clients see `api/` and `core/` only, and speak to the daemon over its socket.

- `cli/`: the commands of people and scripts. `render/`: answers as lines for a terminal.
- `connect/`: the settings of each client, and how they come into its configuration files.
- `stdio_proxy/`: `orchestrator mcp`; standard library only, since every agent waits for its start.
- `python.py`: `FileAccess`, asynchronous. Its methods come from the catalogue (`operation_methods.py`; types in the
  `.pyi`, which `make docs` writes).
- `connection.py`: the blocking connection of the command line, and what both clients share: callers, calls, refusals.
- `running_daemon.py`: the workspace's daemon, found, waited for and started. Standard library only.

Begin with `connection.py`, then `cli/context.py`.
"""
