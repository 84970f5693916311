"""A reviewer's API key, from where the operator put it; read anew for each review, kept nowhere."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from orchestrator.core.errors import escaped
from orchestrator.core.policy.reviewers import ReviewerSettings
from orchestrator.ports.reviewers import ReviewerUnusable

MOST_BYTES = 4096


def api_key(settings: ReviewerSettings, environment: Mapping[str, str], workspace: Path) -> str:
    """The key; empty where none is set. Blocking. Raises ReviewerUnusable, without the key in it."""
    if settings.api_key_env:
        key = environment.get(settings.api_key_env, "")
        if not key.strip():
            raise ReviewerUnusable(
                f"{settings.api_key_env} is not set in the daemon's environment (api_key_env of {settings.name})"
            )
        return _checked(key, settings, settings.api_key_env)
    if settings.api_key_file:
        return _checked(_read(settings, workspace), settings, settings.api_key_file)
    return ""


def _read(settings: ReviewerSettings, workspace: Path) -> str:
    path = settings.api_key_file
    shown = f"{escaped(path)} (api_key_file of {settings.name})"
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError as error:
        raise ReviewerUnusable(f"{shown} can't be read: {error.strerror}") from error
    try:
        _check(descriptor, shown, workspace)
        data = os.read(descriptor, MOST_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(data) > MOST_BYTES:
        raise ReviewerUnusable(f"{shown} is larger than a key")
    return data.decode("utf-8", "replace")


def _check(descriptor: int, shown: str, workspace: Path) -> None:
    """That only the operator can have written the file, and nobody else reads it."""
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        raise ReviewerUnusable(f"{shown} is no plain file")
    if found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise ReviewerUnusable(
            f"{shown} is open to others (mode {found.st_mode & 0o777:o})",
            hint="It must be the daemon's user's own, for nobody else: chmod 600",
        )
    # By what was opened, so that no link leads to what agents can write.
    real = Path(f"/proc/self/fd/{descriptor}").resolve()
    if real.is_relative_to(workspace.resolve()) or found.st_nlink > 1:
        raise ReviewerUnusable(
            f"{shown} stands in the workspace, or has a second name", hint="Move it to where agents can't write."
        )


def _checked(key: str, settings: ReviewerSettings, place: str) -> str:
    key = key.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise ReviewerUnusable(f"what {escaped(place)} holds is no key (of {settings.name})")
    return key
