"""Which claims a data set mounts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fairlead.model.jobs.datasets import Claim, DataSet

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


def caching(data_sets: Iterable[DataSet]) -> dict[tuple[str, str], list[str]]:
    """By namespace and name of a claim: the data sets that cache it."""
    found: dict[tuple[str, str], list[str]] = {}
    for data_set in data_sets:
        for claim in claims_of(data_set):
            found.setdefault((data_set.namespace, claim), []).append(data_set.name)
    return found


def acceleration_words(
    claims: Iterable[Claim], data_sets: Iterable[DataSet]
) -> dict[tuple[str, str], str]:
    """By namespace and name of a claim: the data sets that cache it; `Yes` for the claim of a data
    set, which is the cache; else `No`.
    """
    by = caching(data_sets)
    words = {}
    for claim in claims:
        key = (claim.namespace, claim.name)
        words[key] = ",".join(sorted(by.get(key, ()))) or ("Yes" if claim.is_fluids else "No")
    return words
