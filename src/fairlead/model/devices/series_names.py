"""Whose series of a node's cards are, beyond what the kubelet tells: labels and UIDs of pods, HPC jobs."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class PodIdentity(Struct, frozen=True, gc=False):
    """`labels`: those that shall be printed, by the names that Prometheus takes."""

    uid: str = ""
    labels: Mapping[str, str] = {}


class SeriesNames(Struct, frozen=True):
    """`pods`: by namespace and name. `jobs`: ids of jobs by `<gpu>` or `<gpu>.<GPU instance>`."""

    pods: Mapping[tuple[str, str], PodIdentity] = {}
    jobs: Mapping[str, tuple[str, ...]] = {}
