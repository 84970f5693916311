"""What a briefing says of a huge tree costs no more than what it shows."""

from __future__ import annotations

import pytest

from orchestrator.api import briefing as b
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.text.answer_space import AnswerSpace
from orchestrator.engine.briefing import MOST_FOLDERS, _folders, _Left
from orchestrator.engine.reads.file_tree import FileTree


def test_of_many_folders_the_first_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    made, row = list[WorkspacePath](), b.FolderFiles

    def counted(path: WorkspacePath, files: int) -> b.FolderFiles:
        made.append(path)
        return row(path=path, files=files)

    monkeypatch.setattr(b, "FolderFiles", counted)
    left = _Left(AnswerSpace(60_000, 2000), 8000)
    shown = _folders(FileTree(50_000, {WorkspacePath(f"folder{n:05}"): 1 for n in range(50_000)}, ()), left)
    assert 0 < len(shown) < len(made) == MOST_FOLDERS
    assert left.left_out[0].what == f"{50_000 - len(shown)} folders"
