"""The HTTP protocol of the server, whose answers are not held back."""

from __future__ import annotations

import socket
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol


class PromptProtocol(H11Protocol):
    """HTTP/1.1 that sends small writes at once.

    An answer is two writes.  asyncio asks to send them at once, but not of sockets that several
    processes share, where the second one would wait 40 ms for the other side to confirm the first.
    """

    def connection_made(self, transport: Any) -> None:
        """Set the option of the new connection."""
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().connection_made(transport)
