"""Times in the formats of Kubernetes.

The text is RFC 3339 in UTC with whole seconds (`metav1.Time`) or microseconds (`metav1.MicroTime`);
Fairlead keeps epoch seconds as floats.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache


@lru_cache(maxsize=4096)
def _render_second(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).isoformat()[:19] + "Z"


def render_time(at: float) -> str:
    """`metav1.Time`: fractions of a second are cut off, as the API server does.

    >>> render_time(1767600000.9)
    '2026-01-05T08:00:00Z'
    """
    return _render_second(int(at))


def render_micro_time(at: float) -> str:
    """`metav1.MicroTime`, always with six digits.

    >>> render_micro_time(1767600000.25)
    '2026-01-05T08:00:00.250000Z'
    """
    second, micros = divmod(round(at * 1_000_000), 1_000_000)
    return f"{_render_second(second)[:-1]}.{micros:06d}Z"


@lru_cache(maxsize=4096)
def parse_time(text: str) -> float:
    """Epoch seconds of an RFC 3339 time; a time without a zone is UTC. Raises ValueError.

    >>> parse_time("2026-01-05T09:00:00.5+01:00")
    1767600000.5
    """
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
