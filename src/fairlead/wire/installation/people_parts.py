"""Objects of users and groups: definitions, the users namespace, roles, and the people controller.

An account may bind a role if it may `bind` that role by name; so the controller can give users the
roles of Fairlead and no others, whatever a UserGroup names.
"""

from __future__ import annotations

from typing import Final

from fairlead.model.installation import Installation
from fairlead.model.people.rights import ROLES
from fairlead.model.people.rows import User, UserRole
from fairlead.settings import (
    PEOPLE_CONTROLLER_POD,
    PEOPLE_CONTROLLER_PORT,
    PEOPLE_LEASE,
    USERS_NAMESPACE,
)
from fairlead.wire.installation.object_parts import (
    KUBE_SYSTEM,
    PART_OF,
    RESTRICTED,
    Object,
    PartPlace,
    account,
    cluster_rights,
    controller_pod,
    deployment,
    disruption_budget,
    grant,
    lease_grants,
    network_policy,
    requests,
    rights,
)
from fairlead.wire.installation.policies.renewal_policy import renewal_policy
from fairlead.wire.names import PEOPLE_GROUP, QUOTA_GROUP, QUOTA_PLURAL, USER_GROUPS, USERS
from fairlead.wire.people.bindings import RBAC, cluster_roles
from fairlead.wire.people.definitions import people_definitions
from fairlead.wire.people.people_objects import render_user

_NAME: Final = PEOPLE_CONTROLLER_POD
_JOBS: Final = (
    ("batch", "jobs"),
    ("kubeflow.org", "mpijobs pytorchjobs tfjobs"),
    ("ray.io", "rayjobs"),
    ("batch.volcano.sh", "jobs"),
    ("kai.alibabacloud.com", "trainingjobs"),
    ("sparkoperator.k8s.io", "sparkapplications"),
)


def people_roles(chosen: Installation) -> list[Object]:
    """The users namespace, the two definitions, the roles that users are bound to, and the policy
    that limits how users renew tokens.
    """
    return [users_namespace(), *cluster_roles(), *renewal_policy(), *people_definitions()]


def users_namespace() -> Object:
    """The namespace of users, groups and their ServiceAccounts. No pod belongs there."""
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": USERS_NAMESPACE, "labels": {**PART_OF, **RESTRICTED}},
    }


def first_administrator() -> Object:
    """The user `admin`. It is no object of an installation: administrators edit and delete it."""
    first = User(
        "admin",
        USERS_NAMESPACE,
        user_name="Administrator",
        roles=(UserRole.ADMIN,),
        is_deletable=False,
    )
    found = render_user(first)
    # The people controller writes the finalizer, once it runs.
    del found["metadata"]["finalizers"]
    return found


def people_controller(chosen: Installation) -> list[Object]:
    """The people controller: the replica that holds the Lease works. While none runs, rights stay
    as they are.
    """
    place = PartPlace(_NAME, chosen.namespace)
    in_users = [
        grant(PEOPLE_GROUP, f"{USERS} {USER_GROUPS}", "list watch patch"),
        grant(PEOPLE_GROUP, f"{USERS}/status {USER_GROUPS}/status", "patch"),
        grant("", "serviceaccounts", "list watch create delete"),
    ]
    return [
        account(place),
        *cluster_rights(_NAME, place, _rules()),
        # Users, groups and ServiceAccounts are in one namespace; the one tree is in kube-system.
        *rights(_NAME, place, USERS_NAMESPACE, in_users),
        *rights(_NAME, place, KUBE_SYSTEM, [grant(QUOTA_GROUP, QUOTA_PLURAL, "list watch")]),
        *rights(_NAME, place, place.namespace, lease_grants(PEOPLE_LEASE)),
        deployment(
            place,
            chosen.replicas,
            controller_pod(place, chosen, PEOPLE_CONTROLLER_PORT, requests("50m", "96Mi")),
        ),
        disruption_budget(place),
        *network_policy(place, chosen, PEOPLE_CONTROLLER_PORT),
    ]


def _rules() -> list[Object]:
    return [
        grant("", "namespaces", "list watch"),
        # What a user still has running keeps the user from being deleted.
        grant("", "pods", "list watch"),
        *(grant(group, resources, "list watch") for group, resources in _JOBS),
        grant(RBAC, "rolebindings clusterrolebindings", "list watch create patch delete"),
        grant(RBAC, "clusterroles", "bind", " ".join(ROLES)),
    ]
