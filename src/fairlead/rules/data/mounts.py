"""Which claims a data set mounts."""

from __future__ import annotations

from typing import Final

from fairlead.model.jobs.datasets import DataSet

CLAIM_SCHEME: Final = "pvc://"


def claims_of(data_set: DataSet) -> list[str]:
    """Names of the claims of its namespace that a data set mounts.

    >>> from fairlead.model.jobs.datasets import DataMount
    >>> claims_of(DataSet("n", "d", (DataMount("pvc://raw/2026"), DataMount("s3://bucket"))))
    ['raw']
    """
    return [
        each.point.removeprefix(CLAIM_SCHEME).partition("/")[0]
        for each in data_set.mounts
        if each.point.startswith(CLAIM_SCHEME)
    ]
