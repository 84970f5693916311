"""What was written is remembered; several files are written, or none."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.clients.connect import connection_record as records
from orchestrator.clients.connect.connection_record import ConnectionRecord, FileChange, WrittenFile
from orchestrator.clients.connect.settings_file import SettingsRefused
from orchestrator.clients.connect.templates import ClientFile, Setting


def file(path: Path) -> ClientFile:
    return ClientFile(str(path), "json", (Setting(("a", "b"), [1], adds=True),), "the project's", ("servers",))


def test_where_one_file_is_refused_none_is_written(tmp_path: Path) -> None:
    first, second, third = tmp_path / "new" / "1.json", tmp_path / "2.json", tmp_path / "3.json"
    second.write_text("{}")
    third.write_text('{"changed": "meanwhile"}')
    changes = (
        FileChange(file=file(first), now=None, new="{1}", made_folders=1),
        FileChange(file=file(second), now="{}", new="{2}"),
        FileChange(file=file(third), now="{}", new="{3}"),
    )
    with pytest.raises(SettingsRefused, match=r"3\.json was changed while"):
        records.carry_out(changes)
    assert (second.read_text(), third.read_text()) == ("{}", '{"changed": "meanwhile"}')
    assert sorted(each.name for each in tmp_path.iterdir()) == ["2.json", "3.json"]


def test_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    written = WrittenFile(file=file(tmp_path / "x"), before="é", after=None, made_folders=1)
    record = ConnectionRecord(client="codex", agent="me", command=("a", "b c"), token_file="", files=(written,))
    assert records.load(str(tmp_path), "codex") is None
    records.save(str(tmp_path), record)
    assert records.load(str(tmp_path), "codex") == record
    kept = records.folder(str(tmp_path)) / "codex.json"
    assert (kept.stat().st_mode & 0o777, kept.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    records.put_back(str(tmp_path), "codex", None)
    assert records.load(str(tmp_path), "codex") is None
