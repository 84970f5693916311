"""The texts of policy files: those that come with the package, and those of the operator."""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib import resources
from pathlib import Path

from orchestrator.core.errors import PolicyInvalid, escaped
from orchestrator.core.events.policies import Layer
from orchestrator.core.policy.reader import PolicyText

DEFAULT = "default"
"""The shipped policy that holds where nobody wrote one."""

MOST_BYTES = 1024 * 1024
"""Of one file."""


def shipped_policies() -> dict[str, str]:
    """The texts of the policies that come with the package, by name."""
    files = (item for item in resources.files("policies").iterdir() if item.name.endswith(".toml"))
    return {item.name.removesuffix(".toml"): item.read_text(encoding="utf-8") for item in files}


def read_policies(files: Iterable[tuple[Layer, str]]) -> tuple[PolicyText, ...]:
    """The files that are there, else the shipped default. Raises PolicyInvalid for one that can't be read."""
    found = tuple(text for layer, path in files if (text := _read(layer, Path(path))) is not None)
    return found or (PolicyText("shipped", f"policies/{DEFAULT}.toml", shipped_policies()[DEFAULT]),)


def signatures(paths: Iterable[str]) -> tuple[object, ...]:
    """Another value once one of the files may be another. Cost: some 5 µs each."""
    return tuple(map(_signature, paths))


def _signature(path: str) -> tuple[int, ...] | None:
    try:
        found = os.stat(path)  # noqa: PTH116  # a Path would cost more than the call
    except OSError:
        return (1,) if os.path.lexists(path) else None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _read(layer: Layer, path: Path) -> PolicyText | None:
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise _unreadable(path, f"holds more than {MOST_BYTES:,} bytes", "Shorten it, or move it away.")
        return PolicyText(layer, str(path), data.decode())
    except (FileNotFoundError, NotADirectoryError) as error:
        if path.is_symlink():  # else a policy that was moved would let through what it denies
            raise _unreadable(path, "is a link that leads nowhere", "Put its target back, or remove it.") from error
        return None
    except UnicodeDecodeError as error:
        raise _unreadable(path, f"is not UTF-8 text: {error}", "Save it as UTF-8, or move it away.") from error
    except OSError as error:
        raise _unreadable(path, f"can't be read: {error.strerror}", "Make it a file, or move it away.") from error


def _unreadable(path: Path, what: str, hint: str) -> PolicyInvalid:
    return PolicyInvalid(f"{escaped(str(path))} {what}", hint=hint, details={"source": str(path)})
