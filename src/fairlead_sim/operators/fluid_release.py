"""What a release of Helm installed.

Fluid uninstalls the release that has the name of a runtime, also one of another program.
"""

from __future__ import annotations

import binascii
import json
import zlib
from base64 import b64decode
from typing import Any, Final

import yaml

from fairlead.wire.files.bounded import load_yaml_documents
from fairlead_sim.controllers.plan import View

Object = dict[str, Any]

_MOST_BYTES: Final = 8 << 20
_GZIP: Final = 31
_UNREADABLE: Final = (
    *(binascii.Error, zlib.error, yaml.YAMLError),
    *(KeyError, TypeError, ValueError, AttributeError),
)


def installed_by(view: View, release: Object) -> list[Object]:
    """Its objects that exist, at most 8 MiB of them; none if Helm's record cannot be read."""
    namespace = release["metadata"]["namespace"]
    try:
        packed = b64decode(release["data"]["release"], validate=True)
        text = zlib.decompressobj(_GZIP).decompress(packed, _MOST_BYTES)
        manifests = load_yaml_documents(json.loads(text)["manifest"])
        named = [
            (each["apiVersion"], each["kind"], each["metadata"]["name"])
            for each in manifests
            if each
        ]
    except _UNREADABLE:
        return []
    found = (view.find(*each, namespace) or view.find(*each) for each in named)
    return [each for each in found if each is not None]
