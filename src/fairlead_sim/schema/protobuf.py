"""Request bodies in Kubernetes' protobuf, read into plain values.

Go clients, `kubectl create` among them, send the built-in kinds so and take JSON for an answer, so
only reading is needed.
"""

from __future__ import annotations

from typing import Any

from fairlead.wire.kube import protobuf
from fairlead.wire.kube.forms import UnreadableProtobuf
from fairlead_sim.schema.status import bad_request


def parse_protobuf(body: bytes) -> dict[str, Any]:
    """The object in a request body, as its JSON would be.

    Raises 400 for broken bytes and for kinds that are not known.
    """
    try:
        return protobuf.parse_protobuf(body)
    except UnreadableProtobuf as error:
        raise bad_request(str(error)) from error
