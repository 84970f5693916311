"""The tables of a policy file that conflicts and their reviewers go by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.core.policy.fields import NAME, Fields, agent_problem
from orchestrator.core.policy.glob_problems import glob_problem
from orchestrator.core.policy.reviewers import Plugins, ReviewerSettings, read_plugins, read_reviewer
from orchestrator.core.policy.routes import ACCEPTS, PERSON, SCOPES, WHEN_IT_FITS, Checks, Conflicts, Route

REVIEW_S = range(1, 86_400 + 1)
EXPIRE_S = range(365 * 86_400 + 1)
CHECK_S = range(1, 3600 + 1)
MOST_LINES = range(1, 1_000_000)
_ROUTE_KEYS = Route.__struct_fields__


class ReviewTables(Fields):
    """Routes, what becomes of conflicts, checks, reviewers, plugins."""

    def _routes(self, tables: object) -> tuple[Route, ...]:
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            self._wrong("routes are written as [[route]] tables", "route")
            return ()
        return tuple(self._route(table, at) for at, table in enumerate(tables, 1))

    def _route(self, table: Mapping[str, Any], at: int) -> Route:
        place, usual = ("route", at), Route(name="", reviewers=())
        self._only(table, _ROUTE_KEYS, *place)
        paths, agents = usual.paths, usual.agents
        if "paths" in table:
            paths = self._list(table, "paths", *place, check=glob_problem)
        if "agents" in table:
            agents = self._list(table, "agents", *place, check=agent_problem)
        max_lines, same_symbol = table.get("max_lines"), table.get("same_symbol")
        if max_lines is not None and (type(max_lines) is not int or max_lines not in MOST_LINES):
            self._wrong(f"a whole number of lines, 1 to {MOST_LINES[-1]}", *place, "max_lines")
        if same_symbol is not None and type(same_symbol) is not bool:
            self._wrong("is true or false", *place, "same_symbol")
        reviewers = self._list(table, "reviewers", *place, check=_reviewer_problem)
        if len(set(reviewers)) < len(reviewers):
            self._wrong("names a reviewer twice", *place, "reviewers")
        return Route(
            name=self._text_of(table, "name", *place) or f"route {at}",
            reviewers=reviewers,
            paths=paths,
            agents=agents,
            max_lines=max_lines,
            same_symbol=same_symbol,
            deadline_s=self._seconds(table, "deadline_s", REVIEW_S, usual, *place),
            accept=self._one_of(table, "accept", ACCEPTS, *place) or usual.accept,
        )

    def _conflicts(self, table: object) -> Conflicts:
        usual = Conflicts()
        if not isinstance(table, dict):
            self._wrong("is a table: [conflicts]", "conflicts")
            return usual
        self._only(table, usual.__struct_fields__, "conflicts")
        return Conflicts(
            when_it_fits=self._one_of(table, "when_it_fits", WHEN_IT_FITS, "conflicts") or usual.when_it_fits,
            expire_after_s=self._seconds(table, "expire_after_s", EXPIRE_S, usual, "conflicts"),
        )

    def _checks(self, table: object) -> Checks:
        usual = Checks()
        if not isinstance(table, dict):
            self._wrong("is a table: [checks]", "checks")
            return usual
        self._only(table, usual.__struct_fields__, "checks")
        return Checks(
            command=self._list(table, "command", "checks", check=_argument_problem) if "command" in table else (),
            timeout_s=self._seconds(table, "timeout_s", CHECK_S, usual, "checks"),
            scope=self._one_of(table, "scope", SCOPES, "checks") or usual.scope,
        )

    def _reviewers(self, tables: object) -> tuple[ReviewerSettings, ...]:
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            self._wrong("reviewers are written as [[reviewer]] tables", "reviewer")
            return ()
        known: dict[str, ReviewerSettings] = {}
        for at, table in enumerate(tables, 1):
            settings, troubles = read_reviewer(table)
            for key, message in troubles:
                self._wrong(message, "reviewer", at, key)
            if settings is None:
                continue
            problem = _reviewer_problem(settings.name)
            if problem or settings.name == PERSON:
                self._wrong(problem or f"{PERSON!r} is kept for people", "reviewer", at, "name")
            elif settings.name in known:
                self._wrong(f"{settings.name!r} is the name of an earlier reviewer too", "reviewer", at, "name")
            known[settings.name] = settings
        return tuple(known.values())

    def _plugins(self, table: object) -> Plugins:
        if not isinstance(table, dict):
            self._wrong("is a table: [plugins]", "plugins")
            return Plugins()
        plugins, troubles = read_plugins(table)
        for key, message in troubles:
            self._wrong(message, "plugins", key)
        return plugins


def _reviewer_problem(name: str) -> str | None:
    return None if NAME.match(name) else "is a reviewer's name: letters, digits, spaces, '_', '-' and '.'"


def _argument_problem(argument: str) -> str | None:
    return "an argument holds no NUL, and is not empty" if not argument or "\0" in argument else None
