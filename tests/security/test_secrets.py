"""What a model must not read: FAULTS row 55. Reading is denied, writing waits, and nothing else tells."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.security.hostile_workspace import SECRET, Answer, HostileWorkspace

NAMES = [
    ".env",
    ".env.production",
    "prod.env",
    "server.pem",
    "id_rsa",
    "id_ed25519",
    "key.p12",
    ".aws/credentials",
    ".netrc",
    ".kube/config",
    "main.tfstate",
    ".ssh/known",
    "deep/er/.env",
    ".ENV",
    "Server.PEM",
]
EXAMPLES = [".env.example", "server.pem.example", "main.tfstate.sample", "id_map.py", "environment.txt"]
CONTENT = f"first=1\nKEY={SECRET}\nlast=3\n"


@pytest.fixture(scope="module", params=NAMES)
def secret(hostile: HostileWorkspace, request: pytest.FixtureRequest) -> Iterator[str]:
    """One secret file at a time, and a plain one that also matches a search."""
    path = hostile.work / request.param
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(CONTENT)
    yield request.param
    path.unlink()


def kept(answer: Answer) -> Answer:
    """An answer that tells nothing of the content."""
    assert SECRET.encode() not in answer.raw, answer.raw
    assert b"first=1" not in answer.raw, answer.raw
    assert b"sha256:" not in answer.raw, answer.raw
    return answer


@pytest.mark.parametrize(
    ("operation", "params"),
    [
        ("read_file", {}),
        ("read_file", {"start": 2, "end": 2}),
        ("read_lines", {"start": 1, "end": 2}),
        ("get_diff", {}),
        ("search_content", {"pattern": "KEY"}),
        ("search_content", {"pattern": "KEY", "count_only": True}),
    ],
    ids=str,
)
def test_reading_is_denied(hostile: HostileWorkspace, secret: str, operation: str, params: dict[str, Any]) -> None:
    kept(hostile.refused(operation, "denied", path=secret, **params))


def test_people_are_denied_too(hostile: HostileWorkspace, secret: str) -> None:
    kept(hostile.refused("read_file", "denied", caller=hostile.person, path=secret))


@pytest.mark.parametrize("preview", [False, True], ids=["in earnest", "preview"])
def test_an_edit_does_not_report_whether_its_text_is_there(
    hostile: HostileWorkspace, secret: str, preview: bool
) -> None:
    reported = []
    for search in (SECRET, "KEY=", "nothing like it", "=", "first=1\n"):
        answer = kept(
            hostile.refused(
                "edit_file",
                "denied",
                path=secret,
                preview=preview,
                changes=[{"search": search, "replace": "x", "expected_count": 1}],
            )
        )
        reported.append({**answer.error, "id": None})
    assert all(one == reported[0] for one in reported), reported


@pytest.mark.parametrize("preview", [False, True], ids=["in earnest", "preview"])
def test_a_patch_does_not_report_either(hostile: HostileWorkspace, secret: str, preview: bool) -> None:
    reported = []
    for line in ("first=1", "nothing like it"):
        patch = f"@@ -1 +1 @@\n-{line}\n+x\n"
        reported.append(hostile.refused("apply_patch", "denied", path=secret, patch=patch, preview=preview).error)
    assert reported[0] == reported[1]


def test_a_hash_can_not_be_tried_as_base(hostile: HostileWorkspace, secret: str) -> None:
    reported = []
    for guess in (CONTENT, "another content\n"):
        base = f"sha256:{hashlib.sha256(guess.encode()).hexdigest()}"
        reported.append(
            hostile.refused("write_file", "denied", path=secret, content="x", mode="truncate", base=base).error
        )
        reported.append(hostile.refused("delete_file", "denied", path=secret, base=base).error)
    assert all(one == reported[0] for one in reported), reported


def test_an_existing_and_an_absent_secret_are_denied_alike(hostile: HostileWorkspace, secret: str) -> None:
    absent = str(Path(secret).parent / "absent.pem")
    there = hostile.refused("read_file", "denied", path=secret).error
    gone = hostile.refused("read_file", "denied", path=absent).error
    assert there["details"]["rule"] == gone["details"]["rule"]
    assert there["hint"] == gone["hint"]


@pytest.mark.parametrize("mode", ["append", "truncate"])
@pytest.mark.parametrize("preview", [False, True], ids=["in earnest", "preview"])
def test_writing_waits_without_a_diff(hostile: HostileWorkspace, secret: str, mode: str, preview: bool) -> None:
    info = hostile.agent.done("file_info", path=secret)
    params = {"path": secret, "content": "mine=2\n", "mode": mode, "preview": preview}
    if mode == "truncate":
        params["base"] = info["version_id"]
    with hostile.untouched(refusals=0):
        answer = kept(hostile.agent.call("write_file", **params))
        assert answer.result["status"] == ("preview" if preview else "waiting"), answer.raw
        assert "diff" not in answer.result
        if preview:
            assert answer.result["would_be"] == "waiting"
            return
        number = answer.result["approval"]
        kept(hostile.agent.call("await_change", id=number, timeout_s=0))
        kept(hostile.agent.call("session_status"))
        with hostile.line(agent="mallory") as other:
            kept(other.call("await_change", id=number, timeout_s=0))
        hostile.person.done("deny", approval=number, approver=hostile.approver)
        kept(hostile.agent.call("await_change", id=number, timeout_s=0))


def test_what_a_person_granted_is_not_shown_to_the_agent(hostile: HostileWorkspace, secret: str) -> None:
    waiting = hostile.agent.done("write_file", path=secret, content="mine=2\n", mode="append", request_id=f"r-{secret}")
    hostile.person.done("approve", approval=waiting["approval"], approver=hostile.approver, unseen=True)
    assert (hostile.work / secret).read_text() == CONTENT + "mine=2\n"
    done = kept(hostile.agent.call("await_change", id=waiting["approval"], timeout_s=5))
    assert (done.result["status"], "diff" in done.result) == ("applied", False)
    again = hostile.agent.call("write_file", path=secret, content="mine=2\n", mode="append", request_id=f"r-{secret}")
    assert kept(again).result["status"] == "applied"
    kept(hostile.agent.call("revert", change=done.result["change"], preview=True))
    kept(hostile.agent.call("file_history", path=secret))
    for version in (done.result["version_id"], done.result["change"]):
        kept(hostile.refused("get_diff", "denied", path=secret, to=version))
        kept(hostile.refused("read_file", "denied", path=secret, at=version))
    (hostile.work / secret).write_text(CONTENT)


def test_facts_hide_the_hash(hostile: HostileWorkspace, secret: str) -> None:
    answer = kept(hostile.agent.call("file_info", path=secret))
    assert "content_hash" not in answer.result
    assert "line_count" not in answer.result
    assert answer.result["sensitivity"] == "secret"
    kept(hostile.agent.call("file_history", path=secret))
    assert all("hash" not in version for version in hostile.agent.done("file_history", path=secret)["versions"])


def test_a_search_of_the_tree_leaves_it_out_and_says_so(hostile: HostileWorkspace, secret: str) -> None:
    plain = hostile.work / "plain.txt"
    plain.write_text("KEY=public\n")
    answer = kept(hostile.agent.call("search_content", pattern="KEY"))
    assert [hit["path"] for hit in answer.result["hits"]] == ["plain.txt"]
    assert answer.result["files_left_out"] == 1
    counted = hostile.agent.done("search_content", pattern="KEY", count_only=True)
    assert counted["total"] == 1
    only = hostile.agent.done("search_content", pattern="KEY", globs=[Path(secret).name])
    assert (only["total"], only["files_left_out"]) == (0, 1)


def test_events_and_log_never_hold_it(hostile: HostileWorkspace, secret: str) -> None:
    kept(hostile.refused("edit_file", "denied", path=secret, changes=[{"search": "KEY", "replace": "x"}]))
    own = hostile.agent.call("journal_query", limit=500)
    assert SECRET.encode() not in own.raw
    events = hostile.person.call("journal_query", limit=500)
    assert b"first=1" not in events.raw
    assert SECRET not in hostile.daemon.log


def test_a_stale_base_of_it_is_refused_whatever_is_proposed(hostile: HostileWorkspace, secret: str) -> None:
    base = hostile.agent.done("file_info", path=secret)["version_id"]
    hostile.person.done("file_info", path=secret)
    (hostile.work / secret).write_text(f"other={SECRET}\n")
    hostile.agent.done("file_info", path=secret)
    for guess in ("mine\n", f"other={SECRET}\n", CONTENT):
        answer = hostile.agent.call("write_file", path=secret, content=guess, mode="truncate", base=base)
        assert answer.code == "stale_base"
        assert b"other=" not in answer.raw
    listed = hostile.agent.call("list_conflicts")
    assert SECRET.encode() not in listed.raw
    assert b"other=" not in listed.raw
    (hostile.work / secret).write_text(CONTENT)
    hostile.agent.done("file_info", path=secret)


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_readable_and_editable(hostile: HostileWorkspace, name: str) -> None:
    path = hostile.work / name
    path.write_text("KEY=changeme\n")
    assert "changeme" in hostile.agent.done("read_file", path=name)["text"]
    edit = [{"search": "changeme", "replace": "me-too"}]
    assert hostile.agent.done("edit_file", path=name, changes=edit)["status"] == "applied"
    assert name in json.dumps(hostile.agent.done("search_content", pattern="me-too"))
    path.unlink()


@pytest.mark.parametrize("away", ["notes.txt", "id_rsa.txt"])
def test_moving_it_away_waits(hostile: HostileWorkspace, away: str) -> None:
    path = hostile.work / ".env"
    path.write_text(CONTENT)
    with hostile.untouched(refusals=0), hostile.line(agent="carol") as agent:
        moved = kept(agent.call("move_file", source=".env", destination=away))
        assert moved.result["status"] == "waiting"
        hostile.person.done("deny", approval=moved.result["approval"], approver=hostile.approver)
        gone = kept(agent.call("delete_file", path=".env"))
        assert gone.result["status"] == "waiting"
        hostile.person.done("deny", approval=gone.result["approval"], approver=hostile.approver)
    path.unlink()
