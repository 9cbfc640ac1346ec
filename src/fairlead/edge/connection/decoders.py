"""One JSON decoder per type, made when it is first needed, by one thread at a time.

msgspec examines a struct's fields on first use, and two threads that do so at the same time crash
the process (segmentation fault). Code that may run in several threads gets its decoders here and
never calls `msgspec.json.decode(data, type=…)`.
"""

from __future__ import annotations

import threading
from typing import Any, Final

import msgspec

_making: Final = threading.Lock()
_made: Final[dict[Any, msgspec.json.Decoder[Any]]] = {}


def decoder_of(type_: Any) -> msgspec.json.Decoder[Any]:
    """The decoder for JSON of `type_`: a struct, a container of structs, `Any`, `Raw`."""
    found = _made.get(type_)
    if found is None:
        with _making:
            found = _made[type_] = msgspec.json.Decoder(type_)
    return found
