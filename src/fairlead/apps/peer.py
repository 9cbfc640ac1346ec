"""HTTP/1.1 that tells apps whether the client showed a certificate, which uvicorn does not.

A certificate that is there has been verified, because the TLS context does not let others through.
"""

from __future__ import annotations

import asyncio
from typing import Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

PEER_CERTIFICATE: Final = "fairlead.peer_certificate"
"""Key in an app's scope: whether the client showed a certificate that the server's authority has signed."""


class TellingProtocol(HttpToolsProtocol):
    """uvicorn's HTTP/1.1, with `PEER_CERTIFICATE` in the scope.

    Who asks for another protocol (`kubectl exec` for a WebSocket) is answered in this one, as HTTP allows;
    uvicorn logs two lines about libraries that could be installed, and an operator has nothing to install
    here.
    """

    _has_certificate = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._has_certificate = bool(transport.get_extra_info("peercert"))

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope[PEER_CERTIFICATE] = self._has_certificate  # type: ignore[typeddict-unknown-key]

    def _unsupported_upgrade_warning(self) -> None:
        pass
