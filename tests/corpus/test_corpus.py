"""Patches as models write them: each lands exactly as meant, or is refused as it should be."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from orchestrator.core.content import digest_of
from orchestrator.core.decisions.commands import Write
from orchestrator.core.decisions.decision import Apply, Base, Facts, Held
from orchestrator.core.decisions.patches import FilePart, Patch
from orchestrator.core.errors import CallerError
from orchestrator.core.ids import Seq, WorkspacePath
from orchestrator.core.text.forms.recognise import parse
from tests.corpus import handmade
from tests.corpus.case import Case
from tests.corpus.cases import CASES
from tests.corpus.deciding import decided


def facts(before: Mapping[str, bytes], path: str) -> Facts:
    """The file as its author saw it."""
    data = before.get(path)
    if data is None:
        return Facts(WorkspacePath(path), None, None)
    held = Held(data, digest_of(data), 0o644)
    return Facts(WorkspacePath(path), held, Seq(3), Base(Seq(3), held.digest, True, True))


def applied(case: Case, before: Mapping[str, bytes]) -> dict[str, bytes]:
    """What the files hold then. Raises CallerError."""
    parsed = parse(case.patch, case.path)
    if case.form is not None:
        assert parsed.form == case.form
    first = parsed.files[0]
    if parsed.form == "whole_file" and first.whole is not None:
        path = first.new_path or ""
        outcome = decided(
            Write(path=WorkspacePath(path), content=first.whole, mode="truncate", fenced=True),
            {WorkspacePath(path): facts(before, path)},
        )
    else:
        parts = []
        for file in parsed.files:
            source = WorkspacePath(file.old_path or file.new_path or case.path or "")
            target = WorkspacePath(file.new_path or source) if file.renames else source
            parts.append(FilePart(path=source, target=target, patch=file, exists=source in before))
        command = Patch(files=tuple(parts), fuzzy=True)
        outcome = decided(command, {path: facts(before, path) for path in command.paths})
    assert isinstance(outcome, Apply)
    files = dict(before)
    for part in outcome.paths:
        if part.after is None:
            del files[part.path]
        else:
            content = outcome.content(part)
            data = content.data if content is not None else before[part.moved_from or part.path]
            assert isinstance(data, bytes)
            files[part.path] = data
    return files


def outcome(case: Case, before: Mapping[str, bytes]) -> dict[str, bytes] | CallerError:
    try:
        return applied(case, before)
    except CallerError as error:
        return error


def check(case: Case, end: str) -> None:
    before = {path: text.replace("\n", end).encode() for path, text in case.before.items()}
    reported = outcome(case, before)
    if isinstance(reported, CallerError):
        assert reported.code in case.codes, f"{reported.code}: {reported.message}"
        return
    assert case.after is not None, f"landed, but should be refused: {reported}"
    ends = {path: end for path, text in case.before.items() if text}
    expected = {path: text.replace("\n", ends.get(path, "\n")) for path, text in case.expected().items()}
    assert {path: data.decode() for path, data in reported.items()} == expected


def makes_a_file(case: Case) -> bool:
    """Its line ends are those that the case gives, whatever the other files have."""
    return any(text is not None and path not in case.before for path, text in (case.after or {}).items())


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES])
def test_it_applies_as_meant_or_is_refused(case: Case) -> None:
    check(case, "\n")
    if case.form != "whole_file" and not makes_a_file(case):
        check(case, "\r\n")


def test_the_corpus_is_as_large_as_it_should_be() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
    assert len(names) > 900
    assert len(list(handmade.cases())) >= 60
    assert sum(case.after is not None and not case.codes for case in CASES) > 700
