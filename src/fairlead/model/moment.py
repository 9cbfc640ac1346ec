"""The range of times: epoch seconds of the years 1 to 9999, which a calendar can show.

The range is checked where bytes are decoded (a snapshot file), not where code makes a value.
"""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

EARLIEST: Final = -62_135_596_800.0
"""0001-01-01T00:00:00Z, which means "no time" in Kubernetes."""
LATEST: Final = 253_402_300_799.0
"""9999-12-31T23:59:59Z, the last time in RFC 3339."""
Moment = Annotated[float, Meta(ge=EARLIEST, le=LATEST)]
