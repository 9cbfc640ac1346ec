"""The media type of Kubernetes' protobuf, and the first bytes of such a body.

This module is apart from the readers (`protobuf`, `messages`), so that a command without protobuf
loads neither.
"""

from __future__ import annotations

from typing import Final

PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
MAGIC: Final = b"k8s\x00"


class UnreadableProtobuf(ValueError):
    """The bytes are no object; the text has the reason."""
