"""The form of "My work": what one person has, may still have, could start now, and waits for.

Until people sign in, who "I" am is asked with the question: a user, or a namespace.
"""

from __future__ import annotations

from fairlead.console.pages.envelope import Envelope, Json, Sentence, Timestamp
from fairlead.console.pages.jobs import Waiting


class LeafResource(Json, frozen=True):
    """`mine`: of `used`, what is mine. `borrowable`: how much above its guarantee it could be given
    now. `guaranteed` is what counts: less than `guaranteed_written` where nodes have less than the
    mins promise.

    Numbers are in `unit` (cores, bytes, GiB, count); a `max` or `borrowable` without bound is null.
    """

    resource: str
    unit: str
    used: float
    mine: float
    guaranteed: float
    guaranteed_written: float
    max: float | None
    borrowable: float | None


class MyLeaf(Json, frozen=True):
    """`resources`: those of which the leaf is guaranteed, allowed or used something; GPUs first."""

    path: str
    name: str
    namespaces: list[str]
    resources: list[LeafResource]


class Start(Json, frozen=True):
    """What one pod of mine could get now, of one model of GPU.

    `amount` of `resource`: whole GPUs on one node (`unit` is ""), or memory on one shared GPU, in
    `unit`, which is `memory_mib` of it. `node`: one with room, of `nodes`. `selector`: the label to
    request, `key=value`, "" = no label has the model. `guaranteed` null: quota does not count the
    namespace. `on_nodes`: what the nodes have room for; if `amount` is less, `waiting` is the
    reason of quota, `clauses` its clauses, `reason` one word.
    """

    namespace: str
    leaf: str
    resource: str
    model: str
    amount: float
    unit: str
    memory_mib: float | None
    node: str
    nodes: int
    selector: str
    guaranteed: bool | None
    on_nodes: float
    reason: str | None
    waiting: str
    clauses: list[Sentence]
    sentence: Sentence


class QueuedBefore(Json, frozen=True):
    """A job or pod before mine in the queue. `job`: `type/name` of a training job, else ""."""

    namespace: str
    name: str
    job: str
    user: str


class MyWait(Json, frozen=True):
    """`job`: `type/name`, "" of a pod that is of none. `line`: what the queue is: `quota` of its
    leaf, or the `scheduler`, or null where it waits for nothing that others wait for. `position`
    from 1; `ahead`: the nearest of those before it, of `ahead_count`.
    """

    namespace: str
    name: str
    job: str
    since: Timestamp | None
    gpus: float
    units: int
    waiting: Waiting
    line: str | None
    position: int | None
    ahead: list[QueuedBefore]
    ahead_count: int


class MyHold(Json, frozen=True):
    """`gpus_idle`: those that have done nothing for an hour."""

    pods: int
    gpus: float
    gpus_idle: float
    running: int
    pending: int


class MyWork(Envelope, frozen=True):
    """`users`, `all_namespaces`: the choices. `namespaces`: mine."""

    user: str
    namespace: str
    users: list[str]
    all_namespaces: list[str]
    namespaces: list[str]
    sentence: Sentence
    held: MyHold
    leaves: list[MyLeaf]
    starts: list[Start]
    waits: list[MyWait]
