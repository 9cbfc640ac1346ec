"""Which nodes a pod may use according to its spec: node selector, affinity and tolerations.

These fields are decoded only for pods that wait or share GPUs; no rule reads them of other pods. A
part that does not decode excludes no node: an API server would have rejected such a spec.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import msgspec
from msgspec import Raw, Struct

from fairlead.model.node_choice import ANYWHERE, Expression, NodeChoice, Term, Toleration


class _Expression(Struct, gc=False):
    key: str
    operator: str = ""
    values: list[str] | None = None


class _Term(Struct, gc=False, rename="camel"):
    match_expressions: list[_Expression] | None = None
    match_fields: list[_Expression] | None = None


class _Required(Struct, gc=False, rename="camel"):
    node_selector_terms: list[_Term] | None = None


class _NodeAffinity(Struct, gc=False):
    required: _Required | None = msgspec.field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=None
    )


class _Affinity(Struct, gc=False, rename="camel"):
    node_affinity: _NodeAffinity | None = None


_selector = msgspec.json.Decoder(dict[str, str] | None)
_affinity = msgspec.json.Decoder(_Affinity | None)
_tolerations = msgspec.json.Decoder(list[Toleration] | None)


def parse_node_choice(selector: Raw, affinity: Raw, tolerations: Raw) -> NodeChoice:
    """The choice of these parts of a spec, each as it was sent; absent ones are empty.

    >>> parse_node_choice(Raw(b'{"pool":"a"}'), Raw(), Raw(b'[{"operator":"Exists"}]')).selector
    (('pool', 'a'),)
    """
    return _choice(bytes(selector), bytes(affinity), bytes(tolerations))


@lru_cache(maxsize=256)  # all pods of a job have the same choice, and each is read several times
def _choice(selector: bytes, affinity: bytes, tolerations: bytes) -> NodeChoice:
    try:
        asked = _affinity.decode(affinity) if affinity else None
        required = asked.node_affinity.required if asked and asked.node_affinity else None
        choice = NodeChoice(
            tuple(sorted(((_selector.decode(selector) if selector else None) or {}).items())),
            None if required is None else tuple(map(_term, required.node_selector_terms or ())),
            tuple((_tolerations.decode(tolerations) if tolerations else None) or ()),
        )
    except msgspec.MsgspecError:
        return ANYWHERE
    return ANYWHERE if choice == ANYWHERE else choice


def _term(term: _Term) -> Term:
    return Term(_expressions(term.match_expressions), _expressions(term.match_fields))


def _expressions(asked: Iterable[_Expression] | None) -> tuple[Expression, ...]:
    return tuple(
        Expression(each.key, each.operator, tuple(each.values or ())) for each in asked or ()
    )
