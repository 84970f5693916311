"""Coding agents that we start: over ACP version 1, each a child process that speaks JSON-RPC on its stdio.

- `launcher.py`: one run of one agent, from its start to its stop reason. Begin here. `ports.py`: what it needs.
- `requests.py`: what the agent sends, and what it is answered; `tool_calls.py`: what it does with its own tools.
- `profiles.py`: for each agent how it is started, and what is advertised to it.
- `wire.py`: the messages; `connection.py`: requests, answers and notifications, with limits on all of them.
- `permissions.py`: what is answered to an agent that asks; `claims.py`: whether an edit that it reports is on disk.
- `budget.py`: how much it may use. `transcript.py`: what was said, kept as JSON Lines.
"""
