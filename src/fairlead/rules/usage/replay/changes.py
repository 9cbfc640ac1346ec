"""What a replay may change in the past: the tree, and the number of nodes of a model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.errors import UserError
from fairlead.model.quota.tree import QuotaTree
from fairlead.rules.quota.managed import with_user_caps_of
from fairlead.rules.quota.validate import validate
from fairlead.rules.usage.replay.history import NodeSpan, ReplayInput
from fairlead.rules.usage.replay.outcome import past_leaf
from fairlead.rules.usage.replay.simulation import leaves_of, tree_at

MOST_NODES: Final = 10_000
_CHANGE: Final = re.compile(r"(.{1,200})=([+-][0-9]{1,5})", re.ASCII)
_HOSTNAME: Final = "kubernetes.io/hostname"
_SHOWN: Final = 5


class ModelChange(Struct, frozen=True):
    """`count` more nodes with GPUs of a model; fewer, if it is negative."""

    model: str
    count: int


def parse_model_change(text: str) -> ModelChange:
    """Raises UserError for a text of another form.

    >>> parse_model_change("NVIDIA-A100=+2"), parse_model_change("V100=-1")
    (ModelChange(model='NVIDIA-A100', count=2), ModelChange(model='V100', count=-1))
    """
    found = _CHANGE.fullmatch(text)
    if found is None or not int(found[2]) or abs(int(found[2])) > MOST_NODES:
        raise UserError(
            f"`--nodes {text[:60]}` changes no number of nodes",
            f"write MODEL=+N or MODEL=-N, with N from 1 to {MOST_NODES}",
        )
    return ModelChange(found[1], int(found[2]))


def with_nodes(past: ReplayInput, changes: Iterable[ModelChange]) -> ReplayInput:
    """The past with other nodes: added ones are like the last of their model and exist the whole
    time; of those that are removed, the last by name never existed.

    Raises UserError for a model that no node had, and for more nodes than there were.
    """
    for change in changes:
        names = _of_model(past, change.model)
        if change.count > 0:
            past = _more(past, names[-1], change.count)
            continue
        if -change.count > len(names):
            raise UserError(
                f"`--nodes {change.model}={change.count}` removes more nodes than the "
                f"{len(names)} that there were",
                "remove fewer",
            )
        gone = set(names[change.count :])
        past = replace(past, nodes=tuple(e for e in past.nodes if e.room.name not in gone))
    return past


def asked_tree(past: ReplayInput, tree: QuotaTree) -> QuotaTree:
    """The tree to replay, with the caps of users that are in force at the end.

    Raises UserError for a tree that stops every plan, and for one that lacks a namespace of which
    quota counted pods.
    """
    stop = next((each for each in validate(tree, tree) if each.stops), None)
    if stop is not None or tree.root is None:
        raise UserError(
            f"the tree stops every plan: {stop.message if stop else 'it has no root'}",
            "`fairlead quota validate FILE` names every fault of it",
        )
    leaves = leaves_of(tree)
    lacking = Counter(
        each.pod.namespace
        for each in past.pods
        if each.pod.namespace not in leaves and past_leaf(past, each)
    )
    if lacking:
        names = ", ".join(f"`{name}` ({count} pods)" for name, count in lacking.most_common(_SHOWN))
        more = f" and {len(lacking) - _SHOWN} more" if len(lacking) > _SHOWN else ""
        raise UserError(
            f"the tree has no leaf for {names}{more}, of which quota counted pods in this time",
            "add these namespaces to leaves of the tree",
        )
    return with_user_caps_of(tree, tree_at(past.trees, past.end))


def _of_model(past: ReplayInput, model: str) -> list[str]:
    there = {span.room.name for span in past.nodes}
    kinds = {name: past.classes[name].model for name in there if name in past.classes}
    names = sorted(name for name, kind in kinds.items() if kind == model)
    if not names:
        known = ", ".join(f"`{each}`" for each in sorted({kind for kind in kinds.values() if kind}))
        raise UserError(
            f"no node of this time has GPUs of the model `{model[:100]}`",
            f"the models are {known}" if known else "no node of this time has GPUs",
        )
    return names


def _more(past: ReplayInput, like: str, count: int) -> ReplayInput:
    span = next(each for each in reversed(past.nodes) if each.room.name == like)
    taken = {each.room.name for each in past.nodes}
    names = (f"{like}+{number}" for number in range(1, count + len(taken) + 1))
    added = [name for name in names if name not in taken][:count]
    labels = dict(span.room.labels)
    spans = [
        NodeSpan(
            past.start,
            None,
            replace(
                span.room,
                name=name,
                labels=labels | ({_HOSTNAME: name} if _HOSTNAME in labels else {}),
                is_schedulable=True,
            ),
        )
        for name in added
    ]
    classes = {**past.classes, **dict.fromkeys(added, past.classes[like])}
    return replace(past, nodes=(*past.nodes, *spans), classes=classes)
