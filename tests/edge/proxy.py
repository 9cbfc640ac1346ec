"""A small HTTP proxy for tests: it tunnels CONNECT, and forwards requests that contain the whole
address.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from urllib.parse import urlsplit


class TestProxy:
    """`asked`: the first lines of the clients' requests. The proxy ends with its block."""

    __test__ = False  # pytest: no test class

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> TestProxy:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        head = client.recv(65536)
        line = head.split(b"\r\n")[0].decode()
        self.asked.append(line)
        method, target, _ = line.split(" ")
        address = target if method == "CONNECT" else urlsplit(target).netloc
        host, port = address.split(":")
        server = socket.create_connection((host, int(port)))
        if method == "CONNECT":
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            server.sendall(head.replace(f"http://{address}".encode(), b"", 1))
        back = threading.Thread(target=_pump, args=(server, client), daemon=True)
        back.start()
        _pump(client, server, f"http://{address}".encode())
        back.join()


def _pump(source: socket.socket, target: socket.socket, strip: bytes = b"") -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data.replace(strip, b"", 1) if strip else data)
        target.shutdown(socket.SHUT_WR)
