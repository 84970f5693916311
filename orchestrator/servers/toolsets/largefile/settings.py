"""What the server takes from its environment; the transport sends it with its greeting."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from orchestrator.api.toolsets import SETTINGS
from orchestrator.core.errors import ParameterInvalid

PREFIX = SETTINGS["largefile"]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Those that mean something here. Thresholds of memory and the folder of backups are the daemon's own affair."""

    fuzzy_threshold: float = 0.8
    truncate_length: int = 500
    max_backups: int = 10
    max_batch_changes: int = 50
    similar_match_limit: int = 3
    similar_match_threshold: float = 0.6
    max_dir_entries: int = 200
    max_dir_search_results: int = 100
    ignored_dir_patterns: str = "__pycache__,node_modules,.git"

    @property
    def ignored(self) -> tuple[str, ...]:
        """Names of folders that are passed over."""
        return tuple(name.strip() for name in self.ignored_dir_patterns.split(",") if name.strip())


def settings_of(environment: Mapping[str, str]) -> Settings:
    """Read them. Raises ParameterInvalid for one that is no number."""
    given = {name.removeprefix(PREFIX).lower(): value for name, value in environment.items()}
    try:
        return msgspec.convert(given, Settings, strict=False)
    except msgspec.ValidationError as error:
        name = str(error).rpartition("$.")[2].rstrip("`")
        raise ParameterInvalid(f"{PREFIX}{name.upper()}", str(error).partition(" - at")[0], hint="") from error
