"""Forms in which other tools write edits: each applies where its place is sure."""

from __future__ import annotations

import pytest

from orchestrator.clients.python import Replacement
from tests.daemon.daemon_process import RunningDaemon

pytestmark = pytest.mark.anyio

BEGIN, UPDATE, END = "*** Begin Patch\n", "*** Update File: a.py\n", "*** End Patch\n"
TEXT = 'import os\n\n\ndef f(x):\n    if x:\n        return "a - b"\n    return None\n\n\ndef g(x):\n    return None\n'
IF, MORE = "    if x:\n", "    if x > 1:\n"
LINES = [f"line {n}\n" for n in range(60)]

THEN = "@@\n-    return None\n+    return 2\n@@\n def g(x):\n-    return None\n+    return 3\n"

EDITS = [
    (TEXT, "        return “a – b”\n", "        return “a – c”\n", TEXT.replace("a - b", "a - c")),
    (TEXT, 'if x:\n        return "a - b"\n', 'if x > 1:\n        return "a - b"\n', TEXT.replace(IF, MORE)),
    (TEXT, f"5 | {IF}", f"5 | {MORE}", TEXT.replace(IF, MORE)),
    ("", "", "x = 1\n", "x = 1\n"),
]
"""What the file holds, a search, its replacement, and the file after it."""

PATCHES = {
    "lines for the end": (f"{BEGIN}{UPDATE}@@\n+# end\n{END}", f"{TEXT}# end\n"),
    "hunks whose order says which": (
        f'{BEGIN}{UPDATE}@@\n-        return "a - b"\n+        return 1\n{THEN}{END}',
        TEXT.replace('"a - b"', "1").replace("None", "2", 1).replace("None", "3"),
    ),
    "five marks": (f"a.py\n<<<<< SEARCH\n{IF}=====\n{MORE}>>>>> REPLACE\n", TEXT.replace(IF, MORE)),
    "nine marks": (f"a.py\n{'<' * 9} SEARCH\n{IF}{'=' * 9}\n{MORE}{'>' * 9} REPLACE\n", TEXT.replace(IF, MORE)),
    "two sections": (
        f"{BEGIN}{UPDATE}@@\n-import os\n+import re\n{UPDATE}@@ def g(x):\n-    return None\n+    return 7\n{END}",
        TEXT.replace("os", "re").replace("g(x):\n    return None", "g(x):\n    return 7"),
    ),
    "added over": (f"{BEGIN}*** Add File: a.py\n+x = 1\n{END}", "x = 1\n"),
}

NEED_A_READ = ("lines for the end", "hunks whose order says which", "added over")


async def test_edits(daemon: RunningDaemon) -> None:
    file = daemon.workspace / "a.py"
    changes = [(text, [Replacement(search=old, replace=new)], after) for text, old, new, after in EDITS]
    sixty = [Replacement(search=line, replace=line.upper()) for line in LINES]
    for number, (text, change, after) in enumerate([*changes, ("".join(LINES), sixty, "".join(LINES).upper())]):
        file.write_text(text)
        async with daemon.client(f"agent{number}") as agent:
            await agent.read_file("a.py")
            answer = await agent.edit_file("a.py", change)
        assert (answer.status, file.read_text()) == ("applied", after)


@pytest.mark.parametrize("seen", [True, False])
async def test_patches(daemon: RunningDaemon, *, seen: bool) -> None:
    """Without a read those whose passages each stand exactly once."""
    file = daemon.workspace / "a.py"
    for number, (name, (patch, after)) in enumerate(PATCHES.items()):
        if not seen and name in NEED_A_READ:
            continue
        file.write_text(TEXT)
        async with daemon.client(f"agent{number}") as agent:
            if seen:
                await agent.read_file("a.py")
            answer = await agent.apply_patch(patch)
        assert (answer.status, file.read_text()) == ("applied", after), name
