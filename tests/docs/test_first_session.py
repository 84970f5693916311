"""The walk-through of README.md, typed into a terminal: what it shows is what comes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.documents import README, blocks, part
from tests.docs.matching import Versions
from tests.docs.terminal import Terminal


def steps() -> list[tuple[str, list[str]]]:
    """Each command and the lines that it is said to write."""
    found: list[tuple[str, list[str]]] = []
    for block in blocks(part(README.read_text(encoding="utf-8"), "first session"), "console"):
        for line in block.text.removesuffix("\n").split("\n"):
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="setsid --ctty is of util-linux")
def test_the_first_session_of_the_readme(base: Path) -> None:
    env = {
        "HOME": str(base / "home"),
        "XDG_RUNTIME_DIR": str(base / "run"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "LANG": "C.UTF-8",
    }
    for name in ("home", "run"):
        (base / name).mkdir(mode=0o700)
    versions, terminal = Versions(), Terminal(base, env)
    try:
        for command, reported in steps():
            real, _ = terminal.run(versions.real(command))
            wrong = versions.match_lines(reported, real)
            assert wrong is None, f"$ {command}\nREADME.md says: {wrong}\nit came:\n" + "\n".join(real)
    finally:
        terminal.close()
        subprocess.run(["orchestrator", "stop"], cwd=base / "shop", env=env, capture_output=True, check=False)
