"""The ClusterRoles that the simulated operators bring: for each kind an editor's and a viewer's.

They carry the labels by which Kubernetes gathers `admin`, `edit` and `view`, so that who may edit
Deployments may submit jobs. Names and verbs are the operators' own (Kubeflow's, KubeRay's); that
their charts label them is usual and not certain.
"""

from __future__ import annotations

from collections.abc import Iterator

from fairlead_sim.objects.object_names import ObjectNames
from fairlead_sim.objects.watch_log import Object

_GROUP = "rbac.authorization.k8s.io"
_READ = ["get", "list", "watch"]
_ALL = ["create", "delete", "get", "list", "patch", "update", "watch"]
_KINDS = (
    ("kubeflow-mpijobs-edit", "kubeflow-mpijobs-view", "kubeflow.org", "mpijobs"),
    ("kubeflow-training-edit", "kubeflow-training-view", "kubeflow.org", "pytorchjobs tfjobs"),
    ("rayjob-editor-role", "rayjob-viewer-role", "ray.io", "rayjobs"),
    ("raycluster-editor-role", "raycluster-viewer-role", "ray.io", "rayclusters"),
    ("kubedl-cron-editor-role", "kubedl-cron-viewer-role", "apps.kubedl.io", "crons"),
)


def operator_roles(seed: int) -> Iterator[Object]:
    """Quota trees are missing on purpose: they are the cluster's, not a team's.

    The uids are no part of the world's own row.
    """
    names = ObjectNames(seed, 1 << 41)
    for editor, viewer, group, resources in _KINDS:
        yield _role(editor, names.uid(), "edit", group, resources.split(), _ALL)
        yield _role(viewer, names.uid(), "view", group, resources.split(), _READ)


def _role(
    name: str, uid: str, part_of: str, group: str, resources: list[str], verbs: list[str]
) -> Object:
    rules = [
        {"apiGroups": [group], "resources": resources, "verbs": verbs},
        {
            "apiGroups": [group],
            "resources": [f"{resource}/status" for resource in resources],
            "verbs": ["get"],
        },
    ]
    metadata = {"name": name, "uid": uid, "labels": {f"{_GROUP}/aggregate-to-{part_of}": "true"}}
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "ClusterRole",
        "metadata": metadata,
        "rules": rules,
    }
