"""Who shows something goes through the gate: these are the only places that could get past it."""

from __future__ import annotations

import re
from pathlib import Path

import orchestrator.engine

ENGINE = Path(orchestrator.engine.__file__).parent

MADE = re.compile(r"\b(?:Name|Content)?Access\(")
"""What lets something be shown is made."""

FETCHED = re.compile(
    r"contents\.(?:get|find|need|need_bytes|kept_text|cached|differences)\(|workspace\.(?:read|pieces|hash)\b"
    r"|[oO]bserver\.(?:refresh|keep)\(|journal\.(?:blob|content)\("
)
"""A content is fetched without it."""

WITHOUT = {
    "contents.py": "is what it is fetched from",
    "policy_files.py": "reads the workspace's policy for the daemon",
    "shown.py": "finds which lines an answer showed, once it was made",
    "reads/blame.py": "who brought a line in is computed from contents, none is shown",
    "reads/file_reads.py": "finds the image of a file to which it has access",
    "reads/large_texts.py": "reads lines of a large file for read_file, which has access",
    "reads/read_regions.py": "follows lines that the session saw; notices ask what of them may be shown",
    "reads/deltas.py": "compares with what the session saw, for an access",
    "reads/relations.py": "finds what files import for which it has access",
    "reads/search_large.py": "opens large files for which the search has access",
    "reads/search_sources.py": "reads files for which the search has access",
    "reported_calls.py": "compares with what an agent says that it writes; only an approver is shown it",
    "native_records.py": "reads what a client's own tool wrote, to note what its agent knows of it; nothing is shown",
    "native_permits.py": "judges what a client's own tool is about to do; what it shows goes by `content`",
    "tags.py": "notes a file that no call has met, before it is tagged; nothing of it is shown",
    "moved_tags.py": "hashes a file, for policy to know the tags that it brought along",
    "past_versions.py": "permits the version first",
}


def places(pattern: re.Pattern[str], *folders: str) -> set[str]:
    """The modules of the engine, or of these folders and beside them, in which it stands; not in comments."""
    found = set[str]()
    for path in ENGINE.rglob("*.py"):
        name = path.relative_to(ENGINE).as_posix()
        lines = path.read_text().splitlines()
        code = "\n".join(line for line in lines if not line.lstrip().startswith(("#", "class ")))
        if (not folders or name.count("/") == 0 or name.startswith(folders)) and pattern.search(code):
            found.add(name)
    return found


def test_only_the_gate_makes_what_lets_something_be_shown() -> None:
    assert places(MADE) == {"access.py"}


def test_what_shows_the_past_and_present_fetches_contents_by_it() -> None:
    assert places(FETCHED, "reads/", "record/audit.py") == set(WITHOUT)
