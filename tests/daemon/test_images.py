"""Images over MCP, in Python and on the command line: by their first bytes, within a size."""

from __future__ import annotations

import sys
from base64 import b64decode
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from mcp_types import ImageContent, TextContent

from orchestrator.clients.python import RemoteError
from orchestrator.core.images import MOST_IMAGE_BYTES, image_type
from tests.daemon.cli import cli_bytes
from tests.daemon.daemon_process import RunningDaemon

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        pytest.param(PNG, "image/png", id="png"),
        pytest.param(b"\xff\xd8\xff\xe0\0\x10JFIF", "image/jpeg", id="jpeg"),
        pytest.param(b"GIF89a\1\0", "image/gif", id="gif"),
        pytest.param(b"RIFF\1\2\3\4WEBPVP8 ", "image/webp", id="webp"),
        pytest.param(b"RIFF\1\2\3\4WAVEfmt ", None, id="a sound"),
        pytest.param(b"\0\1\2", None, id="something else"),
        pytest.param(b"", None, id="nothing"),
    ],
)
def test_the_kind_of_an_image(data: bytes, kind: str | None) -> None:
    assert image_type(data) == kind


@pytest.mark.anyio
@pytest.mark.parametrize("options", [(), ("--structured",)], ids=["text", "structured"])
async def test_an_image_over_mcp(daemon: RunningDaemon, options: tuple[str, ...]) -> None:
    large = PNG.ljust(MOST_IMAGE_BYTES, b"\0")
    (daemon.workspace / "a.png").write_bytes(large)
    arguments = ["mcp", "--workspace", str(daemon.workspace), "--agent", "alice", *options]
    script = str(Path(sys.executable).with_name("orchestrator"))
    async with Client(StdioServerParameters(command=script, args=arguments, env=daemon.env)) as client:
        answer = await client.call_tool("read_file", {"path": "a.png"})
        text, image = answer.content
        assert isinstance(text, TextContent)
        assert text.text.endswith(f": image/png, {MOST_IMAGE_BYTES} bytes")
        assert isinstance(image, ImageContent)
        assert (image.mime_type, b64decode(image.data)) == ("image/png", large)


@pytest.mark.anyio
async def test_an_image_counts_as_no_lines(daemon: RunningDaemon) -> None:
    (daemon.workspace / "a.png").write_bytes(PNG)
    (daemon.workspace / "large.png").write_bytes(PNG.ljust(MOST_IMAGE_BYTES + 1, b"\0"))
    (daemon.workspace / "fake.png").write_bytes(b"\0\1\2")
    async with daemon.client("alice") as alice:
        text = await alice.read_file("a.png")
        assert text.image is not None
        assert text.image.data == PNG
        large = "an image of 1,000,001 bytes, and the limit for an image is 1,000,000 bytes"
        for name, why in (("large.png", large), ("fake.png", "not text")):
            with pytest.raises(RemoteError, match=why) as refused:
                await alice.read_file(name)
            assert refused.value.code == "binary_file"
        with pytest.raises(RemoteError) as unseen:
            await alice.write_file("a.png", "x\n", mode="truncate")
        assert unseen.value.code == "base_required"
        assert len((await alice.journal_query(path="a.png", kind="file_read")).entries) == 1
        several = (await alice.read_files(("a.png",))).files[0].text
        assert several is not None
        assert (several.image, several.warnings) == (None, ('it is an image: read_file(path="a.png") shows it',))
    done = cli_bytes(daemon, "open", "a.png")
    assert (done.returncode, done.stdout) == (0, PNG)
