"""The components that Fairlead knows: its own parts, and programs of others that it works with.

Names of workloads and definitions of other programs are those of the version in the entry.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from fairlead.errors import UserError
from fairlead.model.actions import ObjectRef
from fairlead.model.operations.component import (
    Backend,
    Component,
    ComponentGroup,
    ComponentValue,
    Need,
)


def _deployments(*names: str) -> tuple[ObjectRef, ...]:
    return tuple(ObjectRef("apps/v1", "Deployment", each) for each in names)


def _daemon_sets(*names: str) -> tuple[ObjectRef, ...]:
    return tuple(ObjectRef("apps/v1", "DaemonSet", each) for each in names)


def _definitions(group: str, *plurals: str) -> tuple[str, ...]:
    return tuple(f"{each}.{group}" for each in plurals)


_OWN: Final = (
    Component(
        id="gpu-sharing",
        group=ComponentGroup.SCHEDULING,
        title="GPU sharing scheduler",
        title_zh="GPU 共享调度",
        backend=Backend.NATIVE,
        part="gpu_sharing",
        workloads=(
            *_deployments("fairlead-scheduler"),
            *_daemon_sets("fairlead-gpushare-extender"),  # on the control plane's machines
        ),
        depends=(Need("node-agent"),),
    ),
    Component(
        id="node-agent",
        group=ComponentGroup.SCHEDULING,
        title="Node agent (device plugin)",
        title_zh="节点代理 (设备插件)",
        backend=Backend.NATIVE,
        part="node_agent",
        workloads=_daemon_sets("fairlead-node-agent"),
    ),
    Component(
        id="quota",
        group=ComponentGroup.SCHEDULING,
        title="Elastic quota",
        title_zh="弹性配额",
        backend=Backend.NATIVE,
        part="quota",
        definitions=("elasticquotatrees.scheduling.sigs.k8s.io",),
        workloads=_deployments("fairlead-quota-controller", "fairlead-admission-webhook"),
    ),
    Component(
        id="cli",
        group=ComponentGroup.INTERACTION,
        title="Command line",
        title_zh="命令行工具",
        backend=Backend.NATIVE,
        is_required=True,
    ),
    Component(
        id="console",
        group=ComponentGroup.INTERACTION,
        title="Console",
        title_zh="控制台",
        backend=Backend.NATIVE,
        part="console",
        workloads=_deployments("fairlead-console"),
        depends=(Need("cli"), Need("cluster-exporter")),
    ),
    Component(
        id="people",
        group=ComponentGroup.INTERACTION,
        title="Users and groups",
        title_zh="用户与用户组",
        backend=Backend.NATIVE,
        part="people",
        definitions=_definitions("fairlead.io", "users", "usergroups"),
        workloads=_deployments("fairlead-people-controller", "fairlead-admission-webhook"),
    ),
    Component(
        id="cluster-exporter",
        group=ComponentGroup.MONITORING,
        title="Cluster exporter",
        title_zh="集群指标导出器",
        backend=Backend.NATIVE,
        part="cluster_exporter",
        workloads=_deployments("fairlead-cluster-exporter"),
    ),
    Component(
        id="gpu-exporter",
        group=ComponentGroup.MONITORING,
        title="GPU exporter",
        title_zh="GPU 指标导出器",
        backend=Backend.NATIVE,
        part="gpu_exporter",
        workloads=_daemon_sets("fairlead-gpu-exporter"),
    ),
)

_OTHERS: Final = (
    Component(
        id="fluid",
        group=ComponentGroup.DATA,
        title="Fluid",
        title_zh="Fluid 数据加速",
        backend=Backend.HELM,
        version="1.0.8",
        namespace="fluid-system",
        chart="fluid",
        definitions=_definitions(
            "data.fluid.io",
            *("alluxioruntimes", "databackups", "dataloads", "datamigrates", "dataprocesses"),
            *("datasets", "efcruntimes", "goosefsruntimes", "jindoruntimes", "juicefsruntimes"),
            *("thinruntimeprofiles", "thinruntimes", "vineyardruntimes"),
        ),
        workloads=(
            *_deployments("dataset-controller", "fluid-webhook"),
            *_daemon_sets("csi-nodeplugin-fluid"),
        ),
        images=("dataset-controller",),
        fixed={"crdUpgrade": {"enabled": False}},
        values=(
            ComponentValue("imagePrefix", "text", "Registry of the images", "镜像仓库"),
            ComponentValue("dataset.replicas", "number", "Dataset controllers", "数据集控制器副本"),
            ComponentValue("webhook.enabled", "boolean", "Admission webhook", "准入 Webhook"),
            ComponentValue("csi.enabled", "boolean", "Volume driver (CSI)", "存储驱动 (CSI)"),
            ComponentValue(
                "runtime.mountRoot", "text", "Folder of mounts on nodes", "节点挂载目录"
            ),
            ComponentValue(
                "webhook.tolerations", "list", "Tolerations of the webhook", "Webhook 污点容忍"
            ),
            ComponentValue(
                "csi.tolerations", "list", "Tolerations of the volume driver", "存储驱动污点容忍"
            ),
        ),
        is_placed=True,
    ),
    Component(
        id="prometheus",
        group=ComponentGroup.MONITORING,
        title="Prometheus",
        title_zh="Prometheus 监控",
        backend=Backend.HELM,
        namespace="monitoring",
        chart="kube-prometheus-stack",
        images=("prometheus-operator", "prom/prometheus", "prometheus/prometheus"),
        values=(
            ComponentValue(
                "prometheus.prometheusSpec.retention",
                "text",
                "How long series stay",
                "数据保留时间",
            ),
            ComponentValue("grafana.enabled", "boolean", "Grafana", "Grafana 面板"),
            ComponentValue("alertmanager.enabled", "boolean", "Alertmanager", "Alertmanager 告警"),
            ComponentValue(
                "prometheus.prometheusSpec.tolerations",
                "list",
                "Tolerations of Prometheus",
                "Prometheus 污点容忍",
            ),
            ComponentValue(
                "prometheus.prometheusSpec.affinity",
                "mapping",
                "Affinity of Prometheus",
                "Prometheus 亲和性",
            ),
        ),
    ),
    Component(
        id="prometheus-adapter",
        group=ComponentGroup.ELASTICITY,
        title="Prometheus adapter (GPU metrics for autoscaling)",
        title_zh="Prometheus 适配器 (按 GPU 指标弹性伸缩)",
        backend=Backend.HELM,
        namespace="monitoring",
        chart="prometheus-adapter",
        images=("prometheus-adapter",),
        values=(
            ComponentValue("prometheus.url", "text", "Address of Prometheus", "Prometheus 地址"),
            ComponentValue("replicas", "number", "Replicas", "副本数"),
            ComponentValue("tolerations", "list", "Tolerations", "污点容忍"),
            ComponentValue("affinity", "mapping", "Affinity", "亲和性"),
        ),
        depends=(Need("prometheus"),),
    ),
    Component(
        id="training-operator",
        group=ComponentGroup.WORKFLOW,
        title="Training operator (TFJob, PyTorchJob)",
        title_zh="训练任务控制器 (TFJob, PyTorchJob)",
        backend=Backend.NATIVE,
        version="1.9.2",
        namespace="kubeflow",
        definitions=_definitions(
            "kubeflow.org", "jaxjobs", "paddlejobs", "pytorchjobs", "tfjobs", "xgboostjobs"
        ),
        workloads=_deployments("training-operator"),
        images=("training-operator",),
    ),
    Component(
        id="mpi-operator",
        group=ComponentGroup.WORKFLOW,
        title="MPI operator (MPIJob)",
        title_zh="MPI 任务控制器 (MPIJob)",
        backend=Backend.NATIVE,
        version="0.6.0",
        namespace="mpi-operator",
        definitions=("mpijobs.kubeflow.org",),
        workloads=_deployments("mpi-operator"),
        images=("mpi-operator",),
    ),
    Component(
        id="kueue",
        group=ComponentGroup.SCHEDULING,
        title="Kueue",
        title_zh="Kueue 作业队列",
        backend=Backend.OTHER,
        workloads=_deployments("kueue-controller-manager"),
        images=("kueue/kueue",),
    ),
)

_ORDER: Final = {group: number for number, group in enumerate(ComponentGroup)}
CATALOGUE: Final = tuple(sorted((*_OWN, *_OTHERS), key=lambda each: _ORDER[each.group]))
"""In the order of the groups."""
COMPONENTS: Final = {each.id: each for each in CATALOGUE}


def component_of(id: str) -> Component:
    """Raises UserError for an id that is not in the catalogue.

    >>> component_of("fluid").namespace
    'fluid-system'
    """
    found = COMPONENTS.get(id)
    if found is None:
        near = get_close_matches(id, COMPONENTS, 1)
        hint = f"did you mean `{near[0]}`?" if near else "`fairlead component list` has all"
        raise UserError(f"there is no component `{id}`", hint)
    return found


def dependants(id: str, installed: Iterable[str]) -> list[str]:
    """Of the installed components those that need this one.

    >>> dependants("prometheus", ["prometheus", "prometheus-adapter", "fluid"])
    ['prometheus-adapter']
    """
    return [each for each in installed if any(need.id == id for need in component_of(each).depends)]
