"""What a program may do to a tree, to be done alike in a copy and in an overlay; run as a program, by JSON.

Standard library only. It prints what was there before.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import stat
import sys
from contextlib import suppress

Operation = tuple[str, str, str]
"""Its name, a path, and another path or a text."""


def listed(root: str) -> dict[str, str]:
    """Everything below a folder: kind, mode and content."""
    found = {}
    for above, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = f"{above}/{name}"
            mode = os.lstat(path).st_mode
            if stat.S_ISLNK(mode):
                what = f"link to {os.readlink(path)}"
            elif stat.S_ISDIR(mode):
                what = "folder"
            else:
                with open(path, "rb") as file:
                    what = f"{stat.S_IMODE(mode):o} {hashlib.sha256(file.read()).hexdigest()}"
            found[os.path.relpath(path, root)] = what
    return found


def perform(root: str, operations: list[Operation]) -> None:
    """In order; what can't be done is left undone."""
    for name, path, other in operations:
        with suppress(OSError, shutil.Error):
            _perform(name, f"{root}/{path}", other, f"{root}/{other}")


def _perform(name: str, path: str, text: str, other: str) -> None:  # noqa: PLR0912  # one case each
    match name:
        case "write" | "append" | "replace" if os.path.islink(path):
            return
        case "write" | "append":
            with open(path, "w" if name == "write" else "a") as file:
                file.write(text)
        case "replace":
            with open(f"{path}.new", "w") as file:
                file.write(text)
            os.rename(f"{path}.new", path)
        case "remove":
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            else:
                os.unlink(path)
        case "make":
            os.makedirs(path)
        case "move":
            _move(path, other)
        case "chmod":
            if not os.path.islink(path) and not os.path.isdir(path):
                os.chmod(path, 0o755)
        case "link":
            os.symlink(text, path)
        case "hard":
            os.link(path, other, follow_symlinks=False)
        case _:  # touch
            os.utime(path, (1, 1), follow_symlinks=False)


def _move(path: str, other: str) -> None:
    """As `mv` does where a folder can't be renamed; never into itself."""
    if os.path.lexists(other) and (os.path.isdir(path) or os.path.isdir(other)):
        return
    try:
        os.rename(path, other)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        shutil.copytree(path, other, symlinks=True)
        shutil.rmtree(path)


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    print(json.dumps(listed(".")))
    perform(".", [(name, path, other) for name, path, other in given])
