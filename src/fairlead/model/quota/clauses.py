"""What a quota plan says of who waits, clause by clause: each has a code and values, and here its English.

The sentence stands in conditions and Events of pods as text. Whoever shows it in another language reads the
clauses back (`read_clauses`) from the same words that wrote them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

BETWEEN: Final = "; "
_PROTECTED: Final = "protected by PodDisruptionBudget {budget} (allows {allowed})"
CLAUSES: Final[Mapping[str, str]] = {
    "asks": "{resource} asks {asks}",
    "asks-firmly": "{resource} asks {asks}, not preemptible",
    "asks-on-one": "{resource} asks {asks} on one node",
    "asks-together": "{resource} asks {asks} for each of {pods} pods that start together",
    "in-all": "the cluster's nodes have {there} in all",
    "max-is": "{node} max is {max}",
    "min-is": "{node} min is {min}",
    "never": "this pod can never run here",
    "no-node": "no node that can be scheduled to allows it",
    "freest": "the freest of {nodes} nodes, {node}, has {free}",
    "only-node": "the only node, {node}, has {free}",
    "room-for": "the cluster's nodes have room for {there} of them",
    "kept": "{unit} could take room on {node} that is kept for {claimant}, until those have stopped who make it",
    "cap": "{user} uses {used} of {cap} allowed in {leaf}",
    "firm": "non-preemptible pods use {used} of guaranteed {min} of {leaf}",
    "label": "label preemptible=true to borrow",
    "owed": "guaranteed by {leaf}",
    "protected": f"{{count}} pods of {{leaf}} are {_PROTECTED}",
    "protected-one": f"1 pod of {{leaf}} is {_PROTECTED}",
    "queued": "waits behind {unit}, which is first in the strict queue of {leaf}",
    "gang-first": "gang {gang} has its {pods} pods first",
    "gang-missing": "gang {gang}: {there}/{size} pods exist",
    "gated": "scheduling gate {gate} holds it, and it asks for nothing until only Fairlead's is left",
    "claims": "guaranteed by {leaf} (uses {used} of {min} {resource}, asks {asks})",
    "until-gone": "waiting for {victims} to stop",
    "until-stopped": "waiting for stopping pods to go",
    "room-again": "{leaf} has room again, and the next plan looks at it",
    "at-max": "{node} uses {used} of max {max}",
    "at-max-promised": "{node} uses {used} of max {max}, {claimed} promised",
    "at-nodes": "{node} uses {used} of the {there} that the cluster's nodes have",
    "at-nodes-promised": "{node} uses {used} of the {there} that the cluster's nodes have, {claimed} promised",
    "not-lent": "{kept} {resource} are kept back by lend limits",
    "counts": "configured {configured}, available {there}, so {least} counts as {counts}",
    "room-made": "room is being made in {leaf} (uses {used} of {min} {resource}, asks {asks})",
    "in-use": "{node} {used}/{max} in use",
    "in-use-there": "{node} {used}/{max} in use, the cluster's nodes have {there}",
    "in-use-promised": "{node} {used}/{max} in use, {claimed} promised",
    "in-use-there-promised": "{node} {used}/{max} in use, the cluster's nodes have {there}, {claimed} promised",
    "below-min": "{leaf} uses {used} of guaranteed {min}, and nobody above min may be evicted",
    "below-min-stopping": "{leaf} uses {used} of guaranteed {min}, {stopping} of it stopping, and nobody above min may be evicted",
    "may-borrow": "{leaf} uses {used} of guaranteed {min}, so it may only borrow idle quota",
    "may-borrow-of": "{leaf} uses {used} of guaranteed {min} {resource}, so it may only borrow idle quota",
    "may-borrow-asks": "{leaf} uses {used} of guaranteed {min} {resource}, and {asks} more are over that, so it may only borrow idle quota",
    "may-borrow-promised": "{leaf} uses {used} of guaranteed {min} {resource} and has promised {claimed}, so it may only borrow idle quota",
    "borrowers": "biggest borrowers: {leaves}",
    "nobody-borrows": "nobody borrows",
}
_ANY, _WORD = r".+", r"\S+"
_LISTS: Final = ("victims", "leaves", "user", "gate")
"""Values that may have spaces in them; all others are numbers and names of Kubernetes objects."""


def clause(code: str, **values: object) -> str:
    """The English of one clause.

    >>> clause("asks", resource="cpu", asks="4")
    'cpu asks 4'
    """
    return CLAUSES[code].format(**values)


def read_clauses(message: str) -> list[tuple[str, dict[str, str], str]]:
    """Codes, values and words of a sentence; empty where one clause of it is not of ours.

    >>> [(code, values) for code, values, _ in read_clauses("cpu asks 4; root.a uses 8 of max 10")]
    [('asks', {'resource': 'cpu', 'asks': '4'}), ('at-max', {'node': 'root.a', 'used': '8', 'max': '10'})]
    >>> read_clauses("0/3 nodes are available: 3 Insufficient cpu.")
    []
    """
    found = []
    for words in message.split(BETWEEN):
        for code, pattern in _PATTERNS:
            if said := pattern.fullmatch(words):
                found.append((code, said.groupdict(), words))
                break
        else:
            return []
    return found


def _pattern(words: str) -> re.Pattern[str]:
    """The clause with any values.

    >>> _pattern("{node} max is {max}").pattern
    '(?P<node>\\\\S+)\\\\ max\\\\ is\\\\ (?P<max>\\\\S+)'
    """
    parts = re.split(r"\{(\w+)\}", words)
    names = [f"(?P<{name}>{_ANY if name in _LISTS else _WORD})" for name in parts[1::2]]
    return re.compile("".join(re.escape(text) + name for text, name in zip(parts[::2], [*names, ""], strict=True)))


_PATTERNS: Final = sorted(((code, _pattern(words)) for code, words in CLAUSES.items()), key=lambda each: -len(CLAUSES[each[0]]))
"""The longest first: what says more is not taken for what says less."""
