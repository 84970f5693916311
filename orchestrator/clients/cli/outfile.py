"""Files that the command line writes beside its answer: `--out`."""

from __future__ import annotations

import os
from pathlib import Path

from orchestrator.api import locations
from orchestrator.clients.cli.context import Settings
from orchestrator.core.errors import CallerError, escaped


class OutputPathRefused(CallerError):
    """What is kept beside the journal must not lie where agents write, nor where the journal itself is lost."""

    code = "output_path_refused"
    hint = "Name a file outside of the workspace and of the state directory, best on another disk."


def outside(settings: Settings, name: str) -> Path:
    """Where a file may be written, by its real path, links followed. Raises OutputPathRefused, WorkspaceUnknown."""
    place = Path(os.path.realpath(name))
    root = locations.find_workspace(settings.workspace)
    for folder, what in ((root, "the workspace"), (state_directory(settings), "the state directory")):
        if place.is_relative_to(os.path.realpath(folder)):
            raise OutputPathRefused(f"--out: {escaped(str(place))} is in {what}")
    return place


def state_directory(settings: Settings) -> str:
    """The workspace's. Raises WorkspaceUnknown."""
    root = locations.find_workspace(settings.workspace)
    return locations.state_directory(locations.workspace_id(root), settings.state_dir)


def new_file(place: Path) -> int:
    """A descriptor of a file that was not there, for its owner alone: names and reasons stand in it. Raises OSError."""
    return os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
