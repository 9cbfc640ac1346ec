"""A user who may read the nodes, the quota tree, and the objects of some namespaces."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from fairlead.errors import Forbidden
from fairlead.model.actions import WriteTreeStatus
from fairlead.model.quota.tree import QuotaTree
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.model.source import Source, SourceState
from fairlead.rules.quota.usage import quota_usage
from fairlead.wire.kube.kept_objects import KeptObjects
from fairlead.wire.quota.tree_status import render_tree_status

REFUSED = 'pods is forbidden: User "bob" cannot list resource "pods"'
_NAMESPACED = ("pods", "events", "mpijobs.kubeflow.org", "replicasets")


class Researcher:
    """A `ClusterReader` of a whole cluster for a user of `namespaces`.

    `unread`: a kind that the user may not read there, either.
    """

    def __init__(self, whole: ClusterSnapshot, *namespaces: str, unread: str = "") -> None:
        self._unread = [_refused(unread)] if unread else []
        self._whole = whole
        self._namespaces = namespaces

    def read_all(self, *, with_warnings: bool = True) -> ClusterSnapshot:
        assert not with_warnings, "it would print a warning of each kind"
        sources = {**self._whole.sources, **{name: _refused(name) for name in _NAMESPACED}}
        return replace(self._whole, pods=(), jobs=(), workloads=(), events=(), sources=sources)

    def read_namespace(self, namespace: str) -> ClusterSnapshot:
        if namespace not in self._namespaces:
            raise Forbidden("kubernetes", f'{REFUSED} in the namespace "{namespace}"')
        read = (Source("pods"), Source("events"), *self._unread)
        sources = {each.name: each for each in read}
        return replace(self._whole.within((namespace,)), nodes=(), sources=sources)

    def read_nodes(
        self, names: Sequence[str] = (), *, with_readings: bool = False, with_withheld: bool = False
    ) -> ClusterSnapshot:
        raise AssertionError("quota commands read everything")

    def read_objects(self) -> KeptObjects | None:
        return None

    def describe(self) -> str:
        return "a cluster of the tests"


def _refused(name: str) -> Source:
    return Source(name, SourceState.FORBIDDEN, REFUSED, "ask for a role")


def with_status(whole: ClusterSnapshot) -> ClusterSnapshot:
    """The cluster with the status that the quota controller writes for it."""
    tree = whole.quota_tree
    assert tree is not None
    uses = tuple(use.own for use in quota_usage(whole))
    return replace(whole, quota_tree=_reported(tree, WriteTreeStatus(tree, uses)))


def _reported(tree: QuotaTree, action: WriteTreeStatus) -> QuotaTree:
    return replace(tree, status=render_tree_status(action))
