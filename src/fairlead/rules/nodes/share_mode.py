"""Whether a node shares its GPUs: labels of three origins, the strongest first (sharing contract 1.3).

A label whose value is not known says nothing: the next one is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from fairlead.model.keys import LABEL_GPU_PLACEMENT, LABEL_GPU_SCHEDULE, LABEL_SHARED, LABEL_SHARED_ALIAS
from fairlead.model.sharing import PLACEMENTS, Placement

CONFLICT: Final = "GPUModeConflict"
"""Reason of the Warning event that tells a `ShareMode.conflict`."""
_SWITCH: Final = {"true": True, "false": False}
_SCHEDULE: Final = {"cgpu": True, "core_mem": True, "share": True, "mps": True, "default": False, "topology": False}
_MEANINGS: Final = {LABEL_SHARED: _SWITCH, LABEL_GPU_SCHEDULE: _SCHEDULE, LABEL_SHARED_ALIAS: _SWITCH}


class ShareMode(Struct, frozen=True, gc=False):
    """`placement` is the node's own wish for its cards.

    `conflict`: labels that contradict each other, as a sentence.
    """

    is_shared: bool
    placement: Placement | None = None
    conflict: str = ""


def share_mode(labels: Mapping[str, str]) -> ShareMode:
    """What the node's labels say, the strongest of them first.

    >>> share_mode({"cgpu": "true"}).is_shared, share_mode({}).is_shared
    (True, False)
    >>> share_mode({"cgpu": "false", "gpushare": "true"}).conflict
    'label cgpu=false overrides gpushare=true: the GPUs of this node are exclusive'
    """
    said = [(key, labels[key], meaning[labels[key]]) for key, meaning in _MEANINGS.items() if labels.get(key) in meaning]
    placement = PLACEMENTS.get(labels.get(LABEL_GPU_PLACEMENT, ""))
    if not said:
        return ShareMode(False, placement)
    key, value, is_shared = said[0]
    beaten = [f"{other}={text}" for other, text, wanted in said[1:] if wanted is not is_shared]
    mode = "shared" if is_shared else "exclusive"
    conflict = f"label {key}={value} overrides {' and '.join(beaten)}: the GPUs of this node are {mode}" if beaten else ""
    return ShareMode(is_shared, placement, conflict)
