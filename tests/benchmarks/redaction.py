"""Looking for secrets in a text that holds none, as it is done before an agent is shown it."""

from __future__ import annotations

from pathlib import Path

from orchestrator.core.text.redact import secrets
from tests.benchmarks.measuring import Row, Target, in_turns, plain
from tests.benchmarks.setting import Rows, Setting

MEGABYTE = 1_000_000
AT_LEAST_MB_S = 20


async def rows(setting: Setting) -> Rows:
    """A megabyte of this project's own code, in one text and in texts as large as files are."""
    files = [path.read_text("utf-8").split("\n") for path in sorted(Path("orchestrator").rglob("*.py"))]
    text: list[str] = []
    used: list[list[str]] = []
    while sum(map(len, text)) + len(text) < MEGABYTE:
        used.append(files[len(used) % len(files)])
        text += used[-1]

    def whole() -> None:
        assert not secrets(text)

    def by_file() -> None:
        assert not any(map(secrets, used))

    taken = await in_turns({"whole": plain(whole), "files": plain(by_file)}, setting.times(30))
    target = Target(at_most_ms=1000 / AT_LEAST_MB_S)
    return [
        Row(work="secrets looked for in 1 MB of code", ours=taken["whole"], target=target),
        Row(work=f"the same in {len(used)} files", ours=taken["files"], target=target),
    ]
