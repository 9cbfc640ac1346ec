"""Before `helm upgrade` and `helm rollback`: whether this version may take a Helm release over.

Helm itself compares nothing: it would put an older version beside data that it does not understand.
"""

from __future__ import annotations

from fairlead.apps.installation.installer import Wanted
from fairlead.apps.installation.losses import AWAITED, check, check_ends, check_loss
from fairlead.model.actions import ObjectRef, object_ref
from fairlead.model.installation import SYSTEM_NAMESPACE
from fairlead.ports import InstallationTarget
from fairlead.rules.installation.downgrade import refuse_too_old
from fairlead.rules.installation.order import WORKLOADS
from fairlead.settings import HELM_CHART
from fairlead.wire.installation.release import release_record


def check_release(cluster: InstallationTarget, wanted: Wanted) -> str:
    """A sentence about what was checked. Writes nothing.

    Raises UserError if `wanted` does not understand what the release in the cluster has written,
    if objects would lose fields, or if a part ends for which pods, jobs or users wait.
    """
    found = cluster.release(SYSTEM_NAMESPACE, HELM_CHART)
    if found is None:
        return "no Helm release is recorded in this cluster: nothing to compare"
    record, space = release_record(found), object_ref(found).namespace
    refusal = refuse_too_old(record.version, wanted.version, record.oldest)
    check(refusal, f"use a chart of version {record.oldest} or later")
    objects = wanted.objects
    if record.definitions == "true":
        check_loss(cluster, objects)
    kept = {each["metadata"]["name"] for each in objects if each["kind"] in WORKLOADS}
    ending = {
        name
        for name in AWAITED
        if name not in kept
        and cluster.get(ObjectRef("apps/v1", "Deployment", name, space)) is not None
    }
    check_ends(cluster, ending)
    return f"version `{wanted.version}` may follow `{record.version}`"
