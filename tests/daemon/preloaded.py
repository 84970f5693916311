"""What every daemon imports, imported once by the process that the tests' daemons are forked from.

The collector leaves these objects alone, so that a fork shares their memory.
"""

from __future__ import annotations

import gc

import anyio._backends._asyncio
import cryptography.hazmat.primitives.asymmetric.ed25519
import uvloop

import orchestrator.clients.cli
import orchestrator.clients.python
import orchestrator.daemon
import orchestrator.servers.mcp

__all__ = ["anyio", "cryptography", "orchestrator", "uvloop"]

gc.collect()
gc.freeze()
