"""Cases of admission for quota: what is added to new pods in a namespace of the quota tree, and
which user may change what.

One table for every implementation of the rules: the functions, the policies of a real API server,
the webhook behind a real API server, and the laptop's hook.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

Object = dict[str, Any]

LEAF: Final = "root.a.1"
GATE: Final = "fairlead.io/quota"
MANAGED: Final = "fairlead.io/managed"
USER: Final = "arena.kubeflow.org/console-user"
NAME: Final = "quota.scheduling.alibabacloud.com/name"
PREEMPTIBLE: Final = "quota.scheduling.alibabacloud.com/preemptible"
PREEMPTIBLE_TOO: Final = "quota.scheduling.koordinator.sh/preemptible"
GANG: Final = "pod-group.scheduling.sigs.k8s.io/name"
GANG_SIZE: Final = "pod-group.scheduling.sigs.k8s.io/min-available"
GANG_TOO: Final = "scheduling.x-k8s.io/pod-group"
VOLCANO: Final = "scheduling.k8s.io/group-name"
KOORDINATOR: Final = "gang.scheduling.koordinator.sh/name"


class Who(NamedTuple):
    """A user. All but the kubelet and the administrator have
    their rights by the group `testers`.
    """

    user: str
    groups: tuple[str, ...] = ("testers",)


ALICE: Final = Who("alice")
ADMIN: Final = Who("root", ("system:masters",))
BOB: Final = Who("system:serviceaccount:kube-ai:bob")
CONTROLLER: Final = Who("system:serviceaccount:fairlead-system:fairlead-quota-controller")
SCHEDULER: Final = Who("system:serviceaccount:fairlead-system:fairlead-scheduler")
EXTENDER: Final = Who("system:serviceaccount:fairlead-nodes:fairlead-gpushare-extender")
BESIDE: Final = Who("system:serviceaccount:fairlead-system:default")
"""An account of the installation's namespace that is none of Fairlead's, as a chart's release
namespace may have many.
"""
NAMESAKE: Final = Who("system:serviceaccount:default:fairlead-quota-controller")
REPLICAS: Final = Who("system:serviceaccount:kube-system:replicaset-controller")
DAEMONS: Final = Who("system:serviceaccount:kube-system:daemon-set-controller")
OTHER_DAEMONS: Final = Who("system:serviceaccount:team:daemon-set-controller")
KUBELET: Final = Who("system:node:n", ("system:nodes",))

DAEMON: Final = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "name": "d",
    "uid": "u",
    "controller": True,
}


class Birth(NamedTuple):
    """A new pod. `gates` and `labels`: its gates and labels after creation; `refused`: why it is
    not created.
    """

    who: Who
    gates: tuple[str, ...] = (GATE,)
    labels: dict[str, str] = {MANAGED: "true"}
    refused: str = ""
    metadata: Object = {}
    spec: Object = {}


BIRTHS: Final[dict[str, Birth]] = {
    "a pod": Birth(ALICE),
    "by an administrator": Birth(ADMIN),
    "by a controller": Birth(REPLICAS),
    "by our own controller": Birth(CONTROLLER),
    "with the gate": Birth(ALICE, spec={"schedulingGates": [{"name": GATE}]}),
    "with another gate": Birth(
        ALICE, ("other/gate", GATE), spec={"schedulingGates": [{"name": "other/gate"}]}
    ),
    "with a label of its own": Birth(
        ALICE, (GATE,), {MANAGED: "true", "app": "web"}, metadata={"labels": {"app": "web"}}
    ),
    "labelled as not managed": Birth(ALICE, metadata={"labels": {MANAGED: "false"}}),
    "a wish": Birth(
        ALICE,
        (GATE,),
        {MANAGED: "true", PREEMPTIBLE: "false"},
        metadata={"labels": {PREEMPTIBLE: "false"}},
    ),
    "of a gang": Birth(
        ALICE, (GATE,), {MANAGED: "true", GANG: "g"}, metadata={"labels": {GANG: "g"}}
    ),
    "with an annotation of Fairlead": Birth(
        ALICE, metadata={"annotations": {"fairlead.io/surge": "wait"}}
    ),
    "by a user": Birth(BOB, (GATE,), {MANAGED: "true", USER: "bob"}),
    "by a user under another's name": Birth(
        BOB, (GATE,), {MANAGED: "true", USER: "bob"}, metadata={"labels": {USER: "alice"}}
    ),
    "by another account for a user": Birth(
        REPLICAS, (GATE,), {MANAGED: "true", USER: "bob"}, metadata={"labels": {USER: "bob"}}
    ),
    "with the leaf's name": Birth(
        ALICE, (GATE,), {MANAGED: "true", NAME: LEAF}, metadata={"labels": {NAME: LEAF}}
    ),
    "with another leaf's name": Birth(
        ALICE,
        refused=f"the label {NAME} names root.b.1, and this namespace is on {LEAF}",
        metadata={"labels": {NAME: "root.b.1"}},
    ),
    "another leaf's name by an administrator": Birth(
        ADMIN,
        refused=f"the label {NAME} names root, and this namespace is on {LEAF}",
        metadata={"labels": {NAME: "root"}},
    ),
    "by the DaemonSet controller": Birth(DAEMONS, (), {}, metadata={"ownerReferences": [DAEMON]}),
    "that claims to be a DaemonSet's": Birth(ALICE, metadata={"ownerReferences": [DAEMON]}),
    "by an account of the DaemonSet controller's name": Birth(OTHER_DAEMONS),
    "that claims to be static": Birth(
        ALICE,
        refused="a new pod may not name its node here",
        metadata={"annotations": {"kubernetes.io/config.mirror": "x"}},
        spec={"nodeName": "n"},
    ),
    "by a kubelet": Birth(
        KUBELET,
        (),
        {},
        metadata={"annotations": {"kubernetes.io/config.mirror": "x"}},
        spec={"nodeName": "n"},
    ),
    "that names its node": Birth(
        ALICE, refused="a new pod may not name its node here", spec={"nodeName": "n"}
    ),
    "that names its node, by an administrator": Birth(
        ADMIN, refused="a new pod may not name its node here", spec={"nodeName": "n"}
    ),
}


class NewJob(NamedTuple):
    """A job as it is created, and whether Fairlead suspends it at creation."""

    begins_suspended: bool
    spec: Object
    kind: str = "Job"
    version: str = "batch/v1"
    controller: str = ""
    annotations: Object = {}


def policy(**run_policy: Any) -> Object:
    return {"runPolicy": run_policy}


RAY: Final[Object] = {"shutdownAfterJobFinishes": True}
"""A RayJob that can be suspended: kuberay-operator calls any other RayJob with `suspend: true`
invalid.
"""
NEW_JOBS: Final[dict[str, NewJob]] = {
    "without a deadline": NewJob(False, {}),
    "with a deadline": NewJob(True, {"activeDeadlineSeconds": 60}),
    "with a deadline and annotations": NewJob(
        True, {"activeDeadlineSeconds": 60}, annotations={"a": "b"}
    ),
    "marked as running": NewJob(True, {"activeDeadlineSeconds": 60, "suspend": False}),
    "that its owner suspends": NewJob(False, {"activeDeadlineSeconds": 60, "suspend": True}),
    "that a schedule made": NewJob(True, {"activeDeadlineSeconds": 60}, controller="CronJob"),
    "that a workflow made": NewJob(True, {"activeDeadlineSeconds": 60}, controller="Workflow"),
    "that another job looks after": NewJob(
        False, {"activeDeadlineSeconds": 60}, controller="MPIJob"
    ),
    "that a JobSet would resume": NewJob(False, {"activeDeadlineSeconds": 60}, controller="JobSet"),
    "a TFJob with a deadline": NewJob(
        True, policy(activeDeadlineSeconds=60), "TFJob", "kubeflow.org/v1"
    ),
    "a PyTorchJob with a deadline": NewJob(
        True, policy(activeDeadlineSeconds=60, suspend=False), "PyTorchJob", "kubeflow.org/v1"
    ),
    "an MPIJob with a deadline": NewJob(
        True, policy(activeDeadlineSeconds=60), "MPIJob", "kubeflow.org/v2beta1"
    ),
    "a TFJob that a Cron made": NewJob(
        True, policy(activeDeadlineSeconds=60), "TFJob", "kubeflow.org/v1", controller="Cron"
    ),
    "a RayJob with a deadline": NewJob(
        True, {**RAY, "activeDeadlineSeconds": 60}, "RayJob", "ray.io/v1"
    ),
    "a RayJob that a workflow made": NewJob(
        True, {**RAY, "activeDeadlineSeconds": 60}, "RayJob", "ray.io/v1", controller="Workflow"
    ),
    "a RayJob without one": NewJob(False, RAY, "RayJob", "ray.io/v1"),
    "a RayJob that its owner suspends": NewJob(
        False, {**RAY, "activeDeadlineSeconds": 60, "suspend": True}, "RayJob", "ray.io/v1"
    ),
    "a RayJob that keeps its cluster": NewJob(
        False, {"activeDeadlineSeconds": 60}, "RayJob", "ray.io/v1"
    ),
    "a RayJob in a cluster of others": NewJob(
        False,
        {**RAY, "activeDeadlineSeconds": 60, "clusterSelector": {"ray.io/cluster": "shared"}},
        "RayJob",
        "ray.io/v1",
    ),
    "an MPIJob without one": NewJob(
        False, policy(cleanPodPolicy="None"), "MPIJob", "kubeflow.org/v2beta1"
    ),
    "a TFJob without a policy": NewJob(False, {}, "TFJob", "kubeflow.org/v1"),
}


class Change(NamedTuple):
    """`labels` and `annotations` are merged into those `before` (None removes a key), on a pod that
    waits or is `admitted`.

    `how`: `update`, `merge`, `json`, `apply`, `status`, `binding`, `bindings`, or `ungate`: a JSON
    patch that removes the gate.
    """

    how: str
    who: Who
    refused: str = ""
    labels: dict[str, str | None] = {}
    annotations: dict[str, str | None] = {}
    before: Object = {}
    admitted: bool = False


def _label(key: str) -> str:
    return f"the label {key} may not be changed"


def _annotation(key: str) -> str:
    return f"the annotation {key} may not be changed"


GATED: Final = f"only Fairlead's quota controller takes the scheduling gate {GATE} away"
BORN_WITH: Final = {
    "labels": {PREEMPTIBLE: "true", GANG: "g", USER: "bob", "app": "web"},
    "annotations": {"fairlead.io/surge": "wait"},
}

CHANGES: Final[dict[str, Change]] = {
    "the controller takes the gate": Change("ungate", CONTROLLER),
    "a user takes the gate": Change("ungate", ALICE, GATED),
    "an administrator takes the gate": Change("ungate", ADMIN, GATED),
    "the scheduler takes the gate": Change("ungate", SCHEDULER, GATED),
    "a namesake takes the gate": Change("ungate", NAMESAKE, GATED),
    "the user takes the gate": Change("ungate", BOB, GATED),
    "something of no matter": Change(
        "merge", ALICE, labels={"app": "shop"}, annotations={"team": "a"}, before=BORN_WITH
    ),
    "of no matter, by update": Change("update", ALICE, labels={"app": "shop"}, before=BORN_WITH),
    "preemptible": Change(
        "merge", ALICE, _label(PREEMPTIBLE), {PREEMPTIBLE: "false"}, before=BORN_WITH
    ),
    "preemptible, by update": Change(
        "update", ALICE, _label(PREEMPTIBLE), {PREEMPTIBLE: "false"}, before=BORN_WITH
    ),
    "preemptible, by apply": Change(
        "apply", ALICE, _label(PREEMPTIBLE), {PREEMPTIBLE: "false"}, before=BORN_WITH
    ),
    "preemptible, by JSON patch": Change(
        "json", ALICE, _label(PREEMPTIBLE), {PREEMPTIBLE: "false"}, before=BORN_WITH
    ),
    "preemptible is added": Change(
        "merge", ALICE, _label(PREEMPTIBLE_TOO), {PREEMPTIBLE_TOO: "false"}
    ),
    "preemptible is taken away": Change(
        "merge", ALICE, _label(PREEMPTIBLE), {PREEMPTIBLE: None}, before=BORN_WITH
    ),
    "preemptible of an admitted pod": Change(
        "merge", ALICE, _label(PREEMPTIBLE), {PREEMPTIBLE: "false"}, before=BORN_WITH, admitted=True
    ),
    "preemptible by an administrator": Change(
        "merge", ADMIN, "", {PREEMPTIBLE: "false"}, before=BORN_WITH
    ),
    "preemptible by us": Change("merge", CONTROLLER, "", {PREEMPTIBLE: "false"}, before=BORN_WITH),
    "preemptible by an account of another program": Change(
        "merge", BESIDE, _label(PREEMPTIBLE), {PREEMPTIBLE: "false"}, before=BORN_WITH
    ),
    "empty is not absent": Change("merge", ALICE, _label(PREEMPTIBLE), {PREEMPTIBLE: ""}),
    "the gang": Change("merge", ALICE, _label(GANG), {GANG: "h"}, before=BORN_WITH),
    "the gang's size": Change(
        "merge", ALICE, _label(GANG_SIZE), {GANG_SIZE: "1"}, before=BORN_WITH
    ),
    "another gang": Change("merge", ALICE, _label(GANG_TOO), {GANG_TOO: "g"}, admitted=True),
    "the user": Change("merge", BOB, _label(USER), {USER: "alice"}, before=BORN_WITH),
    "our label": Change("merge", ALICE, _label(MANAGED), {MANAGED: None}),
    "another label of Fairlead": Change(
        "merge", ALICE, _label("fairlead.io/x"), {"fairlead.io/x": "y"}
    ),
    "our label by an administrator": Change("merge", ADMIN, "", {MANAGED: None}),
    "our annotation": Change(
        "merge",
        ALICE,
        _annotation("fairlead.io/surge"),
        {},
        {"fairlead.io/surge": None},
        before=BORN_WITH,
    ),
    "a grant by the scheduler": Change(
        "merge", SCHEDULER, "", {}, {"fairlead.io/gpu-placement": "spread"}, admitted=True
    ),
    "a grant by the extender of the control plane": Change(
        "merge", EXTENDER, "", {}, {"fairlead.io/gpu-placement": "spread"}, admitted=True
    ),
    "our annotation by an account of another program": Change(
        "merge", BESIDE, _annotation("fairlead.io/x"), {}, {"fairlead.io/x": "y"}
    ),
    "volcano names a group while the pod waits": Change(
        "merge", ALICE, "", {}, {VOLCANO: "podgroup-1"}
    ),
    "volcano's group of an admitted pod": Change(
        "merge", ALICE, _annotation(VOLCANO), {}, {VOLCANO: "podgroup-1"}, admitted=True
    ),
    "koordinator's gang of an admitted pod": Change(
        "merge", ALICE, _annotation(KOORDINATOR), {}, {KOORDINATOR: "g"}, admitted=True
    ),
    "the leaf's name": Change("merge", ALICE, "", {NAME: LEAF}),
    "another leaf's name": Change(
        "merge",
        ALICE,
        f"the label {NAME} names root.b.1, and this namespace is on {LEAF}",
        {NAME: "root.b.1"},
    ),
    "a status of no matter": Change("status", ALICE, "", {}, {"team": "a"}, before=BORN_WITH),
    "a status that forges": Change(
        "status", ALICE, _label(PREEMPTIBLE), {PREEMPTIBLE: "false"}, before=BORN_WITH
    ),
    "a status with our annotation": Change(
        "status", ALICE, _annotation("fairlead.io/x"), {}, {"fairlead.io/x": "y"}
    ),
    "a binding": Change("binding", ALICE, admitted=True),
    "a binding with our annotation": Change(
        "binding", ALICE, _annotation("fairlead.io/x"), {}, {"fairlead.io/x": "y"}, admitted=True
    ),
    "a binding with a label": Change(
        "binding", ALICE, _label(PREEMPTIBLE), {PREEMPTIBLE: "false"}, admitted=True
    ),
    "a binding by the scheduler": Change(
        "binding", SCHEDULER, "", {}, {"fairlead.io/gpu-placement": "spread"}, admitted=True
    ),
    "the old way to bind": Change(
        "bindings", ALICE, _annotation("fairlead.io/x"), {}, {"fairlead.io/x": "y"}, admitted=True
    ),
}


class Growth(NamedTuple):
    """Requests of the containers before and after a change, with a tree that counts cpu."""

    who: Who
    before: tuple[Object, ...]
    after: tuple[Object, ...]
    refused: str = ""


CPU: Final = "a pod may not grow here: the quota tree counts cpu"
ONE: Final = ({"cpu": "1", "memory": "1Gi"},)
PAIR: Final = ({"cpu": "500m"}, {"cpu": "1"})

GROWTHS: Final[dict[str, Growth]] = {
    "cpu grows": Growth(ALICE, ONE, ({"cpu": "1001m", "memory": "1Gi"},), CPU),
    "memory, which the tree does not count, grows": Growth(
        ALICE, ONE, ({"cpu": "1", "memory": "2Gi"},)
    ),
    "cpu shrinks": Growth(ALICE, ONE, ({"cpu": "100m", "memory": "1Gi"},)),
    "cpu moves from one container to the other": Growth(
        ALICE, PAIR, ({"cpu": "1"}, {"cpu": "0.5"})
    ),
    "two containers grow together": Growth(ALICE, PAIR, ({"cpu": "600m"}, {"cpu": "0.95"}), CPU),
    "an administrator lets it grow": Growth(ADMIN, ONE, ({"cpu": "2", "memory": "1Gi"},)),
    "the controller lets it grow": Growth(CONTROLLER, ONE, ({"cpu": "2", "memory": "1Gi"},)),
    "an account of another program lets it grow": Growth(
        BESIDE, ONE, ({"cpu": "2", "memory": "1Gi"},), CPU
    ),
}


def merged(before: dict[str, str], after: dict[str, str | None]) -> dict[str, str]:
    return {key: value for key, value in {**before, **after}.items() if value is not None}
