"""The official conformance scenarios of MCP against a daemon, over HTTP and stdio: `make conformance`.

The scenarios come over HTTP without a token, so a relay stands before the daemon (`relays.py`): one adds the token,
the other passes each message on to `orchestrator mcp`. What may fail, and why, is in `expected.*.yml`.
"""
