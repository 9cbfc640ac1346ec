"""Checks of a cluster for an installation.

Server, clock, admission, rights, namespaces, Helm, definitions, Prometheus.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fairlead.model.actions import Manifest
from fairlead.model.dependency import SKEW_SECONDS, SKEW_SECONDS_MAX
from fairlead.model.installation import INSTALLATION_LABEL
from fairlead.model.installed.facts import InstallationFacts, InventoryFact, Unread
from fairlead.model.installed.finding import Finding, State
from fairlead.model.refusal import Refusal
from fairlead.rules.installation.finding_lists import again, dotted, some, unread
from fairlead.rules.installation.pod_security import ENFORCE, LEVELS, violations
from fairlead.rules.installation.refusals import (
    refuse_definition,
    refuse_foreign_namespace,
    refuse_namespace,
    refuse_releases,
)
from fairlead.rules.installation.server_versions import (
    fitting_scheduler,
    is_old_scheduler,
    older_server_hint,
    oldest_server,
    refuse_scheduler,
    scheduler_version,
)
from fairlead.settings import PEOPLE_CONTROLLER_POD, QUOTA_CONTROLLER_POD

_TIME: Final = "synchronize the clocks (NTP), of this machine and of the control plane"
_PULL_TYPES: Final = ("kubernetes.io/dockerconfigjson", "kubernetes.io/dockercfg")
_NAME_IT: Final = "`fairlead install --set prometheus=ADDRESS` names one"


def check_cluster(facts: InstallationFacts) -> Iterator[Finding]:
    yield _version(facts)
    yield from _scheduler(facts)
    yield _clock(facts)
    yield _admission(facts)
    yield _rights(facts)
    yield from _namespaces(facts)
    yield _releases(facts)
    yield from _definitions(facts)
    yield from _pull_secrets(facts)
    yield _prometheus(facts)


def _version(facts: InstallationFacts) -> Finding:
    oldest = oldest_server(facts.chosen)
    needed = f"admission by {facts.chosen.admission} needs {dotted(oldest)}"
    found = facts.server.version
    if facts.server.numbers is None:
        what = f"the API server's version is not known (`{found}`); {needed}"
        return Finding("server", State.UNKNOWN, what, "`kubectl version` prints it")
    sentence = f"Kubernetes {found or dotted(facts.server.numbers)}; {needed}"
    if facts.server.numbers >= oldest:
        return Finding("server", State.OK, sentence)
    mend = older_server_hint(facts.server.numbers, facts.chosen)
    return Finding("server", State.FAIL, sentence, mend)


def _scheduler(facts: InstallationFacts) -> Iterator[Finding]:
    """Whether kube-scheduler's image fits the API server; nothing where a version is not known."""
    image, server = scheduler_version(facts.chosen), facts.server.numbers
    if image is None or server is None:
        return
    refusal = refuse_scheduler(server, facts.chosen)
    mend = fitting_scheduler(server, facts.chosen)
    sentence = f"kube-scheduler {dotted(image)} beside the API server {dotted(server)}"
    if refusal is not None:
        yield Finding("kube-scheduler", State.FAIL, refusal.reason, mend)
    elif is_old_scheduler(server, image):
        old = f"{sentence}: more than one minor version older"
        yield Finding("kube-scheduler", State.WARN, old, mend)
    else:
        yield Finding("kube-scheduler", State.OK, sentence)


def _clock(facts: InstallationFacts) -> Finding:
    ahead = facts.server.ahead_seconds
    if ahead is None:
        return Finding("clock", State.UNKNOWN, "the API server's answers have no time", _TIME)
    if abs(ahead) <= SKEW_SECONDS:
        sentence = f"the API server's clock and this machine's agree within {SKEW_SECONDS:g} s"
        return Finding("clock", State.OK, sentence)
    way = "ahead of" if ahead > 0 else "behind"
    state = State.WARN if abs(ahead) <= SKEW_SECONDS_MAX else State.FAIL
    sentence = f"the API server's clock is {abs(ahead):.1f} s {way} this machine's"
    return Finding("clock", state, sentence, _TIME)


def _older(facts: InstallationFacts) -> str:
    if facts.server.numbers is None:
        return "`kubectl version` prints the API server's version"
    return older_server_hint(facts.server.numbers, facts.chosen)


def _admission(facts: InstallationFacts) -> Finding:
    if isinstance(facts.unserved, Unread):
        return unread("admission", facts.unserved)
    if facts.unserved:
        sentence = f"the cluster does not serve {some(facts.unserved)}"
        return Finding("admission", State.FAIL, sentence, _older(facts))
    return Finding("admission", State.OK, "the cluster serves all kinds of the installation")


def _rights(facts: InstallationFacts) -> Finding:
    if isinstance(facts.denied, Unread):
        return unread("rights", facts.denied)
    if not facts.denied:
        return Finding("rights", State.OK, "you may create and patch all objects")
    is_installed = isinstance(facts.inventory, InventoryFact)
    what = "upgrade" if is_installed else "install"
    return Finding(
        "rights",
        State.WARN if is_installed else State.FAIL,
        f"you may not create and patch {some(facts.denied)}",
        f"{what} as a user with these rights, such as cluster-admin",
    )


def _namespaces(facts: InstallationFacts) -> Iterator[Finding]:
    for name, found in facts.namespaces.items():
        if isinstance(found, Unread):
            yield unread("namespace", found)
        elif found is None:
            sentence = f"namespace `{name}` does not exist"
            if isinstance(facts.inventory, InventoryFact):
                yield Finding("namespace", State.FAIL, sentence, again(facts.inventory))
            else:
                yield Finding("namespace", State.OK, sentence)
        else:
            yield _namespace(name, found, facts)
            yield _pod_security(name, found, facts)


def _release(facts: InstallationFacts) -> str:
    """The Helm release that was installed; "" if there is none."""
    return facts.inventory.release if isinstance(facts.inventory, InventoryFact) else ""


def _namespace(name: str, found: Manifest, facts: InstallationFacts) -> Finding:
    refusal = refuse_namespace(found)
    is_ending = bool(found["metadata"].get("deletionTimestamp"))
    if refusal is None or (_release(facts) and not is_ending):
        return _foreign_namespace(name, found, facts)
    if is_ending:
        mend = (
            f"wait until it is gone; `kubectl get namespace {name} -o yaml` shows what it waits for"
        )
    else:
        mend = "use Helm for its release"
    return Finding("namespace", State.FAIL, refusal.reason, mend)


def _foreign_namespace(name: str, found: Manifest, facts: InstallationFacts) -> Finding:
    """Whether an installation may have a namespace that exists."""
    refusal = refuse_foreign_namespace(found)
    if refusal is None or isinstance(facts.inventory, InventoryFact):
        return Finding("namespace", State.OK, f"namespace `{name}` exists")
    part = _wanted_labels(name, facts)[INSTALLATION_LABEL]
    mend = f"name another one, or `kubectl label namespace {name} {INSTALLATION_LABEL}={part}`"
    return Finding("namespace", State.FAIL, refusal.reason, mend)


def _pod_security(name: str, found: Manifest, facts: InstallationFacts) -> Finding:
    """Whether the namespace's level admits all pods that are wanted in it."""
    level = (found["metadata"].get("labels") or {}).get(ENFORCE, "")
    if not level:
        sentence = f"namespace `{name}` has no label {ENFORCE}: the API server's default holds"
        return Finding("pod-security", State.UNKNOWN, sentence, _label(name, facts))
    if level not in LEVELS:
        sentence = f"namespace `{name}` has the level `{level}`, which does not exist"
        return Finding("pod-security", State.FAIL, sentence, _label(name, facts))
    refused = [
        f"{each['kind']} {each['metadata']['name']} ({some(faults)})"
        for each in facts.wanted
        if each["metadata"].get("namespace") == name
        and (faults := violations(_pod_of(each), level))
    ]
    if refused:
        sentence = f"level `{level}` of namespace `{name}` refuses pods of {some(refused)}"
        return Finding("pod-security", State.FAIL, sentence, _label(name, facts))
    sentence = f"level `{level}` of namespace `{name}` admits all pods of the installation"
    return Finding("pod-security", State.OK, sentence)


def _pod_of(workload: Any) -> Any:
    """The spec of the pods of a workload; one without containers for all other objects."""
    spec = workload.get("spec") or {}
    return (spec.get("template") or {}).get("spec") or {"containers": []}


def _label(name: str, facts: InstallationFacts) -> str:
    """The command that gives a namespace the level that the installation gives it."""
    level = _wanted_labels(name, facts)[ENFORCE]
    return f"`kubectl label namespace {name} --overwrite {ENFORCE}={level}`"


def _wanted_labels(name: str, facts: InstallationFacts) -> Mapping[str, str]:
    """The labels that the installation gives one of its namespaces."""
    [found] = (
        each["metadata"]["labels"]
        for each in facts.wanted
        if (each["kind"], each["metadata"]["name"]) == ("Namespace", name)
    )
    labels: Mapping[str, str] = found
    return labels


def _releases(facts: InstallationFacts) -> Finding:
    if isinstance(facts.releases, Unread):
        return unread("helm", facts.releases)
    if release := _release(facts):
        return Finding("helm", State.OK, f"Fairlead is installed by Helm: release `{release}`")
    return _refusal(
        "helm",
        refuse_releases(facts.releases),
        "there is no Helm release of Fairlead",
        "use `helm upgrade` or `helm uninstall` for it",
    )


def _definitions(facts: InstallationFacts) -> Iterator[Finding]:
    deciding = (QUOTA_CONTROLLER_POD, PEOPLE_CONTROLLER_POD)
    needs_it = any(each.ref.name in deciding for each in facts.objects)
    for each in facts.definitions:
        name = each.wanted["metadata"]["name"]
        if isinstance(each.found, Unread):
            yield unread("definition", each.found)
        elif each.found is None and needs_it and isinstance(facts.inventory, InventoryFact):
            sentence = f"definition `{name}` does not exist, and Fairlead needs it"
            yield Finding("definition", State.FAIL, sentence, _bring_back(facts.inventory))
        elif each.found is None:
            yield Finding("definition", State.OK, f"no other program defines `{name}`")
        elif each.is_left and not _release(facts):
            sentence = f"definition `{name}` exists: an earlier `fairlead install` left it"
            yield Finding("definition", State.OK, sentence)
        else:
            other = "an earlier installation's" if each.is_left else "another program's"
            yield _refusal(
                "definition",
                refuse_definition(each.found, each.wanted),
                f"{other} definition `{name}` fits and is used as it is",
                "remove it with its objects, or install without quota and users",
            )


def _bring_back(found: InventoryFact) -> str:
    """What restores a definition that the installation does not list."""
    if not found.release:
        return again(found)
    return (
        f"the program that brought it brings it back, or `helm upgrade {found.release}` with "
        "`--set crds.enabled=true`"
    )


def _refusal(check: str, refusal: Refusal | None, good: str, mend: str) -> Finding:
    if refusal is None:
        return Finding(check, State.OK, good)
    return Finding(check, State.FAIL, refusal.reason, mend)


def _pull_secrets(facts: InstallationFacts) -> Iterator[Finding]:
    """Whether kubelets can pull the images. A Secret of another type is ignored by kubelets, too.

    Before an installation its namespaces do not exist, so the Secrets cannot.
    """
    is_installed = isinstance(facts.inventory, InventoryFact)
    for each in facts.pull_secrets:
        where = f"Secret `{each.name}` of namespace `{each.namespace}`"
        if isinstance(each.type, Unread):
            yield unread("pull-secret", each.type)
        elif each.type is None:
            yield Finding(
                "pull-secret",
                State.FAIL if is_installed else State.WARN,
                f"{where} does not exist: images are pulled without it",
                f"`kubectl create secret docker-registry {each.name} -n {each.namespace} "
                "--docker-server=… --docker-username=… --docker-password=…`",
            )
        elif each.type not in _PULL_TYPES:
            yield Finding(
                "pull-secret",
                State.FAIL,
                f"{where} is of type `{each.type}`, which kubelets do not use for images",
                f"delete it, and make it of type `{_PULL_TYPES[0]}`: `kubectl create secret "
                "docker-registry`",
            )
        else:
            yield Finding("pull-secret", State.OK, f"{where} is of type `{each.type}`")


def _prometheus(facts: InstallationFacts) -> Finding:
    named = facts.chosen.prometheus
    if named:
        sentence = f"the pods ask Prometheus at `{named}`; this command does not"
        return Finding("prometheus", State.UNKNOWN, sentence, "the console's page Health shows it")
    if isinstance(facts.prometheus, Unread):
        return unread("prometheus", facts.prometheus)
    if not facts.prometheus:
        sentence = "no Prometheus is found: the console's charts keep one hour"
        return Finding("prometheus", State.WARN, sentence, _NAME_IT)
    where = facts.prometheus.removesuffix("/proxy").removeprefix("/api/v1/")
    return Finding("prometheus", State.OK, f"a Prometheus is found: {where}")
