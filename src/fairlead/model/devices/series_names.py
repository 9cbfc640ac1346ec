"""Names on the series of a node's cards from outside the kubelet: pod labels, UIDs, HPC jobs."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from fairlead.model.devices.gpu import Grant


class PodIdentity(Struct, frozen=True, gc=False):
    """`labels`: those to print, by names that Prometheus accepts."""

    uid: str = ""
    labels: Mapping[str, str] = {}


class LocalPod(Struct, frozen=True, gc=False):
    """One pod of the node, from the API server.

    `kubelet_uid`: the uid in its cgroups and the kubelet's checkpoint; for a static pod it is a
    hash. `containers`: names by the runtime's id. `grants`: the GPU shares in its annotations, by
    container.
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

    `left_out`: numbers of pod labels that are not printed, by reason; None if labels are not asked
    for.
    """

    pods: Mapping[tuple[str, str], PodIdentity] = {}
    jobs: Mapping[str, tuple[str, ...]] = {}
    left_out: Mapping[str, int] | None = None
