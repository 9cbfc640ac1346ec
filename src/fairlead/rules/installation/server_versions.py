"""Which versions of the API server and of kube-scheduler an installation needs, and what to do
about others.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import structs

from fairlead.model.installation import Installation
from fairlead.model.refusal import Refusal
from fairlead.rules.installation.finding_lists import dotted

Version = tuple[int, int]

POLICIES_FROM: Final = (1, 36)
"""MutatingAdmissionPolicy in `admissionregistration.k8s.io/v1`."""
WEBHOOKS_FROM: Final = (1, 30)
"""ValidatingAdmissionPolicy in `admissionregistration.k8s.io/v1`: those of the accounts are written
beside the webhooks, too.
"""
AGENT_FROM: Final = (1, 32)
"""The token of a pod names its node, which the policies of the node agent compare."""
SCHEDULER_TAG: Final = r":v([0-9]+)\.([0-9]+)\.[0-9]+(@|$)"
"""The tag of a kube-scheduler's image that is a version; the chart's templates search it, too."""
NEWER_SCHEDULER: Final = "kube-scheduler %s of `%s` is newer than the API server %s"
"""Minor version, image, minor version of the API server."""
FITTING_SCHEDULER: Final = "--set kubeSchedulerImage=%s:v%s.PATCH"
"""Name of the image, minor version of the API server."""


def oldest_server(chosen: Installation) -> Version:
    """The first Kubernetes in which an installation of these values works."""
    if chosen.admission == "policies":
        return POLICIES_FROM
    return AGENT_FROM if chosen.parts.node_agent else WEBHOOKS_FROM


def refuse_server(server: Version, chosen: Installation) -> Refusal | None:
    """The refusal of an API server that is too old for these values.

    >>> refuse_server((1, 35), Installation()).reason
    'Kubernetes 1.35; admission by policies needs 1.36'
    """
    oldest = oldest_server(chosen)
    if server >= oldest:
        return None
    needed = f"admission by {chosen.admission} needs {dotted(oldest)}"
    return Refusal(f"Kubernetes {dotted(server)}; {needed}")


def older_server_hint(server: Version, chosen: Installation) -> str:
    """What to do about an API server that is too old for these values."""
    others = structs.replace(chosen, admission="webhooks")
    first = oldest_server(others)
    if chosen.admission == "webhooks" or server < first:
        return "upgrade the cluster"
    hint = f"`--set admission=webhooks` works with Kubernetes {dotted(first)} and later"
    if refuse_scheduler(server, others) is None:
        return hint
    return f"{hint}, with {fitting_scheduler(server, others)}"


def scheduler_version(chosen: Installation) -> Version | None:
    """Of the image of Fairlead's own kube-scheduler; None without one, or with another tag.

    >>> scheduler_version(Installation(kube_scheduler_image="x/kube-scheduler:v1.34.2"))
    (1, 34)
    """
    found = re.search(SCHEDULER_TAG, chosen.kube_scheduler_image)
    if found is None or not has_own_scheduler(chosen):
        return None
    return int(found[1]), int(found[2])


def has_own_scheduler(chosen: Installation) -> bool:
    """Whether an installation of these values has a kube-scheduler of its own."""
    return chosen.parts.gpu_sharing and chosen.scheduler == "own"


def refuse_scheduler(server: Version, chosen: Installation) -> Refusal | None:
    """The refusal of a kube-scheduler that is newer than the API server.

    Kubernetes does not support it (https://kubernetes.io/releases/version-skew-policy/).
    """
    image = scheduler_version(chosen)
    if image is None or image <= server:
        return None
    return Refusal(NEWER_SCHEDULER % (dotted(image), chosen.kube_scheduler_image, dotted(server)))


def is_old_scheduler(server: Version, image: Version) -> bool:
    """Whether a kube-scheduler is older than Kubernetes supports: by more than one minor version.

    >>> is_old_scheduler((1, 36), (1, 35)), is_old_scheduler((1, 36), (1, 34))
    (False, True)
    """
    return image < (server[0], server[1] - 1)


def fitting_scheduler(server: Version, chosen: Installation) -> str:
    """The setting of a kube-scheduler that fits the API server."""
    name = chosen.kube_scheduler_image.partition("@")[0].rpartition(":")[0]
    return f"`{FITTING_SCHEDULER % (name, dotted(server))}`"
