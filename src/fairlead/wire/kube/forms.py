"""How Kubernetes' protobuf is asked for, and how a body in it begins.

Apart from what reads it (`protobuf`, `messages`), so that a command that never meets it loads neither.
"""

from __future__ import annotations

from typing import Final

PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
MAGIC: Final = b"k8s\x00"


class UnreadableProtobuf(ValueError):
    """Why bytes are no object."""
