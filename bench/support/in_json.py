"""A Fairlead command that requests plain JSON only, to compare protobuf and gzip with it.

python bench/support/in_json.py ARENA'S ARGUMENTS
"""

from __future__ import annotations

import sys

from fairlead.edge.kube.api_page import ItemReader
from fairlead.edge.kube.conversation import Conversation
from fairlead.run.programs import run_arena

_make = Conversation.__init__


def _make_plain(self: Conversation, *parts: object, **more: object) -> None:
    _make(self, *parts, **more)  # type: ignore[arg-type]
    self._list_encoding = "identity"


if __name__ == "__main__":
    ItemReader.takes_protobuf = property(lambda self: False)  # type: ignore[assignment,method-assign]
    Conversation.__init__ = _make_plain  # type: ignore[method-assign]
    sys.argv[0] = "arena"
    run_arena()
