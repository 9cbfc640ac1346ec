"""Which installation, upgrade or removal is refused, with its sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from fairlead.model.actions import Manifest, ObjectRef
from fairlead.model.installation import INSTALLATION_LABEL
from fairlead.model.refusal import Refusal
from fairlead.rules.installation.finding_lists import some

_SHOWN: Final = 5
_HELM_OWNER: Final = "meta.helm.sh/release-name"


def refuse_image(installed: str, offered: str, image: str) -> Refusal | None:
    """The refusal to run another version with the image of the installed one.

    >>> refuse_image("0.1.0", "0.2.0", "example.com:5000/fairlead:0.1.0").reason
    'version `0.2.0` needs its own image, and `example.com:5000/fairlead:0.1.0` is of `0.1.0`'
    """
    name = image.partition("@")[0].rpartition("/")[2]
    tag = name.partition(":")[2].removeprefix("v")
    if offered == installed or tag != installed:
        return None
    return Refusal(f"version `{offered}` needs its own image, and `{image}` is of `{installed}`")


def refuse_ending(namespace: Manifest | None) -> Refusal | None:
    """The refusal of a namespace that is being deleted."""
    if namespace is None or not namespace["metadata"].get("deletionTimestamp"):
        return None
    return Refusal(f"namespace `{namespace['metadata']['name']}` is being deleted")


def refuse_namespace(namespace: Manifest | None) -> Refusal | None:
    """The refusal of a namespace that is being deleted, or that belongs to a Helm release."""
    if namespace is None:
        return None
    if (ending := refuse_ending(namespace)) is not None:
        return ending
    meta = namespace["metadata"]
    release = (meta.get("annotations") or {}).get(_HELM_OWNER)
    if release:
        return Refusal(f"namespace `{meta['name']}` belongs to the Helm release `{release}`")
    return None


def refuse_foreign_namespace(namespace: Manifest) -> Refusal | None:
    """The refusal to take over a namespace that was not made for Fairlead."""
    meta = namespace["metadata"]
    if INSTALLATION_LABEL in (meta.get("labels") or {}):
        return None
    return Refusal(f"namespace `{meta['name']}` exists, and was not made for Fairlead")


def refuse_move(installed: str, wanted: str) -> Refusal | None:
    """The refusal to move an installation to another namespace, or to make a second one.

    >>> refuse_move("gpu", "fairlead-system").reason
    'Fairlead is installed in namespace `gpu`, and cannot be moved to `fairlead-system`'
    """
    if installed == wanted:
        return None
    return Refusal(
        f"Fairlead is installed in namespace `{installed}`, and cannot be moved to `{wanted}`"
    )


def refuse_releases(releases: Sequence[str]) -> Refusal | None:
    """The refusal beside a Helm release of Fairlead's."""
    if not releases:
        return None
    return Refusal(f"Helm has installed Fairlead here: release `{releases[0]}`")


def refuse_definition(found: Manifest, offered: Manifest) -> Refusal | None:
    """The refusal of a CustomResourceDefinition of another program that does not fit: another kind
    or scope, or without our version or its status.
    """
    name = found["metadata"]["name"]
    spec, wanted = found["spec"], offered["spec"]
    kind, scope = spec["names"]["kind"], spec["scope"]
    if (kind, scope) != (wanted["names"]["kind"], wanted["scope"]):
        return Refusal(f"definition `{name}` exists as {scope} `{kind}`, which does not fit")
    served = {each["name"]: each for each in spec["versions"] if each.get("served")}
    for version in wanted["versions"]:
        each: Any = served.get(version["name"])
        if each is None:
            return Refusal(f"definition `{name}` exists and serves no `{version['name']}`")
        if "status" not in (each.get("subresources") or {}):
            return Refusal(f"definition `{name}` exists without the subresource `status`")
    return None


def refuse_waiting(pods: Sequence[ObjectRef], gate: str) -> Refusal | None:
    """The refusal to remove the process that admits pods while pods wait for it.

    >>> refuse_waiting([ObjectRef("v1", "Pod", "p", "team")], "fairlead.io/quota").reason
    '1 pod waits at the scheduling gate `fairlead.io/quota`: team/p'
    """
    if not pods:
        return None
    count = "1 pod waits" if len(pods) == 1 else f"{len(pods)} pods wait"
    return Refusal(f"{count} at the scheduling gate `{gate}`: {_names(pods)}")


def refuse_held_jobs(jobs: Sequence[ObjectRef]) -> Refusal | None:
    """The refusal to remove the quota controller while it holds jobs back.

    >>> refuse_held_jobs([ObjectRef("batch/v1", "Job", "train", "team")]).reason
    '1 job is held back for quota: team/train'
    """
    if not jobs:
        return None
    count = "1 job is" if len(jobs) == 1 else f"{len(jobs)} jobs are"
    return Refusal(f"{count} held back for quota: {_names(jobs)}")


def refuse_unscheduled(pods: Sequence[ObjectRef], scheduler: str) -> Refusal | None:
    """The refusal to remove a scheduler while pods that name it wait for it.

    >>> refuse_unscheduled([ObjectRef("v1", "Pod", "p", "team")], "fairlead-scheduler").reason
    '1 pod waits for the scheduler `fairlead-scheduler`: team/p'
    """
    if not pods:
        return None
    count = "1 pod waits" if len(pods) == 1 else f"{len(pods)} pods wait"
    return Refusal(f"{count} for the scheduler `{scheduler}`: {_names(pods)}")


def _names(objects: Sequence[ObjectRef]) -> str:
    """The first of them by name, and the number of the others."""
    return some([f"{each.namespace}/{each.name}" for each in objects], most=_SHOWN)
