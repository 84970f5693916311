"""Whether the records agree, asked of the daemon and of the disk."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from demo.stage import Stage
from demo.telling import Teller

Snapshot = dict[str, str]
"""Path → what it holds, as a digest."""


def snapshot(root: Path) -> Snapshot:
    """Every file below a folder; links by their target."""
    found: Snapshot = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            data = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
            found[str(path.relative_to(root))] = hashlib.sha256(data).hexdigest()
    return found


def history(stage: Stage, teller: Teller, path: str) -> None:
    """Who made which version of a file."""
    teller.chapter(f"What the journal says of {path}, oldest first")
    for version in reversed(stage.person("log", path).answer["versions"]):
        parts = [version.get("agent") or "-", version.get("operation") or version["kind"]]
        if version.get("reverts"):
            parts.append("reverts " + " ".join(version["reverts"]))
        if version.get("reason"):
            parts.append(f"“{version['reason']}”")
        teller.line(f"{version['version_id']:>5}  {', '.join(parts)}")


def agree(stage: Stage, teller: Teller, before: Snapshot, touched: frozenset[str]) -> bool:
    """Chain, projections, disk; and the files that nobody touched."""
    teller.chapter("Do the records agree?")
    verified = stage.person("journal", "verify", may=(0, 1)).answer
    found = f"{verified['events']} events up to {verified['head']}, {verified['blobs']} contents"
    teller.check("journal verify", ok=verified.get("ok", False), found=_or(found, verified.get("problems")))
    rebuilt = stage.person("journal", "rebuild", "--check", may=(0, 1)).answer
    found = f"{', '.join(rebuilt['projections'])}: equal after {rebuilt['events']} events"
    teller.check(
        "journal rebuild --check", ok=rebuilt.get("ok", False), found=_or(found, rebuilt.get("first_difference"))
    )
    compared = stage.person("journal", "compare", may=(0, 1)).answer
    found = f"{compared['files']} tracked files are on disk as the journal says"
    teller.check("journal compare", ok=compared.get("ok", False), found=_or(found, compared.get("differences")))
    after = snapshot(stage.workspace)
    others = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)} - touched
    untouched = f"{len(before.keys() - touched)} files are byte for byte what they were"
    teller.check("nothing else changed", ok=not others, found=_or(untouched, sorted(others)))
    return all(report.get("ok") for report in (verified, rebuilt, compared)) and not others


def _or(fine: str, trouble: object) -> str:
    return str(trouble) if trouble else fine
