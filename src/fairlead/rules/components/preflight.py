"""What is checked before a component is deployed, upgraded or removed: every check is reported.

Specification: docs/spec/components.md#preflight.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from fairlead.model.actions import Manifest, object_ref
from fairlead.model.installed.component_facts import PlanFacts, TriedObject, WantedComponent
from fairlead.model.installed.facts import Mismatch, ServerFact, Unread
from fairlead.model.installed.finding import Finding, State
from fairlead.model.operations.apply_set import apply_set_id, is_member
from fairlead.model.operations.component import Backend, ComponentRow, ComponentState
from fairlead.model.operations.operation import OperationKind
from fairlead.rules.components.catalogue import COMPONENTS, dependants
from fairlead.rules.components.component_plan import DEFINITION, taken_over
from fairlead.rules.components.pod_templates import (
    claimed_classes,
    host_ports,
    images,
    ingress_hosts,
    node_ports,
    pod_specs,
)
from fairlead.rules.components.secrets import plain_secrets, secrets_with_data
from fairlead.rules.components.values import value_faults
from fairlead.rules.components.versions import is_newer, is_version
from fairlead.rules.installation.finding_lists import counted, dotted, some, unread
from fairlead.settings import OLDEST_KUBERNETES

Rows = Mapping[str, ComponentRow]
_RELEASE: Final = "meta.helm.sh/release-name"
_RELEASE_PLACE: Final = "meta.helm.sh/release-namespace"
_GPU: Final = "nvidia.com/gpu"
_PLUGINS: Final = (
    *("k8s-device-plugin", "gpushare-device-plugin", "k8s-gpushare-plugin"),
    *("hami", "vgpu-device-plugin"),
)
_OF_PROMETHEUS: Final = "monitoring.coreos.com"


def preflight(wanted: WantedComponent, facts: PlanFacts, rows: Rows) -> list[Finding]:
    """A finding for each check. `rows`: how all components are, by id."""
    if wanted.do is OperationKind.REMOVE:
        return [
            _api(facts.server),
            _permissions(facts),
            _owner(wanted, rows),
            _helm(wanted, facts),
            _membership(wanted, facts),
            _dependants(wanted, rows),
            *_live(wanted, facts),
        ]
    return [
        _api(facts.server),
        _permissions(facts),
        _config(wanted, facts),
        _helm(wanted, facts),
        _definition_owner(wanted, facts),
        _other_release(wanted, facts, rows),
        _depends(wanted, rows),
        _conflicts(wanted, rows),
        _namespace(wanted, facts),
        _dry_run(facts),
        _storage_class(wanted, facts),
        _gpu_nodes(wanted),
        _host_clash(wanted, facts),
        _prometheus(wanted, facts),
        _second_plugin(wanted, rows),
    ]


SHARING: Final = ("gpu-sharing", "node-agent")
"""Parts without which shared GPUs are neither accounted nor handed out."""


def part_preflight(
    wanted: WantedComponent, rows: Rows, sharing_pods: Sequence[str] | Unread = ()
) -> list[Finding]:
    """The checks of a part of the installation beside those of `fairlead doctor`. `sharing_pods`:
    titles of pods that hold a part of a GPU, for the removal of a part in `SHARING`.
    """
    if wanted.do is OperationKind.REMOVE:
        found = [_owner(wanted, rows), _dependants(wanted, rows)]
        if wanted.component.id in SHARING:
            found.append(_shared_pods(sharing_pods))
        return found
    return [_depends(wanted, rows), _conflicts(wanted, rows)]


def _shared_pods(pods: Sequence[str] | Unread) -> Finding:
    if isinstance(pods, Unread):
        return unread("shared-pods", pods)
    if pods:
        sentence = f"{counted(len(pods), 'pod')} on shared GPUs: {some(pods)}"
        mend = "wait until they have ended, or delete them: nothing would account for their memory"
        return Finding("shared-pods", State.FAIL, sentence, mend)
    return Finding("shared-pods", State.OK, "no pod holds a part of a GPU")


def _api(server: ServerFact) -> Finding:
    if server.numbers is None:
        return Finding("api", State.UNKNOWN, "the API server's version is not known")
    if server.numbers < OLDEST_KUBERNETES:
        sentence = f"the API server is {server.version}"
        mend = f"use Kubernetes {dotted(OLDEST_KUBERNETES)} or later"
        return Finding("api", State.FAIL, sentence, mend)
    return Finding("api", State.OK, f"the API server is {server.version}")


def _permissions(facts: PlanFacts) -> Finding:
    if isinstance(facts.denied, Unread):
        return unread("permissions", facts.denied)
    if facts.denied:
        sentence = f"you have no right to write {some(facts.denied)}"
        return Finding("permissions", State.FAIL, sentence, "use an account with these rights")
    return Finding("permissions", State.OK, "you may write all objects")


def _config(wanted: WantedComponent, facts: PlanFacts) -> Finding:
    faults = list(_config_faults(wanted, is_read=facts.has_helm or not wanted.chart))
    if faults:
        sentence = "; ".join(fault for fault, _ in faults)
        mend = "; ".join(dict.fromkeys(mend for _, mend in faults))
        return Finding("config-complete", State.FAIL, sentence, mend)
    return Finding("config-complete", State.OK, "all that it needs is given")


def _config_faults(wanted: WantedComponent, *, is_read: bool) -> Iterator[tuple[str, str]]:
    """Each with what mends it. A chart does not get values with a secret, so it has no objects.
    `is_read`: whether the objects could be read, for which a chart needs Helm.
    """
    secrets = plain_secrets(wanted.values)
    yield from value_faults(wanted.component, wanted.values)
    if not wanted.has_source:
        is_helm = wanted.component.backend is Backend.HELM
        what = f"the {'chart' if is_helm else 'manifests'} of `{wanted.component.id}`"
        mend = "its address: `--chart ADDRESS`" if is_helm else "its objects: `--manifests FILE`"
        yield f"{what} {'is' if is_helm else 'are'} not named", f"name {mend}"
    elif is_read and not wanted.objects and not secrets:
        yield "there are no objects in it", "check the chart or the manifests, and the values"
    if wanted.version and not is_version(wanted.version):
        yield f"the version is `{wanted.version}`", "write one like 1.0.8"
    if secrets:
        sentence = f"the values have a secret in plain text: {some(secrets)}"
        yield sentence, "write it into a Secret, and name the Secret in the values"
    shown = secrets_with_data(wanted.objects) if not wanted.chart else []
    if shown:
        sentence = f"the manifests have Secrets with content: {some(shown)}"
        yield sentence, "create them yourself, and leave them out: records would show them"


def _helm(wanted: WantedComponent, facts: PlanFacts) -> Finding:
    is_needed = bool(wanted.chart or wanted.release or facts.release)
    if not is_needed:
        return Finding("helm", State.OK, "the component needs no Helm")
    if not facts.has_helm:
        mend = f"install Helm 3 or 4, or run `{helm_command(wanted)}` where it is"
        return Finding("helm", State.FAIL, "there is no program `helm` here", mend)
    if facts.helm_denied:
        sentence = f"Helm may not write its record of a release: {facts.helm_denied}"
        mend = f"run `{helm_command(wanted)}` or `fairlead component` with your own account"
        return Finding("helm", State.FAIL, sentence, mend)
    return Finding("helm", State.OK, "there is a program `helm`")


def helm_command(wanted: WantedComponent) -> str:
    """What a person would type to get the same release.

    >>> from fairlead.rules.components.catalogue import component_of
    >>> helm_command(WantedComponent(component=component_of("fluid"), do=OperationKind.REMOVE,
    ...     place="fluid-system", home="", release="fluid"))
    'helm uninstall fluid -n fluid-system'
    """
    name, place = wanted.release, f"-n {wanted.place}"
    if wanted.do is OperationKind.REMOVE:
        return f"helm uninstall {name} {place}"
    version = f" --version {wanted.version}" if wanted.version else ""
    chart = f"{wanted.chart or 'CHART'}{version}"
    command = f"helm upgrade --install {name} {chart} {place} --create-namespace"
    return f"{command} -f VALUES"


def _definition_owner(wanted: WantedComponent, facts: PlanFacts) -> Finding:
    definitions = [each for each in facts.tried if each.manifest["kind"] == DEFINITION]
    faults = [fault for each in definitions for fault in _definition_faults(wanted, each)]
    if faults:
        mend = "remove the other program and its definitions, or let it be upgraded by its owner"
        return Finding("crd-owner", State.FAIL, some(faults, "; "), mend)
    found = sum(isinstance(each.found, dict) for each in definitions)
    sentence = f"{counted(len(definitions), 'definition')}, of which {found} exist and fit"
    return Finding("crd-owner", State.OK, sentence)


def _definition_faults(wanted: WantedComponent, tried: TriedObject) -> Iterator[str]:
    found: Any = tried.found
    if not isinstance(found, dict):
        return
    name = found["metadata"]["name"]
    release = _release_of(found)
    if release and release != _own_release(wanted):
        yield f"definition `{name}` belongs to the Helm release `{release}`"
    manifest: Any = tried.manifest
    offered = {each["name"] for each in manifest["spec"]["versions"]}
    stored = set((found.get("status") or {}).get("storedVersions") or ())
    if stored - offered:
        lost = some(sorted(stored - offered))
        yield f"definition `{name}` has objects stored as {lost}, which the new one lacks"
    if isinstance(tried.result, Mismatch):
        yield f"definition `{name}`: {tried.result.why}"


def _release_of(found: Any) -> str:
    marks = found["metadata"].get("annotations") or {}
    name = marks.get(_RELEASE)
    return f"{marks.get(_RELEASE_PLACE, '')}/{name}" if name else ""


def _own_release(wanted: WantedComponent) -> str:
    return f"{wanted.place}/{wanted.release}" if wanted.release else ""


def _unknown_owner(row: ComponentRow) -> Finding:
    """What may be another program's is not changed."""
    sentence = f"whose it is could not be read: {row.message}"
    return Finding("other-release", State.FAIL, sentence, "use an account that may read it")


def _owner(wanted: WantedComponent, rows: Rows) -> Finding:
    """Whether the component is Fairlead's to change."""
    row = rows[wanted.component.id]
    if row.state is None:
        return _unknown_owner(row)
    if row.state is ComponentState.FOREIGN:
        mend = "Fairlead never changes it; use the program that deployed it"
        return Finding("other-release", State.FAIL, row.message, mend)
    if row.state is ComponentState.NOT_INSTALLED:
        sentence = f"`{wanted.component.id}` is not installed"
        return Finding("other-release", State.FAIL, sentence, "`fairlead component list` shows it")
    return Finding("other-release", State.OK, "Fairlead deployed the component")


def _other_release(wanted: WantedComponent, facts: PlanFacts, rows: Rows) -> Finding:
    check = "other-release"
    row = rows[wanted.component.id]
    if row.state is None:
        return _unknown_owner(row)
    if row.state is ComponentState.FOREIGN:
        mend = "Fairlead never changes it; use the program that deployed it, or remove it there"
        return Finding(check, State.FAIL, row.message, mend)
    set_id = apply_set_id(wanted.component.id, wanted.home)
    others = [
        object_ref(each.manifest).title
        for each in facts.tried
        if isinstance(each.found, dict) and _is_others(wanted, each.found, set_id)
    ]
    if others:
        sentence = f"another program made {some(others)}"
        return Finding(check, State.FAIL, sentence, "remove it, or choose another namespace")
    return Finding(check, State.OK, "no other program has one of its objects")


def _is_others(wanted: WantedComponent, found: Manifest, set_id: str) -> bool:
    """Whether an existing object is of another program. Definitions have a check of their own."""
    if found["kind"] in (DEFINITION, "Namespace"):
        return False
    if wanted.chart:
        return _release_of(found) != _own_release(wanted)
    return not is_member(found, set_id)


def _depends(wanted: WantedComponent, rows: Rows) -> Finding:
    missing: list[str] = []
    waiting: list[str] = []
    lacking: list[str] = []
    for need in wanted.component.depends:
        row = rows[need.id]
        if row.state is None:
            missing.append(f"`{need.id}` is unknown: {row.message}")
        elif row.state is ComponentState.NOT_INSTALLED:
            missing.append(f"`{need.id}` is missing")
            lacking.append(need.id)
        elif need.version and is_newer(need.version, row.version):
            missing.append(f"`{need.id}` is {row.version}, and {need.version} is needed")
        elif row.state not in (ComponentState.READY, ComponentState.FOREIGN):
            waiting.append(f"`{need.id}` is {row.state}")
    if missing:
        mend = "; ".join(f"`fairlead component deploy {each}`" for each in lacking)
        return Finding("depends", State.FAIL, "; ".join(missing), mend)
    if waiting:
        return Finding("depends", State.WARN, "; ".join(waiting), "wait until it is ready")
    return Finding("depends", State.OK, "what it needs is there")


def _conflicts(wanted: WantedComponent, rows: Rows) -> Finding:
    id = wanted.component.id
    named = {
        *wanted.component.conflicts,
        *(one.id for one in COMPONENTS.values() if id in one.conflicts),
    }
    there = sorted(
        each for each in named if rows[each].state not in (None, ComponentState.NOT_INSTALLED)
    )
    if there:
        sentence = f"it cannot be beside {some([f'`{each}`' for each in there])}"
        return Finding("conflicts", State.FAIL, sentence, "remove the other one first")
    return Finding("conflicts", State.OK, "nothing that excludes it is there")


def _namespace(wanted: WantedComponent, facts: PlanFacts) -> Finding:
    found: Any = facts.namespace
    if isinstance(found, Unread):
        return unread("namespace", found)
    name = wanted.place
    if wanted.component.is_placed and name != wanted.component.namespace:
        sentence = f"`{wanted.component.id}` does not work in namespace `{name}`"
        mend = f"leave the namespace out: it is `{wanted.component.namespace}`"
        return Finding("namespace", State.FAIL, sentence, mend)
    if found is None:
        made = any(
            (each["kind"], each["metadata"]["name"]) == ("Namespace", name)
            for each in wanted.objects
        )
        if made or wanted.release:  # Helm creates it
            return Finding("namespace", State.OK, f"namespace `{name}` will be created")
        sentence = f"namespace `{name}` does not exist"
        return Finding("namespace", State.FAIL, sentence, f"`kubectl create namespace {name}`")
    if found["metadata"].get("deletionTimestamp"):
        sentence = f"namespace `{name}` is being deleted"
        return Finding("namespace", State.FAIL, sentence, "wait until it is gone")
    return Finding("namespace", State.OK, f"namespace `{name}` exists")


def _dry_run(facts: PlanFacts) -> Finding:
    faults = [
        f"{object_ref(each.manifest).title}: {each.result.why}"
        for each in facts.tried
        if isinstance(each.result, Mismatch) and each.manifest["kind"] != DEFINITION
    ]
    if faults:
        mend = "correct the values, or remove what else writes these objects"
        return Finding("dry-run", State.FAIL, some(faults, "; "), mend)
    unknown = [each.result.why for each in facts.tried if isinstance(each.result, Unread)]
    if unknown:
        return Finding("dry-run", State.UNKNOWN, unknown[0])
    tried = sum(isinstance(each.result, dict) for each in facts.tried)
    later = len(facts.tried) - tried
    sentence = f"the API server accepts {counted(tried, 'object')}"
    more = f"; {later} can be tried only once their namespace or kind exists" if later else ""
    return Finding("dry-run", State.OK, sentence + more)


def _storage_class(wanted: WantedComponent, facts: PlanFacts) -> Finding:
    check = "storage-class"
    claims = claimed_classes(wanted.objects)
    if not claims:
        return Finding(check, State.OK, "it needs no volume")
    if isinstance(facts.storage_classes, Unread):
        return unread(check, facts.storage_classes)
    known, has_default = facts.storage_classes, any(facts.storage_classes.values())
    faults = [
        f"{title} names the class `{name}`, which does not exist"
        if name
        else f"{title} names no class, and the cluster has no default"
        for title, name in claims.items()
        if (name not in known if name else not has_default)
    ]
    if faults:
        mend = f"choose one in the values: {some(sorted(known)) or 'the cluster has none'}"
        return Finding(check, State.FAIL, some(faults, "; "), mend)
    return Finding(check, State.OK, f"there is a class for {counted(len(claims), 'volume')}")


def _gpu_nodes(wanted: WantedComponent) -> Finding:
    needing = [
        container
        for pod in pod_specs(wanted.objects)
        for container in pod.get("containers") or ()
        if _GPU in ((container.get("resources") or {}).get("limits") or {})
    ]
    if needing:
        sentence = f"{counted(len(needing), 'container')} of it needs a GPU"
        return Finding(
            "gpu-nodes", State.WARN, sentence, "GPUs that it holds are not free for jobs"
        )
    return Finding("gpu-nodes", State.OK, "it needs no GPU")


def _host_clash(wanted: WantedComponent, facts: PlanFacts) -> Finding:
    check = "host-clash"
    if isinstance(facts.hosts, Unread):
        return unread(check, facts.hosts)
    if isinstance(facts.node_ports, Unread):
        return unread(check, facts.node_ports)
    if isinstance(facts.host_ports, Unread):
        return unread(check, facts.host_ports)
    faults = [
        *_clashes("host", ingress_hosts(wanted.objects), facts.hosts),
        *_clashes("node port", node_ports(wanted.objects), facts.node_ports),
        *_clashes("host port", _named(host_ports(wanted.objects)), _named(facts.host_ports)),
    ]
    if faults:
        return Finding(check, State.FAIL, some(faults, "; "), "choose another one in the values")
    return Finding(check, State.OK, "no host name and no port of nodes is taken")


def _named(ports: Mapping[tuple[int, str], str]) -> dict[str, str]:
    return {f"{number}/{protocol}": title for (number, protocol), title in ports.items()}


def _clashes(word: str, own: Mapping[Any, str], taken: Mapping[Any, str]) -> Iterable[str]:
    for name, title in own.items():
        if name in taken and taken[name] != title:
            yield f"{word} `{name}` of {title} is taken by {taken[name]}"


def _prometheus(wanted: WantedComponent, facts: PlanFacts) -> Finding:
    lacking = [each for each in facts.unserved if each.endswith(_OF_PROMETHEUS)]
    if lacking:
        sentence = (
            f"it has objects of the Prometheus operator, which the cluster lacks: {some(lacking)}"
        )
        mend = "turn them off in the values, or deploy `prometheus` first"
        return Finding("prometheus", State.FAIL, sentence, mend)
    return Finding("prometheus", State.OK, "it needs nothing of Prometheus that the cluster lacks")


def _second_plugin(wanted: WantedComponent, rows: Rows) -> Finding:
    own = [each for each in images(wanted.objects) if any(word in each for word in _PLUGINS)]
    agent = rows["node-agent"]
    if own and agent.state not in (None, ComponentState.NOT_INSTALLED):
        sentence = f"it brings a device plugin (`{own[0]}`), and `node-agent` is there"
        mend = "a card would be given out twice: turn it off in the values"
        return Finding("second-plugin", State.FAIL, sentence, mend)
    return Finding("second-plugin", State.OK, "it brings no second device plugin for GPUs")


def _membership(wanted: WantedComponent, facts: PlanFacts) -> Finding:
    others = [each.title for each in taken_over(wanted, facts)]
    if others:
        sentence = f"objects of the inventory that another program has made anew: {some(others)}"
        mend = "they stay; remove them yourself if nothing needs them"
        return Finding("membership", State.WARN, sentence, mend)
    return Finding("membership", State.OK, "its objects are Fairlead's")


def _dependants(wanted: WantedComponent, rows: Rows) -> Finding:
    there = [
        each for each, row in rows.items() if row.state not in (None, ComponentState.NOT_INSTALLED)
    ]
    names = dependants(wanted.component.id, there)
    if names:
        sentence = f"{some([f'`{each}`' for each in names])} needs it"
        return Finding("dependants", State.FAIL, sentence, "remove these first")
    return Finding("dependants", State.OK, "no other component needs it")


def _live(wanted: WantedComponent, facts: PlanFacts) -> Iterator[Finding]:
    if isinstance(facts.live, Unread):
        yield unread("live-objects", facts.live)
        return
    titles = [each.title for each in facts.live]
    if not titles:
        yield Finding("live-objects", State.OK, "no object of its kinds exists")
    elif wanted.deletes_definitions:
        sentence = f"{counted(len(titles), 'object')} of its kinds would be deleted: {some(titles)}"
        yield Finding("live-objects", State.FAIL, sentence, "delete these first, or keep the kinds")
    else:
        sentence = f"{counted(len(titles), 'object')} of its kinds stays: {some(titles)}"
        mend = "nothing works on them until the component is deployed again"
        yield Finding("live-objects", State.WARN, sentence, mend)
    held = [
        f"{each.title} ({', '.join(each.finalizers)})" for each in facts.live if each.finalizers
    ]
    if held:
        sentence = f"objects with finalizers could not be deleted any more: {some(held)}"
        yield Finding("finalizers", State.FAIL, sentence, "delete these first")
    else:
        yield Finding("finalizers", State.OK, "no object waits for the component at its end")


def failing(found: Sequence[Finding]) -> list[Finding]:
    return [each for each in found if each.state is State.FAIL]
