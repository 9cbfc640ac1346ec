"""Which nodes a pod's owner allows: node selector, required node affinity and tolerations.

A pod without required node affinity (`terms` None) allows every node; a term without expressions allows none,
as in kube-scheduler.
"""

from __future__ import annotations

from msgspec import Struct


class Expression(Struct, frozen=True, gc=False):
    """`operator` is In, NotIn, Exists, DoesNotExist, Gt or Lt."""

    key: str
    operator: str = ""
    values: tuple[str, ...] = ()


class Term(Struct, frozen=True, gc=False):
    """All its expressions must hold; `fields` are asked of the node's own fields (`metadata.name`)."""

    labels: tuple[Expression, ...] = ()
    fields: tuple[Expression, ...] = ()


class Toleration(Struct, frozen=True, gc=False):
    """`effect` "" tolerates every effect, `key` "" with the operator Exists every taint."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class NodeChoice(Struct, frozen=True, gc=False):
    """`selector`: labels and their values.

    `terms`: one of them must hold; None where the pod has no required node affinity.
    """

    selector: tuple[tuple[str, str], ...] = ()
    terms: tuple[Term, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()


ANYWHERE = NodeChoice()
