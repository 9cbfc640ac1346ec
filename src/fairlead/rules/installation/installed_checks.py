"""Checks of an installation: inventory, objects, workloads, restarts, Leases, certificates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from fairlead.model.actions import ObjectRef
from fairlead.model.installed.facts import (
    CertificateFact,
    InstallationFacts,
    InventoryFact,
    LeaseFact,
    Mismatch,
    ObjectFact,
    PodFact,
    Unread,
)
from fairlead.model.installed.finding import Finding, State
from fairlead.rules.installation.comparable import differing_fields
from fairlead.rules.installation.downgrade import refuse_older
from fairlead.rules.installation.finding_lists import NO_PROGRAM, again, counted, some, unread
from fairlead.rules.installation.order import WORKLOADS, is_ready, old_pods_text
from fairlead.settings import PART_LABEL

RESTART_SECONDS: Final = 3600.0
_DAY: Final = 86_400.0
_ENDS_SOON: Final = 7 * _DAY
_TAKE: Final = "`fairlead upgrade --force-conflicts` takes the fields over; --dry-run shows them"


def check_installed(facts: InstallationFacts) -> Iterator[Finding]:
    """No more than one finding without an inventory."""
    found = facts.inventory
    if isinstance(found, Unread):
        yield unread("inventory", found)
        return
    if found is None:
        sentence = "neither `fairlead install` nor Helm has installed Fairlead here"
        yield Finding("inventory", State.OK, sentence)
        return
    yield _inventory(found, facts)
    yield _missing(found, facts.objects)
    yield _changed(found, facts)
    yield from _workloads(facts)
    yield _restarts(facts)
    yield from _leases(facts)
    yield from (_certificate(each, facts) for each in facts.certificates)


def _inventory(found: InventoryFact, facts: InstallationFacts) -> Finding:
    number = counted(len(facts.objects), "object")
    if not found.is_complete:
        sentence = f"a run of version `{found.version}` has not come to its end ({number})"
        return Finding("inventory", State.FAIL, sentence, "run the same command again")
    if found.version == facts.program_version:
        return Finding("inventory", State.OK, f"version `{found.version}`, {number}")
    refusal = refuse_older(found.version, facts.program_version)
    if refusal is not None:
        mend = f"use the fairlead of version {found.version} or later"
        return Finding("inventory", State.WARN, refusal.reason, mend)
    sentence = f"version `{found.version}` is installed, this program is `{facts.program_version}`"
    mend = f"`helm upgrade {found.release}`" if found.release else "`fairlead upgrade`"
    return Finding("inventory", State.WARN, sentence, mend)


def _missing(inventory: InventoryFact, objects: Sequence[ObjectFact]) -> Finding:
    missing = [each.ref.title for each in objects if each.found is None]
    if missing:
        number = f"{len(missing)} of {counted(len(objects), 'object')}"
        sentence = f"{number} of the inventory not found: {some(missing)}"
        return Finding("objects", State.FAIL, sentence, again(inventory))
    hidden = [each.found for each in objects if isinstance(each.found, Unread)]
    if hidden:
        return unread("objects", hidden[0])
    return Finding("objects", State.OK, f"all {len(objects)} objects of the inventory exist")


def _changed(inventory: InventoryFact, facts: InstallationFacts) -> Finding:
    """Whether applying the wanted objects again would change nothing."""
    if inventory.version != facts.program_version:
        sentence = "only the program of the installed version can compare the objects"
        mend = f"run `fairlead doctor` of version {inventory.version}"
        return Finding("changes", State.UNKNOWN, sentence, mend)
    conflicts = [
        f"{each.ref.title}: {each.result.why}"
        for each in facts.objects
        if isinstance(each.result, Mismatch)
    ]
    changed = [
        f"{each.ref.title} ({some(fields)})"
        for each in facts.objects
        if isinstance(each.found, dict)
        and isinstance(each.result, dict)
        and (fields := differing_fields(each.found, each.result))
    ]
    if conflicts or changed:
        sentence = f"not as they were written: {some([*conflicts, *changed], '; ')}"
        is_taken = conflicts and not inventory.release
        return Finding("changes", State.FAIL, sentence, _TAKE if is_taken else again(inventory))
    hidden = [each.result for each in facts.objects if isinstance(each.result, Unread)]
    if hidden:
        return unread("changes", hidden[0])
    return Finding("changes", State.OK, "no other program changed the objects")


def _workloads(facts: InstallationFacts) -> Iterator[Finding]:
    pods = () if isinstance(facts.pods, Unread) else facts.pods
    for each in facts.objects:
        if each.ref.kind in WORKLOADS and isinstance(each.found, dict):
            yield _workload(each.ref, each.found, pods)
    if isinstance(facts.pods, Unread):
        yield unread("pods", facts.pods)


def _workload(ref: ObjectRef, found: Any, pods: Sequence[PodFact]) -> Finding:
    status = found.get("status") or {}
    if ref.kind == "Deployment":
        wanted, ready = found["spec"].get("replicas", 1), status.get("readyReplicas", 0)
    else:
        wanted, ready = (status.get("desiredNumberScheduled", 0), status.get("numberReady", 0))
    sentence = f"{ref.title}: {ready} of {wanted} ready"
    if is_ready(found):
        return Finding("ready", State.OK, sentence)
    troubles = [
        *(each.get("message", "") for each in status.get("conditions") or () if _refused(each)),
        *(f"{each.name}: {each.trouble}" for each in pods if _is_of(each, ref) and each.trouble),
    ]
    if ref.kind == "Deployment":
        sentence += old_pods_text(found)
    if troubles:
        sentence += f" ({some(troubles, '; ')})"
    mend = f"`kubectl -n {ref.namespace} describe pods -l {PART_LABEL}={ref.name}` shows the reason"
    return Finding("ready", State.FAIL, sentence, mend)


def _refused(condition: Any) -> bool:
    """Whether the API server refuses the Deployment's pods: a quota, a policy, PodSecurity."""
    return (condition.get("type"), condition.get("status")) == ("ReplicaFailure", "True")


def _is_of(pod: PodFact, ref: ObjectRef) -> bool:
    return (pod.namespace, pod.part) == (ref.namespace, ref.name)


def _restarts(facts: InstallationFacts) -> Finding:
    if isinstance(facts.pods, Unread):
        return unread("restarts", facts.pods)
    since = facts.server_now - RESTART_SECONDS
    found = [
        f"{each.name} ({counted(each.restarts, 'restart')})"
        for each in facts.pods
        if each.restarts and (each.restarted_at or 0.0) >= since
    ]
    if found:
        sentence = f"restarted in the last hour: {some(found)}"
        space = facts.pods[0].namespace
        mend = f"`kubectl -n {space} logs --previous POD` shows how the container ended"
        return Finding("restarts", State.WARN, sentence, mend)
    sentence = f"no container of {counted(len(facts.pods), 'pod')} restarted in the last hour"
    return Finding("restarts", State.OK, sentence)


def _leases(facts: InstallationFacts) -> Iterator[Finding]:
    for each in facts.leases:
        yield unread("lease", each) if isinstance(each, Unread) else _lease(each, facts)


def _lease(lease: LeaseFact, facts: InstallationFacts) -> Finding:
    name = f"{lease.namespace}/{lease.name}"
    mend = "a running process of this part acquires it: see `ready`, then its log"
    if not lease.holder or lease.renewed_at is None:
        sentence = f"no process holds {name}"
        if facts.server.is_simulated:
            return Finding("lease", State.OK, f"{sentence}, because {NO_PROGRAM}")
        return Finding("lease", State.FAIL, sentence, mend)
    age = max(0.0, facts.server_now - lease.renewed_at)
    sentence = f"{name} is held by {lease.holder}, renewed {age:.0f} s ago"
    if age <= lease.seconds:
        return Finding("lease", State.OK, sentence)
    return Finding("lease", State.FAIL, f"{sentence}; it is valid for {lease.seconds} s", mend)


def _certificate(certificate: CertificateFact, facts: InstallationFacts) -> Finding:
    ends, now = certificate.ends_at, facts.server_now
    if isinstance(ends, Unread):
        return unread("certificate", ends)
    mend = "`fairlead admission-webhook` writes and renews it: see its log"
    if ends is None:
        sentence = f"{certificate.name} has no certificate"
        if facts.server.is_simulated:
            return Finding("certificate", State.OK, f"{sentence}, because {NO_PROGRAM}")
        return Finding("certificate", State.FAIL, sentence, mend)
    days = (ends - now) / _DAY
    if days <= 0:
        sentence = f"the certificate of {certificate.name} ended {-days:.1f} days ago"
        return Finding("certificate", State.FAIL, sentence, mend)
    sentence = f"the certificate of {certificate.name} ends in {days:.0f} days"
    state = State.OK if ends - now > _ENDS_SOON else State.WARN
    return Finding("certificate", state, sentence, "" if state == State.OK else mend)
