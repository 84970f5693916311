"""Real coding agents, offline, on our stdio transport: `python -m tests.end_to_end.agents`, or `make e2e`.

A scripted model on loopback says what to do; each agent's own code connects, calls and hands the answers back.
"""
