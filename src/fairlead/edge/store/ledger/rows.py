"""Records of the ledger as rows, and rows as records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import Row

from fairlead.edge.store.columns import KEY_LENGTH, NAME_LENGTH
from fairlead.edge.store.ledger.accounts import Ids, UsageAccount
from fairlead.edge.store.ledger.bulk import Values
from fairlead.edge.store.ledger.forks import fork_of
from fairlead.edge.store.texts import cut_text, whole_text
from fairlead.model.records.rows import OwnerKind
from fairlead.model.usage.ledger import (
    MOST,
    Amount,
    ClosedBy,
    JobRecord,
    KeptState,
    LedgerCard,
    NodeHour,
    NodeInterval,
    PodHour,
    PodInterval,
    PriceClass,
    UsedBy,
)

MOST_INTEGRAL: Final = (1 << 63) - 1
POD_COLUMNS: Final = (
    *("pod_uid", "started_at", "ended_at", "fork", "account_id", "is_later", "closed_by", "pod"),
    *("node", "gpu", "gpu_memory_mib", "cpu_milli", "memory_mib", "cards"),
)
POD_TEXTS: Final = ("pod_uid", "pod", "node", "closed_by", "cards")
POD_NUMBERS: Final = (
    *("started_at", "ended_at", "account_id"),
    *("gpu", "gpu_memory_mib", "cpu_milli", "memory_mib"),
)
NODE_COLUMNS: Final = ("node_uid", "started_at", "ended_at", "closed_by", "node", "class_id")
STATE_COLUMNS: Final = (
    *("kind", "uid", "started_at", "ended_at", "fork", "namespace", "name", "body"),
)
JOB_COLUMNS: Final = (
    *("uid", "namespace_id", "user_id", "leaf_id", "name", "type", "api_version", "created_at"),
    *("started_at", "finished_at", "deleted_at", "status", "reason", "gpu", "instances", "image"),
    "manifest",
)
SEPARATOR: Final = "\x1f"
"""Between the columns of a state where they are read as one; no name has it."""
_cards = msgspec.json.Decoder(list[tuple[str, int, int]])
_CLOSED: Final = {str(each): each for each in ClosedBy}
_holders = msgspec.json.Decoder(tuple[tuple[str, str], ...])


def uid_text(uid: str) -> str:
    """A uid as rows have it."""
    return cut_text(uid, KEY_LENGTH)


def end_of(started_at: int, ended_at: int) -> int:
    """An end before the start is the start."""
    return started_at if ended_at < started_at else ended_at


def account_of(pod: PodInterval) -> UsageAccount:
    return UsageAccount(pod.by, pod.job, pod.price_class)


def pod_values(pod: PodInterval, account_id: int) -> Values:
    ended_at, amount = end_of(pod.started_at, pod.ended_at), pod.amount
    amounts: tuple[int, ...] = (
        *(amount.gpu, amount.gpu_memory_mib, amount.cpu_milli, amount.memory_mib),
    )
    if min(amounts) < 0 or max(amounts) > MOST:
        amounts = tuple(map(bounded, amounts))
    return (
        uid_text(pod.pod_uid),
        pod.started_at,
        ended_at,
        fork_of(pod.started_at, ended_at),
        account_id,
        0,
        str(pod.closed_by),
        cut_text(pod.pod, NAME_LENGTH),
        cut_text(pod.node, NAME_LENGTH),
        *amounts,
        _cards_text(pod.cards) if pod.cards else "",
    )


def bounded(amount: int) -> int:
    return min(max(amount, 0), MOST)


def integral(amount: int) -> int:
    """An integral as a column of 63 bits: no single owner comes near its end."""
    return min(max(amount, 0), MOST_INTEGRAL)


def _cards_text(cards: tuple[LedgerCard, ...]) -> str:
    listed = [[whole_text(each.uuid), each.index, each.mib] for each in cards]
    return msgspec.json.encode(listed).decode()


def pod_interval(
    texts: Sequence[str], numbers: Sequence[int], accounts: Mapping[int, UsageAccount]
) -> PodInterval:
    """`texts`, `numbers`: the columns `POD_TEXTS` and `POD_NUMBERS`."""
    pod_uid, pod, node, closed_by, cards = texts
    started_at, ended_at, account_id, *amounts = numbers
    by, job, price_class = accounts[account_id]
    return PodInterval(
        pod_uid,
        started_at,
        by,
        pod,
        node,
        price_class,
        Amount(*amounts),
        job,
        tuple([LedgerCard(*each) for each in _cards.decode(cards)]) if cards else (),
        ended_at,
        _CLOSED[closed_by],
    )


def node_values(node: NodeInterval, ids: Ids) -> Values:
    return (
        uid_text(node.node_uid),
        node.started_at,
        end_of(node.started_at, node.ended_at),
        node.closed_by.value,
        cut_text(node.node, NAME_LENGTH),
        ids.price_class(node.price_class),
    )


def node_interval(row: Row[Any], classes: Mapping[int, PriceClass]) -> NodeInterval:
    return NodeInterval(
        row.node_uid,
        row.started_at,
        row.node,
        classes[row.class_id],
        row.ended_at,
        ClosedBy(row.closed_by),
    )


def pod_hour_values(hour: PodHour) -> Values:
    amounts = map(integral, (hour.busy, hour.idle, hour.unknown))
    return (uid_text(hour.pod_uid), hour.started_at, hour.hour, *amounts)


def node_hour_values(hour: NodeHour) -> Values:
    amounts = map(integral, (hour.held, hour.free, hour.stranded, hour.broken))
    holders = [[whole_text(namespace), whole_text(pod)] for namespace, pod in hour.holders]
    return (
        uid_text(hour.node_uid),
        hour.started_at,
        hour.hour,
        *amounts,
        cut_text(hour.lacking, KEY_LENGTH),
        msgspec.json.encode(holders).decode(),
    )


def node_hour(row: Row[Any]) -> NodeHour:
    return NodeHour(
        row.node_uid,
        row.started_at,
        row.hour,
        row.held,
        row.free,
        row.stranded,
        row.broken,
        row.lacking,
        _holders.decode(row.holders),
    )


def state_values(state: KeptState) -> Values:
    ended_at = end_of(state.started_at, state.ended_at)
    return (
        state.kind.value,
        state_uid(state.uid),
        state.started_at,
        ended_at,
        fork_of(state.started_at, ended_at),
        state_name(state.namespace),
        state_name(state.name),
        whole_text(state.body.decode("utf-8", "replace")),
    )


def _state_text(text: str, length: int) -> str:
    return cut_text(text, length).replace(SEPARATOR, "␟")


def state_name(name: str) -> str:
    return _state_text(name, NAME_LENGTH)


def state_uid(uid: str) -> str:
    return _state_text(uid, KEY_LENGTH)


def job_values(job: JobRecord, ids: Ids) -> Values:
    return (
        uid_text(job.uid),
        ids.owner(OwnerKind.NAMESPACE, job.by.namespace),
        ids.owner(OwnerKind.USER, job.by.user),
        ids.owner(OwnerKind.LEAF, job.by.leaf),
        cut_text(job.name, NAME_LENGTH),
        cut_text(job.type, KEY_LENGTH),
        cut_text(job.api_version, NAME_LENGTH),
        job.created_at,
        job.started_at,
        job.finished_at,
        job.deleted_at,
        cut_text(job.status, NAME_LENGTH),
        whole_text(job.reason),
        integral(job.gpu),
        integral(job.instances),
        whole_text(job.image),
        whole_text(job.manifest),
    )


def job_record(row: Row[Any], names: Mapping[int, str]) -> JobRecord:
    by = UsedBy(names[row.namespace_id], names[row.user_id], names[row.leaf_id])
    return JobRecord(
        row.uid,
        by,
        row.name,
        row.type,
        row.api_version,
        row.created_at,
        row.started_at,
        row.finished_at,
        row.deleted_at,
        row.status,
        row.reason,
        row.gpu,
        row.instances,
        row.image,
        row.manifest,
    )
