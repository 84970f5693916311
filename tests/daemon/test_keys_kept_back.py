"""No answer, refusal, conflict, notice or diff shows a line of a private key, wherever in the key it begins."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from orchestrator.clients.python import FileAccess, RemoteError, Replacement
from tests.core.text.secret_samples import LONG, SHAPES
from tests.daemon.daemon_process import RunningDaemon

pytestmark = pytest.mark.anyio

BODY = [
    "MIIEpAIBAAKCAQEA" + LONG[:48],
    *(f"{n:02}{LONG[n:]}{LONG}"[:64] for n in range(30)),
    LONG[9:41] + "Zm9vYmFy/w==",
]
KEY = ["-----BEGIN RSA PRIVATE " + "KEY-----", *BODY, "-----END RSA PRIVATE " + "KEY-----"]
HEAD = [f"head {n}" for n in range(1, 6)]
LAST = len(HEAD) + len(KEY)  # the line of END


@pytest.fixture
async def alice(large: RunningDaemon) -> AsyncIterator[FileAccess]:
    async with large.client("alice") as files:
        yield files


def text(shape: str, tail: str = "") -> str:
    return "\n".join([*HEAD, *map(shape.format, KEY), *(f"{tail}tail {n}" for n in range(1, 20))]) + "\n"


def parts_of_key(said: str) -> list[str]:
    return [line for line in BODY if any(line[at : at + 20] in said for at in range(0, len(line) - 19, 4))]


async def shown(files: FileAccess, operation: str, **params: Any) -> str:
    """All of an answer, or of a refusal."""
    try:
        return repr(await getattr(files, operation)(**params))
    except RemoteError as refused:
        return repr((refused.code, str(refused), refused.details, refused.shown))


def patch(path: str, *rows: str) -> str:
    return f"--- a/{path}\n+++ b/{path}\n@@ -{LAST},{len(rows)} +{LAST},{len(rows)} @@\n" + "".join(
        f"{x}\n" for x in rows
    )


@pytest.mark.parametrize("shape", ["{}", *SHAPES.values()], ids=["plain", *SHAPES])
async def test_in_no_refusal_of_an_edit(large: RunningDaemon, alice: FileAccess, shape: str) -> None:
    (large.workspace / "k.txt").write_text(text(shape))
    edits: list[tuple[str, Any]] = [
        ("expect_mismatch", Replacement(start=17, end=17, expect="zz", replace="q")),
        ("expect_mismatch", Replacement(start=10, end=20, expect="zz", replace="q")),
        ("expect_mismatch", Replacement(start=LAST + 1, end=LAST + 1, expect="zz", replace="q")),
        ("search_not_found", Replacement(search="tail 1x\nfoo", replace="q")),
        ("search_not_found", Replacement(search=shape.format(BODY[9])[:-4] + "zz", replace="q")),
        ("search_ambiguous", Replacement(search="tail 1\n", replace="q", expected_count=2)),
    ]
    for code, change in edits:
        said = await shown(alice, "edit_file", path="k.txt", changes=[change])
        assert code in said
        assert "as it is now" in said
        assert parts_of_key(said) == []
    said = await shown(
        alice, "apply_patch", patch=patch("k.txt", " nothing like it", "-tail 1x", "+tail one", " tail 2")
    )
    assert parts_of_key(said) == []


async def test_in_no_refusal_of_an_edit_of_a_large_file(large: RunningDaemon, alice: FileAccess) -> None:
    (large.workspace / "app.log").write_text(text("{}") + "filler\n" * 100_000)
    for line in (8, 20, 30, LAST, LAST + 1):
        change = Replacement(start=line, end=line, expect="zz", replace="q")
        said = await shown(alice, "edit_file", path="app.log", changes=[change])
        assert "expect_mismatch" in said
        assert "as it is now" in said
        assert parts_of_key(said) == []


@pytest.mark.parametrize("shape", ["{}", *SHAPES.values()], ids=["plain", *SHAPES])
async def test_in_no_conflict_notice_or_diff(large: RunningDaemon, alice: FileAccess, shape: str) -> None:
    file = large.workspace / "k.txt"
    file.write_text(text(shape))
    (large.workspace / "a.txt").write_text("a\n")
    read = await alice.read_file("k.txt")
    file.write_text(text(shape, "new "))
    late: dict[str, Any] = {"path": "k.txt", "base": read.version_id}
    said = [await shown(alice, "edit_file", **late, changes=[Replacement(search="tail 2", replace="mine")])]
    assert "where the change conflicts" in said[0]
    said += [await shown(alice, "list_conflicts"), await shown(alice, "list_conflicts", contents=True)]
    other = text(shape, "new ").replace(BODY[12], BODY[12][::-1]).replace("new tail 1\n", "new\n")
    file.write_text(other.replace("new tail 19\n", ""))
    said += [await shown(alice, "read_file", path="a.txt")]
    assert "notices" in said[-1]
    said += [await shown(alice, "get_diff", **span) for span in ({}, {"path": "k.txt"}, {"from_": "@1"})]
    again = await alice.read_file("k.txt")
    file.write_text(other)
    change = Replacement(search="new\n", replace="newer\n")
    applied = await alice.edit_file("k.txt", [change], base=again.version_id)
    assert applied.diff is not None
    assert "newer" in applied.diff
    said += [repr(applied), await shown(alice, "revert", change=applied.change, preview=True)]
    for answer in said:
        assert parts_of_key(answer) == []
        assert BODY[12][::-1][:30] not in answer
    async with large.client() as person:
        assert BODY[13] in (await person.get_diff("k.txt", from_="@1")).diff


@pytest.mark.parametrize("shape", ["{}", *SHAPES.values()], ids=["plain", *SHAPES])
async def test_in_no_part_of_a_line_of_a_large_file(large: RunningDaemon, alice: FileAccess, shape: str) -> None:
    (large.workspace / "app.log").write_text(text(shape) + "filler\n" * 100_000)
    for number in range(len(HEAD) + 1, LAST + 1):
        for column in (1, 6, 20):
            part = await alice.read_file("app.log", start=number, column=column)
            assert parts_of_key(part.text) == []
            assert part.redactions
    assert (await alice.read_file("app.log", start=LAST + 1, column=2)).text.endswith("ail 1\n")


LONG_BODY = [f"{n:03}{LONG[n % 50 :]}{LONG}"[:64] for n in range(200)]  # as of an RSA key of 16384 bits


def parts_of_long_key(said: str) -> list[str]:
    return [line for line in LONG_BODY if line[:30] in said or line[34:] in said]


@pytest.mark.parametrize(("before", "end"), [
    pytest.param(0, "\\n", id="at the beginning"),
    pytest.param(3_000, "\\n", id="near the beginning"),
    pytest.param(70_000, "\\r\\n", id="with two escapes"),
    pytest.param(70_000, "", id="without line ends"),
    pytest.param(1_048_576 - 1_700, "\\n", id="over the end of a piece"),
    pytest.param(1_048_576 - 9_000, "", id="near the end of a piece"),
])  # fmt: skip
async def test_in_no_part_of_a_long_line(large: RunningDaemon, alice: FileAccess, before: int, end: str) -> None:
    head, pad = "é y " * (before // 5), "z " * 200_000
    key = end.join(["-----BEGIN RSA PRIVATE " + "KEY-----", *LONG_BODY, "-----END RSA PRIVATE " + "KEY-----"])
    (large.workspace / "k.json").write_text(f'{{"a": "{head}","key":"{key}","pad":"{pad}"}}\n')
    at = len(head) + 16
    said = [(await alice.read_file("k.json", start=-1, column=at + n)).text for n in range(1, 14_000, 1_000)]
    for pattern in ("END RSA", "pad", "z z z", LONG_BODY[10][:20], LONG_BODY[150][-20:], "key"):
        for mode in ("exact", "regex", "fuzzy"):
            said.append(await shown(alice, "search_content", pattern=pattern, path="k.json", mode=mode))
            said.append(await shown(alice, "search_content", pattern=pattern, mode=mode))
    said.append(await shown(alice, "search_content", pattern=r"KEY-----.\Sn?", path="k.json", mode="regex"))
    for answer in said:
        assert parts_of_long_key(answer) == []
    assert '"pad":"z z' in (await alice.search_content("pad", path="k.json")).hits[0].text
    assert (await alice.read_file("k.json", start=-1, column=at + 60_000)).text.startswith(
        ("     1\tz z", "     1\t z z")
    )


async def test_in_no_part_of_a_long_line_between_the_ends_of_a_key(large: RunningDaemon, alice: FileAccess) -> None:
    lines = ["-----BEGIN PRIVATE " + "KEY-----", "".join(LONG_BODY), "-----END PRIVATE " + "KEY-----"]
    (large.workspace / "k.txt").write_text("\n".join([*lines, "filler\n" * 100_000]))
    for column in (1, 3_000, 9_000, 12_700):
        assert parts_of_long_key((await alice.read_file("k.txt", start=2, column=column)).text) == []


async def test_of_a_key_that_others_bring_one_line_does_not_tell(large: RunningDaemon, alice: FileAccess) -> None:
    file = large.workspace / "k.txt"
    file.write_text(f"{KEY[0]}\npaste here\n\nrest\n")
    read = await alice.read_file("k.txt")
    assert "paste here" in read.text
    file.write_text(f"{KEY[0]}\n{BODY[5]}\n\nrest\n")
    tree = await alice.get_diff(from_=read.version_id or "", to="working", context_lines=0)
    assert "-paste here" in tree.diff
    assert parts_of_key(repr(tree)) == []
    async with large.client() as person:
        assert BODY[5] in (await person.get_diff(from_=read.version_id or "", context_lines=0)).diff


async def test_in_no_notice_of_a_line_that_others_changed(large: RunningDaemon, alice: FileAccess) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    file = large.workspace / "k.txt"
    file.write_text(f"token goes here\n{KEY[0]}\npaste here\n\nrest\n")
    assert "paste here" in (await alice.read_file("k.txt")).text
    file.write_text(f"token = {token}\n{KEY[0]}\n{BODY[5]}\n\nrest\n")
    await alice.file_info("k.txt")
    (notice,) = alice.take_notices()
    assert notice.diff is not None
    for row in ("-paste here\n+[redacted:", "-token goes here\n+token = [redacted:"):
        assert row in notice.diff
    assert parts_of_key(repr(notice)) == []
    assert token not in repr(notice)
    assert notice.diff_truncated
