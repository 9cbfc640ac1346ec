"""What a real registry of the tests does not do: it refuses a blob that has been sent already.

`tests/kube/test_bundle_push.py` has the rest.
"""

from __future__ import annotations

import io
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from fairlead.edge.connection.credentials import basic
from fairlead.edge.registry.address import RegistryAddress
from fairlead.edge.registry.client import Content, RegistryClient


def test_a_blob_is_sent_whole_again_after_the_registry_has_asked_for_a_user() -> None:
    seen: list[tuple[str | None, bytes]] = []

    class Asked(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            user = self.headers.get("Authorization")
            seen.append((user, body))
            self.send_response(201 if user else 401)
            self.send_header("WWW-Authenticate", 'Basic realm="tests"')
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            return

    login = basic("ann", "secret")
    with HTTPServer(("127.0.0.1", 0), Asked) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        address = RegistryAddress(f"http://127.0.0.1:{server.server_port}", login=login)
        blob = Content(io.BytesIO(b"blob"), 4)
        assert RegistryClient(address).ask("PUT", "/v2/a/blobs/uploads/1", blob).status == 201
        server.shutdown()
        thread.join()
    assert seen == [(None, b"blob"), (login, b"blob")]
