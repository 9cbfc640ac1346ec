"""Manifests of jobs as the ledger keeps them (docs/spec/usage.md#recorder).

What is kept of an object is its metadata and its spec, without status, `managedFields` and secret
values. A digest of the spec shows whether it has changed, so that a change of status costs no more
than that digest.
"""

from __future__ import annotations

from functools import partial
from hashlib import blake2b
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from fairlead.model.jobs.job import Job
from fairlead.model.jobs.manifests import FollowedJob
from fairlead.wire.files.shown_manifest import shown_manifest

MOST_BYTES: Final = 64 << 10
"""The largest manifest that is kept, as JSON."""
_DIGEST_BYTES: Final = 12
_DROPPED: Final = ("managedFields", "resourceVersion", "selfLink")
"""Of metadata: what the API server writes for itself, and what changes with the status."""

_UNREADABLE: Final = (msgspec.MsgspecError, ValueError, RecursionError)


class KeptManifest(Struct, frozen=True, omit_defaults=True):
    """`spec`: digest of the spec. `manifest`: without secret values, whose paths are in `redacted`;
    None: it has `size` bytes, which are too many (`MOST_BYTES`) or unreadable.
    """

    spec: str
    manifest: dict[str, Any] | None = None
    redacted: list[str] = []
    size: int = 0


_fields = msgspec.json.Decoder(dict[str, Raw])
_kept = msgspec.json.Decoder(KeptManifest)
_encoder = msgspec.json.Encoder()


def followed_job(job: Job, obj: bytes) -> FollowedJob:
    """A job with its manifest. `obj`: the whole object as JSON. Raises msgspec.DecodeError."""
    fields = _fields.decode(obj)
    fields.pop("status", None)
    metadata = _fields.decode(fields.pop("metadata", b"{}"))
    for name in _DROPPED:
        metadata.pop(name, None)
    # Lists of built-in kinds leave out what is the same for all.
    head = {"apiVersion": job.api_version, "kind": job.kind, "metadata": metadata}
    rest = {name: fields[name] for name in fields if name not in head}
    spec = blake2b(_encoder.encode(rest), digest_size=_DIGEST_BYTES).hexdigest()
    return FollowedJob(job, spec, partial(kept_manifest, spec, _encoder.encode(head | rest)))


def kept_manifest(spec: str, obj: bytes) -> str:
    """What the ledger keeps of an object. `spec`: the digest of its spec."""
    try:
        shown, redacted = shown_manifest(msgspec.json.decode(obj))
        size = len(_encoder.encode(shown))
    except _UNREADABLE:  # its texts or its depth; the recorder must not end with one job
        shown, redacted, size = {}, [], len(obj)
    if not shown or size > MOST_BYTES:
        return _encoder.encode(KeptManifest(spec, size=size)).decode()
    return _encoder.encode(KeptManifest(spec, shown, redacted)).decode()


def parse_kept_manifest(text: str) -> KeptManifest:
    """Raises msgspec.MsgspecError for what `kept_manifest` does not write."""
    return _kept.decode(text)
