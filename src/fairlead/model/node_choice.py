"""The nodes that a pod's spec allows: node selector, required node affinity and tolerations.

As in kube-scheduler, a pod without required node affinity (`terms` None) allows every node, and a
term without expressions allows none.
"""

from __future__ import annotations

from msgspec import Struct


class Expression(Struct, frozen=True, gc=False):
    """`operator` is In, NotIn, Exists, DoesNotExist, Gt or Lt."""

    key: str
    operator: str = ""
    values: tuple[str, ...] = ()


class Term(Struct, frozen=True, gc=False):
    """A term of a node affinity: all expressions must match.

    Those in `fields` are compared with fields of the node (`metadata.name`).
    """

    labels: tuple[Expression, ...] = ()
    fields: tuple[Expression, ...] = ()


class Toleration(Struct, frozen=True, gc=False):
    """A toleration.

    `effect` "" tolerates every effect; `key` "" with the operator Exists tolerates every taint.
    """

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class NodeChoice(Struct, frozen=True, gc=False):
    """`selector`: required labels and their values.

    `terms`: one of them must match; None = the pod has no required node affinity.
    """

    selector: tuple[tuple[str, str], ...] = ()
    terms: tuple[Term, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()


ANY_NODE = NodeChoice()
