"""Who may call, and who may say yes: FAULTS rows 60, 61 and 64."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.security.hostile_workspace import HostileWorkspace, Line, fort_in_tmp

NOBODY = 65534
PEOPLE = [
    ("status", {}),
    ("approvals_list", {}),
    ("approvals_show", {"approval": "@1"}),
    ("approve", {"approval": "@1"}),
    ("deny", {"approval": "@1"}),
    ("agent_add", {"name": "helper"}),
    ("agent_rotate", {"name": "helper"}),
    ("agent_revoke", {"name": "helper"}),
    ("agent_list", {}),
    ("approver_create", {}),
    ("approver_open", {}),
    ("approver_reset", {}),
    ("policy_check", {"text": ""}),
    ("policy_reload", {}),
    ("policy_approve", {"digest": "sha256:" + "0" * 64}),
    ("journal_verify", {}),
    ("journal_rebuild", {}),
    ("workspace_check", {}),
    ("stop", {}),
]
CODED = [
    ("approve", {"approval": "{waiting}"}),
    ("deny", {"approval": "{waiting}"}),
    ("agent_add", {"name": "helper"}),
    ("agent_rotate", {"name": "tess"}),
    ("agent_revoke", {"name": "tess"}),
    ("approver_open", {}),
    ("approver_reset", {}),
    ("policy_reload", {}),
    ("policy_approve", {"digest": "sha256:" + "0" * 64}),
]
WRONG = "aaaaa-aaaaa-aaaaa-aaaaa-aaaaa"


@pytest.fixture(scope="module")
def token(hostile: HostileWorkspace) -> str:
    """The token of the agent `tess`."""
    return token_of_tess(hostile)


def token_of_tess(hostile: HostileWorkspace) -> str:
    """A new agent's."""
    return str(hostile.person.done("agent_add", name="tess", approver=hostile.approver)["token"])


@pytest.fixture
def waiting(hostile: HostileWorkspace) -> Iterator[str]:
    """A change that waits for a yes; denied afterwards, if it still does."""
    answer = hostile.agent.done("write_file", path="Makefile", content="all:\n", mode="create")
    yield answer["approval"]
    hostile.person.call("deny", approval=answer["approval"], approver=hostile.approver)
    (hostile.work / "Makefile").unlink(missing_ok=True)


def turned_away(hostile: HostileWorkspace, code: str, **preamble: object) -> None:
    """A preamble that is refused, noted once, and followed by the end of the connection."""
    with hostile.untouched(refusals=1), hostile.line(**preamble) as line:
        assert line.first.reply.get("code") == code, line.first.raw
        assert line.first.reply["hint"]
        assert line.ended()


# --- 64: at the transport ----------------------------------------------------------------------


def test_64_a_name_with_a_token_is_not_claimed_without_it(hostile: HostileWorkspace, token: str) -> None:
    turned_away(hostile, "unauthorised", agent="tess")
    with hostile.line(agent="tess", token=token) as tess:
        assert (tess.first.reply["agent"], tess.first.reply["asserted"]) == ("tess", False)


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param("", id="empty"),
        pytest.param("orc_" + "0" * 64, id="made up"),
        pytest.param("{token}x", id="one letter more"),
        pytest.param("{cut}", id="one letter less"),
        pytest.param("{upper}", id="capitals"),
        pytest.param("\ud800", id="half a pair"),
    ],
)
def test_64_a_wrong_token(hostile: HostileWorkspace, token: str, wrong: str) -> None:
    given = wrong.replace("{token}", token).replace("{cut}", token[:-1]).replace("{upper}", token.upper())
    raw = json.dumps({"orchestrator": 1, "transport": "rpc", "token": given}).encode()
    with hostile.untouched(refusals=1), Line(hostile.daemon.socket, raw=raw) as line:
        assert line.first.reply["code"] in ("unauthorised", "invalid_frame")
        assert token.encode() not in line.first.raw
        assert line.ended()


def test_64_a_token_under_another_name(hostile: HostileWorkspace, token: str) -> None:
    turned_away(hostile, "unauthorised", agent="alice", token=token)


@pytest.mark.parametrize("transport", ["rpc", "mcp"])
def test_64_a_revoked_token(hostile: HostileWorkspace, transport: str) -> None:
    name = f"gone-{transport}"
    token = hostile.person.done("agent_add", name=name, approver=hostile.approver)["token"]
    with hostile.line(token=token) as line:
        session = line.session
    hostile.person.done("agent_revoke", name=name, approver=hostile.approver)
    turned_away(hostile, "unauthorised", token=token, transport=transport)
    turned_away(hostile, "unauthorised", agent=name, transport=transport)
    turned_away(hostile, "unauthorised", token=token, session=session, transport=transport)


def test_64_a_revoked_token_ends_what_is_open(hostile: HostileWorkspace) -> None:
    token = hostile.person.done("agent_add", name="open", approver=hostile.approver)["token"]
    with hostile.line(token=token) as line:
        line.done("read_file", path="a.txt")
        hostile.person.done("agent_revoke", name="open", approver=hostile.approver)
        hostile.refused("read_file", "unauthorised", caller=line, path="a.txt")
        hostile.refused("write_file", "unauthorised", caller=line, path="n.txt", content="x", mode="create")


def test_64_a_name_that_is_given_a_token_while_it_is_open(hostile: HostileWorkspace) -> None:
    with hostile.line(agent="early") as line:
        line.done("read_file", path="a.txt")
        token = hostile.person.done("agent_add", name="early", approver=hostile.approver)["token"]
        hostile.refused("read_file", "unauthorised", caller=line, path="a.txt")
        with hostile.line(agent="early", token=token) as proven:
            proven.done("read_file", path="a.txt")


def test_64_a_session_of_another(hostile: HostileWorkspace, token: str) -> None:
    with hostile.line(agent="tess", token=token) as tess:
        turned_away(hostile, "session_not_yours", agent="bob", session=tess.session)
        turned_away(hostile, "session_not_yours", person=True, session=tess.session)
        turned_away(hostile, "session_not_yours", token=token, session=hostile.agent.session)
        turned_away(hostile, "session_not_yours", token=token, session=hostile.person.session)
        with hostile.line(token=token, session=tess.session) as again:
            assert again.session == tess.session


def test_64_a_login_has_one_session_for_each_agent(hostile: HostileWorkspace, token: str) -> None:
    here, there = {"login": "boot 1 2"}, {"login": "boot 1 3"}
    with hostile.line(person=True, **here) as person, hostile.line(token=token, **here) as tess:
        assert person.session != tess.session
        with hostile.line(token=token, **here) as again, hostile.line(token=token, **there) as elsewhere:
            assert (again.session, elsewhere.session != again.session) == (tess.session, True)
        assert len(tess.session) >= len("s-") + 128 // 4, "nobody can find a login that names another's session"
    with hostile.line(token=token, **here) as again:
        assert again.session == tess.session
        turned_away(hostile, "session_not_yours", agent="bob", session=tess.session)


def test_64_a_session_that_nobody_had(hostile: HostileWorkspace) -> None:
    turned_away(hostile, "session_unknown", agent="bob", session="s-000000000000")


@pytest.mark.parametrize(
    "name",
    [
        "person:root",
        "class:person",
        "reviewer:q",
        "outside",
        "found",
        "Policy",
        "daemon",
        "",
        "a b",
        "a/b",
        "../x",
        "x" * 65,
        "a\n",
        "\u202ea",
        "-x",
    ],
)
def test_64_names_that_are_none(hostile: HostileWorkspace, name: str) -> None:
    turned_away(hostile, "unauthorised", agent=name)


def test_64_another_user_needs_a_token(hostile: HostileWorkspace, token: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("calling as another user needs root")
    said = as_nobody(hostile, [{"agent": "eve"}, {"person": True}, {}, {"agent": "tess", "token": token}])
    assert [one.get("code") for one in said] == ["PermissionError"] * 4, "the socket's own mode keeps others out"
    folders = [hostile.base, hostile.daemon.runtime]
    for folder in folders:
        folder.chmod(0o711)
    hostile.daemon.socket.chmod(0o666)
    try:
        with hostile.untouched(refusals=3):
            said = as_nobody(hostile, [{"agent": "eve"}, {"person": True}, {}, {"agent": "tess", "token": token}])
    finally:
        hostile.daemon.socket.chmod(0o600)
        for folder in folders:
            folder.chmod(0o700)
    assert [one.get("code") for one in said] == ["unauthorised"] * 3 + [None]
    assert said[3]["agent"] == "tess"


def as_nobody(hostile: HostileWorkspace, preambles: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the daemon says to these preambles of a process of another user."""
    program = """
import json, os, socket, sys
os.setgroups([]); os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[2]))
for preamble in json.loads(sys.argv[3]):
    caller = socket.socket(socket.AF_UNIX)
    try:
        caller.connect(sys.argv[1])
        caller.sendall(json.dumps({"orchestrator": 1, "transport": "rpc", **preamble}).encode() + b"\\n")
        print(caller.makefile().readline().strip())
    except OSError as error:
        print(json.dumps({"code": type(error).__name__}))
    caller.close()
"""
    arguments = [str(hostile.daemon.socket), str(NOBODY), json.dumps(preambles)]
    ended = subprocess.run(
        [sys.executable, "-I", "-c", program, *arguments], capture_output=True, check=True, timeout=60, cwd="/"
    )
    return [json.loads(line) for line in ended.stdout.splitlines()]


def test_the_socket_is_for_its_owner_alone(hostile: HostileWorkspace) -> None:
    assert hostile.daemon.socket.stat().st_mode & 0o777 == 0o600
    assert hostile.daemon.state_dir.stat().st_mode & 0o077 == 0
    loose = [item for item in hostile.daemon.state_dir.rglob("*") if item.stat().st_mode & 0o077 and item.is_file()]
    assert loose == []


# --- what only people do --------------------------------------------------------------------


@pytest.mark.parametrize(("operation", "params"), PEOPLE, ids=[name for name, _ in PEOPLE])
def test_an_agent_is_no_person(hostile: HostileWorkspace, token: str, operation: str, params: dict[str, Any]) -> None:
    hostile.refused(operation, "not_permitted", **params)
    with hostile.line(token=token, person=True) as tess:
        hostile.refused(operation, "not_permitted", caller=tess, **{**params, **coded(operation, hostile)})
    with hostile.line() as unnamed:
        hostile.refused(operation, "not_permitted", caller=unnamed, **params)


def coded(operation: str, hostile: HostileWorkspace) -> dict[str, Any]:
    """With the right code even: it is not the agent's to use."""
    return {"approver": hostile.approver} if operation in {name for name, _ in CODED} else {}


def test_conflicts_are_not_resolved_by_agents(hostile: HostileWorkspace) -> None:
    hostile.refused("resolve_conflict", "not_permitted", conflict="@1", choice="current", approver=hostile.approver)


def test_an_agent_sees_its_own_events_only(hostile: HostileWorkspace) -> None:
    hostile.refused("journal_query", "not_permitted", session=hostile.person.session)
    page = hostile.agent.done("journal_query", limit=500)
    assert {entry["session"] for entry in page["entries"]} == {hostile.agent.session}


def test_events_do_not_hold_codes_and_tokens(hostile: HostileWorkspace, token: str) -> None:
    page = hostile.person.call("journal_query", limit=500)
    for held in (token, hostile.approver, hostile.approver.replace("-", ""), 'token_hash":"', "scrypt", "salt"):
        assert held.encode() not in page.raw, held
    assert token not in hostile.daemon.log
    assert hostile.approver not in hostile.daemon.log
    files = b"".join(item.read_bytes() for item in hostile.daemon.state_dir.rglob("*") if item.is_file())
    assert token.encode() not in files
    assert hostile.approver.replace("-", "").encode() not in files
    assert hostile.approver.encode() not in files


@pytest.mark.parametrize("given", [{}, {"approver": ""}], ids=["none", "empty"])
@pytest.mark.parametrize(("operation", "params"), CODED, ids=[name for name, _ in CODED])
def test_without_a_code(
    hostile: HostileWorkspace, token: str, waiting: str, operation: str, params: dict[str, Any], given: dict[str, str]
) -> None:
    values = {name: waiting if value == "{waiting}" else value for name, value in params.items()}
    hostile.refused(operation, "approver_code_needed", caller=hostile.person, **values, **given)
    assert hostile.person.done("approvals_list")["approvals"][0]["approval"] == waiting
    with hostile.line(token=token) as tess:
        assert tess.first.reply["agent"] == "tess"


@pytest.mark.parametrize(
    ("operation", "params", "wrong"),
    [
        *(pytest.param(operation, params, (WRONG,), id=operation) for operation, params in CODED),
        pytest.param("approver_open", {}, ("{code}x", "\x00", "{first}"), id="nearly right"),
    ],
)
def test_with_a_wrong_code(operation: str, params: dict[str, Any], wrong: tuple[str, ...]) -> None:
    """On a daemon of its own: after many wrong codes none is checked for half a minute."""
    with fort_in_tmp() as hostile:
        token = token_of_tess(hostile)
        waiting = hostile.agent.done("write_file", path="Makefile", content="all:\n", mode="create")["approval"]
        values = {name: waiting if value == "{waiting}" else value for name, value in params.items()}
        for code in wrong:
            given = code.replace("{code}", hostile.approver).replace("{first}", hostile.approver[:5])
            hostile.refused(operation, "approver_code_needed", caller=hostile.person, **values, approver=given)
        assert hostile.person.done("approvals_list")["approvals"][0]["approval"] == waiting
        with hostile.line(token=token) as tess:
            assert tess.first.reply["agent"] == "tess"


def test_the_approver_code_is_made_once(hostile: HostileWorkspace) -> None:
    assert hostile.person.done("approver_create").get("approver_code") is None


# --- 61: a yes is for one change ------------------------------------------------------------


def test_61_a_yes_is_used_once(hostile: HostileWorkspace, waiting: str) -> None:
    granted = hostile.person.done("approve", approval=waiting, approver=hostile.approver, unseen=True)
    assert granted["status"] == "applied"
    (hostile.work / "Makefile").write_text("mine:\n")
    for operation in ("approve", "deny"):
        hostile.refused(
            operation, "approval_closed", caller=hostile.person, approval=waiting, approver=hostile.approver
        )


def test_61_a_no_stays_a_no(hostile: HostileWorkspace, waiting: str) -> None:
    hostile.person.done("deny", approval=waiting, approver=hostile.approver)
    for operation in ("approve", "deny"):
        again = hostile.refused(
            operation, "approval_closed", caller=hostile.person, approval=waiting, approver=hostile.approver
        )
        assert again.error["message"].startswith(f"{waiting} does not wait any more: person:")
        assert again.error["message"].endswith(" denied it")
        assert "yes" not in again.error["hint"]
    assert hostile.agent.done("await_change", id=waiting, timeout_s=0)["status"] == "denied"


def test_61_a_yes_does_not_reach_another_change(hostile: HostileWorkspace, waiting: str) -> None:
    other = hostile.agent.done("write_file", path="Makefile", content="evil:\n", mode="create")
    assert other["approval"] != waiting
    hostile.person.done("approve", approval=waiting, approver=hostile.approver, unseen=True)
    assert (hostile.work / "Makefile").read_text() == "all:\n"
    followed = hostile.agent.done("await_change", id=other["approval"], timeout_s=0)
    assert followed["conflict"].startswith("@")  # what the yes to another change made of it
    assert (hostile.work / "Makefile").read_text() == "all:\n"


@pytest.mark.parametrize("approval", ["@0", "@1", "@99999999", "{change}"])
def test_61_what_is_no_approval(hostile: HostileWorkspace, approval: str) -> None:
    made = hostile.agent.done("write_file", path="ids.txt", content="x\n", mode="append")
    number = approval.replace("{change}", made["change"])
    hostile.refused("approve", "version_unknown", caller=hostile.person, approval=number, approver=hostile.approver)


@pytest.mark.parametrize("now", ["someone else's\n", None], ids=["created meanwhile", "gone meanwhile"])
def test_61_a_yes_after_the_base_moved(hostile: HostileWorkspace, now: str | None) -> None:
    target = hostile.work / "setup.py"
    target.unlink(missing_ok=True)
    if now is None:
        target.write_text("old\n")
        asked = hostile.agent.done("edit_file", path="setup.py", changes=[{"search": "old", "replace": "evil"}])
        target.unlink()
    else:
        asked = hostile.agent.done("write_file", path="setup.py", content="evil\n", mode="create")
        target.write_text(now)
    with hostile.untouched():
        answer = hostile.person.done("approve", approval=asked["approval"], approver=hostile.approver, unseen=True)
    assert answer["status"] in ("conflict", "dropped", "waiting")
    assert answer.get("success", False) is False
    hostile.refused(
        "approve", "approval_closed", caller=hostile.person, approval=asked["approval"], approver=hostile.approver
    )
    target.unlink(missing_ok=True)


def test_61_an_expired_yes(hostile: HostileWorkspace) -> None:
    """A policy lets approvals wait for one second; the daemon itself says when that is over."""
    shipped = (Path("policies") / "default.toml").read_text(encoding="utf-8")
    brief = hostile.daemon.state_dir / "policy.toml"
    brief.write_text(shipped.replace("approval_ttl_s = 86400", "approval_ttl_s = 1"))
    try:
        assert hostile.person.done("policy_reload", approver=hostile.approver)["ok"]
        asked = hostile.agent.done("write_file", path="Makefile", content="all:\n", mode="create")
        ended = hostile.agent.done("await_change", id=asked["approval"], timeout_s=50)
    finally:
        brief.unlink()
        assert hostile.person.done("policy_reload", approver=hostile.approver)["ok"]
    assert ended["status"] == "expired"
    hostile.refused(
        "approve", "approval_closed", caller=hostile.person, approval=asked["approval"], approver=hostile.approver
    )
    assert not (hostile.work / "Makefile").exists()
