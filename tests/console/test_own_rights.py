"""The table of rights on the page My access, row by row, as docs/spec/console.md#rights and
docs/spec/people.md#rights have them.
"""

from __future__ import annotations

import pytest

from fairlead.console.http.sign_in.own_rights import console_rights, kubectl_rights
from fairlead.console.pages.endpoints import ENDPOINTS
from fairlead.model.people.rows import BoundRole, UserRole
from fairlead.model.people.subject import LOCAL_ADMIN, Subject

DECLARED = [each.right for each in ENDPOINTS]
BOB = Subject("Bob", UserRole.RESEARCHER, "bob", frozenset({"team-a"}))
SHARED = {
    ("cluster", "everywhere", ("get",)),
    ("nodes", "everywhere", ("get",)),
    ("health", "everywhere", ("get",)),
    ("quota", "everywhere", ("get",)),
    ("quota tree", "everywhere", ("get",)),
    ("own credentials", "everywhere", ("get", "create", "delete")),
}
OF_JOBS = {"jobs", "logs", "serving", "data sets", "usage"}
OF_ADMINISTRATORS = {
    "operations",
    "components",
    "users",
    "groups",
    "credentials",
    "audit log",
    "quota plans",
    "namespaces",
}


def rows(subject: Subject) -> set[tuple[str, str, tuple[str, ...]]]:
    found = console_rights(subject, DECLARED)
    made = {(each.resource, each.where, tuple(each.verbs)) for each in found}
    assert len(made) == len(found)
    return made


def test_a_researcher_has_jobs_in_the_own_namespaces_and_reads_what_all_share() -> None:
    found = rows(BOB)
    assert found >= SHARED
    for resource, where, verbs in found:
        if resource in OF_JOBS:
            assert where == "own"
        else:
            assert where == "everywhere"
        if resource not in ("jobs", "own credentials"):
            assert verbs == ("get",), resource
    assert ("logs", "own", ("get",)) in found
    (jobs,) = (set(verbs) for resource, _, verbs in found if resource == "jobs")
    assert jobs >= {"get", "update", "delete"}
    assert {resource for resource, _, _ in found}.isdisjoint(OF_ADMINISTRATORS - {"namespaces"})


def test_a_researcher_without_quota_has_no_jobs() -> None:
    found = {resource for resource, _, _ in rows(Subject("Eve", UserRole.RESEARCHER, "eve"))}
    assert found.isdisjoint(OF_JOBS)


@pytest.mark.parametrize("subject", [LOCAL_ADMIN, Subject("Ann", UserRole.ADMIN, "ann")])
def test_an_administrator_may_what_any_route_does(subject: Subject) -> None:
    found = {(resource, verb) for resource, _, verbs in rows(subject) for verb in verbs}
    assert found == {
        (str(each.resource), str(each.verb))
        for each in DECLARED
        if not each.is_open and each.resource != "session"
    }
    assert {where for _, where, _ in rows(subject)} == {"everywhere"}


def test_kubectl_has_each_role_once_with_its_namespaces_and_rules() -> None:
    bindings = [
        BoundRole("bob:clusterRole:fairlead-researcher-cluster", "", "fairlead-researcher-cluster"),
        BoundRole("bob:team-b:fairlead-researcher", "team-b", "fairlead-researcher"),
        BoundRole("bob:team-a:fairlead-researcher", "team-a", "fairlead-researcher"),
        BoundRole("bob:team-a:site-viewer", "team-a", "site-viewer"),
    ]
    found = kubectl_rights(bindings)
    assert [(each.role, each.namespaces, each.is_cluster_wide) for each in found] == [
        ("fairlead-researcher", ["team-a", "team-b"], False),
        ("fairlead-researcher-cluster", [], True),
        ("site-viewer", ["team-a"], False),
    ]
    own, shared, site = found
    assert site.rules == []
    written = {name for rule in own.rules if rule.kind == "write" for name in rule.resources}
    assert {"pods", "secrets", "jobs.batch", "mpijobs.kubeflow.org", "deployments.apps"} <= written
    assert "podgroups.scheduling.x-k8s.io" in written
    reads = {name for rule in own.rules if rule.kind == "read" for name in rule.resources}
    assert "poddisruptionbudgets.policy" in reads and "events" in reads
    others = {rule.verbs[0]: rule.resources for rule in own.rules if rule.kind == "other"}
    assert ["pods/attach", "pods/exec", "pods/portforward"] in others.values()
    assert {rule.kind for rule in shared.rules} == {"read"}
    assert "nodes" in {name for rule in shared.rules for name in rule.resources}
