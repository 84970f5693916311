"""Agents that work at once, step by step in one order, and what is on record after each stage."""

from __future__ import annotations

import secrets
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.end_to_end.agents.answers import short, structured
from tests.end_to_end.agents.wires import Call, Turn
from tests.end_to_end.workspace_factory import Place

TURN_TIMEOUT_S = 120


class Step(NamedTuple):
    """One call. `trouble` judges what came back: "" is well. `before` happens once, before the model answers."""

    name: str
    call: Callable[[], Call]
    trouble: Callable[[str], str]
    before: Callable[[], object] = lambda: None
    who: int = 0  # which of the agents


class Stage(NamedTuple):
    """Steps, and what they leave. After them the first agent's changes are rolled back by a person.

    `lines`: a path, a line and whose it is, by `blame` and by `log`. `left` and `undone`: files before and after the
    rollback, None where there is none.
    """

    name: str
    steps: tuple[Step, ...]
    left: Mapping[str, str | None]
    undone: Mapping[str, str | None]
    lines: tuple[tuple[str, int, str | None], ...]


class Story:
    """The scripts of some agents. A step begins when all before it have been answered, whoever took them."""

    def __init__(self, place: Place, agents: tuple[str, ...]) -> None:
        self.place, self.agents = place, agents
        self.approver = ""
        self.secret = f"s3cret-{secrets.token_hex(8)}"
        self.records: list[str] = []
        self._answered = threading.Condition()
        self._results: dict[int, tuple[str, ...]] = dict.fromkeys(range(len(agents)), ())
        self._begun = 0
        self._troubles: list[str] = []  # of the steps that were answered, as it was then

    @property
    def stages(self) -> tuple[Stage, ...]:
        """All of what is judged, stage by stage."""
        raise NotImplementedError

    def lay_out(self) -> None:
        """The files, the policy, and the approver's code."""
        raise NotImplementedError

    def script(self, who: int) -> Callable[[Turn], Call | str]:
        """What this agent's model says."""

        def said(turn: Turn) -> Call | str:
            own = [number for number, step in enumerate(self.steps) if step.who == who]
            with self._answered:
                self._results[who] = max(self._results[who], turn.results, key=len)
                self._answered.notify_all()
                if len(turn.results) >= len(own):
                    if self._done() == len(self.steps):
                        self._begin(len(self.steps))
                    return "All done."
                number = own[len(turn.results)]
                if not self._answered.wait_for(lambda: self._done() >= number, TURN_TIMEOUT_S):
                    return "The others do not go on."
                self._begin(number)
                return self.steps[number].call()

        return said

    def judged(self) -> Iterator[tuple[str, str]]:
        """Each step's name with its trouble, "" for none."""
        for number, step in enumerate(self.steps):
            text = self.answer(number)
            if number < len(self._troubles):
                yield step.name, self._troubles[number]
            else:
                yield step.name, "not reached" if text is None else step.trouble(text)

    @property
    def steps(self) -> tuple[Step, ...]:
        return tuple(step for stage in self.stages for step in stage.steps)

    def said(self, name: str, key: str) -> str:
        """What the answer of an earlier step has under a key."""
        text = self.answer([step.name for step in self.steps].index(name))
        value = structured(text or "").get(key)
        return value if isinstance(value, str) else "@0"

    def answer(self, number: int) -> str | None:
        """What a model read of this step."""
        who = self.steps[number].who
        earlier = sum(step.who == who for step in self.steps[:number])
        return self._results[who][earlier] if earlier < len(self._results[who]) else None

    def written(self, name: str, wanted: str) -> Callable[[str], str]:
        """What is wrong with a file after a call."""
        path = self.place.workspace / name
        return lambda text: (
            "" if path.exists() and wanted in path.read_text() else f"{name} lacks {wanted!r}; it read {short(text)}"
        )

    def approve(self, request: str) -> None:
        """As a person does: look at it, and say yes."""
        for words in ("show", "approve"):
            self._run("approvals", words, request)

    def _done(self) -> int:
        answers = (self.answer(number) is not None for number in range(len(self.steps)))
        return next((number for number, there in enumerate(answers) if not there), len(self.steps))

    def _begin(self, number: int) -> None:
        """Look at the stages that are over, then do what comes before this step."""
        for begun in range(self._begun, number + 1):
            self._begun = begun + 1
            if begun:
                self._troubles.append(self.steps[begun - 1].trouble(self.answer(begun - 1) or ""))
            over = 0
            for stage in self.stages:
                over += len(stage.steps)
                if over == begun:
                    self.records += [f"after {stage.name}: {trouble}" for trouble in self._recorded(stage)]
            if begun < len(self.steps):
                self.steps[begun].before()

    def _recorded(self, stage: Stage) -> Iterator[str]:
        """What is wrong with blame, log and the rollback."""
        yield from self._files(stage.left)
        for path, line, author in stage.lines:
            (range_,) = self._run("blame", path, "--start", str(line), "--end", str(line))["ranges"]
            if range_["agent"] != author:
                yield f"blame names {range_['agent']} for line {line} of {path}, not {author}"
            versions = self._run("log", path)["versions"]
            authors = {version["version_id"]: version["agent"] for version in versions}
            if authors.get(range_["version"]) != author:
                yield f"log names {authors.get(range_['version'])} for {range_['version']} of {path}, not {author}"
        undo = self._run("rollback", "--agent", self.agents[0], code=3)
        self.approve(undo["approval"])
        yield from (f"rolled back, {trouble}" for trouble in self._files(stage.undone))

    def _files(self, wanted: Mapping[str, str | None]) -> Iterator[str]:
        for name, text in wanted.items():
            path = self.place.workspace / name
            found = path.read_text() if path.exists() else None
            if found != text:
                yield f"{name} is {found!r}"[:300]

    def _run(self, *words: str, code: int = 0, agent: str = "") -> dict[str, Any]:
        ran = self.place.cli(*words, "--json", approver="" if agent else self.approver, agent=agent)
        assert ran.code == code, ran
        answer: dict[str, Any] = ran.json
        return answer


def when(path: Path, words: tuple[str, ...], then: Callable[[], object]) -> None:
    """Do something as soon as a line of a file holds all these words."""

    def follow() -> None:
        command = ["tail", "-n", "+1", "-F", str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as tail:
            assert tail.stdout is not None
            next(line for line in tail.stdout if all(word in line for word in words))
            tail.kill()
        then()

    threading.Thread(target=follow, daemon=True).start()


def run(*argv: str, **options: str) -> Call:
    """A command, with our tool."""
    return Call("run_command", {"argv": [*argv], **options})


def edit(path: str, search: str, replace: str, **options: str) -> Call:
    """A change of one passage, with our tool."""
    return Call("edit_file", {"path": path, "changes": [{"search": search, "replace": replace}], **options})
