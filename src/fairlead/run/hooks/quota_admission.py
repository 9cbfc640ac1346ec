"""The admission rules of quota as a hook of the simulated cluster.

In a real cluster the policies of `deploy/quota-admission.yaml` apply them.

Writes of the simulated cluster's own controllers carry no user. A DaemonSet's pods are recognized
by their owner, which is reliable for such a write: every other client has a user.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from fairlead.model.keys import (
    ANNOTATION_LEAF,
    ANNOTATION_SUSPENDED_FOR,
    FIRST_ADMISSION,
    LABEL_QUOTA,
    QUOTA_ENFORCED,
)
from fairlead.model.quota.tree import QuotaTree
from fairlead.model.quota.written import Writer, WrittenObject, job_part, written_job
from fairlead.model.refusal import Refusal
from fairlead.rules.quota.admission import (
    ADMINS,
    DAEMON_SETS,
    GUARD_POLICY,
    USER_POLICY,
    additions,
    begins_suspended,
    refuse_binding,
    refuse_change,
    refuse_new,
    refuse_stamp,
    stamp,
)
from fairlead.rules.quota.validate import validate
from fairlead.wire.kube.objects import WirePod, parse_pod
from fairlead.wire.quota.elastic_quota import WireQuotaTree, parse_quota_tree
from fairlead_sim.api.tokens import ADMIN
from fairlead_sim.objects.resources import (
    CRON_JOBS,
    DEPLOYMENTS,
    ELASTIC_QUOTA_TREES,
    JOBS,
    NAMESPACES,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
)
from fairlead_sim.schema.resource import ResourceKind
from fairlead_sim.schema.status import ApiStatus, forbidden
from fairlead_sim.store.admission import CREATE, Write
from fairlead_sim.store.cluster import StoredCluster

PARTS: Final = "system:serviceaccount:kube-system:"
"""The prefix of the user names of a cluster's own controllers, which are ServiceAccounts."""
OWNERS: Final = (REPLICA_SETS, DEPLOYMENTS, STATEFUL_SETS, JOBS, CRON_JOBS)
Object = dict[str, Any]
_trees: Final = msgspec.json.Decoder(WireQuotaTree)
_pods: Final = msgspec.json.Decoder(WirePod)


class QuotaPolicies:
    """Called before a write is stored.

    Returns the object to store, or raises the ApiStatus that refuses it.
    """

    def __init__(self, cluster: StoredCluster) -> None:
        self._cluster = cluster

    def __call__(self, write: Write) -> Object:
        if write.ref is ELASTIC_QUOTA_TREES:
            return self._tree(write)
        if write.ref is not PODS and write.ref not in OWNERS and not write.ref.is_custom:
            return write.new
        space = self._cluster.get(
            NAMESPACES, None, (write.new.get("metadata") or {}).get("namespace") or ""
        )
        if (
            space is None
            or (space["metadata"].get("labels") or {}).get(LABEL_QUOTA) != QUOTA_ENFORCED
        ):
            return write.new
        leaf = (space["metadata"].get("annotations") or {}).get(ANNOTATION_LEAF, "")
        return self._pod(write, leaf) if write.ref is PODS else _owner(write)

    def _pod(self, write: Write, leaf: str) -> Object:
        writer, new = _writer(write), write.new
        if write.subresource == "binding":
            _refuse(write, GUARD_POLICY, refuse_binding(_written(new), writer, leaf))
        elif write.verb == CREATE:
            added = additions(_written(new), writer)
            new = _labelled(new, added.labels)
            if added.gate:
                spec = new.get("spec") or {}
                new = {
                    **new,
                    "spec": {
                        **spec,
                        "schedulingGates": [
                            *(spec.get("schedulingGates") or ()),
                            {"name": added.gate},
                        ],
                    },
                }
            _refuse(write, GUARD_POLICY, refuse_new(_written(new), writer, leaf))
        elif write.old is not None:
            _refuse(
                write, GUARD_POLICY, refuse_change(_written(write.old), _written(new), writer, leaf)
            )
        return new

    def _tree(self, write: Write) -> Object:
        """Objects of the scenario itself are not checked: it may begin with an invalid tree."""
        if not write.user:
            return write.new
        tree, old = (
            None if each is None else parse_quota_tree(_trees.decode(msgspec.json.encode(each)))
            for each in (write.new, write.old)
        )
        assert tree is not None
        named = {
            space for leaf in (tree.root.leaves() if tree.root else ()) for space in leaf.namespaces
        }
        was = {
            space
            for leaf in (old.root.leaves() if old and old.root else ())
            for space in leaf.namespaces
        }
        moved = [obj for space in sorted(named | was) for obj in self._cluster.scan(PODS, space)]
        pods = [parse_pod(_pods.decode(msgspec.json.encode(obj))) for obj in moved]
        spaces = [each["metadata"]["name"] for each in self._cluster.scan(NAMESPACES)]
        errors = [each for each in validate(tree, old, spaces, pods) if each.is_error]
        if errors:
            message = "; ".join(f"{each.code}: {each.message}" for each in errors)
            raise _denied(
                write, (f'admission webhook "quota-tree.fairlead.io" denied the request: {message}')
            )
        return write.new


def _tree(obj: Object) -> QuotaTree:
    return parse_quota_tree(_trees.decode(msgspec.json.encode(obj)))


def _owner(write: Write) -> Object:
    writer = _writer(write)
    if write.verb == CREATE:
        return _suspended(_labelled(write.new, stamp(writer)))
    if write.old is not None:
        _refuse(write, USER_POLICY, refuse_stamp(_written(write.old), _written(write.new), writer))
    return write.new


def _suspended(obj: Object) -> Object:
    """A job with a deadline is created suspended by Fairlead; other objects stay as written."""
    metadata, part = obj.get("metadata") or {}, job_part(obj)
    if part is None or not begins_suspended(written_job(obj, {}, {})):
        return obj
    marks = {**(metadata.get("annotations") or {}), ANNOTATION_SUSPENDED_FOR: FIRST_ADMISSION}
    held = {**part, "suspend": True}
    spec = held if part is obj["spec"] else {**obj["spec"], "runPolicy": held}
    return {**obj, "metadata": {**metadata, "annotations": marks}, "spec": spec}


def _writer(write: Write) -> Writer:
    if write.user:
        return Writer(write.user, (ADMINS,) if write.user == ADMIN.name else ())
    owners = (write.new.get("metadata") or {}).get("ownerReferences") or ()
    is_daemon = any(each.get("kind") == "DaemonSet" and each.get("controller") for each in owners)
    return Writer(DAEMON_SETS if is_daemon else f"{PARTS}controller", (ADMINS,))


def _written(obj: Object) -> WrittenObject:
    metadata, spec = obj.get("metadata") or {}, obj.get("spec") or {}
    gates = tuple(each.get("name", "") for each in spec.get("schedulingGates") or ())
    return WrittenObject(
        metadata.get("labels") or {},
        metadata.get("annotations") or {},
        gates,
        spec.get("nodeName") or "",
    )


def _labelled(obj: Object, labels: Any) -> Object:
    if not labels:
        return obj
    metadata = obj.get("metadata") or {}
    return {**obj, "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), **labels}}}


def _refuse(write: Write, policy: str, refusal: Refusal | None) -> None:
    if refusal is not None:
        raise _denied(
            write,
            (
                f"ValidatingAdmissionPolicy '{policy}' with binding '{policy}' denied request: "
                f"{refusal.reason}"
            ),
        )


def _denied(write: Write, message: str) -> ApiStatus:
    return denied(write.ref, (write.new.get("metadata") or {}).get("name", ""), message)


def denied(ref: ResourceKind, name: str, message: str) -> ApiStatus:
    """The answer of an API server when a policy denies a write."""
    status = forbidden(ref, name, message)
    return ApiStatus(
        status.code,
        status.reason,
        status.message,
        {**status.details, "causes": [{"message": message}]},
    )
