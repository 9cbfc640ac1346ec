"""Each right to write of scheduler, node agent, people controller and console is taken away alone:
exactly the request that needs it fails, and with all of them none fails (`test_quota_rights` has
those of the quota controller).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
import pytest
from tests.contracts.api_client import ApiClient
from tests.contracts.api_client import until as until_real
from tests.contracts.rights import ask_for
from tests.kube.control_plane import ControlPlane
from tests.kube.deployed import of_file
from tests.kube.extender import NODE_SPACE, SYSTEM
from tests.kube.kubeconfigs import token_user, write_kubeconfig
from tests.kube.objects import namespace

from fairlead.edge.connection.kubeconfig import find_connection
from fairlead.edge.kube.api_request import ApiRequest
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.lease import KubeLease
from fairlead.edge.kube.sharing_api import KubeSharingApi
from fairlead.edge.node.node_api import KubeNodeApi
from fairlead.edge.people.people_api import KubePeopleApi
from fairlead.edge.people.sign_in_api import KubeSignInApi
from fairlead.errors import Forbidden
from fairlead.model.access import Binding, BindingSubject, Identity
from fairlead.model.actions import (
    Action,
    BindPod,
    CreateObject,
    DeleteObject,
    ObjectRef,
    PatchObject,
    RecordEvent,
    TouchPod,
)
from fairlead.model.people.actions import (
    AdoptBinding,
    CreateBinding,
    CreateServiceAccount,
    DeleteBinding,
    DeleteServiceAccount,
    HoldUser,
    MoveGroup,
    PeopleAction,
    WriteGroupStatus,
    WriteUserStatus,
)
from fairlead.model.people.rows import (
    GroupStatus,
    User,
    UserBinding,
    UserGroup,
    UserServiceAccount,
    UserStatus,
)
from fairlead.model.pod import Pod
from fairlead.ports import LeaseRecord
from fairlead.settings import SIGN_IN_KEY_SECRET

Object = dict[str, Any]
Right = tuple[str, str, str]
"""The namespace of its role ("" = everywhere), resource, verb."""
Ask = Callable[[KubeApi], Awaitable[object]]
POD = Pod("default", "absent", "no-uid")


class Account(NamedTuple):
    """`asks`: the request that needs each right, to objects that do not exist: with the right the
    answer is "not found" or "invalid", without it "forbidden".
    """

    name: str
    namespace: str
    files: tuple[str, ...]
    asks: Mapping[Right, Ask]


def _sharing(api: KubeApi) -> KubeSharingApi:
    return KubeSharingApi(api, (SYSTEM, "fairlead-gpushare"))


def _node(api: KubeApi) -> KubeNodeApi:
    return KubeNodeApi(api, "absent")


def _written(make: Callable[[KubeApi], KubeSharingApi | KubeNodeApi], action: Action) -> Ask:
    async def ask(api: KubeApi) -> None:
        outcome = await make(api).apply(action)
        if isinstance(outcome.failure, Forbidden):
            raise outcome.failure

    return ask


def _patched(kind: str, subresource: str = "") -> Ask:
    target = ObjectRef("v1", kind, "absent", "default" if kind == "Pod" else "")
    return _written(_node, PatchObject(target, {"metadata": {}}, subresource))


NO_POD = ObjectRef("v1", "Pod", "absent", NODE_SPACE)
INVALID: Object = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "absent"}}
EVENT = RecordEvent(POD, "Tried", "each right")
SCHEDULER = Account(
    "fairlead-scheduler",
    SYSTEM,
    ("gpushare-extender.yaml",),
    {
        ("", "pods/binding", "create"): _written(_sharing, BindPod(POD, "absent", {})),
        ("", "pods", "patch"): _written(_sharing, TouchPod(POD)),
        ("", "pods", "get"): lambda api: _sharing(api).get_pod("default", "absent"),
        ("", "events", "create"): _written(_sharing, EVENT),
        (SYSTEM, "leases", "get"): lambda api: _sharing(api).get_lease(),
        (SYSTEM, "leases", "create"): lambda api: _sharing(api).put_lease(LeaseRecord("me", 4)),
        (SYSTEM, "leases", "update"): lambda api: _sharing(api).put_lease(
            LeaseRecord("me", 4, version="1")
        ),
    },
)
AGENT = Account(
    "fairlead-node-agent",
    NODE_SPACE,
    ("node-agent.yaml",),
    {
        ("", "nodes", "patch"): _patched("Node"),
        ("", "nodes/status", "patch"): _patched("Node", "status"),
        ("", "pods", "patch"): _patched("Pod"),
        ("", "events", "create"): _written(_node, EVENT),
        (NODE_SPACE, "pods", "create"): _written(_node, CreateObject(INVALID, NODE_SPACE, "pods")),
        (NODE_SPACE, "pods", "get"): lambda api: _node(api).get_pod(NODE_SPACE, "absent"),
        (NODE_SPACE, "pods", "delete"): _written(_node, DeleteObject(NO_POD)),
    },
)


def _usage_lease(api: KubeApi) -> KubeLease:
    return KubeLease(api, SYSTEM, "fairlead-usage-recorder")


RECORDER = Account(
    "fairlead-usage-recorder",
    SYSTEM,
    ("usage-recorder.yaml",),
    {
        (SYSTEM, "leases", "get"): lambda api: _usage_lease(api).get_lease(),
        (SYSTEM, "leases", "create"): lambda api: _usage_lease(api).put_lease(LeaseRecord("me", 4)),
        (SYSTEM, "leases", "update"): lambda api: _usage_lease(api).put_lease(
            LeaseRecord("me", 4, version="1")
        ),
    },
)


def _people(api: KubeApi) -> KubePeopleApi:
    return KubePeopleApi(api, (SYSTEM, "fairlead-people"))


def _ended(action: PeopleAction) -> Ask:
    async def ask(api: KubeApi) -> None:
        outcome = await _people(api).apply(action)
        if isinstance(outcome.failure, Forbidden):
            raise outcome.failure

    return ask


USERS_PLACE = "kube-ai"
NO_USER = User("absent", USERS_PLACE)
NO_GROUP = UserGroup("absent", USERS_PLACE)
NO_ACCOUNT = UserServiceAccount("absent", USERS_PLACE, user="absent")
OF_NO_USER = BindingSubject("ServiceAccount", "absent", USERS_PLACE)


def _binding(place: str, role: str) -> UserBinding:
    name = f"absent:{place or 'clusterRole'}:{role}"
    return UserBinding(Binding(name, place, "ClusterRole", role, (OF_NO_USER,)), user="absent")


HELD, HELD_EVERYWHERE = _binding("default", "fairlead-unknown"), _binding("", "fairlead-unknown")
"""To a role that does not exist: with the right to write bindings the answer is "not found"."""
PEOPLE = Account(
    "fairlead-people-controller",
    SYSTEM,
    ("people-controller.yaml",),
    {
        ("", "rolebindings", "create"): _ended(CreateBinding(HELD)),
        ("", "rolebindings", "patch"): _ended(AdoptBinding(HELD, "absent")),
        ("", "rolebindings", "delete"): _ended(DeleteBinding(HELD)),
        ("", "clusterrolebindings", "create"): _ended(CreateBinding(HELD_EVERYWHERE)),
        ("", "clusterrolebindings", "patch"): _ended(AdoptBinding(HELD_EVERYWHERE, "absent")),
        ("", "clusterrolebindings", "delete"): _ended(DeleteBinding(HELD_EVERYWHERE)),
        ("", "clusterroles", "bind"): _ended(
            CreateBinding(_binding("default", "fairlead-researcher"))
        ),
        (USERS_PLACE, "users", "patch"): _ended(HoldUser(NO_USER, is_held=True)),
        (USERS_PLACE, "usergroups", "patch"): _ended(MoveGroup(NO_GROUP, "root.a")),
        (USERS_PLACE, "users/status", "patch"): _ended(WriteUserStatus(NO_USER, UserStatus())),
        (USERS_PLACE, "usergroups/status", "patch"): _ended(
            WriteGroupStatus(NO_GROUP, GroupStatus())
        ),
        (USERS_PLACE, "serviceaccounts", "create"): _ended(CreateServiceAccount(NO_ACCOUNT)),
        (USERS_PLACE, "serviceaccounts", "delete"): _ended(DeleteServiceAccount(NO_ACCOUNT)),
        (SYSTEM, "leases", "get"): lambda api: _people(api).get_lease(),
        (SYSTEM, "leases", "create"): lambda api: _people(api).put_lease(LeaseRecord("me", 4)),
        (SYSTEM, "leases", "update"): lambda api: _people(api).put_lease(
            LeaseRecord("me", 4, version="1")
        ),
    },
)


def _sent(verb: str, method: str, path: str, body: Object | None = None, account: str = "") -> Ask:
    data = None if body is None else msgspec.json.encode(body)

    async def ask(api: KubeApi) -> None:
        await api.send(ApiRequest(verb, method, path, data, account=account))

    return ask


def _created(path: str) -> Ask:
    return _sent("create", "POST", path, {"metadata": {"name": "not a name"}})


def _patched_at(path: str) -> Ask:
    return _sent("patch", "PATCH", f"{path}/absent", {"metadata": {}})


def _deleted(path: str) -> Ask:
    return _sent("delete", "DELETE", f"{path}/absent")


def _got(path: str) -> Ask:
    return _sent("get", "GET", f"{path}/absent")


IN_USERS = f"/api/v1/namespaces/{USERS_PLACE}"
PEOPLE_PATH = f"/apis/fairlead.io/v1/namespaces/{USERS_PLACE}"
TREES = "/apis/scheduling.sigs.k8s.io/v1beta1/namespaces/kube-system/elasticquotatrees"
FLUID = "/apis/data.fluid.io/v1alpha1/namespaces/default"
FLUID_KINDS = (
    *("datasets", "dataloads", "alluxioruntimes", "jindoruntimes", "juicefsruntimes"),
    *("thinruntimes", "goosefsruntimes", "efcruntimes", "vineyardruntimes"),
)
RECORDS = f"/api/v1/namespaces/{SYSTEM}/configmaps"
OPERATION_LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases"
WHO_AM_I = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
CONSOLE = Account(
    "fairlead-reader",
    SYSTEM,
    ("console-sign-in.yaml", "console-people.yaml"),
    {
        ("", "tokenreviews", "create"): lambda api: KubeSignInApi(api).owner_of("x"),
        ("", "subjectaccessreviews", "create"): lambda api: KubeSignInApi(api).may_make_users(
            Identity("absent")
        ),
        (SYSTEM, "secrets", "get"): _sent(
            "get", "GET", f"/api/v1/namespaces/{SYSTEM}/secrets/{SIGN_IN_KEY_SECRET}"
        ),
        (SYSTEM, "secrets", "create"): _created(f"/api/v1/namespaces/{SYSTEM}/secrets"),
        # operations: their records and Leases, and what they do to data sets
        (SYSTEM, "configmaps", "get"): _got(RECORDS),
        (SYSTEM, "configmaps", "create"): _created(RECORDS),
        (SYSTEM, "configmaps", "patch"): _patched_at(RECORDS),
        (SYSTEM, "configmaps", "delete"): _deleted(RECORDS),
        (SYSTEM, "leases", "get"): _got(OPERATION_LEASES),
        (SYSTEM, "leases", "create"): _created(OPERATION_LEASES),
        (SYSTEM, "leases", "update"): _sent("update", "PUT", f"{OPERATION_LEASES}/absent", {}),
        **{
            ("", kind, verb): ask(f"{FLUID}/{kind}")
            for kind in FLUID_KINDS
            for verb, ask in (("create", _created), ("get", _got), ("delete", _deleted))
        },
        ("", "deployments", "get"): _got("/apis/apps/v1/namespaces/default/deployments"),
        ("", "namespaces", "get"): _got("/api/v1/namespaces"),
        ("", "persistentvolumes", "get"): _got("/api/v1/persistentvolumes"),
        **{
            ("", kind, "get"): _got(f"/api/v1/namespaces/default/{kind}")
            for kind in ("persistentvolumeclaims", "pods")
        },
        ("kube-system", "elasticquotatrees", "create"): _created(TREES),
        ("kube-system", "elasticquotatrees", "get"): _sent("get", "GET", f"{TREES}/absent"),
        ("kube-system", "elasticquotatrees", "patch"): _patched_at(TREES),
        **{
            (USERS_PLACE, kind, verb): ask(f"{PEOPLE_PATH}/{kind}")
            for kind in ("users", "usergroups")
            for verb, ask in (("create", _created), ("patch", _patched_at), ("delete", _deleted))
        },
        (USERS_PLACE, "secrets", "get"): _sent("get", "GET", f"{IN_USERS}/secrets/absent"),
        (USERS_PLACE, "serviceaccounts", "get"): _sent(
            "get", "GET", f"{IN_USERS}/serviceaccounts/absent"
        ),
        (USERS_PLACE, "secrets", "create"): _created(f"{IN_USERS}/secrets"),
        (USERS_PLACE, "secrets", "patch"): _patched_at(f"{IN_USERS}/secrets"),
        (USERS_PLACE, "secrets", "delete"): _deleted(f"{IN_USERS}/secrets"),
        (USERS_PLACE, "serviceaccounts", "delete"): _deleted(f"{IN_USERS}/serviceaccounts"),
        (USERS_PLACE, "serviceaccounts", "impersonate"): _sent(
            "create",
            "POST",
            WHO_AM_I,
            {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"},
            account=f"system:serviceaccount:{USERS_PLACE}:absent",
        ),
        (USERS_PLACE, "serviceaccounts/token", "create"): _sent(
            "create", "POST", f"{IN_USERS}/serviceaccounts/absent/token", {}
        ),
    },
)
GROUPS = {
    "leases": "coordination.k8s.io",
    "tokenreviews": "authentication.k8s.io",
    "subjectaccessreviews": "authorization.k8s.io",
    "elasticquotatrees": "scheduling.sigs.k8s.io",
    "deployments": "apps",
    **dict.fromkeys(FLUID_KINDS, "data.fluid.io"),
    **dict.fromkeys(("users", "usergroups"), "fairlead.io"),
    **dict.fromkeys(
        ("rolebindings", "clusterrolebindings", "clusterroles"), "rbac.authorization.k8s.io"
    ),
}
NAMES = {
    ("fairlead-scheduler", "leases"): "fairlead-gpushare",
    ("fairlead-people-controller", "leases"): "fairlead-people",
    ("fairlead-usage-recorder", "leases"): "fairlead-usage-recorder",
    ("fairlead-people-controller", "clusterroles"): "fairlead-researcher",
    ("fairlead-reader", "secrets"): SIGN_IN_KEY_SECRET,
}
"""The one object that a right is about."""


BIND: Right = ("", "clusterroles", "bind")
ALSO: Mapping[Right, tuple[Right, ...]] = {("", "rolebindings", "create"): (BIND,)}
"""Rights that are of no use without another one."""


def roles_of(account: Account) -> list[Object]:
    return [
        each
        for file in account.files
        for each in of_file(file)
        if each["kind"] in ("Role", "ClusterRole")
    ]


def rights_of(role: Object) -> set[Right]:
    place = role["metadata"].get("namespace", "")
    return {
        (place, resource, verb)
        for rule in role["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def without(role: Object, right: Right | None) -> Object:
    """The role without one verb."""
    place = role["metadata"].get("namespace", "")
    rules = [
        {**rule, "resources": [resource], "verbs": verbs}
        for rule in role["rules"]
        for resource in rule["resources"]
        if (verbs := [each for each in rule["verbs"] if (place, resource, each) != right])
    ]
    return {**role, "rules": rules}


@pytest.fixture(
    params=[SCHEDULER, AGENT, PEOPLE, RECORDER, CONSOLE], ids=lambda account: account.name
)
def account(request: pytest.FixtureRequest, control_plane: ControlPlane) -> Iterator[Account]:
    """The account with its rights, which are gone afterwards."""
    found: Account = request.param
    made = [
        each
        for file in found.files
        for each in of_file(file)
        if each["kind"] in ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")
    ]
    meta = {"name": found.name, "namespace": found.namespace}
    owner = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}
    spaces = [namespace(each) for each in (SYSTEM, NODE_SPACE, USERS_PLACE)]
    others = of_file("people.yaml") if found in (PEOPLE, CONSOLE) else []
    others += of_file("quota-crd.yaml") if found is CONSOLE else []
    kinds = [each for each in others if each["kind"] == "CustomResourceDefinition"]
    control_plane.admin.apply([*spaces, owner, *made, *kinds, *_bindable(others)])
    for each in kinds:
        crd = f"crd/{each['metadata']['name']}"
        control_plane.admin.run("wait", "--for=condition=Established", "--timeout=60s", crd)
    yield found
    for each in (*kinds, *_bindable(others)):
        control_plane.admin.run("delete", each["kind"], each["metadata"]["name"])
    if found is PEOPLE:
        bound = "absent:default:fairlead-researcher"
        control_plane.admin.run("delete", "rolebinding", bound, "--ignore-not-found")
        words = ("delete", "serviceaccount", "absent", "-n", USERS_PLACE, "--ignore-not-found")
        control_plane.admin.run(*words)
    for each in made:
        place = each["metadata"].get("namespace")
        words = ("-n", place) if place else ()
        control_plane.admin.run("delete", each["kind"], each["metadata"]["name"], *words)


def _bindable(objects: list[Object]) -> list[Object]:
    """The researcher's role: who binds it needs its rights, or the right to bind it."""
    return [each for each in objects if each["metadata"]["name"] == "fairlead-researcher"]


async def refused(api: KubeApi, account: Account) -> set[Right]:
    found = set()
    for right, ask in account.asks.items():
        try:
            await ask(api)
        except Forbidden:
            found.add(right)
        except Exception:  # noqa: BLE001 - whatever else the API server answers, it may be asked
            continue
    return found


def test_each_right_to_write_is_needed(control_plane: ControlPlane, account: Account) -> None:
    """Of Fluid's kinds, which have equal rights, two are tried."""
    roles = roles_of(account)
    writes = {
        right for role in roles for right in rights_of(role) if right[2] not in ("list", "watch")
    }
    assert account.asks.keys() == writes
    admin = control_plane.admin
    words = ("create", "token", account.name, "-n", account.namespace, "--duration=1h")
    path = write_kubeconfig(
        control_plane.folder / f"{account.name}-rights.kubeconfig",
        control_plane.server,
        control_plane.authority,
        token_user(admin.run(*words).strip()),
    )
    connection = find_connection(str(path), env={})
    assert connection is not None
    client = ApiClient("real", control_plane.kubeconfig)
    user = f"system:serviceaccount:{account.namespace}:{account.name}"

    def allows(right: Right) -> bool:
        place, resource, verb = right
        plural, _, subresource = resource.partition("/")
        is_named = verb != "create" and (plural != "secrets" or place == SYSTEM)
        name = NAMES.get((account.name, plural), "") if is_named else ""
        words = {"group": GROUPS.get(plural, ""), "subresource": subresource, "name": name}
        return bool(ask_for(client, user, verb, plural, place, **words)["allowed"])

    async def story() -> None:
        async with KubeApi(connection) as api:
            until_real("all rights count", lambda: all(map(allows, writes)))
            assert await refused(api, account) == set()
            for right in sorted(each for each in writes if each[1] not in FLUID_KINDS[2:]):
                (role,) = (each for each in roles if right in rights_of(each))
                admin.apply([without(role, right)])
                until_real(f"{right} is taken away", lambda right=right: not allows(right))  # type: ignore[misc]
                assert await refused(api, account) == {right, *ALSO.get(right, ())}
                admin.apply([role])
                until_real(f"{right} is back", lambda right=right: allows(right))  # type: ignore[misc]

    asyncio.run(story())
