"""What a real daemon sends a reviewer of files that hold private keys, and of names and reasons that hold tokens."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from orchestrator.clients.python import FileAccess, Replacement
from tests.core.text.secret_samples import LONG, SHAPES
from tests.daemon.backed import SHOWN, backed, model
from tests.daemon.reviewer_servers import final, route
from tests.review.conflicts import SECRET
from tests.review.service import edited, message, serving

pytestmark = pytest.mark.anyio

BODY = ["MIIEpAIBAAKCAQEA" + LONG[:48], *(f"{n:02}{LONG[n:]}{LONG}"[:64] for n in range(30)), "Zm9vYmFy/w=="]
KEY = ["-----BEGIN RSA PRIVATE " + "KEY-----", *BODY, "-----END RSA PRIVATE " + "KEY-----"]
AS_IT_IS_SAID = json.dumps({"verdict": "current", "regions": [], "reason": "fine"})
AS_IT_IS = message("openai", AS_IT_IS_SAID)


def asking(url: str) -> str:
    """A policy that has one model asked, and hides nothing from agents."""
    return route("quick") + model("quick", url, "openai") + SHOWN


async def conflicting(alice: FileAccess, bob: FileAccess, path: str, lines: list[str], old: str, new: list[str]) -> str:
    """Both change one line of a new file; the number of their conflict."""
    await alice.write_file(path, "\n".join(lines) + "\n", mode="create")
    await bob.read_file(path)
    await alice.edit_file(path, [Replacement(search=old, replace=new[0])])
    late = await bob.edit_file(path, [Replacement(search=old, replace=new[1])])
    assert late.conflict is not None, late
    return late.conflict


async def test_of_a_key_nothing_is_sent_wherever_the_conflict_is(base: Path) -> None:
    """Its end, or its beginning and its end, stand further from the region than what is shown around that."""
    seen = base / "seen"
    script = f"import sys; open({str(seen)!r}, 'a').write(sys.stdin.read() + chr(10)); print({AS_IT_IS_SAID!r})"
    argv = json.dumps([sys.executable, "-I", "-c", script])
    policy = route("scribe") + f'[[reviewer]]\nname = "scribe"\nkind = "program"\nargv = {argv}\n{SHOWN}'
    with backed(base, policy) as daemon:
        async with daemon.client("alice") as alice, daemon.client("bob") as bob:
            for number, shape in enumerate(SHAPES.values()):
                key = list(map(shape.format, KEY))
                lines = ["one", "two", *key, "three"]
                above = await conflicting(alice, bob, f"a{number}.txt", lines, "one\n", ["ALICE\n", "BOB\n"])
                await final(bob, above)
                other = [shape.format(f"{name}{LONG}"[:64]) for name in ("alice", "bob")]
                inside = await conflicting(alice, bob, f"b{number}.txt", lines, key[16], other)
                await final(bob, inside)
    requests = seen.read_text().splitlines()
    assert len(requests) == 2 * len(SHAPES)
    for text in requests:
        assert "[redacted:private-key#" in text
        assert not [line for line in (*BODY, "PRIVATE KEY", "alice" + LONG[:40]) if line in text]


async def test_a_line_of_a_key_that_a_model_keeps_is_the_line_that_it_was(base: Path) -> None:
    """Of the twelve lines before it, the line itself as it was, and the twelve after, each has its marker."""
    key = [f"- {line}" for line in KEY]
    mine = f"- ALICE/{LONG}"[:66]
    answer = message("openai", edited((1, ["# kept", "[redacted:private-key#26]"])))
    with (
        serving(answer) as service,
        backed(base, route("quick") + model("quick", service.url, "openai") + SHOWN) as daemon,
    ):
        async with daemon.client("alice") as alice, daemon.client("bob") as bob:
            number = await conflicting(alice, bob, "a.yml", ["x:", *key, "y: 1"], key[16], [mine, f"- BOB/{LONG}"[:66]])
            assert (await final(bob, number)).status == "applied"
        wanted = ["x:", *key[:16], "# kept", mine, *key[17:], "y: 1"]
        assert (daemon.workspace / "a.yml").read_text() == "\n".join(wanted) + "\n"
    assert "ALICE" not in service.asked[0].text


async def test_a_token_in_a_name_a_task_or_a_reason_stays_here(base: Path) -> None:
    tokens = [f"ghp_{letter * 4}{LONG[:36]}" for letter in "ptras"]
    path, task, reason, other, _ = tokens
    with (
        serving(AS_IT_IS) as service,
        backed(base, route("quick") + model("quick", service.url, "openai") + SHOWN) as daemon,
    ):
        async with daemon.client("alice") as alice, daemon.client("bob") as bob:
            name = f"{path}/a.py"
            await alice.write_file(name, "one\n", mode="create")
            await bob.read_file(name)
            await bob.begin_task(f"task {task}")
            await alice.edit_file(name, [Replacement(search="one", replace="alice")], reason=f"as {other} says")
            late = await bob.edit_file(name, [Replacement(search="one", replace="bob")], reason=f"for {reason}")
            assert late.conflict is not None, late
            await final(bob, late.conflict)
    (asked,) = service.asked
    assert not [token for token in (*tokens, SECRET) if token in asked.text]
    assert asked.text.count("[redacted:github-token#") >= 4
    assert "python" in asked.text
