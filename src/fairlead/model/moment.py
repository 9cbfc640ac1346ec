"""The times that can exist: epoch seconds of the years 1 to 9999, what a calendar can show.

The bounds are checked where bytes are decoded (a snapshot file), not where code makes a value.
"""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

EARLIEST: Final = -62_135_596_800.0
"""0001-01-01T00:00:00Z, Kubernetes' "no time"."""
LATEST: Final = 253_402_300_799.0
"""9999-12-31T23:59:59Z, the last that RFC 3339 can spell."""
Moment = Annotated[float, Meta(ge=EARLIEST, le=LATEST)]
