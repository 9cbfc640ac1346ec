"""Whose series of a node's cards are, beyond what the kubelet tells: labels and UIDs of pods, HPC jobs."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from fairlead.model.devices.gpu import Grant


class PodIdentity(Struct, frozen=True, gc=False):
    """`labels`: those that shall be printed, by the names that Prometheus takes."""

    uid: str = ""
    labels: Mapping[str, str] = {}


class LocalPod(Struct, frozen=True, gc=False):
    """One pod of the node, as the API server tells it. `kubelet_uid`: the one in its cgroups and the
    kubelet's checkpoint, which a static pod has from a hash. `containers`: their names by the runtime's id.
    `grants`: the shares of cards that its annotations tell, by container.
    """

    namespace: str
    name: str
    uid: str = ""
    kubelet_uid: str = ""
    labels: Mapping[str, str] = {}
    containers: Mapping[str, str] = {}
    grants: Mapping[str, tuple[Grant, ...]] = {}


class SeriesNames(Struct, frozen=True):
    """`pods`: by namespace and name. `jobs`: ids of jobs by `<gpu>` or `<gpu>.<GPU instance>`.

    `left_out`: labels of these pods that are not printed, by reason; None where no labels are asked for.
    """

    pods: Mapping[tuple[str, str], PodIdentity] = {}
    jobs: Mapping[str, tuple[str, ...]] = {}
    left_out: Mapping[str, int] | None = None
