"""Files that the command line writes beside its answer: `--out`."""

from __future__ import annotations

import os
from pathlib import Path

from orchestrator.api import locations
from orchestrator.clients.cli.context import Settings
from orchestrator.core.errors import CallerError, escaped


class OutRefused(CallerError):
    """What is kept beside the journal must not lie where agents write, nor where the journal itself is lost."""

    code = "out_refused"
    hint = "Name a file outside of the workspace and of the state directory, best on another disk."


def outside(settings: Settings, name: str) -> Path:
    """Where a file may be written, by its real path, links followed. Raises OutRefused, WorkspaceUnknown."""
    place = Path(os.path.realpath(name))
    root = locations.find_workspace(settings.workspace)
    state_dir = locations.state_directory(locations.workspace_id(root), settings.state_dir)
    for folder, what in ((root, "the workspace"), (state_dir, "the state directory")):
        if place.is_relative_to(os.path.realpath(folder)):
            raise OutRefused(f"--out: {escaped(str(place))} is in {what}")
    return place
