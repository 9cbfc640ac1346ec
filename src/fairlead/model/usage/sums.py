"""Integrals of the ledger: of single intervals, of days, and of periods. They only add up."""

from __future__ import annotations

from msgspec import Struct

from fairlead.model.usage.ledger import LedgerJob, PriceClass, UsedBy


class UsageIntegral(Struct, frozen=True):
    """Amounts times milliseconds. `busy`, `idle`, `unknown`: of the GPUs, by the rows of hours;
    they add up to `gpu` once the hours are stored.
    """

    gpu: int = 0
    gpu_memory: int = 0
    cpu: int = 0
    memory: int = 0
    busy: int = 0
    idle: int = 0
    unknown: int = 0


class UsageSum(Struct, frozen=True):
    """What one owner held on nodes of one price class in one billing day, or a part of it.

    `day`: the beginning of the billing day, or of the part. `pods`: the number of pods.
    """

    day: int
    by: UsedBy
    job: LedgerJob
    price_class: PriceClass
    integral: UsageIntegral
    pods: int = 0


class NodeSum(Struct, frozen=True):
    """Nodes of one price class in one billing day, or a part of it.

    `node_ms`: how long nodes existed, together. The others: GPUs, times milliseconds; `used` +
    `idle` + `unknown` is what pods held.
    """

    day: int
    price_class: PriceClass
    node_ms: int = 0
    used: int = 0
    idle: int = 0
    unknown: int = 0
    free: int = 0
    stranded: int = 0
    broken: int = 0
