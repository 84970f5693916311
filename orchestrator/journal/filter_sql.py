"""A filter as a query: which index leads, and what is looked at in the rows that it leads to."""

from __future__ import annotations

from typing import Any

from orchestrator.journal.event_rows import EVENT_COLUMNS
from orchestrator.ports.journal import EventFilter, Mention


def select(wanted: EventFilter, *, after: int, until: int, limit: int, newest: bool) -> tuple[str, tuple[Any, ...]]:
    """A query for the events that fit.

    One index leads, in the journal's order, so that `limit` ends the work: the stream's, else
    the session's, the agent's, the tag's. Several tags are as many short walks, merged.
    """
    tags, order = tuple(dict.fromkeys(wanted.tags)), f"ORDER BY seq {'DESC' if newest else 'ASC'} LIMIT ?"
    if len(tags) > 1 and wanted.stream is wanted.session is wanted.agent is None:
        parts, values = list[str](), list[Any]()
        for tag in tags:
            where, more = _where(wanted, (tag,), after, until)
            parts.append(f"SELECT * FROM (SELECT seq FROM events WHERE {where} {order})")
            values += (*more, limit)
        where = f"seq IN ({' UNION ALL '.join(parts)})"
    else:
        where, values = _where(wanted, tags, after, until)
    return f"SELECT {EVENT_COLUMNS} FROM events WHERE {where} {order}", (*values, limit)


def _where(wanted: EventFilter, tags: tuple[str, ...], after: int, until: int) -> tuple[str, list[Any]]:
    """The conditions. The index of the first column leads; a `+` keeps SQLite from using another."""
    clauses, values, plus = ["seq > ?", "seq <= ?"], list[Any]((after, until)), ""
    for column, value in (("stream", wanted.stream), ("session", wanted.session), ("agent", wanted.agent)):
        if value is not None:
            clauses.append(f"{plus}{column} = ?")
            values.append(value)
            plus = "+"
    if len(tags) == 1:
        clauses.append(f"{plus}tag = ?")
    elif tags:
        clauses.append(f"+tag IN ({', '.join('?' * len(tags))})")
    values += tags
    for bound, at in (("at >= ?", wanted.since_at), ("at <= ?", wanted.until_at)):
        if at is not None:
            clauses.append(bound)
            values.append(at)
    for mention in wanted.mentions:
        clause, more = _mentions(mention)
        clauses.append(clause)
        values += more
    return " AND ".join(clauses), values


def _mentions(mention: Mention) -> tuple[str, tuple[Any, ...]]:
    """Looks into the rows that another column led to; SQLite compares the bytes faster than we decode them."""
    parts, values = list[str](), list[Any]()
    if mention.streams:
        parts.append(f"+stream IN ({', '.join('?' * len(mention.streams))})")
        values += mention.streams
    for text in mention.texts:
        parts.append("instr(payload, ?) > 0")
        values.append(text)
    if mention.session is not None:
        parts.append("(+session = ? AND +seq BETWEEN ? AND ?)")
        values += (mention.session, mention.first, mention.last)
    return f"({' OR '.join(parts)})" if parts else "FALSE", tuple(values)
