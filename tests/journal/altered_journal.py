"""Journals altered behind the daemon's back, for tests."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from orchestrator.journal.database_file import FILE_NAME


def alter(state_dir: Path, statement: str, *values: Any) -> None:
    connection = sqlite3.connect(state_dir / FILE_NAME)
    connection.execute(statement, values)
    connection.commit()
    connection.close()


def mistype(path: Path, table: str, column: str, kind: str) -> None:
    """Store a column's value as another type, which the schema forbids: without its word for that meanwhile."""
    with closing(sqlite3.connect(path, isolation_level=None)) as journal:
        (strict,) = journal.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table,)).fetchone()
        loose = strict.replace("STRICT, WITHOUT ROWID", "WITHOUT ROWID").replace("STRICT", "")
        for _ in range(2):
            (version,) = journal.execute("PRAGMA schema_version").fetchone()
            journal.execute("PRAGMA writable_schema = ON")
            journal.execute("UPDATE sqlite_schema SET sql = ? WHERE name = ?", (loose, table))
            journal.execute(f"PRAGMA schema_version = {version + 1}")
            journal.execute("PRAGMA writable_schema = RESET")
            if loose != strict:
                as_hex = f"hex({column})" if kind == "TEXT" else f"CAST({column} AS BLOB)"
                assert journal.execute(f"UPDATE {table} SET {column} = {as_hex}").rowcount
            loose = strict
