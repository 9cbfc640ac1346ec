"""What Helm prints when it fails: its reason in one line, and what mends it."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

BAD_VALUES: Final = "correct the values that are named"
"""The hint if the chart's schema refuses values."""
_LONGEST: Final = 600
_PREFIX: Final = re.compile(r"^(level=\S+ |Error: )+")
_UNREACHABLE: Final = re.compile(
    r"cluster unreachable|connection refused|no such host|i/o timeout|TLS handshake timeout"
    r"|connection reset by peer|\bEOF$|etcdserver|the server is currently unable",
    re.IGNORECASE,
)
_HINTS: Final[tuple[tuple[str, str], ...]] = (
    (
        r"another operation \(install/upgrade/rollback\) is in progress",
        "another run of Helm works on the release, or one was killed: `helm history RELEASE` shows "
        "its state; `helm rollback RELEASE` or `helm uninstall RELEASE` ends a `pending-` state",
    ),
    (
        r"cannot re-use a name|invalid ownership metadata|exists and cannot be",
        "another program or release has this object; remove it, or choose another namespace",
    ),
    (r"values don't meet the specifications|schema", BAD_VALUES),
    (
        r'(Get|Head) "https?://[^/"]+(/v2/|[^"]*(\.tgz|index\.yaml)")'
        r'|path ".*" not found|failed to fetch|not a valid chart repository|no such host'
        r"|manifest unknown|failed to perform|Chart\.yaml file is missing|non-absolute URLs",
        "check the chart's address and version, and that this machine reaches it",
    ),
    (
        r"no matches for kind|resource mapping not found",
        "the chart needs definitions (CRDs) that the cluster does not have; apply them first",
    ),
    (r"forbidden", "use an account with this right"),
    (r"context deadline exceeded|timed out waiting", "look at the pods of the release"),
)


class HelmFailure(Struct, frozen=True):
    """`is_unreachable`: Helm had no answer of the API server, so the run may be tried again."""

    reason: str
    hint: str = ""
    is_unreachable: bool = False


def failure_of(errors: str) -> HelmFailure:
    """The failure from what Helm printed on stderr.

    >>> failure_of('level=WARN msg="x"\\nError: path "./a" not found\\n').reason
    'path "./a" not found'
    """
    found = _reason(errors)
    hint = next((hint for form, hint in _HINTS if re.search(form, found, re.IGNORECASE)), "")
    return HelmFailure(found, hint, bool(_UNREACHABLE.search(found)))


def is_absent(errors: str) -> bool:
    """Whether the release, or its revision, does not exist."""
    return bool(re.search(r"release: not found", errors))


def _reason(errors: str) -> str:
    """What follows the last `Error:`, else the last line, on one line and without control
    characters.
    """
    start = errors.rfind("Error:")
    text = errors[start:] if start >= 0 else "\n".join(errors.strip().splitlines()[-1:])
    text = _PREFIX.sub("", " ".join(text.split()))
    return "".join(char if char.isprintable() else "?" for char in text)[:_LONGEST]
