"""search_content by meaning, through the real daemon: a model in a folder, a service on loopback, and neither."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from orchestrator.api.results import SearchResult
from orchestrator.clients.python import FileAccess, RemoteError, Replacement
from orchestrator.servers.blocks import text_block
from tests.daemon.cli import cli
from tests.daemon.daemon_process import RunningDaemon
from tests.semantic.models import embedding_service, model_folder

pytestmark = pytest.mark.anyio

KEY = "sk-embed-0123456789abcdef"
TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"

AUTH = """\
def allowed(name, given):
    \"\"\"Whether a credential is right.\"\"\"
    found = lookup(name)
    if found is None:
        return False
    return authenticate(found, given)


def shade(thing):
    \"\"\"Red or green.\"\"\"
    value = thing.paint
    if value:
        return value
    return "red"
"""
SEND = "def send():\n    for attempt in range(3):\n        resend()\n    return 1\n"


class Embedding(RunningDaemon):
    """A daemon that was handed a service's key."""

    @property
    def variables(self) -> dict[str, str]:
        return {"EMBED_KEY": KEY}

    def write(self, settings: str, more: str = "") -> None:
        text = f'name = "ours"\nextends = "default"\n{more}\n[semantic]\n{settings}\n'
        (self.state_dir / "policy.toml").write_text(text)


@contextmanager
def embedding(base: Path, settings: str, more: str = "", *options: str) -> Iterator[Embedding]:
    daemon = Embedding(base)
    daemon.write(settings, more)
    (daemon.workspace / "auth.py").write_text(AUTH)
    (daemon.workspace / "send.py").write_text(SEND)
    (daemon.workspace / ".env").write_text("password=hunter2\n")
    daemon.start(*options)
    try:
        yield daemon
    finally:
        assert daemon.stop() == 0, daemon.log[-4000:]
        assert '"level": "error"' not in daemon.log, daemon.log[-4000:]
        assert "Traceback" not in daemon.log, daemon.log[-4000:]


def folder(base: Path) -> str:
    return f'model = "{model_folder(base / "model")}"'


def service(url: str) -> str:
    return f'base_url = "{url}"\nservice_model = "tiny"\napi_key_env = "EMBED_KEY"'


async def found(client: FileAccess, pattern: str, *, path: str = ".", max_results: int = 20) -> SearchResult:
    """What is found once the index is current; each call waits for it for a while."""
    with anyio.fail_after(120):
        while True:
            try:
                answer = await client.search_content(pattern, path=path, mode="semantic", max_results=max_results)
            except RemoteError as error:
                if error.code != "embedding_failed" or "being loaded" not in error.message:
                    raise
                continue
            if not answer.partial:
                return answer


def places(answer: SearchResult) -> list[tuple[str, int, str]]:
    return [(hit.path, hit.line, hit.match_type) for hit in answer.hits]


async def test_what_means_the_same_is_found_and_what_is_written_so_comes_first(base: Path) -> None:
    with embedding(base, folder(base)) as daemon:
        (daemon.workspace / "notes.txt").write_text("shopping\n\n\nthe login page, password and all\n")
        (daemon.workspace / "other.txt").write_text("the password\n")
        async with daemon.client("alice") as alice:
            answer = await found(alice, "password")
            assert set(places(answer)[:2]) == {("notes.txt", 4, "exact"), ("other.txt", 1, "exact")}
            assert places(answer)[2:] == [("auth.py", 1, "semantic")]
            last = answer.hits[2]
            assert last.context == "allowed, lines 1-8"
            assert "authenticate" in last.text
            assert 0.9 < last.score <= 1
            assert answer.versions["auth.py"]
            block = text_block(answer)
            assert block is not None
            assert "3 nearest places in 4 files searched; policy left out 1 file" in block
            edited = await alice.edit_file("auth.py", [Replacement(search="is None", replace="is not True")])
            assert edited.base == answer.versions["auth.py"], "the lines that a hit shows are a base"
            one = await found(alice, "colour", path="auth.py")
            assert places(one) == [("auth.py", 9, "semantic")]
            assert places(await found(alice, "colour", path="send.py")) == []
            first = await found(alice, "password", max_results=1)
            assert (len(first.hits), first.truncated) == (1, True)
            entries = (await alice.journal_query(kind="content_searched")).entries
            assert len(entries) >= 4
        ended, said = cli(daemon, "search", "how is it tried again", "--mode", "semantic")
        assert (ended, "send.py:1:def send():" in said) == (0, True)
        assert "semantic:   ready: 4 contents in" in cli(daemon, "status")[1]


async def test_the_index_follows_the_files(base: Path) -> None:
    with embedding(base, folder(base)) as daemon:
        pay, paid = daemon.workspace / "pay.py", daemon.workspace / "paid.py"
        async with daemon.client("alice") as alice:
            assert places(await found(alice, "payment")) == []
            await alice.write_file("pay.py", "def bill():\n    return 1\n", mode="create")
            assert places(await found(alice, "payment")) == [("pay.py", 1, "semantic")]
            await alice.move_file("pay.py", "paid.py")
            assert places(await found(alice, "payment")) == [("paid.py", 1, "semantic")]
            await alice.edit_file("paid.py", [Replacement(search="bill", replace="paint")])
            assert places(await found(alice, "payment")) == []
            assert places(await found(alice, "green"))[0] == ("auth.py", 10, "exact")
            await alice.delete_file("paid.py")
            await alice.write_file("pay.py", "a bill\n", mode="create")
            assert places(await found(alice, "payment")) == [("pay.py", 1, "semantic")]
            pay.rename(paid)  # by another program
            assert [path for path, _, _ in places(await found(alice, "payment"))] in ([], ["paid.py"])
            await alice.read_file("paid.py")
            assert places(await found(alice, "payment")) == [("paid.py", 1, "semantic")]
        size = (daemon.state_dir / "semantic.db").stat().st_size
        daemon.kill()
        daemon.start()
        async with daemon.client("alice") as alice:
            assert places(await found(alice, "payment")) == [("paid.py", 1, "semantic")]
        assert (daemon.state_dir / "semantic.db").stat().st_size == size


async def test_a_passage_of_a_file_that_is_another_by_now_is_not_shown(base: Path) -> None:
    with embedding(base, folder(base), "", "--no-watch") as daemon:
        async with daemon.client("alice") as alice:
            assert places(await found(alice, "tried again")) == [("send.py", 1, "semantic")]
            (daemon.workspace / "send.py").write_text("nothing of the kind\n")
            answer = await alice.search_content("tried again", mode="semantic")
            assert (answer.hits, answer.partial) == ((), True)
            assert places(await found(alice, "tried again")) == []


HIDES = """
[[rule]]
name = "not for models"
agents = ["class:cloud"]
actions = ["read", "search"]
paths = ["auth.py"]
verdict = "deny"
"""


async def test_a_service_gets_no_secret_and_nothing_that_policy_keeps_from_cloud_agents(base: Path) -> None:
    with embedding_service() as asked, embedding(base, service(asked.url), HIDES) as daemon:
        (daemon.workspace / "keys.md").write_text(f"# {TOKEN}\n\nthe secret {TOKEN}\n")
        async with daemon.client("alice") as alice:
            assert places(await found(alice, f"login {TOKEN}")) == [("keys.md", 1, "semantic")]
            assert places(await found(alice, "retry")) == [("send.py", 1, "semantic")]
        sent = "\n".join(asked.texts)
        assert "resend()" in sent
        assert "[redacted:github-token#" in sent
        assert not [kept for kept in (TOKEN, "hunter2", "authenticate", "thing.paint") if kept in sent]
        assert asked.keys == {f"Bearer {KEY}"}
        kept = (daemon.state_dir / "semantic.db").read_bytes() + daemon.log.encode()
        assert not [secret for secret in (TOKEN, KEY) if secret.encode() in kept]


async def test_only_what_changed_is_sent_and_a_failure_is_told_and_tried_again(base: Path) -> None:
    with embedding_service() as asked, embedding(base, service(asked.url)) as daemon:
        async with daemon.client("alice") as alice:
            assert places(await found(alice, "retry")) == [("send.py", 1, "semantic")]
            before = list(asked.texts)
            assert len([text for text in before if "def " in text]) == 3
            await alice.write_file("copy.py", SEND, mode="create")
            await found(alice, "retry")
            assert asked.texts == [*before, "retry"], "the same content is not embedded again"
            asked.broken = 400
            with pytest.raises(RemoteError) as error:
                await found(alice, "payment")
            assert (error.value.code, KEY in error.value.message) == ("embedding_failed", False)
            await alice.write_file("pay.py", "def bill():\n    return 1\n", mode="create")
            with pytest.raises(RemoteError):
                await found(alice, "payment")
            async with daemon.client() as person:
                assert (await person.status()).health.semantic.startswith("failing: ")
            asked.broken = 0
            assert places(await found(alice, "payment")) == [("pay.py", 1, "semantic")]


async def test_what_policy_hides_later_leaves_the_index(base: Path) -> None:
    with embedding(base, folder(base)) as daemon:
        async with daemon.client("alice") as alice, daemon.client() as person:
            assert places(await found(alice, "password"))[0][0] == "auth.py"
            daemon.write(folder_of(base), HIDES.replace("class:cloud", "*"))
            answer = await found(alice, "password")
            assert (answer.hits, answer.files_left_out) == ((), 2)
            await found(alice, "retry")
            assert (await person.status()).health.semantic.startswith("ready: 1 content in")
            daemon.write(folder_of(base), HIDES.replace("class:cloud", "alice"))
            assert places(await found(person, "password"))[0][0] == "auth.py"
            assert places(await found(alice, "password")) == [], "in the index, and not for her"


def folder_of(base: Path) -> str:
    return f'model = "{base / "model"}"'


@pytest.mark.parametrize(("settings", "why"), [
    pytest.param("", "no model is set up", id="not set up"),
    pytest.param('model = "/none"', "/none holds no model2vec model", id="no model"),
    pytest.param('base_url = "https://127.0.0.1:1/v1"\napi_key_env = "OTHER_KEY"', "OTHER_KEY is not set", id="no key"),
])  # fmt: skip
async def test_without_a_model_it_says_how_to_turn_it_on(base: Path, settings: str, why: str) -> None:
    with embedding(base, settings) as daemon:
        async with daemon.client("alice") as alice, daemon.client() as person:
            with pytest.raises(RemoteError) as error:
                await found(alice, "password")
            assert (error.value.code, why in error.value.message) == ("semantic_search_off", True), error.value.message
            assert "[semantic]" in (error.value.hint or "")
            assert (await person.status()).health.semantic.partition(":")[0] == "off"
            assert (await alice.search_content("credential")).total == 1
            daemon.write(folder(base))
            assert places(await found(alice, "password")) == [("auth.py", 1, "semantic")]


@pytest.mark.parametrize("parameter", [
    {"word": True}, {"invert": True}, {"count_only": True}, {"at": "@1"}, {"cursor": "x"}, {"max_edits": 1},
])  # fmt: skip
async def test_parameters_that_are_not_about_meaning(daemon: RunningDaemon, parameter: dict[str, object]) -> None:
    async with daemon.client("alice") as alice:
        with pytest.raises(RemoteError) as error:
            await alice.search_content("x", mode="semantic", **parameter)  # type: ignore[arg-type]
    assert (error.value.code, error.value.details["parameter"]) == ("invalid_parameter", *parameter)
