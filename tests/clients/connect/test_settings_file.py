"""Each client's files: empty, holding a person's own settings, broken; merged into and brought back."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from orchestrator.clients.connect import settings_file
from orchestrator.clients.connect.hook_settings import HOOKED
from orchestrator.clients.connect.settings_document import holds, parse, written
from orchestrator.clients.connect.settings_file import SettingsRefused, merged, restored
from orchestrator.clients.connect.templates import TEMPLATES, ClientFile, Setting, Target

TO = Target(
    workspace='/home/you/my "best" project\'s',
    home="/home/you",
    command=("/usr/bin/orchestrator", "mcp", "--workspace", '/home/you/my "best" project\'s', "--agent", "x"),
    denied=(".env", "**/.aws/credentials"),
)
FILES = [
    pytest.param(file, id=f"{client}, {Path(file.path).name}")
    for client, template in TEMPLATES.items()
    for file in template.files(TO)
]
EVERY_FILE = pytest.mark.parametrize("file", FILES)


def data(text: str | None, file: ClientFile) -> Any:
    return tomllib.loads(text or "") if file.form == "toml" else json.loads(text or "{}")


def of_a_person(file: ClientFile) -> str:
    """Settings beside ours, in every table and list that ours go into; with comments where the format has them."""
    if file.form == "toml":
        return (
            '# mine\nmodel = "m"  # the best\n\n[features]\nweb_search = true # keep\n\n[mcp_servers.files]\n'
            'command = "files"\n\n[projects."/else"]\ntrust_level = "untrusted"\n'
        )
    document: dict[str, Any] = {"theme": "dark"}
    for setting in file.settings:
        *above, last = setting.keys
        table = document
        for key in above:
            table = table.setdefault(key, {})
            table["mine"] = {"a": [1.5, None, "ü"]}
        if setting.adds:
            table[last] = ["mine"]
    return json.dumps(document, indent="\t", ensure_ascii=False) + "\n"


@EVERY_FILE
@pytest.mark.parametrize("empty", [None, "", "\n"])
def test_nothing_was_there(file: ClientFile, empty: str | None) -> None:
    text = merged(empty, file)
    assert text is not None
    assert all(holds(data(text, file), setting) for setting in file.settings)
    assert merged(text, file) == text
    assert restored(text, empty, file) == (empty, ())


@EVERY_FILE
def test_what_a_person_wrote_stays(file: ClientFile) -> None:
    before = of_a_person(file)
    text = merged(before, file)
    assert text is not None
    for line in before.splitlines():
        assert line.rstrip(",") in {each.rstrip(",") for each in text.splitlines()}
    assert all(holds(data(text, file), setting) for setting in file.settings)
    assert merged(text, file) == text
    assert restored(text, before, file) == (before, ())


@EVERY_FILE
def test_what_a_person_added_since_stays(file: ClientFile) -> None:
    before = of_a_person(file)
    text = merged(before, file)
    assert text is not None
    added = f'{text}\n[later]\nkey = "v"\n' if file.form == "toml" else text.replace("{\n", '{\n\t"later": "v",\n', 1)
    after, kept = restored(added, before, file)
    assert kept == ()
    assert {"later"} == data(after, file).keys() - data(before, file).keys()
    assert all(data(after, file)[key] == value for key, value in data(before, file).items())


@EVERY_FILE
def test_what_a_person_changed_since_stays_and_is_named(file: ClientFile) -> None:
    first = next((setting for setting in file.settings if not setting.adds), None)
    if first is None:
        return  # it has only lists, of which a person's items are not ours
    text = merged(None, file)
    document = parse(text, file.form)
    table: Any = document
    for key in first.keys[:-1]:
        table = table[key]
    table[first.keys[-1]] = "theirs"
    changed = written(document, text, file.form)
    after, kept = restored(changed, None, file)
    assert kept == (first.name,)
    left = data(after, file)
    for key in first.keys[:-1]:
        assert left.keys() == {key}
        left = left[key]
    assert left == {first.keys[-1]: "theirs"}


@EVERY_FILE
def test_what_never_came_into_the_file_is_not_taken_out(file: ClientFile) -> None:
    before = of_a_person(file)
    if file.form == "json":
        before = json.dumps(json.loads(before), separators=(",", ":"))
    assert restored(before, before, file) == (before, ())
    assert restored(before, None, file) == (before, ())


@EVERY_FILE
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("{", id="not ended"),
        pytest.param('{"a":\n', id="not ended, with its line"),
        pytest.param("[broken\n", id="neither form"),
        pytest.param('{\n  // a comment\n  "a": 1\n}\n', id="comments"),
    ],
)
def test_what_can_not_be_read_is_refused_with_what_to_add(file: ClientFile, text: str) -> None:
    with pytest.raises(SettingsRefused, match="line") as refused:
        merged(text, file)
    assert file.path.encode("unicode_escape").decode() in refused.value.message
    assert refused.value.shown == merged(None, file)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("[1]", "no JSON object", id="a list"),
        pytest.param('{"a": 1, "a": 2}', "'a' stands in it twice", id="a name twice"),
        pytest.param('{"tools": []}', "no table at tools", id="a list for a table"),
        pytest.param('{"tools": {"allowed": "x"}}', "no list at tools.allowed", id="a text for a list"),
    ],
)
def test_foreign_documents(text: str, why: str) -> None:
    (file, _) = TEMPLATES["gemini"].files(TO)
    with pytest.raises(SettingsRefused, match=why):
        merged(text, file)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param('{"a": %s}' % ("[" * 20_000 + "]" * 20_000), "nested too deeply", id="too deep to read"),
        pytest.param('{"a": "\\ud800"}', "without changing what else it says", id="no text"),
        pytest.param('mcp_servers.other.command = "x"\n', "without changing what else it says", id="dotted keys"),
        pytest.param("a = %s\n" % ("[" * 20_000 + "]" * 20_000), "nested too deeply", id="TOML too deep to read"),
    ],
)
def test_what_can_not_be_written_is_refused(text: str, why: str) -> None:
    (file, *_) = TEMPLATES["gemini" if text.startswith("{") else "codex"].files(TO)
    with pytest.raises(SettingsRefused, match=why) as refused:
        merged(text, file)
    assert refused.value.shown == merged(None, file)


@pytest.mark.parametrize("number", [0, 1])
def test_tables_in_one_line(number: int) -> None:
    file = TEMPLATES["codex"].files(TO)[number]
    before = (
        'features = {web_search = true}  # mine\nmcp_servers = {o = {command = "x"}}\nprojects = {"/x" = {a = 1}}\n'
    )
    text = merged(before, file)
    assert all(holds(data(text, file), setting) for setting in file.settings)
    assert "  # mine" in (text or "")
    after, kept = restored(f"{text}\n[later]\nx = 1\n", before, file)
    assert (data(after, file), kept) == (data(before, file) | {"later": {"x": 1}}, ())


@EVERY_FILE
def test_line_ends_stay(file: ClientFile) -> None:
    before = of_a_person(file).replace("\n", "\r\n")
    text = merged(before, file) or ""
    assert (text.count("\r\n"), text != before) == (text.count("\n"), True)
    assert data(text, file) == data(merged(of_a_person(file), file), file)


def test_what_somebody_decided_is_not_replaced() -> None:
    (_, trust) = TEMPLATES["codex"].files(TO)
    theirs = (merged(None, trust) or "").replace('"trusted"', '"untrusted"')
    with pytest.raises(SettingsRefused, match="which somebody decided"):
        merged(theirs, trust)


def test_a_file_whose_hooks_can_not_be_counted_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".codex").mkdir()
    deep = '{"a": %s}' % ("[" * 20_000 + "]" * 20_000)
    (tmp_path / ".codex/hooks.json").write_text(deep)
    (file, _) = HOOKED["codex"].files(TO._replace(workspace=str(tmp_path)))
    with pytest.raises(SettingsRefused, match="nested too deeply"):
        merged(deep, file)


def test_what_no_text_can_hold_is_not_written_back() -> None:
    (file, *_) = TEMPLATES["gemini"].files(TO)
    theirs = (merged(None, file) or "").replace("{", '{ "a": "\\ud800",', 1)
    with pytest.raises(SettingsRefused, match="can't be written"):
        restored(theirs, None, file)


def test_a_value_that_was_replaced_comes_back() -> None:
    (file, _) = TEMPLATES["codex"].files(TO)
    before = 'sandbox_mode = "workspace-write" # mine\n'
    text = merged(before, file)
    assert data(text, file)["sandbox_mode"] == "read-only"
    after, kept = restored(f"{text}\n[later]\nx = 1\n", before, file)
    assert (data(after, file), kept) == ({"sandbox_mode": "workspace-write", "later": {"x": 1}}, ())


# --- on the disk -------------------------------------------------------------------------


@pytest.fixture
def one(tmp_path: Path) -> ClientFile:
    return ClientFile(str(tmp_path / ".client" / "settings.json"), "json", (Setting(("a",), 1),), "")


def test_written_and_removed_with_its_folder(one: ClientFile, tmp_path: Path) -> None:
    settings_file.write(one, None, "{}")
    assert Path(one.path).stat().st_mode & 0o777 == 0o600
    Path(one.path).chmod(0o640)
    settings_file.write(one, "{}", '{"a": 1}')
    assert Path(one.path).stat().st_mode & 0o777 == 0o640
    assert [each.name for each in Path(one.path).parent.iterdir()] == ["settings.json"]
    settings_file.write(one, '{"a": 1}', None, folders=1)
    assert [*tmp_path.iterdir()] == []


def test_a_folder_with_something_else_stays(one: ClientFile) -> None:
    settings_file.write(one, None, "{}")
    other = Path(one.path).with_name("other")
    other.touch()
    settings_file.write(one, "{}", None, folders=1)
    assert [*other.parent.iterdir()] == [other]


def test_a_file_that_changed_meanwhile(one: ClientFile) -> None:
    settings_file.write(one, None, "{}")
    with pytest.raises(SettingsRefused, match="was changed while"):
        settings_file.write(one, None, '{"a": 1}')
    assert Path(one.path).read_text() == "{}"


def test_a_file_that_would_take_long(tmp_path: Path) -> None:
    file = ClientFile(str(tmp_path / "config.toml"), "toml", (Setting(("a",), 1),), "")
    Path(file.path).write_text("x = 1\n" + "# \n" * 50_000)
    with pytest.raises(SettingsRefused, match="at most 131072 are merged into"):
        settings_file.read(file)


def test_files_that_are_not_ours_to_write(one: ClientFile, tmp_path: Path) -> None:
    path = Path(one.path)
    path.parent.mkdir()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SettingsRefused, match="is a link to"):
        settings_file.read(one)
    path.unlink()
    path.mkdir()
    with pytest.raises(SettingsRefused, match="is no regular file"):
        settings_file.read(one)
    path.rmdir()
    path.write_bytes(b"\xff")
    with pytest.raises(SettingsRefused, match="is not UTF-8"):
        settings_file.read(one)
    path.chmod(0o400)
    with pytest.raises(SettingsRefused, match="is read-only"):
        settings_file.read(one)
    path.unlink()
    path.parent.rmdir()
    path.parent.symlink_to(tmp_path)
    with pytest.raises(SettingsRefused, match="is a link to"):
        settings_file.read(one)
