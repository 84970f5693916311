"""Patches over a tree: what they say, and that git can apply them."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.core.content import LineRange
from orchestrator.core.text.file_patch import FileState, file_patch


def state(data: bytes, path: str = "a", mode: int = 0o644) -> FileState:
    return FileState(path, data, mode)


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        pytest.param(
            None,
            state(b"one\n"),
            "diff --git a/a b/a\nnew file mode 100644\n--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+one\n",
            id="created",
        ),
        pytest.param(None, state(b"", mode=0o750), "diff --git a/a b/a\nnew file mode 100755\n", id="empty"),
        pytest.param(state(b""), None, "diff --git a/a b/a\ndeleted file mode 100644\n", id="empty, gone"),
        pytest.param(
            state(b"x"),
            state(b"x\n"),
            "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+x\n",
            id="a last newline",
        ),
        pytest.param(
            state(b"x\r\n"),
            state(b"x\n"),
            "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\r\n+x\n",
            id="line ends",
        ),
        pytest.param(
            state(b"x\n"),
            state(b"x\n", mode=0o755),
            "diff --git a/a b/a\nold mode 100644\nnew mode 100755\n",
            id="executable",
        ),
        pytest.param(state(b"x\n"), state(b"x\n", mode=0o600), "", id="a mode that git does not know"),
        pytest.param(
            state(b"x\n", "a b"),
            state(b"x\n", "ü/c\t"),
            'diff --git a/a b "b/ü/c\\t"\nrename from a b\nrename to "ü/c\\t"\n',
            id="renamed, odd names",
        ),
        pytest.param(
            state(b"x\n"),
            state(b"\0\n"),
            "diff --git a/a b/a\nBinary files a/a and b/a differ\n",
            id="binary",
        ),
        pytest.param(
            None,
            state(b"\0\n"),
            "diff --git a/a b/a\nnew file mode 100644\nBinary files /dev/null and b/a differ\n",
            id="binary, created",
        ),
    ],
)
def test_what_a_patch_says(old: FileState | None, new: FileState | None, text: str) -> None:
    patch = file_patch(old, new)
    assert patch.text == text
    assert patch.binary == ("Binary" in text)


def test_what_a_patch_counts_and_shows() -> None:
    before = [f"{n}\n" for n in range(1, 41)]
    after = [*before[:9], "++ new\n", *before[9:29], *before[30:]]
    patch = file_patch(state("".join(before).encode()), state("".join(after).encode()), context=2)
    assert (patch.added, patch.removed) == (1, 1)
    assert patch.shown == (LineRange(8, 12), LineRange(29, 32))
    assert patch.total_lines == 40
    assert file_patch(None, state(b"a\rb\n")).shown == ()


NAMES = ["a", "b c", "d/e", "d/e f", "ü", 'q"q', "t\tt", "back\\slash", "d/\U0001f600", "-x", " lead", "n\nn"]
ENDS = ["\n", "\r\n", ""]
TEXTS = st.lists(st.sampled_from(["x", "y", "", "- a", "+++ b", "\ufeff", "é", "@@ -1 +1 @@", "\\ No"]), max_size=12)


@st.composite
def contents(draw: st.DrawFn) -> bytes:
    end = draw(st.sampled_from(ENDS[:2]))
    return (end.join(draw(TEXTS)) + draw(st.sampled_from(ENDS))).encode()


FILES = st.dictionaries(st.sampled_from(NAMES), st.tuples(contents(), st.sampled_from([0o644, 0o755])), max_size=6)


def write(root: Path, tree: dict[str, tuple[bytes, int]]) -> None:
    for name, (data, mode) in tree.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(mode)


def read(root: Path) -> dict[str, tuple[bytes, int]]:
    found = (path for path in root.rglob("*") if path.is_file())
    return {str(path.relative_to(root)): (path.read_bytes(), path.stat().st_mode & 0o100) for path in found}


@given(old=FILES, new=FILES, data=st.data(), context=st.sampled_from([0, 1, 3]))
@settings(max_examples=60, deadline=None)
def test_git_applies_it(
    old: dict[str, tuple[bytes, int]], new: dict[str, tuple[bytes, int]], data: st.DataObject, context: int
) -> None:
    if any(content and not content.endswith(b"\n") for content, _ in (*old.values(), *new.values())):
        context = max(context, 1)  # git takes such a line for an earlier equal one, in patches of its own as well
    gone, come = sorted(old.keys() - new.keys()), sorted(new.keys() - old.keys())
    renames = list(zip(gone, come, strict=False)) if data.draw(st.booleans()) else []
    pairs = [(name, name) for name in sorted(old.keys() | new.keys()) if (name not in {n for p in renames for n in p})]
    patch = ""
    for source, target in [*pairs, *renames]:
        before = FileState(source, *old[source]) if source in old else None
        after = FileState(target, *new[target]) if target in new else None
        if before != after:
            patch += file_patch(before, after, context=context).text
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write(root, old)
        if patch:
            done = subprocess.run(
                ["git", "apply", "--unidiff-zero", "--whitespace=nowarn", "-"],
                cwd=root,
                input=patch.encode(),
                env={"PATH": "/usr/bin:/bin", "GIT_CEILING_DIRECTORIES": str(root.parent)},
                capture_output=True,
                check=False,
            )
            assert done.returncode == 0, (done.stderr.decode(), patch)
        assert read(root) == {name: (data, mode & 0o100) for name, (data, mode) in new.items()}
