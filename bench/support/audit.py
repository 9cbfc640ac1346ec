"""Requests of each client, from the audit log of an API server.

Clients are distinguished by their credential, so two replicas of one account are two clients.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from pathlib import Path
from typing import Any, Final, NamedTuple

CREDENTIAL: Final = "authentication.kubernetes.io/credential-id"


class Requests(NamedTuple):
    """`watches`: how many were begun. `leases`: requests about Leases. `others`: the rest."""

    others: int = 0
    watches: int = 0
    leases: int = 0


def credential_of(token: str) -> str:
    """What the audit log calls the token of a service account."""
    body = token.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    return f"JTI={claims['jti']}"


class AuditLog:
    """Reads what was added at each call."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0
        self._counts: Counter[tuple[str, str]] = Counter()
        self._open: dict[str, set[str]] = {}
        self.named: Counter[tuple[str, str]] = Counter()
        """Requests but those about Leases, by credential and `verb resource`."""

    def counted(self, credential: str) -> Requests:
        """Since the beginning."""
        self._read()
        return Requests(*(self._counts[credential, each] for each in Requests._fields))

    def open_watches(self, credential: str) -> int:
        self._read()
        return len(self._open.get(credential, ()))

    def total(self) -> int:
        """All requests but those about Leases."""
        self._read()
        return sum(count for (_, kind), count in self._counts.items() if kind != "leases")

    def _read(self) -> None:
        if not self._path.exists():
            return
        with self._path.open("rb") as log:
            log.seek(self._at)
            for line in log:
                if not line.endswith(b"\n"):
                    break
                self._at += len(line)
                self._see(json.loads(line))

    def _see(self, event: dict[str, Any]) -> None:
        credentials = event["user"].get("extra", {}).get(CREDENTIAL, [""])
        who, about = credentials[0], event.get("objectRef") or {}
        if about.get("resource") == "leases":
            self._counts[who, "leases"] += event["stage"] == "ResponseComplete"
            return
        is_watch, is_begun = event["verb"] == "watch", event["stage"] == "ResponseStarted"
        if is_watch and is_begun:
            self._open.setdefault(who, set()).add(event["auditID"])
        elif is_watch and event["auditID"] in self._open.get(who, ()):
            self._open[who].discard(event["auditID"])
            return
        elif is_begun:
            return
        self._counts[who, "watches" if is_watch else "others"] += 1
        title = f"{event['verb']} {about.get('resource') or event['requestURI'].split('?')[0]}"
        self.named[who, title] += 1
