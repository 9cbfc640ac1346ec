"""Search of the cluster: pods, jobs, GPUs and nodes, by name, id or label, the nearest first.

Every object is found once, by the field with the nearest match. Ids are searched for texts of
`ID_MIN` characters and more, because two hexadecimal digits occur in every id; labels if the text
has an equals sign.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.console.pages.search import SearchHit
from fairlead.errors import UserError
from fairlead.model.jobs.job import Job
from fairlead.model.node import Node
from fairlead.model.occupancy import CardOccupancy, NodeOccupancy
from fairlead.model.pod import Pod
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.pods.devices import has_gpu

ID_MIN: Final = 4
TEXT_MAX: Final = 400
SHOWN: Final = 12
SHOWN_MAX: Final = 50
_NEARNESSES: Final = 8
"""Four of names, then the same four of other fields."""
_EQUALS: Final = "="

_Found = tuple[int, str, str]
"""Nearness, name of the field, and its value."""
_Thing = Node | CardOccupancy | Job | Pod
_KINDS: Final = {Node: "node", CardOccupancy: "gpu", Job: "job", Pod: "pod"}


class Search(Struct, frozen=True):
    """The hits that are shown, and the total number."""

    hits: list[SearchHit]
    total: int


def query_text(text: str) -> str:
    """The text without surrounding blanks. Raises UserError if it is empty or too long."""
    asked = text.strip()
    if not asked:
        raise UserError(
            "`q` is empty", "give a name, a UID, a GPU's UUID, or a label as `key=value`"
        )
    if len(asked) > TEXT_MAX:
        raise UserError(f"`q` has {len(asked)} characters", f"give at most {TEXT_MAX}")
    return asked


class SearchIndex(Struct, frozen=True):
    """Everything that can be found, in the order of hits that are equally near, and what each is
    called.

    `words`: name and id of each in lower case, so that most of 50,000 pods are passed over at one
    glance.
    """

    things: list[_Thing]
    words: list[str]


def searched(snapshot: ClusterSnapshot, occupied: Iterable[NodeOccupancy]) -> SearchIndex:
    cards = [card for each in occupied for card in each.cards]
    words = [f"{node.name}\n{node.uid}" for node in snapshot.nodes]
    words += [f"{job.namespace}/{job.name}\n{job.uid}" for job in snapshot.jobs]
    words += [card.uuid for card in cards]
    words += [f"{pod.namespace}/{pod.name}\n{pod.uid}" for pod in snapshot.pods]
    return SearchIndex(
        [*snapshot.nodes, *snapshot.jobs, *cards, *snapshot.pods], [each.lower() for each in words]
    )


def search(
    among: SearchIndex,
    job_by_pod: Mapping[str, str],
    text: str,
    most: int = SHOWN,
    namespaces: Collection[str] | None = None,
) -> Search:
    """`job_by_pod`: pod key -> `type/name`. `namespaces`: those the reader may see; None = all."""
    best, asked = _NearestHits(most), _Asked(text.lower())
    for thing in asked.candidates(among):
        if (
            namespaces is None
            or isinstance(thing, Node | CardOccupancy)
            or thing.namespace in namespaces
        ):
            best.add(asked.nearest(thing), thing)
    return Search(
        [_hit(thing, found, asked.text, job_by_pod) for thing, found in best.nearest()], best.total
    )


class _Asked:
    """One text in lower case, and what it was found to be in words that many objects share."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._is_id = len(text) >= ID_MIN
        self._with_namespace = "/" in text
        self._key, equals, self._value = text.rpartition(_EQUALS)
        self._is_label = bool(equals)
        self._fits_key: dict[str, bool] = {}

    def candidates(self, among: SearchIndex) -> Iterable[_Thing]:
        """Things that may match the text: labels are searched
        only if the text has the form of one.
        """
        if self._is_label:
            return among.things
        return [
            thing
            for thing, words in zip(among.things, among.words, strict=True)
            if self.text in words
        ]

    def nearest(self, thing: _Thing) -> _Found | None:
        if isinstance(thing, CardOccupancy):
            return self._name_or_id("", "uuid", thing.uuid)
        name = thing.name
        if self._with_namespace and not isinstance(thing, Node):
            name = f"{thing.namespace}/{name}"
        found = self._name_or_id(name, "uid", thing.uid)
        return self._label(thing.labels) if found is None and self._is_label else found

    def _name_or_id(self, name: str, id_field: str, id_: str) -> _Found | None:
        if self.text in (lowered := name.lower()):
            return nearness(lowered, self.text), "name", name
        if self._is_id and self.text in (lowered := id_.lower()):
            return 4 + nearness(lowered, self.text), id_field, id_
        return None

    def _label(self, labels: Mapping[str, str]) -> _Found | None:
        """The nearest of those whose key ends and whose value begins as was asked."""
        best: _Found | None = None
        for key, value in labels.items():
            fits = self._fits_key.get(key)
            if fits is None:
                fits = self._fits_key[key] = key.lower().endswith(self._key)
            if fits and value.lower().startswith(self._value):
                text = f"{key}{_EQUALS}{value}"
                near = 4 + nearness(text.lower(), self.text)
                if best is None or near < best[0]:
                    best = near, "label", text
        return best


def nearness(text: str, asked: str) -> int:
    """0 the very text, 1 its beginning, 2 the beginning of a word in it, 3 anywhere else in it.

    >>> [nearness("web-api", asked) for asked in ("web-api", "web", "api", "pi")]
    [0, 1, 2, 3]
    """
    if text == asked:
        return 0
    at = text.find(asked)
    return 1 if at == 0 else 3 if text[at - 1].isalnum() else 2


class _NearestHits:
    """The nearest so far, of each nearness as many as can be shown;
    the others are counted and forgotten.
    """

    def __init__(self, most: int) -> None:
        self.total = 0
        self._most = most
        self._kept: list[list[tuple[_Thing, _Found]]] = [[] for _ in range(_NEARNESSES)]

    def add(self, found: _Found | None, thing: _Thing) -> None:
        if found is None:
            return
        self.total += 1
        kept = self._kept[found[0]]
        if len(kept) < self._most:
            kept.append((thing, found))

    def nearest(self) -> list[tuple[_Thing, _Found]]:
        return list(chain.from_iterable(self._kept))[: self._most]


def _hit(thing: _Thing, found: _Found, asked: str, job_by_pod: Mapping[str, str]) -> SearchHit:
    _, field, text = found
    hit = SearchHit(
        _KINDS[type(thing)], "", "", "", "", None, False, field, text, _piece(text, asked)
    )
    match thing:
        case Node():
            return replace(hit, name=thing.name, node=thing.name)
        case CardOccupancy():
            return replace(hit, name=thing.node, node=thing.node, gpu_index=thing.index)
        case Job():
            return replace(
                hit, namespace=thing.namespace, name=thing.name, job=f"{thing.type}/{thing.name}"
            )
        case Pod():
            job, holds = job_by_pod.get(thing.key, ""), thing.is_holding and has_gpu(thing)
            return replace(
                hit,
                namespace=thing.namespace,
                name=thing.name,
                job=job,
                node=thing.node,
                holds_gpu=holds,
            )


def _piece(text: str, asked: str) -> str:
    """As the field writes it.

    A letter may have another length in lower case: then it is the whole field.
    """
    lowered = text.lower()
    at = lowered.find(asked)
    return text[at : at + len(asked)] if len(lowered) == len(text) else text
