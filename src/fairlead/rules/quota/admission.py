"""Admission in namespaces of the quota tree: what is added to new objects, what is refused.

`deploy/quota-admission.yaml` holds the same rules for the API server;
`tests/kube/test_quota_admission.py` compares the two. They apply only to namespaces with the label
`fairlead.io/quota=enforced`. The writer of a pod is the account that sent the request, never an
owner that the pod names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from msgspec import Struct

from fairlead.model.installation import OwnAccounts
from fairlead.model.keys import (
    LABEL_MANAGED,
    LABEL_POD_GROUP,
    LABEL_POD_GROUP_SIZE,
    LABEL_QUOTA_NAME,
    LABEL_USER,
    LABELS_PREEMPTIBLE,
    QUOTA_GATE,
)
from fairlead.model.quota.written import MAKERS, Writer, WrittenObject
from fairlead.model.refusal import Refusal

DEFAULT_ACCOUNTS: Final = OwnAccounts()
CONTROLLER: Final = DEFAULT_ACCOUNTS.quota_controller
"""The only account that may remove gates, of an installation in the default namespace."""
DAEMON_SETS: Final = "system:serviceaccount:kube-system:daemon-set-controller"
KUBELETS: Final = "system:node:"
USERS: Final = "system:serviceaccount:kube-ai:"
"""Prefix of the accounts of Fairlead's users; the user's id follows."""
ADMINS: Final = "system:masters"
PREFIX: Final = "fairlead.io/"
GUARDED_LABELS: Final = (
    *LABELS_PREEMPTIBLE,
    LABEL_POD_GROUP,
    LABEL_POD_GROUP_SIZE,
    "scheduling.x-k8s.io/pod-group",
    LABEL_USER,
)
"""Labels that may not change, beside all that begin with `fairlead.io/`."""
GANG_ANNOTATIONS: Final = (
    "gang.scheduling.koordinator.sh/name",
    "gang.scheduling.koordinator.sh/min-available",
    "scheduling.k8s.io/group-name",
)
"""Volcano's controller writes them on existing pods, so they may change while the pod waits."""
GUARD_POLICY: Final = "fairlead-quota-guard"
USER_POLICY: Final = "fairlead-quota-user"
"""Names of the ValidatingAdmissionPolicies and of their bindings."""


class Additions(Struct, frozen=True):
    """What the injector adds to a new object.

    `gate`: "" = none; `labels` replace those of the same name.
    """

    gate: str = ""
    labels: Mapping[str, str] = {}


def is_exempt(writer: Writer) -> bool:
    """Whether the writer is a kubelet (mirrors of static pods) or the DaemonSet controller.

    Quota does not apply to their pods.
    """
    return writer.user == DAEMON_SETS or writer.user.startswith(KUBELETS)


def additions(pod: WrittenObject, writer: Writer) -> Additions:
    """What a new pod gets.

    >>> additions(WrittenObject(), Writer("alice"))
    Additions(gate='fairlead.io/quota', labels={'fairlead.io/managed': 'true'})
    >>> bob = Writer("system:serviceaccount:kube-ai:bob")
    >>> additions(WrittenObject(gates=("fairlead.io/quota",)), bob).labels
    {'fairlead.io/managed': 'true', 'arena.kubeflow.org/console-user': 'bob'}
    """
    if is_exempt(writer):
        return Additions()
    return Additions(
        "" if QUOTA_GATE in pod.gates else QUOTA_GATE, {LABEL_MANAGED: "true", **stamp(writer)}
    )


def stamp(writer: Writer) -> Mapping[str, str]:
    """The label with the user's id, for objects that a Fairlead user creates; {} for others."""
    return {LABEL_USER: writer.user.removeprefix(USERS)} if writer.user.startswith(USERS) else {}


def begins_suspended(job: WrittenObject) -> bool:
    """Whether a new job is created suspended: its deadline would run while its pods wait.

    A job with another controller is left to that controller, which may resume it at once (JobSet
    does) or wait for its pods (mpi-operator does). Schedules and Argo workflows create jobs and do
    neither.

    >>> kinds = "", "CronJob", "Workflow", "MPIJob"
    >>> jobs = [WrittenObject(kind="Job", has_deadline=True, controller=kind) for kind in kinds]
    >>> [begins_suspended(job) for job in jobs]
    [True, True, True, False]
    """
    return job.has_deadline and not job.is_suspended and job.controller in ("", *MAKERS)


def refuse_new(pod: WrittenObject, writer: Writer, leaf: str) -> Refusal | None:
    """The refusal if the pod, as injected, may not be created;
    `leaf` is the leaf of its namespace.
    """
    if is_exempt(writer):
        return None
    if QUOTA_GATE not in pod.gates:
        return Refusal(f"a new pod needs the scheduling gate {QUOTA_GATE} here")
    if pod.labels.get(LABEL_MANAGED) != "true":
        return Refusal(f"a new pod needs the label {LABEL_MANAGED}=true here")
    if pod.node:
        return Refusal("a new pod may not name its node here")
    return _refuse_foreign(pod, leaf)


def refuse_change(
    before: WrittenObject,
    after: WrittenObject,
    writer: Writer,
    leaf: str,
    own: OwnAccounts = DEFAULT_ACCOUNTS,
) -> Refusal | None:
    """The refusal if `writer` may not turn a pod into `after`.

    >>> waits = WrittenObject(gates=("fairlead.io/quota",))
    >>> refuse_change(waits, WrittenObject(), Writer("alice", ("system:masters",)), "root.a").reason
    "only Fairlead's quota controller takes the scheduling gate fairlead.io/quota away"
    >>> refuse_change(waits, WrittenObject(), Writer(CONTROLLER), "root.a")
    """
    if is_exempt(writer):
        return None
    opens = QUOTA_GATE in before.gates and QUOTA_GATE not in after.gates
    if opens and writer.user != own.quota_controller:
        return Refusal(
            f"only Fairlead's quota controller takes the scheduling gate {QUOTA_GATE} away"
        )
    if before.labels.get(LABEL_QUOTA_NAME) != after.labels.get(LABEL_QUOTA_NAME):
        refusal = _refuse_foreign(after, leaf)
        if refusal is not None:
            return refusal
    return _refuse_edit(before, after, writer, own, may_join=QUOTA_GATE in before.gates)


def refuse_binding(
    binding: WrittenObject, writer: Writer, leaf: str, own: OwnAccounts = DEFAULT_ACCOUNTS
) -> Refusal | None:
    """The refusal if labels and annotations of a Binding may not be copied to its pod."""
    if is_exempt(writer):
        return None
    return _refuse_foreign(binding, leaf) or _refuse_edit(
        WrittenObject(), binding, writer, own, may_join=False
    )


def refuse_resize(
    before: WrittenObject,
    after: WrittenObject,
    writer: Writer,
    managed: Collection[str],
    own: OwnAccounts = DEFAULT_ACCOUNTS,
) -> Refusal | None:
    """The refusal if the pod may not be resized; `managed`: the resources that the tree counts.

    >>> before, after = WrittenObject(requests={"cpu": 1000}), WrittenObject(requests={"cpu": 2000})
    >>> refuse_resize(before, after, Writer("alice"), ("cpu",)).reason
    'a pod may not grow here: the quota tree counts cpu'
    """
    if _is_trusted(writer, own):
        return None
    for resource in sorted(managed):
        if after.requests.get(resource, 0) > before.requests.get(resource, 0):
            return Refusal(f"a pod may not grow here: the quota tree counts {resource}")
    return None


def refuse_stamp(
    before: WrittenObject,
    after: WrittenObject,
    writer: Writer,
    own: OwnAccounts = DEFAULT_ACCOUNTS,
) -> Refusal | None:
    """The refusal if the change would give an owner of pods to another user."""
    if _is_trusted(writer, own) or before.labels.get(LABEL_USER) == after.labels.get(LABEL_USER):
        return None
    return Refusal(f"the label {LABEL_USER} may not be changed")


def _refuse_foreign(pod: WrittenObject, leaf: str) -> Refusal | None:
    named = pod.labels.get(LABEL_QUOTA_NAME, leaf)
    if named == leaf:
        return None
    return Refusal(
        f"the label {LABEL_QUOTA_NAME} names {named}, and this namespace is on "
        + (leaf or "no leaf")
    )


def _refuse_edit(
    before: WrittenObject,
    after: WrittenObject,
    writer: Writer,
    own: OwnAccounts,
    *,
    may_join: bool,
) -> Refusal | None:
    """`may_join`: the pod has not been admitted, so it may still become a member of a gang."""
    if _is_trusted(writer, own):
        return None
    for key in _changed(before.labels, after.labels):
        if key.startswith(PREFIX) or key in GUARDED_LABELS:
            return Refusal(f"the label {key} may not be changed")
    for key in _changed(before.annotations, after.annotations):
        if key.startswith(PREFIX) or (key in GANG_ANNOTATIONS and not may_join):
            return Refusal(f"the annotation {key} may not be changed")
    return None


def _changed(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    return (key for key in sorted({*before, *after}) if before.get(key) != after.get(key))


def _is_trusted(writer: Writer, own: OwnAccounts) -> bool:
    """Fairlead's servers that write pods, and the cluster's administrators."""
    return writer.user in own.quota_writers or ADMINS in writer.groups
