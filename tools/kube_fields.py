"""Writes `fairlead/wire/kube/fields_table.py`, the fields of built-in kinds, from the Go types.

The types are read from the pinned Go modules `k8s.io/api` and `k8s.io/apimachinery` in the module
cache (the programs of the tests are built from them). Run it after a change of the pinned version:
`python3 tools/kube_fields.py`.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from kube_programs import FAMILIES_DIR
from toolchains import find_go

TARGET = (
    Path(__file__).resolve().parents[1] / "src" / "fairlead" / "wire" / "kube" / "fields_table.py"
)
PACKAGES = {
    "core/v1": "k8s.io/api/core/v1",
    "apps/v1": "k8s.io/api/apps/v1",
    "batch/v1": "k8s.io/api/batch/v1",
    "rbac.authorization.k8s.io/v1": "k8s.io/api/rbac/v1",
    "policy/v1": "k8s.io/api/policy/v1",
    "coordination.k8s.io/v1": "k8s.io/api/coordination/v1",
    "scheduling.k8s.io/v1": "k8s.io/api/scheduling/v1",
    "storage.k8s.io/v1": "k8s.io/api/storage/v1",
    "autoscaling/v1": "k8s.io/api/autoscaling/v1",
    "autoscaling/v2": "k8s.io/api/autoscaling/v2",
    "networking.k8s.io/v1": "k8s.io/api/networking/v1",
    "discovery.k8s.io/v1": "k8s.io/api/discovery/v1",
    "node.k8s.io/v1": "k8s.io/api/node/v1",
    "events.k8s.io/v1": "k8s.io/api/events/v1",
    "admissionregistration.k8s.io/v1": "k8s.io/api/admissionregistration/v1",
    "authentication.k8s.io/v1": "k8s.io/api/authentication/v1",
    "authorization.k8s.io/v1": "k8s.io/api/authorization/v1",
    "apiextensions.k8s.io/v1": "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1",
    "meta/v1": "k8s.io/apimachinery/pkg/apis/meta/v1",
}
ROOTS = {
    "core/v1": "Pod Node Namespace ConfigMap Secret Service ServiceAccount Event Endpoints "
    "PersistentVolume PersistentVolumeClaim Binding "
    "LimitRange PodTemplate ReplicationController ResourceQuota",
    "apps/v1": "Deployment ReplicaSet StatefulSet DaemonSet ControllerRevision",
    "batch/v1": "Job CronJob",
    "rbac.authorization.k8s.io/v1": "Role RoleBinding ClusterRole ClusterRoleBinding",
    "policy/v1": "PodDisruptionBudget Eviction",
    "coordination.k8s.io/v1": "Lease",
    "scheduling.k8s.io/v1": "PriorityClass",
    "storage.k8s.io/v1": "CSIDriver CSINode StorageClass VolumeAttachment VolumeAttributesClass",
    "autoscaling/v1": "Scale HorizontalPodAutoscaler",
    "autoscaling/v2": "HorizontalPodAutoscaler",
    "networking.k8s.io/v1": "Ingress IngressClass NetworkPolicy",
    "discovery.k8s.io/v1": "EndpointSlice",
    "node.k8s.io/v1": "RuntimeClass",
    "events.k8s.io/v1": "Event",
    "admissionregistration.k8s.io/v1": "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding "
    "MutatingWebhookConfiguration "
    "ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration",
    "authentication.k8s.io/v1": "TokenRequest TokenReview SelfSubjectReview",
    "authorization.k8s.io/v1": (
        "SubjectAccessReview SelfSubjectAccessReview LocalSubjectAccessReview "
        "SelfSubjectRulesReview"
    ),
    "apiextensions.k8s.io/v1": "CustomResourceDefinition",
    "meta/v1": "DeleteOptions",
}
ANSWERS = {"core/v1": "PodList NodeList EventList NamespaceList ConfigMapList", "meta/v1": "Status"}
"""Messages that only API servers send: clients create none of these kinds."""
SCALARS = {
    "string": "s",
    "bool": "b",
    "int": "i",
    "int32": "i",
    "int64": "l",
    "uint8": "i",
    "float64": "d",
    "types.UID": "s",
}
SPECIAL = {
    "meta/v1": {"Time": "t", "MicroTime": "T", "FieldsV1": "f"},
    # A schema or something else, distinguished by hand-written code.
    "apiextensions.k8s.io/v1": {
        "JSON": "r",
        "JSONSchemaPropsOrStringArray": "r",
        "JSONSchemaPropsOrArray": "j",
        "JSONSchemaPropsOrBool": "j",
    },
}
FOREIGN = {
    "resource.Quantity": "q",
    "intstr.IntOrString": "o",
    "runtime.RawExtension": "r",
    "types.NodeName": "s",
    "rest.Verb": "s",
}

HEADER = '''\
"""The fields of Kubernetes' built-in kinds; written by tools/kube_fields.py from the Go types of \
{version}.

`fields.py` reads it. `KINDS`: API version, kind, message. `MESSAGES`: a message and its fields, \
`NUMBER FLAG NAME : TYPE`, where
NUMBER is the one of protobuf, FLAG is `.` (left out when empty), `!` (a pointer: kept when \
empty) or `>` (its fields belong to the
parent), and TYPE is a scalar's letter or a message, after `*` for lists and `%` for maps from \
strings. `@KEY` behind a list: a
strategic merge patch merges its items by that field, `@` alone plain values.
"""

from typing import Final

'''


@dataclass
class Package:
    """The Go types of one API package: fields of structs, and what other names stand for."""

    name: str
    structs: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    imports: dict[str, str] = field(default_factory=dict)


def main() -> None:
    TARGET.write_text(render(), encoding="utf-8")
    print(f"{TARGET.name}: {TARGET.stat().st_size} bytes")


def render() -> str:
    """The whole file."""
    packages, named = described_messages()
    messages = {
        key: _describe(packages, packages[group], name)[0] for key, (group, name) in named.items()
    }
    kinds = "\n".join(
        f"{_api_version(group)} {name} {_key(group, name)}"
        for group in ROOTS
        for name in ROOTS[group].split()
    )
    fields = "\n".join(f"{key} {text}".rstrip() for key, text in sorted(messages.items()))
    return HEADER.format(version=pinned_version()) + (
        f'KINDS: Final = """\\\n{kinds}\n"""\n\nMESSAGES: Final = """\\\n{fields}\n"""\n'
    )


def described_messages() -> tuple[dict[str, Package], dict[str, tuple[str, str]]]:
    """The packages, and of each message of the table its package and its name there."""
    go = find_go()
    packages = {
        name: _read(name, module_folder(str(go.program), path)) for name, path in PACKAGES.items()
    }
    messages: dict[str, tuple[str, str]] = {}
    waiting = [
        (group, name)
        for roots in (ROOTS, ANSWERS)
        for group, names in roots.items()
        for name in names.split()
    ]
    while waiting:
        group, name = waiting.pop(0)
        key = _key(group, name)
        if key not in messages:
            messages[key] = group, name
            waiting += _describe(packages, packages[group], name)[1]
    return packages, messages


def _api_version(group: str) -> str:
    return "v1" if group in ("core/v1", "meta/v1") else group


def _key(group: str, name: str) -> str:
    """`core.Pod`.

    Versions beyond the first have their number in it: `autoscaling2.HorizontalPodAutoscaler`.
    """
    path, _, version = group.partition("/")
    return f"{path.partition('.')[0]}{version.removeprefix('v').removeprefix('1')}.{name}"


def pinned_version() -> str:
    text = (FAMILIES_DIR / "kubernetes" / "go.mod").read_text(encoding="utf-8")
    found = re.search(r"k8s.io/kubernetes (v\S+)", text)
    return f"k8s.io/kubernetes {found.group(1)}" if found else "k8s.io/kubernetes"


def module_folder(go: str, package: str) -> Path:
    command = [go, "list", "-mod=readonly", "-f", "{{.Dir}}", package]
    answer = subprocess.run(
        command, cwd=FAMILIES_DIR / "kubernetes", capture_output=True, text=True, check=True
    )
    return Path(answer.stdout.strip())


def _read(name: str, folder: Path) -> Package:
    package = Package(name)
    for source in [
        *sorted(folder.glob("*types*.go")),
        folder / "micro_time.go",
        folder / "time.go",
    ]:
        if source.exists():
            _read_source(package, source.read_text(encoding="utf-8"))
    return package


def _read_source(package: Package, text: str) -> None:
    text = re.sub(r"//[^\n]*", "", re.sub(r"/\*.*?\*/", "", text, flags=re.S))
    for alias, path in re.findall(r'^\s*(\w+)?\s*"(k8s.io/[^"]+)"', text, re.M):
        package.imports[alias or path.rpartition("/")[2]] = path
    for name, body in re.findall(r"^type (\w+) struct \{(.*?)^\}", text, re.M | re.S):
        package.structs[name] = [
            (line, tag) for line, tag in re.findall(r"^\s*([^`\n]*?)\s*`([^`]*)`", body, re.M)
        ]
    package.structs |= {name: [] for name in re.findall(r"^type (\w+) struct ?\{\}", text, re.M)}
    package.names |= dict(re.findall(r"^type (\w+) ((?:map\[|\[\]|\w)[\w\]\[.]*)$", text, re.M))


def _describe(
    packages: dict[str, Package], package: Package, name: str
) -> tuple[str, list[tuple[str, str]]]:
    """The fields of one message as text, and the messages they mention."""
    parts, found = [], []
    for declaration, tag in package.structs[name]:
        numbers = re.search(r'protobuf:"[a-z0-9]+,(\d+),', tag)
        json_tag = re.search(r'json:"([^"]*)"', tag)
        if not numbers or not json_tag:
            continue
        go_type = declaration.split(None, 1)[1].strip() if " " in declaration else declaration
        json_name, is_inline = json_tag.group(1).partition(",")[0], ",inline" in json_tag.group(1)
        code, mentioned = type_code(packages, package, go_type.lstrip("*"))
        flag = ">" if is_inline and mentioned else "!" if go_type.startswith("*") else "."
        parts.append(
            f"{numbers.group(1)}{flag}{json_name}:"
            f"{code}{_merge_key(tag) if code.startswith('*') else ''}"
        )
        found += mentioned
    return " ".join(parts), found


def _merge_key(tag: str) -> str:
    strategy, key = (
        re.search(rf'{name}:"([^"]*)"', tag) for name in ("patchStrategy", "patchMergeKey")
    )
    return f"@{key.group(1) if key else ''}" if strategy and "merge" in strategy.group(1) else ""


def type_code(
    packages: dict[str, Package], package: Package, go_type: str
) -> tuple[str, list[tuple[str, str]]]:
    """The code of a Go type in the table, and the messages that it mentions."""
    if go_type in SCALARS or go_type in FOREIGN:
        return SCALARS.get(go_type) or FOREIGN[go_type], []
    if go_type == "[]byte":
        return "y", []
    if go_type.startswith("[]"):
        code, found = type_code(packages, package, go_type[2:].lstrip("*"))
        return f"*{code}", found
    if go_type.startswith("map["):
        code, found = type_code(packages, package, go_type.partition("]")[2])
        return f"%{code}", found
    if "." in go_type:
        alias, _, name = go_type.partition(".")
        path = package.imports.get(alias, "")
        home = next((packages[group] for group, known in PACKAGES.items() if known == path), None)
        if home is None:
            raise LookupError(f"{package.name}: {go_type} of {path}")
        return type_code(packages, home, name)
    if go_type in SPECIAL.get(package.name, ()):
        return SPECIAL[package.name][go_type], []
    if go_type == "ExtraValue":
        return "x", []
    if go_type in package.structs:
        return _key(package.name, go_type), [(package.name, go_type)]
    return type_code(packages, package, package.names[go_type])


if __name__ == "__main__":
    main()
