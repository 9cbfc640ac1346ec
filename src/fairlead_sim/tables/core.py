"""The tables of nodes, services, events, volumes, bindings and other kinds that make no pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairlead_sim.schema.cells import (
    NAME,
    NONE,
    Fill,
    Layout,
    Object,
    age,
    count_of,
    created_at,
    first_few,
    labels_of,
    layout,
    part,
    since,
    text,
)

_ROLE_PREFIX = "node-role.kubernetes.io/"


def _node_word(obj: Object, now: float) -> str:
    """`Ready`, `NotReady` or `Unknown`, with `,SchedulingDisabled` on a cordoned node."""
    conditions = part(obj, "status", "conditions") or ()
    ready = next(
        (condition.get("status") for condition in conditions if condition.get("type") == "Ready"),
        None,
    )
    word = "Unknown" if ready is None else "Ready" if ready == "True" else "NotReady"
    return f"{word},SchedulingDisabled" if part(obj, "spec", "unschedulable") else word


def _roles(obj: Object, now: float) -> str:
    labels = obj["metadata"].get("labels") or {}
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    return ",".join(sorted((roles | {labels.get("kubernetes.io/role", "")}) - {""})) or NONE


def _kernel(obj: Object, now: float) -> str:
    kernel, architecture = (
        text(obj, "status", "nodeInfo", key) for key in ("kernelVersion", "architecture")
    )
    return (kernel or "<unknown>") + (f" ({architecture})" if architecture else "")


def _ports(obj: Object, now: float) -> str:
    return ",".join(_port(port) for port in part(obj, "spec", "ports") or ()) or NONE


def _port(port: Object) -> str:
    node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port')}{node_port}/{port.get('protocol', 'TCP')}"


def _external_address(obj: Object, now: float) -> str:
    kind = text(obj, "spec", "type")
    if kind == "ExternalName":
        return text(obj, "spec", "externalName")
    given = [str(address) for address in part(obj, "spec", "externalIPs") or ()]
    if kind == "LoadBalancer":
        ingress = part(obj, "status", "loadBalancer", "ingress") or ()
        return (
            ",".join([*(entry.get("ip") or entry.get("hostname", "") for entry in ingress), *given])
            or "<pending>"
        )
    return ",".join(given) or NONE


def _endpoint_list(obj: Object, now: float) -> str:
    shown = [
        f"{address['ip']}:{port['port']}" if port else str(address["ip"])
        for subset in obj.get("subsets") or ()
        for port in subset.get("ports") or (None,)
        for address in subset.get("addresses") or ()
    ]
    return first_few(shown, 3, NONE)


def _event_first(obj: Object, now: float) -> str:
    return since(obj.get("firstTimestamp") or obj.get("eventTime"), now)


def _event_last(obj: Object, now: float) -> str:
    if obj.get("series"):
        return since(obj["series"].get("lastObservedTime"), now)
    return since(obj["lastTimestamp"], now) if obj.get("lastTimestamp") else _event_first(obj, now)


def _event_count(obj: Object, now: float) -> Any:
    count = obj.get("count") or 1
    return obj["series"].get("count", count) if obj.get("series") else count


def _event_object(obj: Object, now: float) -> str:
    about = obj.get("involvedObject") or {}
    kind, name = str(about.get("kind", "")).lower(), about.get("name")
    return f"{kind}/{name}" if name else kind


def _event_source(obj: Object, now: float) -> str:
    component = text(obj, "source", "component") or text(obj, "reportingComponent")
    host = text(obj, "source", "host") or text(obj, "reportingInstance")
    return f"{component}, {host}" if host else component


_ACCESS = (
    ("ReadWriteOnce", "RWO"),
    ("ReadOnlyMany", "ROX"),
    ("ReadWriteMany", "RWX"),
    ("ReadWriteOncePod", "RWOP"),
)


def _access_modes(obj: Object, now: float) -> str:
    """A volume's own; of a claim those that it was given."""
    is_claim = obj.get("kind") == "PersistentVolumeClaim"
    modes = part(obj, "status" if is_claim else "spec", "accessModes") or ()
    return (
        ",".join(short for mode, short in _ACCESS if mode in modes)
        if not is_claim or part(obj, "spec", "volumeName")
        else ""
    )


def _volume_phase(obj: Object, now: float) -> str:
    return (
        "Terminating"
        if part(obj, "metadata", "deletionTimestamp")
        else text(obj, "status", "phase")
    )


def _volume_claim(obj: Object, now: float) -> str:
    claim = part(obj, "spec", "claimRef")
    return f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else ""


def _claimed_capacity(obj: Object, now: float) -> str:
    return (
        text(obj, "status", "capacity", "storage", default="0")
        if part(obj, "spec", "volumeName")
        else ""
    )


def default_marked(annotation: str) -> Fill:
    """The name, and whether the annotation makes it the default of its kind."""

    def name(obj: Object, now: float) -> str:
        is_default = part(obj, "metadata", "annotations", annotation) == "true"
        return str(obj["metadata"]["name"]) + (" (default)" if is_default else "")

    return name


def _subjects(kind: str) -> Fill:
    def names(obj: Object, now: float) -> str:
        subjects = [subject for subject in obj.get("subjects") or () if subject.get("kind") == kind]
        spaces = [
            f"{subject.get('namespace', '')}/" if kind == "ServiceAccount" else ""
            for subject in subjects
        ]
        return ", ".join(
            space + subject.get("name", "") for space, subject in zip(spaces, subjects, strict=True)
        )

    return names


def _role(obj: Object, now: float) -> str:
    return f"{text(obj, 'roleRef', 'kind')}/{text(obj, 'roleRef', 'name')}"


_BINDING = layout(
    {
        "Role": _role,
        "Age": age,
        "+Users": _subjects("User"),
        "+Groups": _subjects("Group"),
        "+ServiceAccounts": _subjects("ServiceAccount"),
    }
)
_CREATED_AT = layout({"Created At:date": created_at})
_VOLUME_CLASSES: Mapping[str, str | Fill] = {
    "StorageClass": ".spec.storageClassName",
    "VolumeAttributesClass": ".spec.volumeAttributesClassName|<unset>",
}
_VOLUME_MODE: Mapping[str, str | Fill] = {"+VolumeMode": ".spec.volumeMode|<unset>"}

LAYOUTS: Mapping[str, Layout] = {
    "nodes": layout(
        {
            "Status": _node_word,
            "Roles": _roles,
            "Age": age,
            "Version": ".status.nodeInfo.kubeletVersion",
            "+Internal-IP": '.status.addresses[?(@.type=="InternalIP")].address|<none>',
            "+External-IP": '.status.addresses[?(@.type=="ExternalIP")].address|<none>',
            "+OS-Image": ".status.nodeInfo.osImage|<unknown>",
            "+Kernel-Version": _kernel,
            "+Container-Runtime": ".status.nodeInfo.containerRuntimeVersion|<unknown>",
        }
    ),
    "namespaces": layout({"Status": ".status.phase", "Age": age}),
    "services": layout(
        {
            "Type": ".spec.type",
            "Cluster-IP": ".spec.clusterIPs[0]|<none>",
            "External-IP": _external_address,
            "Port(s)": _ports,
            "Age": age,
            "+Selector": labels_of(".spec.selector"),
        }
    ),
    "endpoints": layout({"Endpoints": _endpoint_list, "Age": age}),
    "events": layout(
        {
            "Last Seen": _event_last,
            "Type": ".type",
            "Reason": ".reason",
            "Object": _event_object,
            "+Subobject": ".involvedObject.fieldPath",
            "+Source": _event_source,
            "Message": lambda obj, now: text(obj, "message").strip(),
            "+First Seen": _event_first,
            "+Count": _event_count,
            f"+{NAME}": ".metadata.name",
        }
    ),
    "persistentvolumes": layout(
        {
            "Capacity": ".spec.capacity.storage|0",
            "Access Modes": _access_modes,
            "Reclaim Policy": ".spec.persistentVolumeReclaimPolicy",
            "Status": _volume_phase,
            "Claim": _volume_claim,
            **_VOLUME_CLASSES,
            "Reason": ".status.reason",
            "Age": age,
            **_VOLUME_MODE,
        }
    ),
    "persistentvolumeclaims": layout(
        {
            "Status": _volume_phase,
            "Volume": ".spec.volumeName",
            "Capacity": _claimed_capacity,
            "Access Modes": _access_modes,
            **_VOLUME_CLASSES,
            "Age": age,
            **_VOLUME_MODE,
        }
    ),
    "storageclasses.storage.k8s.io": layout(
        {
            NAME: default_marked("storageclass.kubernetes.io/is-default-class"),
            "Provisioner": ".provisioner",
            "ReclaimPolicy": ".reclaimPolicy|Delete",
            "VolumeBindingMode": ".volumeBindingMode|Immediate",
            "AllowVolumeExpansion": lambda obj, now: bool(obj.get("allowVolumeExpansion")),
            "Age": age,
        }
    ),
    "rolebindings.rbac.authorization.k8s.io": _BINDING,
    "clusterrolebindings.rbac.authorization.k8s.io": _BINDING,
    "roles.rbac.authorization.k8s.io": _CREATED_AT,
    "clusterroles.rbac.authorization.k8s.io": _CREATED_AT,
    "priorityclasses.scheduling.k8s.io": layout(
        {
            "Value:integer": ".value",
            "Global-Default:boolean": ".globalDefault",
            "Age": age,
            "PreemptionPolicy": ".preemptionPolicy|PreemptLowerPriority",
        }
    ),
    "configmaps": layout(
        {
            "Data": lambda obj, now: len(obj.get("data") or ()) + len(obj.get("binaryData") or ()),
            "Age": age,
        }
    ),
    "secrets": layout({"Type": ".type", "Data": count_of(".data"), "Age": age}),
    "serviceaccounts": layout({"Age": age}),
    "leases.coordination.k8s.io": layout({"Holder": ".spec.holderIdentity", "Age": age}),
    "customresourcedefinitions.apiextensions.k8s.io": _CREATED_AT,
}
