"""One JSON decoder per type, made when it is first asked for, once, and by one thread at a time.

msgspec learns a struct's fields on first use, and two threads that do so at once end the process (a
segmentation fault). Code that may run in several threads takes its decoders from here and never calls
`msgspec.json.decode(data, type=…)`.
"""

from __future__ import annotations

import threading
from typing import Any, Final

import msgspec

_making: Final = threading.Lock()
_made: Final[dict[Any, msgspec.json.Decoder[Any]]] = {}


def decoder_of(type_: Any) -> msgspec.json.Decoder[Any]:
    """What decodes JSON as `type_`: a struct, a container of them, `Any`, `Raw`."""
    found = _made.get(type_)
    if found is None:
        with _making:
            found = _made[type_] = msgspec.json.Decoder(type_)
    return found
