"""`make conformance`: install the scenarios, run those of two versions over each transport, and say what failed."""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from urllib.parse import urlsplit

from tests.daemon.daemon_process import RunningDaemon, running
from tests.end_to_end.conformance.relays import over_stdio, with_token

HERE = Path(__file__).parent
FOLDER = Path(".bench/conformance")
PACKAGES = ("@modelcontextprotocol/conformance@0.2.0-alpha.12", "node@22.23.3")
"""Its released versions do not know 2026-07-28 yet; this one does, and needs Node 22."""
VERSIONS = ("2025-11-25", "2026-07-28")


async def _ran(port: int, transport: str, version: str) -> bool:
    """Whether no scenario failed that is not expected to, and none passed that is."""
    command = (
        *(str(FOLDER / "node_modules/.bin/node"), str(FOLDER / "node_modules/.bin/conformance"), "server"),
        *("--url", f"http://127.0.0.1:{port}/mcp", "--suite", "all", "--spec-version", version),
        *("--expected-failures", str(HERE / f"expected.{transport}.{version}.yml")),
        *("--output-dir", str(FOLDER / "results" / transport / version)),
    )
    print(f"\n=== {transport}, {version}", flush=True)
    process = await asyncio.create_subprocess_exec(*command)
    return await process.wait() == 0


async def _all(daemon: RunningDaemon) -> bool:
    async with daemon.client() as person:
        token = (await person.agent_add("conformance", approver=await daemon.make_approver())).token
        target = urlsplit((await person.status()).http or "").port
    assert target is not None
    (daemon.workspace / "a.txt").write_text("one\ntwo\n")
    stdio = (sys.executable, "-m", "orchestrator", "mcp", "--workspace", str(daemon.workspace))
    env = {**daemon.env, "ORCHESTRATOR_TOKEN": token, "PYTHONPATH": str(Path.cwd())}
    relays: dict[str, AbstractAsyncContextManager[int]] = {
        "http": with_token(target, token),
        "stdio": over_stdio(stdio, env),
    }
    good = True
    for transport, relay in relays.items():
        async with relay as port:
            for version in VERSIONS:
                good = await _ran(port, transport, version) and good
    return good


def main() -> int:
    """The exit code."""
    npm = shutil.which("npm")
    if npm is None:
        print("npm is needed, and not installed", file=sys.stderr)
        return 2
    install = (npm, "install", "--no-audit", "--no-fund", "--silent", "--prefix", str(FOLDER), *PACKAGES)
    base = Path(tempfile.mkdtemp(prefix="o-", dir="/tmp")).resolve()

    async def run(daemon: RunningDaemon) -> bool:
        installing = await asyncio.create_subprocess_exec(*install)
        return await installing.wait() == 0 and await _all(daemon)

    shutil.rmtree(FOLDER / "results", ignore_errors=True)
    try:
        with running(base, "--http", "0") as daemon:
            return 0 if asyncio.run(run(daemon)) else 1
    finally:
        shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
