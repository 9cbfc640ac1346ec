"""The form of a search over the whole cluster: matches, and the field of each."""

from __future__ import annotations

from fairlead.console.pages.envelope import Envelope, Json


class SearchHit(Json, frozen=True):
    """`kind`: node, gpu, job or pod. `name`: of a GPU its node's, with `gpu_index` beside it.

    `job`: of a job and of its pods, `type/name`. `node`: where a pod is bound or a GPU sits.
    `holds_gpu`: the pod is a row of `/holders`. `field` is where the text stands: name, uid, uuid
    or label; `text` is the value of that field (`key=value` of a label), `piece` the part of it
    that matches.
    """

    kind: str
    namespace: str
    name: str
    job: str
    node: str
    gpu_index: int | None
    holds_gpu: bool
    field: str
    text: str
    piece: str


class SearchAnswer(Envelope, frozen=True):
    """The nearest first.

    `total` counts all that match, `left_out` those of them that are not in `items`.
    """

    q: str
    total: int
    left_out: int
    items: list[SearchHit]
