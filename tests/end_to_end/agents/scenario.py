"""What the models have the agents do, what each answer must look like when they read it, and what is left of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Literal

from tests.end_to_end.agents.answers import has, holds, moved_along
from tests.end_to_end.agents.programs import OWN_FILE, Program
from tests.end_to_end.agents.story import Stage, Step, Story, edit, run, when
from tests.end_to_end.agents.wires import Call
from tests.end_to_end.workspace_factory import Place

HEARD = "heard.jsonl"
"""What the agents say to our transport, beside the workspace."""

LINES = "".join(f"line {number}\n" for number in range(1, 31))
LONG = "".join(f'"long" line {number} of many\n' for number in range(1, 12_001))
ESCAPED = 'WORD = "caf\\u00e9"\n'
"""Claude Code decodes the escape in what its model quotes."""

PROTECTED = "test:\n\tpython -m pytest\n"
CALC = "def double(number):\n    return number + number + 1\n"
FIXED = CALC.replace(" + 1", "")
TEST = """\
import pathlib, unittest
from calc import double

class Test(unittest.TestCase):
    def test_double(self):
        self.assertEqual(double(2), 4)
        pathlib.Path("report.txt").write_text("passed\\n")
"""
SLOW = """\
import pathlib, signal

pathlib.Path("half.txt").write_text("half\\n")
signal.pause()
"""


class Scenario(Story):
    """One agent through all stages, or two on one file."""

    def __init__(self, place: Place, *programs: Program) -> None:
        super().__init__(place, tuple(program.client for program in programs))
        self._program = programs[0]

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """All of what is judged, stage by stage."""
        if len(self.agents) > 1:
            return (self._one_file(),)
        tests = self._tests("in_place"), self._tests("scratch")
        return (self._own_tools(), *tests, self._approvals(), self._kills())

    def lay_out(self) -> None:
        """The files, the policy, and the approver's code."""
        (self.place.workspace / "tests").mkdir()
        for name, text in (
            ("notes.txt", LINES),
            ("long.txt", LONG),
            (self._program.protected, PROTECTED),
            ("calc.py", CALC),
            ("tests/__init__.py", ""),
            ("tests/test_calc.py", TEST),
            ("tests/slow.py", SLOW),
            (".gitignore", "__pycache__/\n"),
            ("words.py", ESCAPED),
            (".env", f"KEY={self.secret}\n"),
        ):
            (self.place.workspace / name).write_text(text)
        self.approver = self.place.up()["approver_code"]
        made = self.place.cli("policy", "init", "--from", "run_tests")
        assert made.code == 0, made

    # --- the stages

    def _own_tools(self) -> Stage:
        me, protected = self.agents[0], self._program.protected
        steps = (
            Step("read", lambda: Call("read_file", {"path": "notes.txt"}), holds("3\tline 3\n", "<content ")),
            Step("long", lambda: Call("read_file", {"path": "long.txt", "max_tokens": 200_000}), _handed_on_whole),
            Step("edit", lambda: edit("notes.txt", "line 3\n", "line three\n"), has(status="applied")),
            Step("escape", lambda: edit("words.py", ESCAPED, f"A{ESCAPED}"), has(status="applied")),
            Step("not found", lambda: edit("notes.txt", "line 2O\nline 21\n", "x\n"), _not_found),
            Step("secret", lambda: Call("read_file", {"path": ".env"}), self._refused),
            Step("search", lambda: Call("search_content", {"pattern": "KEY="}), self._no_secret),
            Step(
                "conflict", lambda: edit("notes.txt", "line 20\n", "line twenty\n"), self._conflicts,
                before=self._someone_edits,
            ),
            Step("again", self._send_again, has(status="applied")),
            Step("revert", lambda: Call("revert", {"change": self.said("edit", "change")}), has(status="applied")),
            *(
                Step(f"its own {call.name}", lambda call=call: call, self._kept_in)  # type: ignore[misc]
                for call in self._program.own
            ),
        )  # fmt: skip
        return Stage(
            "its tools and ours",
            steps,
            {
                "notes.txt": LINES.replace("line 20\n", "line twenty\n"),
                "words.py": f"A{ESCAPED}",
                OWN_FILE: None,
                protected: PROTECTED,
            },
            {"notes.txt": LINES.replace("line 20\n", "line 20, by somebody\n"), "words.py": ESCAPED},
            (("notes.txt", 20, me), ("words.py", 1, me)),
        )

    def _tests(self, mode: Literal["in_place", "scratch"]) -> Stage:
        tested = lambda: run("python3", "-m", "unittest", "tests.test_calc", mode=mode)  # noqa: E731
        return Stage(
            f"tests {mode}",
            (
                Step(f"{mode}: tests fail", tested, has(status="done", exit_code=1, mode=mode)),
                Step(f"{mode}: mend", lambda: edit("calc.py", " + 1", ""), has(status="applied")),
                Step(f"{mode}: tests pass", tested, has(status="done", exit_code=0, mode=mode)),
            ),
            {"calc.py": FIXED, "report.txt": "passed\n"},
            {"calc.py": CALC, "report.txt": None},
            (("calc.py", 2, self.agents[0]), ("report.txt", 1, self.agents[0])),
        )

    def _approvals(self) -> Stage:
        me, protected = self.agents[0], self._program.protected
        build = lambda: run("sh", "-c", "echo built > built.txt")  # noqa: E731
        steps = (
            Step("asks to build", build, has(status="waiting")),
            Step("goes on", lambda: edit("notes.txt", "line 5\n", "line five\n"), has(status="applied")),
            Step(
                "builds", build, has(status="done", exit_code=0),
                before=lambda: self.approve(self.said("asks to build", "approval")),
            ),
            *self._waits("waits", self.approve),
        )  # fmt: skip
        return Stage(
            "approvals",
            steps,
            {"built.txt": "built\n", protected: PROTECTED.replace("pytest", "pytest waits")},
            {"built.txt": None, protected: PROTECTED},
            (("built.txt", 1, me), (protected, 2, me), ("notes.txt", 5, me)),
        )

    def _kills(self) -> Stage:
        me, protected = self.agents[0], self._program.protected

        def killed_then_approved(request: str) -> None:
            self.place.kill_daemon()
            self.place.up()
            self.approve(request)

        steps = (
            Step(
                "killed before a call", lambda: edit("notes.txt", "line 9\n", "line nine\n"), has(status="applied"),
                before=self.place.kill_daemon,
            ),
            Step(
                "killed in a command", lambda: run("python3", "-m", "unittest", "tests.slow"), has(status="lost"),
                before=lambda: when(self.place.workspace / "half.txt", ("half",), self.place.kill_daemon),
            ),
            *self._waits("killed while it waits", killed_then_approved),
        )  # fmt: skip
        return Stage(
            "kills",
            steps,
            {"half.txt": "half\n", protected: PROTECTED.replace("pytest", "pytest killed while it waits")},
            {"half.txt": None, protected: PROTECTED},
            (("notes.txt", 9, me), ("half.txt", 1, me), (protected, 2, me)),
        )

    def _waits(self, name: str, meanwhile: Callable[[str], object]) -> Iterator[Step]:
        """A change that a person decides on, while the agent waits for that in a call."""
        asks = f"{name}: asks"

        def request() -> str:
            return self.said(asks, "approval")

        yield Step(f"{name}: reads", lambda: Call("read_file", {"path": self._program.protected}), holds("test:"))
        yield Step(asks, lambda: edit(self._program.protected, "pytest", f"pytest {name}"), has(status="waiting"))
        yield Step(
            name, lambda: Call("await_change", {"id": request()}), has(status="applied"),
            before=lambda: when(self.place.base / HEARD, ("await_change", request()), lambda: meanwhile(request())),
        )  # fmt: skip

    def _one_file(self) -> Stage:
        one, other = self.agents
        steps = (
            Step("one reads", lambda: Call("read_file", {"path": "notes.txt"}), holds("line 3")),
            Step("other reads", lambda: Call("read_file", {"path": "notes.txt"}), holds("line 3"), who=1),
            Step("one edits", lambda: edit("notes.txt", "line 3\n", "line three\n"), has(status="applied")),
            Step("one tests", lambda: run("python3", "-m", "unittest", "tests.test_calc"), has(exit_code=1)),
            Step(
                "other on that line", lambda: edit("notes.txt", "line 3\n", "line 3!\n"),
                lambda text: has(status="conflict")(text) or holds("line three")(text), who=1,
            ),
            Step(
                "other gives way",
                lambda: edit(
                    "notes.txt", "line 12\n", "line 12!\n", supersedes=self.said("other on that line", "conflict")
                ),
                has(status="applied"), who=1,
            ),
            Step("other again", lambda: edit("notes.txt", "line 25\n", "line 25!\n"), has(status="applied"), who=1),
            Step("one again", lambda: edit("notes.txt", "line 18\n", "line eighteen\n"), moved_along),
        )  # fmt: skip
        others = LINES.replace("line 25\n", "line 25!\n").replace("line 12\n", "line 12!\n")
        return Stage(
            "one file",
            steps,
            {"notes.txt": others.replace("line 3\n", "line three\n").replace("line 18\n", "line eighteen\n")},
            {"notes.txt": others},
            (("notes.txt", 3, one), ("notes.txt", 18, one), ("notes.txt", 12, other), ("notes.txt", 25, other)),
        )

    # --- what happens around the agent

    def _someone_edits(self) -> None:
        ran = self.place.cli(
            "edit", "notes.txt", "--search", "line 20", "--replace", "line 20, by somebody", agent="somebody"
        )
        assert ran.code == 0, ran

    def _send_again(self) -> Call:
        return edit(
            "notes.txt", "line 20, by somebody\n", "line twenty\n", supersedes=self.said("conflict", "conflict")
        )

    # --- what the model reads

    @property
    def conflict_has_block(self) -> bool:
        """Did the conflict's second text block reach the model, or only the diff in its JSON?"""
        return "<content " in (self.answer([each.name for each in self.steps].index("conflict")) or "")

    def _refused(self, text: str) -> str:
        return self._no_secret(text) or has(code="denied")(text)

    def _no_secret(self, text: str) -> str:
        return "the secret was shown" if self.secret in text else ""

    def _conflicts(self, text: str) -> str:
        return has(status="conflict")(text) or holds("line 20, by somebody")(text)

    def _kept_in(self, text: str) -> str:
        if (self.place.workspace / OWN_FILE).exists():
            return "it wrote a file"
        return self._no_secret(text)


def _not_found(text: str) -> str:
    return has(code="search_not_found")(text) or holds("20\tline 20\n", "<content ")(text)


def _handed_on_whole(text: str) -> str:
    """Every line up to the one that the named call goes on with."""
    more = re.search(r"more follows: read_file\(path=\W*long\.txt\W*, start=(\d+)\)", text)
    if more is None:
        return f"does not say how to go on: {text[-300:]!r}"
    missing = [number for number in range(1, int(more[1])) if f"line {number} of many" not in text]
    return f"lines {missing[0]}-{missing[-1]} were cut away by the client" if missing else ""
