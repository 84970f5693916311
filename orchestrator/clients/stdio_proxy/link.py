"""A connection of the stdio transport to the daemon, past its preamble."""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import BinaryIO, NamedTuple


class Link(NamedTuple):
    """The socket, its lines, and the session that the daemon gave."""

    socket: socket.socket
    lines: BinaryIO
    session: str

    def send(self, line: bytes) -> None:
        """Send; where that fails, the reader of the link sees its end too, and what is open is sent again."""
        try:
            self.socket.sendall(line)
        except OSError:
            self.shut(socket.SHUT_RDWR)

    def shut(self, how: int) -> None:
        """Say that no more comes, if that can be said."""
        with suppress(OSError):  # it may be down already
            self.socket.shutdown(how)

    def close(self) -> None:
        """Both sides."""
        self.lines.close()
        self.socket.close()
