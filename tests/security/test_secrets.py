"""What a model must not read: FAULTS row 55. Reading is denied, writing waits, and nothing else tells."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.security.fort import SECRET, Answer, Fort

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
def secret(fort: Fort, request: pytest.FixtureRequest) -> Iterator[str]:
    """One secret file at a time, and a plain one that also matches a search."""
    path = fort.work / request.param
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
def test_reading_is_denied(fort: Fort, secret: str, operation: str, params: dict[str, Any]) -> None:
    kept(fort.refused(operation, "denied", path=secret, **params))


def test_people_are_denied_too(fort: Fort, secret: str) -> None:
    kept(fort.refused("read_file", "denied", caller=fort.person, path=secret))


@pytest.mark.parametrize("preview", [False, True], ids=["in earnest", "preview"])
def test_an_edit_does_not_tell_whether_its_text_is_there(fort: Fort, secret: str, preview: bool) -> None:
    told = []
    for search in (SECRET, "KEY=", "nothing like it", "=", "first=1\n"):
        answer = kept(
            fort.refused(
                "edit_file",
                "denied",
                path=secret,
                preview=preview,
                changes=[{"search": search, "replace": "x", "expected_count": 1}],
            )
        )
        told.append({**answer.error, "id": None})
    assert all(one == told[0] for one in told), told


@pytest.mark.parametrize("preview", [False, True], ids=["in earnest", "preview"])
def test_a_patch_does_not_tell_either(fort: Fort, secret: str, preview: bool) -> None:
    told = []
    for line in ("first=1", "nothing like it"):
        patch = f"@@ -1 +1 @@\n-{line}\n+x\n"
        told.append(fort.refused("apply_patch", "denied", path=secret, patch=patch, preview=preview).error)
    assert told[0] == told[1]


def test_a_hash_can_not_be_tried_as_base(fort: Fort, secret: str) -> None:
    told = []
    for guess in (CONTENT, "another content\n"):
        base = f"sha256:{hashlib.sha256(guess.encode()).hexdigest()}"
        told.append(fort.refused("write_file", "denied", path=secret, content="x", mode="truncate", base=base).error)
        told.append(fort.refused("delete_file", "denied", path=secret, base=base).error)
    assert all(one == told[0] for one in told), told


def test_an_existing_and_an_absent_secret_are_denied_alike(fort: Fort, secret: str) -> None:
    absent = str(Path(secret).parent / "absent.pem")
    there = fort.refused("read_file", "denied", path=secret).error
    gone = fort.refused("read_file", "denied", path=absent).error
    assert there["details"]["rule"] == gone["details"]["rule"]
    assert there["hint"] == gone["hint"]


@pytest.mark.parametrize("mode", ["append", "truncate"])
@pytest.mark.parametrize("preview", [False, True], ids=["in earnest", "preview"])
def test_writing_waits_without_a_diff(fort: Fort, secret: str, mode: str, preview: bool) -> None:
    info = fort.agent.done("file_info", path=secret)
    params = {"path": secret, "content": "mine=2\n", "mode": mode, "preview": preview}
    if mode == "truncate":
        params["base"] = info["version_id"]
    with fort.untouched(refusals=0):
        answer = kept(fort.agent.call("write_file", **params))
        assert answer.result["status"] == ("preview" if preview else "waiting"), answer.raw
        assert answer.result["diff"] is None
        if preview:
            assert answer.result["would_be"] == "waiting"
            return
        number = answer.result["approval"]
        kept(fort.agent.call("await_change", id=number, timeout_s=0))
        kept(fort.agent.call("session_status"))
        with fort.line(agent="mallory") as other:
            kept(other.call("await_change", id=number, timeout_s=0))
        fort.person.done("deny", approval=number, approver=fort.approver)
        kept(fort.agent.call("await_change", id=number, timeout_s=0))


def test_what_a_person_granted_is_not_shown_to_the_agent(fort: Fort, secret: str) -> None:
    waiting = fort.agent.done("write_file", path=secret, content="mine=2\n", mode="append", request_id=f"r-{secret}")
    fort.person.done("approve", approval=waiting["approval"], approver=fort.approver)
    assert (fort.work / secret).read_text() == CONTENT + "mine=2\n"
    done = kept(fort.agent.call("await_change", id=waiting["approval"], timeout_s=5))
    assert (done.result["status"], done.result["diff"]) == ("applied", None)
    again = fort.agent.call("write_file", path=secret, content="mine=2\n", mode="append", request_id=f"r-{secret}")
    assert kept(again).result["status"] == "applied"
    kept(fort.agent.call("revert", change=done.result["change"], preview=True))
    kept(fort.agent.call("file_history", path=secret))
    for version in (done.result["version_id"], done.result["change"]):
        kept(fort.refused("get_diff", "denied", path=secret, to=version))
        kept(fort.refused("read_file", "denied", path=secret, at=version))
    (fort.work / secret).write_text(CONTENT)


def test_facts_hide_the_hash(fort: Fort, secret: str) -> None:
    answer = kept(fort.agent.call("file_info", path=secret))
    assert answer.result["content_hash"] is None
    assert answer.result["line_count"] is None
    assert answer.result["sensitivity"] == "secret"
    kept(fort.agent.call("file_history", path=secret))
    assert all(version["hash"] is None for version in fort.agent.done("file_history", path=secret)["versions"])


def test_a_search_of_the_tree_leaves_it_out_and_says_so(fort: Fort, secret: str) -> None:
    plain = fort.work / "plain.txt"
    plain.write_text("KEY=public\n")
    answer = kept(fort.agent.call("search_content", pattern="KEY"))
    assert [hit["path"] for hit in answer.result["hits"]] == ["plain.txt"]
    assert answer.result["files_left_out"] == 1
    counted = fort.agent.done("search_content", pattern="KEY", count_only=True)
    assert counted["total"] == 1
    only = fort.agent.done("search_content", pattern="KEY", globs=[Path(secret).name])
    assert (only["total"], only["files_left_out"]) == (0, 1)


def test_events_and_log_never_hold_it(fort: Fort, secret: str) -> None:
    kept(fort.refused("edit_file", "denied", path=secret, changes=[{"search": "KEY", "replace": "x"}]))
    own = fort.agent.call("journal_query", limit=500)
    assert SECRET.encode() not in own.raw
    events = fort.person.call("journal_query", limit=500)
    assert b"first=1" not in events.raw
    assert SECRET not in fort.daemon.log


def test_a_stale_base_of_it_is_refused_whatever_is_proposed(fort: Fort, secret: str) -> None:
    base = fort.agent.done("file_info", path=secret)["version_id"]
    fort.person.done("file_info", path=secret)
    (fort.work / secret).write_text(f"other={SECRET}\n")
    fort.agent.done("file_info", path=secret)
    for guess in ("mine\n", f"other={SECRET}\n", CONTENT):
        answer = fort.agent.call("write_file", path=secret, content=guess, mode="truncate", base=base)
        assert answer.code == "stale_base"
        assert b"other=" not in answer.raw
    listed = fort.agent.call("list_conflicts")
    assert SECRET.encode() not in listed.raw
    assert b"other=" not in listed.raw
    (fort.work / secret).write_text(CONTENT)
    fort.agent.done("file_info", path=secret)


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_readable_and_editable(fort: Fort, name: str) -> None:
    path = fort.work / name
    path.write_text("KEY=changeme\n")
    assert "changeme" in fort.agent.done("read_file", path=name)["text"]
    edit = [{"search": "changeme", "replace": "me-too"}]
    assert fort.agent.done("edit_file", path=name, changes=edit)["status"] == "applied"
    assert name in json.dumps(fort.agent.done("search_content", pattern="me-too"))
    path.unlink()


@pytest.mark.parametrize("away", ["notes.txt", "id_rsa.txt"])
def test_moving_it_away_waits(fort: Fort, away: str) -> None:
    path = fort.work / ".env"
    path.write_text(CONTENT)
    with fort.untouched(refusals=0), fort.line(agent="carol") as agent:
        moved = kept(agent.call("move_file", source=".env", destination=away))
        assert moved.result["status"] == "waiting"
        fort.person.done("deny", approval=moved.result["approval"], approver=fort.approver)
        gone = kept(agent.call("delete_file", path=".env"))
        assert gone.result["status"] == "waiting"
        fort.person.done("deny", approval=gone.result["approval"], approver=fort.approver)
    path.unlink()
