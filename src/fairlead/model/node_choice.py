"""Which nodes has a pod's owner ruled out? Node selector, required node affinity, tolerations: what kube-scheduler asks of a node's labels
and taints.

What a newcomer gets wrong: an affinity without terms allows every node, and a term without expressions allows none.
"""

from __future__ import annotations

from msgspec import Struct


class Expression(Struct, frozen=True, gc=False):
    """`operator` is In, NotIn, Exists, DoesNotExist, Gt or Lt."""

    key: str
    operator: str = ""
    values: tuple[str, ...] = ()


class Term(Struct, frozen=True, gc=False):
    """All of them must hold; `fields` are asked of the node's own fields (`metadata.name`)."""

    labels: tuple[Expression, ...] = ()
    fields: tuple[Expression, ...] = ()


class Toleration(Struct, frozen=True, gc=False):
    """`effect` "" tolerates every effect, `key` "" with the operator Exists every taint."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class NodeChoice(Struct, frozen=True, gc=False):
    """`selector`: labels and their values. `terms`: one of them must hold; None where the pod has no required node affinity."""

    selector: tuple[tuple[str, str], ...] = ()
    terms: tuple[Term, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()


ANYWHERE = NodeChoice()
