"""What does `kubectl get` show of nodes, services, events, volumes, bindings and other kinds that make no pods?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fairlead_sim.schema.cells import NAME, NONE, Layout, Object, age, columns, labels_cell, part, since, text

_ROLE_PREFIX = "node-role.kubernetes.io/"


def _node(obj: Object, now: float) -> list[Any]:
    kernel, architecture = (
        text(obj, "status", "nodeInfo", "kernelVersion", default="<unknown>"),
        text(obj, "status", "nodeInfo", "architecture"),
    )
    return [
        obj["metadata"]["name"],
        node_word(obj),
        ",".join(_roles(obj)) or NONE,
        age(obj, now),
        text(obj, "status", "nodeInfo", "kubeletVersion"),
        _address(obj, "InternalIP"),
        _address(obj, "ExternalIP"),
        text(obj, "status", "nodeInfo", "osImage", default="<unknown>"),
        f"{kernel} ({architecture})" if architecture else kernel,
        text(obj, "status", "nodeInfo", "containerRuntimeVersion", default="<unknown>"),
    ]


def node_word(obj: Object) -> str:
    """`Ready`, `NotReady` or `Unknown`, with `,SchedulingDisabled` on a cordoned node."""
    conditions = part(obj, "status", "conditions") or ()
    ready = next((condition.get("status") for condition in conditions if condition.get("type") == "Ready"), None)
    word = "Unknown" if ready is None else "Ready" if ready == "True" else "NotReady"
    return f"{word},SchedulingDisabled" if part(obj, "spec", "unschedulable") else word


def _roles(obj: Object) -> list[str]:
    labels = obj["metadata"].get("labels") or {}
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    return sorted((roles | {labels.get("kubernetes.io/role", "")}) - {""})


def _address(obj: Object, kind: str) -> str:
    addresses = part(obj, "status", "addresses") or ()
    return next((str(entry.get("address")) for entry in addresses if entry.get("type") == kind), NONE)


def _namespace(obj: Object, now: float) -> list[Any]:
    return [obj["metadata"]["name"], text(obj, "status", "phase"), age(obj, now)]


def _service(obj: Object, now: float) -> list[Any]:
    addresses = part(obj, "spec", "clusterIPs") or ()
    ports = ",".join(_port(port) for port in part(obj, "spec", "ports") or ())
    return [
        obj["metadata"]["name"],
        text(obj, "spec", "type"),
        addresses[0] if addresses else NONE,
        _external_address(obj),
        ports or NONE,
        age(obj, now),
        labels_cell(part(obj, "spec", "selector")),
    ]


def _port(port: Object) -> str:
    node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port')}{node_port}/{port.get('protocol', 'TCP')}"


def _external_address(obj: Object) -> str:
    kind = text(obj, "spec", "type")
    if kind == "ExternalName":
        return text(obj, "spec", "externalName")
    given = [str(address) for address in part(obj, "spec", "externalIPs") or ()]
    if kind == "LoadBalancer":
        ingress = part(obj, "status", "loadBalancer", "ingress") or ()
        return ",".join([*(entry.get("ip") or entry.get("hostname", "") for entry in ingress), *given]) or "<pending>"
    return ",".join(given) or NONE


def _endpoints(obj: Object, now: float) -> list[Any]:
    return [obj["metadata"]["name"], _endpoint_list(part(obj, "subsets") or ()), age(obj, now)]


def _endpoint_list(subsets: Iterable[Object]) -> str:
    """The first three addresses, and how many more there are."""
    shown = [
        f"{address['ip']}:{port['port']}" if port else str(address["ip"])
        for subset in subsets
        for port in subset.get("ports") or (None,)
        for address in subset.get("addresses") or ()
    ]
    more = f" + {len(shown) - 3} more..." if len(shown) > 3 else ""
    return ",".join(shown[:3]) + more if shown else NONE


def _event(obj: Object, now: float) -> list[Any]:
    first = since(obj.get("firstTimestamp") or obj.get("eventTime"), now)
    last = since(obj["lastTimestamp"], now) if obj.get("lastTimestamp") else first
    count = obj.get("count") or 1
    series = obj.get("series")
    if series:
        last, count = since(series.get("lastObservedTime"), now), series.get("count", count)
    about = obj.get("involvedObject") or {}
    kind, name = str(about.get("kind", "")).lower(), about.get("name")
    component = text(obj, "source", "component") or text(obj, "reportingComponent")
    host = text(obj, "source", "host") or text(obj, "reportingInstance")
    return [
        last,
        text(obj, "type"),
        text(obj, "reason"),
        f"{kind}/{name}" if name else kind,
        text(about, "fieldPath"),
        f"{component}, {host}" if host else component,
        text(obj, "message").strip(),
        first,
        count,
        obj["metadata"]["name"],
    ]


_EVENT_COLUMNS = (
    *columns("Last Seen", "Type", "Reason", "Object", wide=("Subobject", "Source")),
    *columns("Message", wide=("First Seen", "Count", NAME)),
)

_ACCESS = (("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP"))


def _access_modes(modes: Any) -> str:
    return ",".join(short for mode, short in _ACCESS if mode in (modes or ()))


def _volume_phase(obj: Object) -> str:
    return "Terminating" if part(obj, "metadata", "deletionTimestamp") else text(obj, "status", "phase")


def _volume(obj: Object, now: float) -> list[Any]:
    claim = part(obj, "spec", "claimRef")
    return [
        obj["metadata"]["name"],
        text(obj, "spec", "capacity", "storage", default="0"),
        _access_modes(part(obj, "spec", "accessModes")),
        text(obj, "spec", "persistentVolumeReclaimPolicy"),
        _volume_phase(obj),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        text(obj, "spec", "storageClassName"),
        text(obj, "spec", "volumeAttributesClassName", default="<unset>"),
        text(obj, "status", "reason"),
        age(obj, now),
        text(obj, "spec", "volumeMode", default="<unset>"),
    ]


def _volume_claim(obj: Object, now: float) -> list[Any]:
    bound = bool(part(obj, "spec", "volumeName"))
    return [
        obj["metadata"]["name"],
        _volume_phase(obj),
        text(obj, "spec", "volumeName"),
        text(obj, "status", "capacity", "storage", default="0") if bound else "",
        _access_modes(part(obj, "status", "accessModes")) if bound else "",
        text(obj, "spec", "storageClassName"),
        text(obj, "spec", "volumeAttributesClassName", default="<unset>"),
        age(obj, now),
        text(obj, "spec", "volumeMode", default="<unset>"),
    ]


def _storage_class(obj: Object, now: float) -> list[Any]:
    is_default = part(obj, "metadata", "annotations", "storageclass.kubernetes.io/is-default-class") == "true"
    return [
        obj["metadata"]["name"] + (" (default)" if is_default else ""),
        text(obj, "provisioner"),
        text(obj, "reclaimPolicy", default="Delete"),
        text(obj, "volumeBindingMode", default="Immediate"),
        bool(obj.get("allowVolumeExpansion")),
        age(obj, now),
    ]


def _binding(obj: Object, now: float) -> list[Any]:
    subjects = obj.get("subjects") or ()
    users, groups = (", ".join(s.get("name", "") for s in subjects if s.get("kind") == kind) for kind in ("User", "Group"))
    accounts = ", ".join(f"{s.get('namespace', '')}/{s.get('name', '')}" for s in subjects if s.get("kind") == "ServiceAccount")
    role = f"{text(obj, 'roleRef', 'kind')}/{text(obj, 'roleRef', 'name')}"
    return [obj["metadata"]["name"], role, age(obj, now), users, groups, accounts]


def _created_at(obj: Object, now: float) -> list[Any]:
    """Kinds without a printer of their own show the time itself."""
    return [obj["metadata"]["name"], part(obj, "metadata", "creationTimestamp")]


def _priority_class(obj: Object, now: float) -> list[Any]:
    policy = text(obj, "preemptionPolicy", default="PreemptLowerPriority")
    return [obj["metadata"]["name"], obj.get("value") or 0, bool(obj.get("globalDefault")), age(obj, now), policy]


def _config_map(obj: Object, now: float) -> list[Any]:
    return [obj["metadata"]["name"], len(obj.get("data") or ()) + len(obj.get("binaryData") or ()), age(obj, now)]


def _secret(obj: Object, now: float) -> list[Any]:
    return [obj["metadata"]["name"], text(obj, "type"), len(obj.get("data") or ()), age(obj, now)]


def _lease(obj: Object, now: float) -> list[Any]:
    return [obj["metadata"]["name"], text(obj, "spec", "holderIdentity"), age(obj, now)]


def _service_account(obj: Object, now: float) -> list[Any]:
    return [obj["metadata"]["name"], age(obj, now)]


_BINDING = Layout(columns(NAME, "Role", "Age", wide=("Users", "Groups", "ServiceAccounts")), _binding)
_CREATED_AT = Layout(columns(NAME, "Created At:date"), _created_at)
_VOLUME_CLASSES = ("StorageClass", "VolumeAttributesClass")

LAYOUTS: Mapping[str, Layout] = {
    "nodes": Layout(
        columns(
            NAME,
            *("Status", "Roles", "Age", "Version"),
            wide=("Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime"),
        ),
        _node,
    ),
    "namespaces": Layout(columns(NAME, "Status", "Age"), _namespace),
    "services": Layout(columns(NAME, "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", wide=("Selector",)), _service),
    "endpoints": Layout(columns(NAME, "Endpoints", "Age"), _endpoints),
    "events": Layout(_EVENT_COLUMNS, _event),
    "persistentvolumes": Layout(
        columns(
            NAME,
            *("Capacity", "Access Modes", "Reclaim Policy", "Status", "Claim", *_VOLUME_CLASSES, "Reason", "Age"),
            wide=("VolumeMode",),
        ),
        _volume,
    ),
    "persistentvolumeclaims": Layout(
        columns(NAME, "Status", "Volume", "Capacity", "Access Modes", *_VOLUME_CLASSES, "Age", wide=("VolumeMode",)), _volume_claim
    ),
    "storageclasses.storage.k8s.io": Layout(
        columns(NAME, "Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion", "Age"), _storage_class
    ),
    "rolebindings.rbac.authorization.k8s.io": _BINDING,
    "clusterrolebindings.rbac.authorization.k8s.io": _BINDING,
    "roles.rbac.authorization.k8s.io": _CREATED_AT,
    "clusterroles.rbac.authorization.k8s.io": _CREATED_AT,
    "priorityclasses.scheduling.k8s.io": Layout(
        columns(NAME, "Value:integer", "Global-Default:boolean", "Age", "PreemptionPolicy"), _priority_class
    ),
    "configmaps": Layout(columns(NAME, "Data", "Age"), _config_map),
    "secrets": Layout(columns(NAME, "Type", "Data", "Age"), _secret),
    "serviceaccounts": Layout(columns(NAME, "Age"), _service_account),
    "leases.coordination.k8s.io": Layout(columns(NAME, "Holder", "Age"), _lease),
    "customresourcedefinitions.apiextensions.k8s.io": _CREATED_AT,
}
