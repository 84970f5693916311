"""What agents do with files, from the first call to the last, on a copy of this project and a log.

A workflow makes its calls by a function, so that a test can look at what happened, and a measurement can count what
a model would have to read.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

PROJECT = Path(__file__).parents[2]

SEARCH, FUZZY = "orchestrator/core/text/search.py", "orchestrator/core/text/fuzzy.py"
READS = "orchestrator/engine/reads"
TOKENS = "orchestrator/core/text/answer_space.py"
RIGHT, WRONG = "return -(-weight(text) // PER_TOKEN)", "return weight(text) // PER_TOKEN"
OLD, NEW = "after_ends", "line_ends_after"
COMMENTS = {
    f"{READS}/search.py": "# TODO: show the best hits first",
    f"{READS}/deltas.py": "# FIXME: wrong for an empty file",
    f"{READS}/excerpts.py": "# TODO: shorter",
}

LOG, LOG_LINES, TAIL = "service.log", 5_000, 1_000
ERRORS = 777


class Calls(Protocol):
    """Calls a tool; its answer as text. Raises AssertionError where it is refused."""

    async def __call__(self, tool: str, /, **arguments: Any) -> str: ...


Workflow = Callable[[Calls, Path], Awaitable[None]]


def lay_out(root: Path) -> None:
    """The project with a defect and a few comments, and a log."""
    shutil.copytree(PROJECT / "orchestrator", root / "orchestrator", ignore=shutil.ignore_patterns("__pycache__"))
    source = (root / TOKENS).read_text()
    assert source.count(RIGHT) == 1
    (root / TOKENS).write_text(source.replace(RIGHT, WRONG))
    for path, comment in COMMENTS.items():
        with (root / path).open("a") as file:
            file.write(f"\n{comment}\n")
    (root / LOG).write_text("".join(map(log_line, range(1, LOG_LINES + 1))))


def log_line(number: int) -> str:
    """Some are errors."""
    said = "ERROR lost its lease" if number % ERRORS == 0 else "INFO finished in time"
    return f"2026-01-01T00:{number // 60 % 60:02}:{number % 60:02} {said}, worker {number % 17}, request {number}\n"


def _tail() -> str:
    return "".join(map(log_line, range(LOG_LINES - TAIL + 1, LOG_LINES + 1)))


def occurrences(root: Path, word: str) -> dict[str, list[tuple[int, str]]]:
    """The lines in which a word is, by file."""
    found: dict[str, list[tuple[int, str]]] = {}
    for path in sorted(root.glob("orchestrator/**/*.py")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if re.search(rf"\b{word}\b", line):
                found.setdefault(str(path.relative_to(root)), []).append((number, line))
    assert len(found) > 3
    return found


async def analyse_code(call: Calls, root: Path) -> None:
    """How are lines matched, and who does it?"""
    outline = await call(
        "search_content", pattern=r"^(class|def|    def) ", mode="regex", path=SEARCH, context_lines=0, max_results=50
    )
    assert "class Matcher(Protocol):" in outline
    who = await call("search_content", pattern="def spots(", path="orchestrator", files_only=True)
    assert all(path in who for path in (SEARCH, FUZZY, "orchestrator/core/text/regex.py"))
    start = (root / SEARCH).read_text().splitlines().index("class Matcher(Protocol):") + 1
    assert "Raises NotAll" in await call("read_file", path=SEARCH, start=start, end=start + 25)
    spots = await call("search_content", pattern="def spots(", path=FUZZY, context_lines=20)
    assert "raise NotAll" in spots


async def fix_a_defect(call: Calls, root: Path) -> None:
    """The number of tokens is to be rounded up."""
    seen = await call("search_content", pattern="def estimate_tokens", globs=["*.py"], context_lines=8)
    assert "rounded up" in seen
    assert WRONG in seen
    done = await call("edit_file", path=TOKENS, changes=[{"search": WRONG, "replace": RIGHT}])
    assert json.loads(done)["status"] == "applied"
    assert (root / TOKENS).read_text() == (PROJECT / TOKENS).read_text()
    assert RIGHT in await call("get_diff", path=TOKENS)


async def rename_and_go_back(call: Calls, root: Path) -> None:
    """One change of several files, and its undoing."""
    before = occurrences(root, OLD)
    total = sum(map(len, before.values()))
    seen = await call("search_content", pattern=OLD, word=True, path="orchestrator", context_lines=0, max_results=100)
    assert all(path in seen and str(number) in seen for path, lines in before.items() for number, _ in lines)
    patch = "".join(
        f"--- a/{path}\n+++ b/{path}\n"
        + "".join(f"@@ -{number} +{number} @@\n-{line}\n+{line.replace(OLD, NEW)}\n" for number, line in lines)
        for path, lines in before.items()
    )
    change = json.loads(await call("apply_patch", patch=patch))
    assert (change["status"], len(change["paths"])) == ("applied", len(before))
    renamed = await call("search_content", pattern=NEW, word=True, path="orchestrator", count_only=True)
    assert str(total) in renamed
    assert {path: [line.replace(NEW, OLD) for _, line in lines] for path, lines in occurrences(root, NEW).items()} == {
        path: [line for _, line in lines] for path, lines in before.items()
    }
    assert json.loads(await call("revert", change=change["change"]))["status"] == "applied"
    assert occurrences(root, OLD) == before


async def review_comments(call: Calls, root: Path) -> None:
    """What is still to be done, and where."""
    seen = await call("search_content", pattern=r"#.*\b(TODO|FIXME)\b", mode="regex", path=READS, context_lines=1)
    assert all(path in seen and comment in seen for path, comment in COMMENTS.items())
    last = len((root / READS / "deltas.py").read_text().splitlines())
    around = await call("read_file", path=f"{READS}/deltas.py", start=last - 20, end=last)
    assert COMMENTS[f"{READS}/deltas.py"] in around


async def analyse_a_log(call: Calls, root: Path) -> None:
    """Its end, its errors, and what is around one of them."""
    tail, start = "", -TAIL
    while start:
        page = await call("read_file", path=LOG, start=start, line_numbers=False, max_tokens=50_000)
        tail += "".join(re.findall(r"^2026.*\n", page, re.MULTILINE))
        more = re.search(r"\[more follows: read_file\(.*start=(\d+)", page)
        start = int(more[1]) if more else 0
    assert tail == _tail()
    errors = await call("search_content", pattern="ERROR", path=LOG, context_lines=0)
    assert all(log_line(number).strip() in errors for number in range(ERRORS, LOG_LINES + 1, ERRORS))
    around = await call("read_file", path=LOG, start=ERRORS - 10, end=ERRORS + 10)
    assert log_line(ERRORS - 10).strip() in around


CORE: Mapping[str, Workflow] = MappingProxyType(
    {
        "code analysis": analyse_code,
        "bug fixing": fix_a_defect,
        "refactoring": rename_and_go_back,
        "code review": review_comments,
        "log analysis": analyse_a_log,
    }
)


async def analyse_code_by_file(call: Calls, root: Path) -> None:
    """How are lines matched, and who does it?"""
    outline = json.loads(await call("get_overview", absolute_file_path=str(root / SEARCH)))
    names = {item["name"]: item for item in outline["outline"]}
    assert {"Matcher", "Pattern", "search"} <= names.keys()
    start = names["Matcher"]["line_number"]
    read = await call("read_content", absolute_file_path=str(root / SEARCH), offset=start, mode="semantic")
    assert "Raises NotAll" in json.loads(read)["content"]
    who = await _files_with(call, root, "def spots(")
    assert who == {SEARCH, FUZZY, "orchestrator/core/text/regex.py"}
    (line,) = (number for number, text in _lines(root / FUZZY) if "def spots(" in text)
    read = await call("read_enclosing", absolute_file_path=str(root / FUZZY), line=line)
    assert "raise NotAll" in json.loads(read)["content"]


async def fix_a_defect_by_file(call: Calls, root: Path) -> None:
    """The number of tokens is to be rounded up."""
    assert await _files_with(call, root, "def estimate_tokens") == {TOKENS}
    (line,) = (number for number, text in _lines(root / TOKENS) if "def estimate_tokens" in text)
    read = await call("read_enclosing", absolute_file_path=str(root / TOKENS), line=line)
    assert WRONG in json.loads(read)["content"]
    change = [{"search": WRONG, "replace": RIGHT}]
    path = {"absolute_file_path": str(root / TOKENS)}
    assert json.loads(await call("edit_content", **path, changes=change, preview=True))["success"]
    assert json.loads(await call("edit_content", **path, changes=change, preview=False))["success"]
    assert (root / TOKENS).read_text() == (PROJECT / TOKENS).read_text()


async def rename_by_file_and_go_back(call: Calls, root: Path) -> None:
    """A batch of changes in each file, and their undoing."""
    before = occurrences(root, OLD)
    assert await _files_with(call, root, OLD) == before.keys()
    for path, lines in before.items():
        changes = [{"search": line.strip(), "replace": line.strip().replace(OLD, NEW)} for _, line in lines]
        done = await call("edit_content", absolute_file_path=str(root / path), changes=changes, preview=False)
        assert json.loads(done)["changes_applied"] == len(lines), done
    assert occurrences(root, NEW).keys() == before.keys()
    for path in before:
        assert json.loads(await call("revert_edit", absolute_file_path=str(root / path)))["success"]
    assert occurrences(root, OLD) == before


async def review_comments_by_file(call: Calls, root: Path) -> None:
    """What is still to be done, and where."""
    folder = {"absolute_dir_path": str(root / READS), "include_pattern": "*.py"}
    for word in ("TODO", "FIXME"):
        seen = await call("search_directory", **folder, pattern=f"# {word}")
        assert all(comment in seen for comment in COMMENTS.values() if word in comment)
    path = root / READS / "deltas.py"
    last = len(path.read_text().splitlines())
    around = await call("read_content", absolute_file_path=str(path), offset=last - 20, limit=21)
    assert COMMENTS[f"{READS}/deltas.py"] in around


async def analyse_a_log_by_file(call: Calls, root: Path) -> None:
    """Its end, its errors, and what is around one of them."""
    path = {"absolute_file_path": str(root / LOG)}
    assert json.loads(await call("read_content", **path, mode="tail", limit=TAIL))["content"] == _tail()
    found = json.loads(await call("search_content", **path, pattern="ERROR", fuzzy=False, context_lines=0))
    assert [hit["line_number"] for hit in found["results"]] == [*range(ERRORS, LOG_LINES + 1, ERRORS)]
    around = json.loads(await call("read_content", **path, offset=ERRORS - 10, limit=21))
    assert around["content"] == "".join(map(log_line, range(ERRORS - 10, ERRORS + 11)))


async def _files_with(call: Calls, root: Path, pattern: str) -> set[str]:
    folder = {"absolute_dir_path": str(root / "orchestrator"), "include_pattern": "*.py"}
    found = json.loads(await call("search_directory", **folder, pattern=pattern, context_lines=0))
    return {f"orchestrator/{result['file']}" for result in found["results"]}


def _lines(path: Path) -> list[tuple[int, str]]:
    return [*enumerate(path.read_text().splitlines(), 1)]


LARGEFILE: Mapping[str, Workflow] = MappingProxyType(
    {
        "code analysis": analyse_code_by_file,
        "bug fixing": fix_a_defect_by_file,
        "refactoring": rename_by_file_and_go_back,
        "code review": review_comments_by_file,
        "log analysis": analyse_a_log_by_file,
    }
)
