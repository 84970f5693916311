"""Two scenes about other hands and about the past: an editor beside the daemon, and one agent's work taken back."""

from __future__ import annotations

import time
from typing import Any

from demo.play import Play, holds
from demo.stage import DemoFailed

SEEN_S = 30.0
EDITORS = "an editor was here"


def outsider(play: Play) -> None:
    """A program that knows nothing of the daemon saves the file; the journal has it at once."""
    teller, path = play.teller, play.shared.path
    teller.chapter(f"An editor saves {path} past the daemon: it is in the journal, and blame tells whose line is whose")
    file = play.stage.workspace / path
    before = file.read_bytes()
    ending = b"\r\n" if b"\r\n" in before else b"\n"
    saved = play.stage.workspace.parent / "saved"  # the new content whole, then its name, as careful editors do it
    saved.write_bytes(before + (b"" if before.endswith(b"\n") else ending) + EDITORS.encode() + ending)
    saved.chmod(file.stat().st_mode & 0o7777)
    saved.replace(file)
    seen = _seen(play)
    teller.line(f"{seen['seq']:>5}  {seen['kind']}, seen by the watcher, not asked for by anyone")
    ranges = play.stage.person("blame", path).answer["ranges"]
    lines: dict[str, int] = {}
    for item in ranges:
        who = item.get("agent") or "there from the start"
        lines[who] = lines.get(who, 0) + item["end"] - item["start"] + 1
    teller.line(f"       orchestrator blame {path}: {', '.join(f'{who}: {count}' for who, count in lines.items())}")
    if not {"alice", "bob", "outside"} <= lines.keys():
        raise DemoFailed(f"blame names {sorted(lines)}")


def taken_back(play: Play) -> None:
    """Everything that bob did goes, in every file, as one change; then that is taken back in turn."""
    teller, places = play.teller, play.shared.places
    teller.chapter("A person takes back all that bob did, in one change; alice's and the editor's lines stay")
    bobs = (f"{places[3]} (bob)", f"{places[4]} (bob)")
    done = _agreed(play, play.stage.person("rollback", "--agent", "bob", may=(0, 3)).answer)
    teller.change("a person", "orchestrator rollback --agent bob", done)
    holds(play, f"{places[1]} (alice)", EDITORS)
    if any(line in play.stage.read(play.shared.path) for line in bobs):
        raise DemoFailed("some of bob's work is still there")
    again = _agreed(play, play.stage.person("revert", str(done["change"]), may=(0, 3)).answer)
    teller.change("a person", f"orchestrator revert {done['change']}, so that it was only a look", again)
    holds(play, *bobs, f"{places[1]} (alice)", EDITORS)


def _agreed(play: Play, answer: dict[str, Any]) -> dict[str, Any]:
    """The change, once the person has said yes where the policy asks for that."""
    if answer["status"] == "waiting":
        play.stage.person("approvals", "show", str(answer["approval"]))
        answer = play.stage.person("approvals", "approve", str(answer["approval"])).answer
    if answer["status"] != "applied":
        raise DemoFailed(f"applied was expected, and the answer is: {answer}")
    return answer


def _seen(play: Play) -> dict[str, Any]:
    """The event of the editor's change."""
    until = time.monotonic() + SEEN_S
    question = ("journal", "query", "--kind", "external_file_changed", play.shared.path)
    while time.monotonic() < until:
        for entry in play.stage.person(*question).answer.get("entries", ()):
            found: dict[str, Any] = entry
            return found
    raise DemoFailed(f"the journal has no word of the editor's change after {SEEN_S:.0f} s")
