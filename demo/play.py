"""Who and what is on the stage, and what the scenes expect of an answer and of the file."""

from __future__ import annotations

from typing import Any, NamedTuple

from demo.agents import Agent, Answer
from demo.props import Shared
from demo.stage import DemoFailed, Stage
from demo.telling import Teller


class Play(NamedTuple):
    """Who and what is on the stage."""

    stage: Stage
    teller: Teller
    alice: Agent
    bob: Agent
    shared: Shared


def marked(place: str, who: str) -> dict[str, str]:
    return {"search": place, "replace": f"{place} ({who})"}


def became(status: str, answer: Answer) -> dict[str, Any]:
    told = answer.json
    if answer.refused or told["status"] != status:
        raise DemoFailed(f"{status} was expected, and the answer is: {answer.texts[0][:1000]}")
    return told


def served(answer: Answer) -> str:
    if answer.refused:
        raise DemoFailed(f"a read was refused: {answer.texts[0]}")
    return answer.texts[0]


def holds(play: Play, *passages: str) -> None:
    text = play.stage.read(play.shared.path)
    for passage in passages:
        if text.count(passage) != 1:
            raise DemoFailed(
                f"{play.shared.path} should hold {passage!r} once, and holds it {text.count(passage)} times"
            )
