"""A job with its manifest, as the usage recorder follows it."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from fairlead.model.jobs.job import Job

SPEC_MARK = '{"spec":"'
"""How a kept manifest begins: the digest of its spec follows, up to the next quotation mark."""


class FollowedJob(Struct, frozen=True, gc=False):
    """`spec`: a digest of the job's spec. `manifest`: what the ledger keeps of the object, which
    takes milliseconds to make.
    """

    job: Job
    spec: str
    manifest: Callable[[], str]


def spec_of(manifest: str) -> str:
    """The digest of the spec of a kept manifest; "" if there is none.

    >>> spec_of('{"spec":"3f","manifest":{}}'), spec_of("")
    ('3f', '')
    """
    if not manifest.startswith(SPEC_MARK):
        return ""
    return manifest[len(SPEC_MARK) :].partition('"')[0]
