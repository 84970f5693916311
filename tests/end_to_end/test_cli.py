"""The command line against the real daemon: its exit codes, and the approver code on a real terminal."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest

from tests.end_to_end.workspace_factory import ORCHESTRATOR, TIMEOUT_S, Place

DONE, REFUSED, USAGE, WAITING, UNREACHABLE = range(5)

ON_A_TERMINAL = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"


def test_exit_codes(place: Place) -> None:
    (place.workspace / "a.txt").write_text("one\n")
    assert place.cli("status").code == UNREACHABLE
    approver = place.up()["approver_code"]
    assert place.cli("status").code == DONE
    assert place.cli("open", "a.txt").code == DONE
    absent = place.cli("open", "absent.txt", "--json")
    assert (absent.code, absent.json["code"]) == (REFUSED, "not_found")
    assert place.cli("edit", "a.txt", "--search", "absent", "--replace", "x").code == REFUSED
    assert place.cli("edit", "a.txt").code == USAGE
    assert place.cli("no-such-command").code == USAGE
    assert place.cli("open", "a.txt", "--no-such-option").code == USAGE
    preview = place.cli("edit", "a.txt", "--search", "one", "--replace", "two", "--preview", "--json")
    assert (preview.code, preview.json["would_be"]) == (DONE, "applied")

    waiting = place.cli("write", "Makefile", "--mode", "create", "--json", agent="bob", stdin="all:\n")
    assert (waiting.code, waiting.json["status"]) == (WAITING, "waiting")
    name = waiting.json["approval"]
    assert place.cli("approvals", "show", name).code == DONE
    assert place.cli("approvals", "approve", name).code == REFUSED  # no code, and no terminal to ask on
    assert place.cli("approvals", "approve", name, approver="wrong").code == REFUSED
    assert place.cli("approvals", "approve", name, approver=approver, agent="bob").code == REFUSED
    assert not (place.workspace / "Makefile").exists()
    assert place.cli("approvals", "approve", name, approver=approver).code == DONE
    assert (place.workspace / "Makefile").read_text() == "all:\n"

    base = place.cli("open", "a.txt", "--json").json["version_id"]
    assert place.cli("edit", "a.txt", "--search", "one", "--replace", "two").code == DONE
    conflict = place.cli(
        "edit", "a.txt", "--search", "one", "--replace", "three", "--base", base, "--json", agent="bob"
    )
    assert (conflict.code, conflict.json["status"]) == (WAITING, "conflict")
    resolve = ("conflicts", "resolve", conflict.json["conflict"])
    assert place.cli(*resolve, approver=approver).code == USAGE
    assert place.cli(*resolve, "--choose", "proposed", approver=approver).code == DONE
    assert (place.workspace / "a.txt").read_text() == "three\n"
    assert place.cli(*resolve, "--choose", "current", approver=approver).code == REFUSED
    assert place.cli("stop").code == DONE
    assert place.cli("stop").code == UNREACHABLE


@pytest.mark.parametrize(
    ("answer", "spoil", "code"),
    [
        pytest.param("y", "", DONE, id="yes"),
        pytest.param("y", "x", REFUSED, id="another code"),
        pytest.param("n", None, REFUSED, id="no"),
    ],
)
def test_a_request_is_shown_and_asked_about_on_the_terminal(
    place: Place, answer: str, spoil: str | None, code: int
) -> None:
    """Through the pager, which is not given the code."""
    approver = place.up()["approver_code"]
    waiting = place.cli(
        "write", "Makefile", "--mode", "create", "--json", agent="bob", stdin="all:\n\techo '\x1b[2K'\n"
    )
    pager = place.base / "pager"
    pager.write_text(f"#!/bin/sh\nenv > {place.base}/env\ncat > {place.base}/paged\n")
    pager.chmod(0o755)
    command = [*ORCHESTRATOR, "--workspace", str(place.workspace), "approvals", "approve", waiting.json["approval"]]
    terminal = subprocess.Popen(
        [sys.executable, "-c", ON_A_TERMINAL, *command],
        env={**place.env, "PAGER": str(pager), "ORCHESTRATOR_TOKEN": ""},
        cwd=place.workspace,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert terminal.stdin
    assert terminal.stdout
    said = [(b"[y/N]: ", answer), *([(b"Approver code: ", approver + spoil)] if spoil is not None else [])]
    heard = b""
    with terminal:
        for question, reply in said:
            while not heard.endswith(question):
                heard += (piece := terminal.stdout.read(1))
                assert piece, heard
            terminal.stdin.write(f"{reply}\n".encode())
            terminal.stdin.flush()
        rest = terminal.stdout.read()
        assert terminal.wait(TIMEOUT_S) == code, rest
    assert approver.encode() not in heard + rest
    assert Path(place.workspace, "Makefile").exists() == (code == DONE)
    shown = (place.base / "paged").read_text()
    assert "+all:\n" in click.unstyle(shown)
    assert "+\techo '\\x1b[2K'\n" in click.unstyle(shown)
    assert "LESS=FRX" in (place.base / "env").read_text()
    assert "ORCHESTRATOR_TOKEN" not in (place.base / "env").read_text()


def test_up_shows_the_code_on_the_terminal_only(place: Place) -> None:
    """Its standard output goes elsewhere; the terminal still gets the code, and only the terminal."""
    script = f"exec {' '.join(ORCHESTRATOR)} --workspace {place.workspace} up > {place.base}/out"
    done = subprocess.run(
        [sys.executable, "-c", ON_A_TERMINAL, "sh", "-c", script],
        check=False,
        env=place.env,
        cwd=place.workspace,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 0, done.stdout
    shown = done.stdout.decode()
    assert "Approver code, shown this once: " in shown
    code = shown.split("shown this once: ")[1].split()[0]
    assert code not in (place.base / "out").read_text()
    made = place.cli("agent", "add", "carol", approver=code)
    assert made.code == DONE


def test_leases(place: Place) -> None:
    place.up()
    made = place.cli("lease", "reserve", "src", "--ttl", "900", "--reason", "a rename", "--json", agent="alice")
    assert (made.code, made.json["status"], made.json["globs"]) == (DONE, "granted", ["src"])
    name = made.json["lease"]
    conflict = place.cli("lease", "reserve", "src/a.py", "--mode", "shared", agent="bob")
    assert conflict.code == WAITING
    assert name in conflict.out
    assert "a rename" in conflict.out
    listed = place.cli("status")
    assert all(part in listed.out for part in (f"{name}  alice", "src", "a rename"))
    assert [item["lease"] for item in place.cli("status", "--json").json["leases"]] == [name]
    assert name in place.cli("session", agent="alice").out
    assert place.cli("lease", "reserve").code == USAGE
    assert place.cli("lease", "release", name, agent="bob").code == REFUSED
    assert place.cli("lease", "release", name).code == DONE
    assert place.cli("status", "--json").json["leases"] == []


def test_the_journal_is_queried_and_written_out(place: Place) -> None:
    place.up()
    place.cli("write", "a.txt", "--mode", "create", agent="bob", stdin="one\n")
    place.cli("open", "a.txt", agent="bob")
    asked = place.cli("journal", "query", "a.txt", "--outcome", "applied", "--json").json
    assert [(entry["kind"], entry["agent"]) for entry in asked["entries"]] == [("change_applied", "bob")]
    logged = place.cli("log", "--agent", "bob", "--kind", "file_read", "--since", "2001-01-01", "--json").json
    assert [entry["operation"] for entry in logged["entries"]] == ["read_file"]
    assert place.cli("log", "--outcome", "wonderful").code == USAGE
    assert place.cli("log", "--since", "yesterday").code == REFUSED
    out = place.cli("journal", "export", "--agent", "bob").out
    lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    assert [line["agent"] for line in lines] == ["bob"] * len(lines)
    assert "change_applied" in {line["kind"] for line in lines}
    reported = place.cli("journal", "export", "--path-unknown")
    assert reported.code == USAGE
    reported = place.cli("journal", "export", "a.txt")
    assert "change_applied" in {json.loads(line)["kind"] for line in reported.out.splitlines()}
