"""The clauses of a quota plan's reasons: each has a code, values, and its English.

A row of the plan carries its clauses beside the sentence. The sentence goes into conditions and
Events of pods; pages translate the clauses by their codes (`web/src/i18n`, `sentence.clause-CODE`).
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

SEPARATOR: Final = "; "
_PROTECTED: Final = "protected by PodDisruptionBudget {budget} (allows {allowed})"
CLAUSES: Final[Mapping[str, str]] = {
    "asks": "{resource} asks {asks}",
    "asks-firmly": "{resource} asks {asks}, not preemptible",
    "asks-on-one": "{resource} asks {asks} on one node",
    "asks-together": "{resource} asks {asks} for each of {pods} pods that start together",
    "in-all": "the cluster's nodes have {there} in all",
    "max-jobs": "{node} runs {jobs} of at most {max} jobs",
    "max-is": "{node} max is {max}",
    "min-is": "{node} min is {min}",
    "never": "this pod can never run here",
    "no-node": "no node that can be scheduled to allows it",
    "freest": "the freest of {nodes} nodes, {node}, has {free}",
    "only-node": "the only node, {node}, has {free}",
    "room-for": "the cluster's nodes have room for {there} of them",
    "kept": (
        "{unit} could take room on {node} that is kept for {claimant}, until the pods that make "
        "it have stopped"
    ),
    "kept-for-others": (
        "{unit} could take room on {node} that is kept for another team, until the pods that make "
        "it have stopped"
    ),
    "cap": "{user} uses {used} of {cap} allowed in {leaf}",
    "firm": "non-preemptible pods use {used} of guaranteed {min} of {leaf}",
    "label": "label preemptible=true to borrow",
    "owed": "guaranteed by {leaf}",
    "protected": f"{{count}} pods of {{leaf}} are {_PROTECTED}",
    "protected-one": f"1 pod of {{leaf}} is {_PROTECTED}",
    "protected-others": "pods that could make room are protected by a PodDisruptionBudget",
    "queued-others": "waits behind another unit, which is first in the strict queue of {leaf}",
    "queued": "waits behind {unit}, which is first in the strict queue of {leaf}",
    "gang-first": "gang {gang} has its {pods} pods first",
    "gang-missing": "gang {gang}: {there}/{size} pods exist",
    "gated": (
        "scheduling gate {gate} holds it, and it asks for nothing until only Fairlead's is left"
    ),
    "claims": "guaranteed by {leaf} (uses {used} of {min} {resource}, asks {asks})",
    "tree-invalid-elsewhere": "the quota tree is invalid; ask an administrator",
    "tree-invalid": "the quota tree is invalid: {fault}",
    "until-gone": "waiting for {victims} to stop",
    "until-stopped": "waiting for stopping pods to go",
    "room-again": "{leaf} has room again, and the next plan looks at it",
    "at-max": "{node} uses {used} of max {max}",
    "at-max-promised": "{node} uses {used} of max {max}, {claimed} promised",
    "at-nodes": "{node} uses {used} of the {there} that the cluster's nodes have",
    "at-nodes-promised": (
        "{node} uses {used} of the {there} that the cluster's nodes have, {claimed} promised"
    ),
    "not-lent": "{kept} {resource} are kept back by lend limits",
    "counts": "configured {configured}, available {there}, so {least} counts as {counts}",
    "room-made": "room is being made in {leaf} (uses {used} of {min} {resource}, asks {asks})",
    "in-use": "{node} {used}/{max} in use",
    "in-use-there": "{node} {used}/{max} in use, the cluster's nodes have {there}",
    "in-use-promised": "{node} {used}/{max} in use, {claimed} promised",
    "in-use-there-promised": (
        "{node} {used}/{max} in use, the cluster's nodes have {there}, {claimed} promised"
    ),
    "below-min": "{leaf} uses {used} of guaranteed {min}, and no pod above min may be evicted",
    "below-min-stopping": (
        "{leaf} uses {used} of guaranteed {min}, {stopping} of it stopping, and no pod above min "
        "may be evicted"
    ),
    "may-borrow": "{leaf} uses {used} of guaranteed {min}, so it may only borrow idle quota",
    "may-borrow-of": (
        "{leaf} uses {used} of guaranteed {min} {resource}, so it may only borrow idle quota"
    ),
    "may-borrow-asks": (
        "{leaf} uses {used} of guaranteed {min} {resource}, and {asks} more are over that, so it "
        "may only borrow idle quota"
    ),
    "may-borrow-promised": (
        "{leaf} uses {used} of guaranteed {min} {resource} and has promised {claimed}, so it may "
        "only borrow idle quota"
    ),
    "borrowers": "biggest borrowers: {leaves}",
    "nobody-borrows": "no leaf borrows",
}
_FIELDS: Final = {
    code: tuple(name for _, name, _, _ in string.Formatter().parse(words) if name)
    for code, words in CLAUSES.items()
}


class Clause(Struct, frozen=True):
    """One clause. `values` has exactly those that the words of its code name."""

    code: str
    values: Mapping[str, str]

    @property
    def text(self) -> str:
        """Its English.

        >>> clause("asks", resource="cpu", asks="4").text
        'cpu asks 4'
        """
        return CLAUSES[self.code].format(**self.values)


Clauses = tuple[Clause, ...]


def clause(code: str, **values: object) -> Clause:
    """The clause with the values that its words name; others are left out.

    >>> clause("asks", resource="cpu", asks=4, node="root").values
    {'resource': 'cpu', 'asks': '4'}
    """
    return Clause(code, {name: str(values[name]) for name in _FIELDS[code]})


def sentence_of(clauses: Iterable[Clause]) -> str:
    """The English of all of them.

    >>> sentence_of([clause("asks", resource="cpu", asks=4), clause("never")])
    'cpu asks 4; this pod can never run here'
    """
    return SEPARATOR.join(each.text for each in clauses)
