"""Each right of the quota controller's account is taken away alone: exactly what needs it fails,
and with all of them nothing fails.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests.contracts.api_client import ApiClient
from tests.contracts.api_client import until as until_real
from tests.contracts.rights import ask_for
from tests.edge.quota_reports import ALL, Reported
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.crds import install_job_kinds, install_more_job_kinds
from tests.kube.deployed import of_file
from tests.kube.kubeconfigs import token_user, write_kubeconfig
from tests.kube.objects import namespace
from tests.kube.quota_line import ACCOUNT, DEMO, SYSTEM, install_crd, tree
from tests.waiting import until

from fairlead.edge.connection.connection import Connection
from fairlead.edge.connection.kubeconfig import find_connection
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.quota_api import KubeQuotaApi
from fairlead.errors import Forbidden, NotFound
from fairlead.model.actions import (
    Action,
    AdmitPod,
    DeleteObject,
    EvictPod,
    ObjectRef,
    PatchObject,
    RecordObjectEvent,
    SetPodCondition,
    WriteTreeStatus,
)
from fairlead.model.node import Condition
from fairlead.model.quota.tree import QuotaTree
from fairlead.ports import LeaseRecord
from fairlead.settings import QUOTA_LEASE

pytestmark = pytest.mark.turns(2, 0)

Object = dict[str, Any]
USER = f"system:serviceaccount:{SYSTEM}:{ACCOUNT}"
PLACE = "team"
NOT_SERVED = ("rayclusters", "podgroups")
"""Their definitions are in no module that is available, so this test does not show that these
rights are needed.
"""
RULES = {
    (each["kind"], each["metadata"].get("namespace", "")): each["rules"]
    for each in of_file("quota-controller.yaml")
    if each["kind"] in ("Role", "ClusterRole")
}
Right = tuple[str, str, str, str, str]
"""The namespace of its role ("" = everywhere), group, resource, verb, and the object's name where
the right is for one object only.
"""


def rights() -> list[Right]:
    return [
        (place, group, resource, verb, name)
        for (_, place), rules in RULES.items()
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", [""])
        if resource not in NOT_SERVED
    ]


def rules_without(place: str, gone: Right | None) -> list[Object]:
    return [
        {
            "apiGroups": [group],
            "resources": [resource],
            "verbs": [verb],
            **({"resourceNames": [name]} if name else {}),
        }
        for each in rights()
        if each[0] == place and each != gone
        for _, group, resource, verb, name in [each]
    ]


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with running_control_plane() as made:
        install_crd(made)
        install_job_kinds(made.admin)
        install_more_job_kinds(made.admin)
        made.admin.apply([namespace(SYSTEM), namespace(PLACE)])
        people = of_file("people.yaml")
        made.admin.apply([each for each in people if each["kind"] == "CustomResourceDefinition"])
        made.admin.apply(of_file("quota-controller.yaml"))
        made.admin.apply([tree(DEMO)])
        yield made


@pytest.fixture(scope="module")
def account(cluster: ControlPlane) -> Connection:
    token = cluster.admin.run("create", "token", ACCOUNT, "-n", SYSTEM, "--duration=2h").strip()
    path = write_kubeconfig(
        cluster.folder / "rights.kubeconfig", cluster.server, cluster.authority, token_user(token)
    )
    connection = find_connection(str(path), env={})
    assert connection is not None
    return connection


def take_away(cluster: ControlPlane, right: Right | None) -> None:
    """Leave all rights but this one; returns when the API server applies it."""
    roles = [
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": ACCOUNT, **({"namespace": place} if place else {})},
            "rules": rules_without(place, right),
        }
        for kind, place in RULES
    ]
    cluster.admin.apply(roles)
    if right is not None:
        api = ApiClient("real", cluster.kubeconfig)
        until_real(f"{right} is taken away", lambda: not allows(api, right))


def allows(api: ApiClient, right: Right) -> bool:
    place, group, resource, verb, name = right
    plural, _, subresource = resource.partition("/")
    return bool(
        ask_for(api, USER, verb, plural, place, group=group, subresource=subresource, name=name)[
            "allowed"
        ]
    )


# --- what it writes -------------------------------------------------------------------------------

POD = ObjectRef("v1", "Pod", "nobody", PLACE, "no-uid")
PRINTED = Condition("fairlead.io/QuotaAdmitted", "False", "OverMax", "no")
SUSPENDED = {
    ("batch", "jobs"): ObjectRef("batch/v1", "Job", "nobody", PLACE, "no-uid"),
    ("kubeflow.org", "mpijobs"): ObjectRef(
        "kubeflow.org/v2beta1", "MPIJob", "nobody", PLACE, "no-uid"
    ),
    ("kubeflow.org", "tfjobs"): ObjectRef("kubeflow.org/v1", "TFJob", "nobody", PLACE, "no-uid"),
    ("kubeflow.org", "pytorchjobs"): ObjectRef(
        "kubeflow.org/v1", "PyTorchJob", "nobody", PLACE, "no-uid"
    ),
    ("ray.io", "rayjobs"): ObjectRef("ray.io/v1", "RayJob", "nobody", PLACE, "no-uid"),
}
WRITES: dict[tuple[str, str, str], Action] = {
    ("", "pods", "patch"): AdmitPod(POD),
    ("", "pods", "delete"): DeleteObject(POD),
    ("", "pods/status", "patch"): SetPodCondition(POD, PRINTED),
    ("", "pods/eviction", "create"): EvictPod(POD),
    ("", "namespaces", "patch"): PatchObject(
        ObjectRef("v1", "Namespace", "nobody", "", "no-uid"), {"metadata": {"labels": {}}}
    ),
    ("", "events", "create"): RecordObjectEvent(POD, "QuotaWaiting", "why"),
    ("scheduling.sigs.k8s.io", "elasticquotatrees/status", "patch"): WriteTreeStatus(
        QuotaTree("nobody", "kube-system", uid="no-uid")
    ),
    **{
        (*key, "patch"): PatchObject(target, {"spec": {"suspend": True}})
        for key, target in SUSPENDED.items()
    },
}
"""Writes of objects that do not exist: an account with the right gets "not found", an account
without it gets "forbidden".
"""
LEASE = {
    "get": lambda api: api.get_lease(),
    "create": lambda api: api.put_lease(LeaseRecord("me", 15)),
    "update": lambda api: api.put_lease(LeaseRecord("me", 15, version="1")),
}


async def refused(api: KubeQuotaApi) -> set[tuple[str, str, str]]:
    """The writes that are forbidden to it."""
    found = set()
    for key, action in WRITES.items():
        if isinstance((await api.apply(action)).failure, Forbidden):
            found.add(key)
    for verb, ask in LEASE.items():
        try:
            await ask(api)
        except Forbidden:
            found.add(("coordination.k8s.io", "leases", verb))
        except NotFound:
            pass
    return found


def test_each_right_to_write_is_needed(cluster: ControlPlane, account: Connection) -> None:
    async def story() -> None:
        async with KubeApi(account) as api:
            quota = KubeQuotaApi(api, (SYSTEM, QUOTA_LEASE))
            take_away(cluster, None)
            assert await refused(quota) == set()
            for right in (each for each in rights() if each[3] not in ("list", "watch")):
                take_away(cluster, right)
                assert await refused(quota) == {right[1:4]}

    asyncio.run(story())


# --- what it reads --------------------------------------------------------------------------------

REFUSAL = re.compile(r'cannot (list|watch) resource "([\w/]+)" in API group "([\w.-]*)"')


@pytest.mark.long
def test_each_right_to_read_is_needed(
    cluster: ControlPlane, account: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        for right in (each for each in rights() if each[3] in ("list", "watch")):
            take_away(cluster, right)
            caplog.clear()
            async with KubeApi(account) as api:
                following = asyncio.create_task(
                    KubeQuotaApi(api, (SYSTEM, QUOTA_LEASE)).follow(Reported().observe)
                )
                try:
                    await until(lambda: refused_rights(caplog))
                    assert refused_rights(caplog) == {right[1:4]}
                finally:
                    following.cancel()
                    await asyncio.gather(following, return_exceptions=True)

    asyncio.run(story())


def refused_rights(caplog: pytest.LogCaptureFixture) -> set[tuple[str, str, str]]:
    """What was refused to it, according to its log."""
    found = {
        match.groups()
        for record in caplog.records
        for match in REFUSAL.finditer(record.getMessage())
    }
    return {(group, resource, verb) for verb, resource, group in found}


def test_with_all_rights_it_reads_all_that_is_served(
    cluster: ControlPlane, account: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with KubeApi(account) as api:
            reported = Reported()
            following = asyncio.create_task(
                KubeQuotaApi(api, (SYSTEM, QUOTA_LEASE)).follow(reported.observe)
            )
            try:
                await until(lambda: reported.rows.keys() == ALL)
                assert reported.names("elasticquotatrees") == ["elasticquotatree"]
                assert PLACE in (reported.names("namespaces") or ())
                assert refused_rights(caplog) == set()
            finally:
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)

    take_away(cluster, None)
    asyncio.run(story())
