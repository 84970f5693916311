"""Plugins installed without an installer: a folder with the module and its dist-info, for `sys.path`."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

PLUGINS = Path(__file__).parents[2] / "plugins"


def put(site: Path, name: str, source: str, *, points: dict[str, str] | None = None) -> None:
    """A package of one module; its entry points are those given, or the module under its name."""
    site.mkdir(exist_ok=True)
    (site / f"{name}.py").write_text(source, encoding="utf-8")
    info = site / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    lines = [f"{point} = {target}" for point, target in (points or {name: name}).items()]
    (info / "entry_points.txt").write_text("[orchestrator]\n" + "\n".join(lines) + "\n", encoding="utf-8")


def put_shipped(site: Path, name: str) -> None:
    """One of `plugins/`, with the entry points that its own pyproject.toml names."""
    project = tomllib.loads((PLUGINS / name / "pyproject.toml").read_text(encoding="utf-8"))
    points = project["project"]["entry-points"]["orchestrator"]
    put(site, name, (PLUGINS / name / f"{name}.py").read_text(encoding="utf-8"), points=points)


def remove(site: Path) -> None:
    shutil.rmtree(site, ignore_errors=True)
