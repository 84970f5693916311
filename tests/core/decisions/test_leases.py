"""Wishes for leases: granted, renewed or taken; and whether globs overlap."""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.errors import NotPermitted, VersionUnknown
from orchestrator.core.events.sessions import LeaseGranted, LeaseMode, LeaseReleased, LeaseRenewed
from orchestrator.core.globs import Globs
from orchestrator.core.ids import AgentName, Seq, SessionId, WorkspacePath
from orchestrator.core.leases import Lease, overlap, release, reserve

ALICE, BOB = AgentName("alice"), AgentName("bob")
S1, S2 = SessionId("s-1"), SessionId("s-2")
EXCLUSIVE: LeaseMode = "exclusive"
SHARED: LeaseMode = "shared"


def held(
    seq: int = 7,
    agent: AgentName = BOB,
    session: SessionId = S2,
    globs: tuple[str, ...] = ("src",),
    mode: LeaseMode = EXCLUSIVE,
) -> Lease:
    return Lease(Seq(seq), 0, agent, session, globs, mode, 100)


class Request(NamedTuple):
    wanted: LeaseGranted
    session: SessionId

    def decided(
        self, live: list[Lease], known: tuple[WorkspacePath, ...]
    ) -> LeaseGranted | LeaseRenewed | tuple[Lease, ...]:
        return reserve(self.wanted, ALICE, self.session, live, known)


def request(*globs: str, mode: LeaseMode = EXCLUSIVE, session: SessionId = S1) -> Request:
    return Request(granted(mode, *globs), session)


def granted(mode: LeaseMode = EXCLUSIVE, *globs: str) -> LeaseGranted:
    return LeaseGranted(globs=globs or ("src",), mode=mode, expires_at=900, task=Seq(3), reason="why")


RENEWED = LeaseRenewed(lease=Seq(7), expires_at=900)


@pytest.mark.parametrize(
    ("given_", "when", "then"),
    [
        pytest.param([], request(), granted(), id="nobody is there"),
        pytest.param([held()], request(), (held(),), id="exclusive against exclusive"),
        pytest.param([held(mode=SHARED)], request(), (held(mode=SHARED),), id="exclusive against shared"),
        pytest.param([held()], request(mode=SHARED), (held(),), id="shared against exclusive"),
        pytest.param([held(mode=SHARED)], request(mode=SHARED), granted(SHARED), id="shared beside shared"),
        pytest.param([held(globs=("doc",))], request(), granted(), id="elsewhere"),
        pytest.param([held(5), held(6)], request(), (held(5), held(6)), id="all clashes, oldest first"),
        pytest.param([held(agent=ALICE, session=S1)], request(), RENEWED, id="the same again"),
        pytest.param([held(5), held(7, ALICE, S1)], request(), RENEWED, id="the same again, whoever came in beside it"),
        pytest.param([held(agent=ALICE, session=S2)], request(), granted(), id="own, of another session: one more"),
        pytest.param([held(agent=ALICE, session=S1, mode=SHARED)], request(), granted(), id="own, of another mode"),
        pytest.param([held(agent=ALICE, session=S1, globs=("src", "x"))], request(), granted(), id="own, other globs"),
    ],
)
def test_reserve(given_: list[Lease], when: Request, then: object) -> None:
    assert when.decided(given_, ()) == then


def test_known_files_report_what_patterns_do_not() -> None:
    lease, path = held(globs=("docs",)), WorkspacePath("src/docs/a.md")
    assert request("src").decided([lease], ()) == granted(EXCLUSIVE, "src")
    assert request("src").decided([lease], (path,)) == (lease,)


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        pytest.param("src/a.py", "src/a.py", True, id="equal"),
        pytest.param("src/a.py", "src/b.py", False, id="two files"),
        pytest.param("src", "src/api/x.py", True, id="a directory and a file in it"),
        pytest.param("src/", "src/api/**", True, id="a directory and a pattern in it"),
        pytest.param("/src/*", "/srcs/*", False, id="components, not characters"),
        pytest.param("src/**", "doc/**", False, id="two directories"),
        pytest.param("*.py", "src/**", True, id="any depth and a directory"),
        pytest.param("*.py", "*.md", True, id="endings are not looked into"),
        pytest.param("*.py", "*", True, id="any name"),
        pytest.param("src/*.py", "src/**/a.py", True, id="one could be the other"),
        pytest.param("src", "docs/", False, id="two names"),
        pytest.param("src", "src/", True, id="one name"),
        pytest.param("src", "/docs/**", False, id="a name and another directory"),
        pytest.param("api", "src/api/**", True, id="a name and a directory below that bears it"),
        pytest.param("a.py", "src/a.py", True, id="a name at any depth"),
        pytest.param("a.py", "src/**", True, id="a file at any depth, and a directory"),
        pytest.param("a.py", "src/*/a.py", True, id="a file at any depth, and in some directory"),
        pytest.param("a.py", "src/", True, id="a file at any depth, and a directory by its name"),
        pytest.param("a.py", "src/b.py", False, id="a file at any depth, and another one"),
        pytest.param("/a.py", "src/a.py", False, id="a name in the root"),
        pytest.param("Makefile", "*.py", True, id="a name without a dot may be a directory"),
        pytest.param(".github", "*.yml", True, id="a dot in front"),
        pytest.param("*.[ch]", "*.c", True, id="a set of characters"),
        pytest.param(r"\*.py", "a.py", True, id="an escape: not looked into"),
        pytest.param("a.py", "b.py", False, id="two names of files"),
        pytest.param("!src/gen", "src/gen/x", True, id="only an exception means everything"),
    ],
)
def test_overlap(one: str, other: str, meet: bool) -> None:
    assert overlap((one,), (other,), among=()) is meet
    assert overlap((other,), (one,), among=()) is meet


def test_exceptions_do_not_keep_apart() -> None:
    assert overlap(("src", "!src/gen"), ("src/gen",), among=())


parts = st.sampled_from(["src", "gen", "*", "**", "a*", "?b", "*.py", "a.py", "x.md", "[ab].py", ".x"])
globs = st.lists(
    st.builds(
        lambda mark, pieces, end: mark + "/".join(pieces) + end,
        st.sampled_from(["", "/"]),
        st.lists(parts, min_size=1, max_size=3),
        st.sampled_from(["", "", "/"]),
    ),
    min_size=1,
    max_size=2,
).map(tuple)
names = st.sampled_from(["src", "gen", "ab", "b", "a.py", "b.py", "x.md", ".x", "a.pyc"])
files = st.lists(names, min_size=1, max_size=4).map(lambda pieces: WorkspacePath("/".join(pieces)))


@given(one=globs, other=globs, file=files)
def test_no_file_is_meant_by_two_sets_that_do_not_overlap(
    one: tuple[str, ...], other: tuple[str, ...], file: WorkspacePath
) -> None:
    """But for what only known files tell: a directory named like a file, and a bare name further down."""
    in_dotted = any(re.search(r".\.", part) for part in file.split("/")[:-1])
    further_down = {glob.rstrip("/") for glob in (*one, *other)} & set(file.split("/")[1:])
    if not in_dotted and not further_down and Globs(one).match(file) and Globs(other).match(file):
        assert overlap(one, other, among=())


@given(one=globs, other=globs, file=files)
def test_a_known_file_of_both_always_reports(one: tuple[str, ...], other: tuple[str, ...], file: WorkspacePath) -> None:
    if Globs(one).match(file):
        assert overlap(one, other, among=(file,)) or not Globs(other).match(file)


# --- giving back --------------------------------------------------------------------------


def test_release() -> None:
    lease, done = held(agent=ALICE, session=S2), LeaseReleased(lease=Seq(7), by="alice")
    assert release(lease, Seq(7), by=ALICE, person=False) == done
    assert release(lease, Seq(7), by=BOB, person=True) == LeaseReleased(lease=Seq(7), by="bob")
    with pytest.raises(NotPermitted, match="@7 is held by alice"):
        release(lease, Seq(7), by=BOB, person=False)
    with pytest.raises(VersionUnknown, match="@8 is no lease"):
        release(None, Seq(8), by=ALICE, person=False)
