"""What the model has an agent do, step by step, and what each answer must look like when the model reads it."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tests.end_to_end.agents.programs import OWN_FILE, Program
from tests.end_to_end.agents.wires import Call, Turn
from tests.end_to_end.workspace_factory import Place

LINES = "".join(f"line {number}\n" for number in range(1, 31))
LONG = "".join(f'"long" line {number} of many\n' for number in range(1, 12_001))
PROTECTED = "test:\n\tpython -m pytest\n"


class Step(NamedTuple):
    """One call. `trouble` judges what came back: "" is well. `before` happens once, before the model answers."""

    name: str
    call: Callable[[], Call]
    trouble: Callable[[str], str]
    before: Callable[[], None] = lambda: None


class Scenario:
    """The script for one agent on one place."""

    def __init__(self, place: Place, program: Program) -> None:
        self._place, self._program = place, program
        self.secret = f"s3cret-{secrets.token_hex(8)}"
        self.steps = tuple(self._steps())
        self._begun = -1
        self._results: tuple[str, ...] = ()
        self.approver = ""

    def lay_out(self) -> None:
        """The files, and the approver's code."""
        for name, text in (
            ("notes.txt", LINES),
            ("long.txt", LONG),
            (self._program.protected, PROTECTED),
            (".env", f"KEY={self.secret}\n"),
        ):
            (self._place.workspace / name).write_text(text)
        self.approver = self._place.up()["approver_code"]

    def __call__(self, turn: Turn) -> Call | str:
        """The call of this turn's step."""
        number = len(turn.results)
        self._results = max(self._results, turn.results, key=len)
        if number >= len(self.steps):
            return "All done."
        step = self.steps[number]
        if number > self._begun:
            self._begun = number
            step.before()
        return step.call()

    def judged(self) -> Iterator[tuple[Step, str]]:
        """Each step with its trouble, "" for none."""
        for number, step in enumerate(self.steps):
            if number >= len(self._results):
                yield step, "not reached"
            else:
                yield step, step.trouble(self._results[number])

    def _steps(self) -> Iterator[Step]:
        yield Step("read", lambda: Call("read_file", {"path": "notes.txt"}), _holds("3\tline 3\n", "<content "))
        yield Step("long", lambda: Call("read_file", {"path": "long.txt", "max_tokens": 200_000}), _handed_on_whole)
        yield Step("edit", lambda: _edit("notes.txt", "line 3\n", "line three\n"), _status("applied"))
        yield Step("not found", lambda: _edit("notes.txt", "line 2O\nline 21\n", "x\n"), _not_found)
        yield Step("secret", lambda: Call("read_file", {"path": ".env"}), self._refused)
        yield Step("search", lambda: Call("search_content", {"pattern": "KEY="}), self._no_secret)
        yield Step("protected", lambda: _edit(self._program.protected, "pytest", "pytest -q"), _status("waiting"))
        yield Step(
            "granted", lambda: Call("await_change", {"id": self._said("protected", "approval")}), _status("applied"),
            before=self._approve,
        )  # fmt: skip
        yield Step(
            "conflict", lambda: _edit("notes.txt", "line 20\n", "line twenty\n"), self._conflicts,
            before=self._someone_edits,
        )  # fmt: skip
        yield Step("again", self._send_again, _status("applied"))
        yield Step("revert", lambda: Call("revert", {"change": self._said("edit", "change")}), _status("applied"))
        for call in self._program.own:
            yield Step(f"its own {call.name}", lambda call=call: call, self._kept_in)  # type: ignore[misc]

    # --- what happens around the agent

    def _approve(self) -> None:
        for words in ("show", "approve"):
            ran = self._place.cli("approvals", words, self._said("protected", "approval"), approver=self.approver)
            assert ran.code == 0, ran

    def _someone_edits(self) -> None:
        ran = self._place.cli(
            "edit", "notes.txt", "--search", "line 20", "--replace", "line 20, by somebody", agent="somebody"
        )
        assert ran.code == 0, ran

    def _send_again(self) -> Call:
        call = _edit("notes.txt", "line 20, by somebody\n", "line twenty\n")
        call.arguments["supersedes"] = self._said("conflict", "conflict")
        return call

    # --- what the model reads

    @property
    def conflict_has_block(self) -> bool:
        """Did the conflict's second text block reach the model, or only the diff in its JSON?"""
        number = [each.name for each in self.steps].index("conflict")
        return number < len(self._results) and "<content " in self._results[number]

    def _said(self, step: str, key: str) -> str:
        number = [each.name for each in self.steps].index(step)
        value = structured(self._results[number]).get(key) if number < len(self._results) else None
        return value if isinstance(value, str) else "@0"

    def _refused(self, text: str) -> str:
        code = structured(text).get("code")
        return self._no_secret(text) or ("" if code == "denied" else f"code is {code}: {_short(text)}")

    def _no_secret(self, text: str) -> str:
        return "the secret was shown" if self.secret in text else ""

    def _conflicts(self, text: str) -> str:
        return _status("conflict")(text) or _holds("line 20, by somebody")(text)

    def _kept_in(self, text: str) -> str:
        if (self._place.workspace / OWN_FILE).exists():
            return "it wrote a file"
        return self._no_secret(text)


def structured(text: str) -> dict[str, Any]:
    """The answer's JSON in what a model reads; {} where there is none."""
    decoder = json.JSONDecoder()
    for start, character in enumerate(text):
        if character != "{":
            continue
        try:
            document, _ = decoder.raw_decode(text, start)
        except ValueError:
            continue
        if isinstance(document, dict) and ("status" in document or "code" in document):
            return document
    return {}


def _edit(path: str, search: str, replace: str) -> Call:
    return Call("edit_file", {"path": path, "changes": [{"search": search, "replace": replace}]})


def _status(wanted: str) -> Callable[[str], str]:
    def trouble(text: str) -> str:
        status = structured(text).get("status")
        return "" if status == wanted else f"status is {status}: {_short(text)}"

    return trouble


def _not_found(text: str) -> str:
    code = structured(text).get("code")
    return (
        _holds("20\tline 20\n", "<content ")(text) if code == "search_not_found" else f"code is {code}: {_short(text)}"
    )


def _handed_on_whole(text: str) -> str:
    """Every line up to the one that the named call goes on with."""
    more = re.search(r"more follows: read_file\(path=\W*long\.txt\W*, start=(\d+)\)", text)
    if more is None:
        return f"does not say how to go on: {text[-300:]!r}"
    missing = [number for number in range(1, int(more[1])) if f"line {number} of many" not in text]
    return f"lines {missing[0]}-{missing[-1]} were cut away by the client" if missing else ""


def _holds(*parts: str) -> Callable[[str], str]:
    def trouble(text: str) -> str:
        missing = [part for part in parts if not any(form in text for form in _forms(part))]
        return f"lacks {missing}: {_short(text)}" if missing else ""

    return trouble


def _forms(part: str) -> Iterator[str]:
    """A text, and as it looks in JSON within a text, to two levels: Gemini CLI shows refusals so."""
    for _ in range(3):
        yield part
        part = json.dumps(part)[1:-1]


def _short(text: str) -> str:
    return repr(text[:400])
