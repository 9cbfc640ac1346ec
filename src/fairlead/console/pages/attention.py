"""The form of what needs somebody: lines of the Cluster board, the worst first."""

from __future__ import annotations

from fairlead.console.pages.envelope import Json, Sentence, Timestamp


class AttentionObject(Json, frozen=True):
    """One thing in trouble. `kind`: node, gpu, pod or leaf; the name of a gpu is its node's.

    `job`: of a pod that belongs to one, as `type/name`. `index`: of a gpu.
    """

    kind: str
    namespace: str
    name: str
    node: str = ""
    job: str = ""
    index: int | None = None


class AttentionLine(Json, frozen=True):
    """`level`: broken, waiting or wasted. `objects`: those in trouble the longest; `more` are not named.

    `count` may be a fraction: parts of GPUs that are idle. `since`: the first of them, null = nobody knows.
    `command`: what to ask next about the first of them.
    `why`: of things that wait, why the first does, in our words where we have some, else in the source's.
    """

    kind: str
    level: str
    count: float
    sentence: Sentence
    since: Timestamp | None
    objects: list[AttentionObject]
    more: int
    command: str
    why: Sentence | None = None
