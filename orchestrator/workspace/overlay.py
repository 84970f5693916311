"""Layers of a scratch tree: a command sees the kept copy below, changes above it, and writes to the uppermost.

`namespaces.py` mounts them, for the command alone; what it changed is then in the upper layer, and nothing else is.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Collection, Iterable
from pathlib import Path

from orchestrator.core.errors import escaped
from orchestrator.workspace import namespaces

WHITEOUT = 0
"""The device number of a character device that stands for what a lower layer has and the whole has not."""

OPAQUE = "user.overlay.opaque"
"""An attribute of a directory, "y": nothing of lower layers is in it."""

TREE, DELTA, UPPER, WORK = "tree", "delta", "upper", "work"
"""As `namespaces.py` mounts them: where the whole is seen, what is otherwise than in the kept copy, what the command
changes, and a folder for the kernel."""

PROBE_S = 5.0


def make_layers(home: str) -> None:
    """In an empty folder."""
    for name in (TREE, DELTA, UPPER, WORK):
        os.mkdir(f"{home}/{name}", 0o700)


def hide(folder: str, gone: Iterable[str], files: Collection[str], folders: Collection[str]) -> None:
    """Let a layer hide paths that a lower one has. `files`, `folders`: what the whole is to have.

    Directories in which nothing is left are hidden whole. What is hidden already by what stands in its place stays so.
    """
    hidden = set[str]()
    for path in gone:
        top = path
        while (above := top.rpartition("/")[0]) not in folders:
            top = above
        if top in folders or top in files or top in hidden:
            continue
        hidden.add(top)
        shutil.rmtree(f"{folder}/{top}", ignore_errors=True)  # directories of what could not be copied
        os.makedirs(f"{folder}/{above}", exist_ok=True)
        os.mknod(f"{folder}/{top}", stat.S_IFCHR, WHITEOUT)


def why_not(home: str) -> str:
    """What keeps overlays from working in a folder with layers; nothing if they do. Blocking."""
    try:
        os.mkdir(f"{home}/{DELTA}/emptied")
        for name in ("kept", "gone", "emptied/gone"):
            Path(home, DELTA, name).write_bytes(b"1")
        os.mknod(f"{home}/{DELTA}/hidden", stat.S_IFCHR, WHITEOUT)
        subprocess.run(
            (sys.executable, "-I", "-S", namespaces.__file__, home),
            check=True,
            capture_output=True,
            timeout=PROBE_S,
            cwd="/",
        )
        upper = Path(home, UPPER)
        found = sorted(os.listdir(upper)), (upper / "gone").is_char_device(), (upper / "kept").read_bytes()
        if found != (["emptied", "gone", "kept"], True, b"12") or os.getxattr(upper / "emptied", OPAQUE) != b"y":
            return f"the upper layer is not what was changed: {found}"
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", None) or str(error).encode()
        return escaped(said.decode(errors="replace").strip())[-200:]
    return ""
