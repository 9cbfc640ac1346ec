"""Policies about what the account of the people controller may write (Kubernetes 1.30 and later).

RBAC gives a right to delete bindings, not to delete some of them, and a right to patch a user, not
a field. With these policies a holder of the account's token deletes no binding of another program,
binds no subject but a ServiceAccount of the users namespace, and changes no user's roles.
"""

from __future__ import annotations

from typing import Final

from fairlead.model.installation import OwnAccounts
from fairlead.model.people.rights import CREDENTIALS_ROLE
from fairlead.model.people.rows import LABEL_BOUND_USER, USER_FINALIZER
from fairlead.settings import USERS_NAMESPACE
from fairlead.wire.installation.policies.policy_parts import (
    OF_USER,
    Object,
    cel,
    is_user,
    on,
    refuse,
    validating,
)
from fairlead.wire.names import PEOPLE_GROUP, USER_GROUPS, USERS
from fairlead.wire.people.bindings import RBAC

_PART: Final = "people"
_KUBERNETES: Final = ("kube-system", "kube-public", "kube-node-lease")
_BINDINGS: Final = "rolebindings clusterrolebindings"
_SAME_META: Final = cel("""
            object.metadata.?labels == oldObject.metadata.?labels
              && object.metadata.?annotations == oldObject.metadata.?annotations
              && object.metadata.?ownerReferences == oldObject.metadata.?ownerReferences
            """)


def people_policies(accounts: OwnAccounts) -> list[Object]:
    is_controller = {"is-the-people-controller": is_user(accounts.people_controller)}
    spaces = (*_KUBERNETES, accounts.namespace, accounts.node_namespace)
    closed = ", ".join(f'"{each}"' for each in spaces)
    return [
        *validating(
            "fairlead-people-bindings",
            _PART,
            rules=[on("CREATE UPDATE DELETE", _BINDINGS, groups=RBAC)],
            conditions=is_controller,
            variables={
                "user": cel(f"""
            (request.operation == "CREATE" ? object : oldObject)
              .metadata.{OF_USER}.orValue("")
            """),
                "subjects": cel("""
            (request.operation == "CREATE" ? object : oldObject).?subjects.orValue([])
            """),
                "place": 'request.?namespace.orValue("clusterRole")',
            },
            validations=[
                refuse(
                    'request.operation == "UPDATE" || variables.user != ""',
                    (
                        f"the people controller makes and removes bindings with the label "
                        f"{LABEL_BOUND_USER}, and no others"
                    ),
                ),
                refuse(
                    cel(f"""
            request.operation == "DELETE" || (variables.subjects.size() == 1
              && variables.subjects.all(each, each.kind == "ServiceAccount"
                && each.?namespace.orValue("") == "{USERS_NAMESPACE}"
                && each.name == (request.operation == "CREATE" ? variables.user
                  : object.metadata.{OF_USER}.orValue(""))))
            """),
                    (
                        "the people controller binds the ServiceAccount of the user that the label "
                        f"names, in namespace {USERS_NAMESPACE}, and nothing else"
                    ),
                ),
                refuse(
                    cel(f"""
            request.operation != "CREATE" || (object.roleRef.kind == "ClusterRole"
              && object.metadata.name
                == variables.user + ":" + variables.place + ":" + object.roleRef.name
              && !(variables.place in [{closed}])
              && (variables.place != "{USERS_NAMESPACE}"
                || object.roleRef.name == "{CREDENTIALS_ROLE}"))
            """),
                    (
                        "the people controller binds ClusterRoles, under the binding's own name, "
                        "in no namespace of Kubernetes or Fairlead"
                    ),
                ),
                refuse(
                    cel(f"""
            request.operation != "UPDATE" || (object.?subjects == oldObject.?subjects
              && object.roleRef == oldObject.roleRef
              && object.metadata.?annotations == oldObject.metadata.?annotations
              && object.metadata.?ownerReferences == oldObject.metadata.?ownerReferences
              && object.metadata.?finalizers == oldObject.metadata.?finalizers
              && [object, oldObject].all(each, each.metadata.?labels.orValue({{}}).all(key,
                key == "{LABEL_BOUND_USER}"
                || object.metadata.?labels[?key] == oldObject.metadata.?labels[?key]))
              && variables.user in ["", object.metadata.{OF_USER}.orValue("")])
            """),
                    "the people controller labels a binding, and changes nothing else of it",
                ),
            ],
        ),
        *validating(
            "fairlead-people-accounts",
            _PART,
            rules=[on("CREATE DELETE", "serviceaccounts")],
            conditions=is_controller,
            validations=[
                refuse(
                    cel(f"""
            request.operation == "CREATE"
              ? object.metadata.{OF_USER}.orValue("") == object.metadata.name
              : oldObject.metadata.{OF_USER}.orValue("") != ""
            """),
                    (
                        "the people controller makes and removes ServiceAccounts with the label "
                        f"{LABEL_BOUND_USER}, and no others"
                    ),
                ),
            ],
        ),
        *validating(
            "fairlead-people-users",
            _PART,
            rules=[on("UPDATE", USERS, groups=PEOPLE_GROUP)],
            conditions=is_controller,
            variables={
                "held": cel("""
            [object.metadata.?finalizers.orValue([]), oldObject.metadata.?finalizers.orValue([])]
            """),
            },
            validations=[
                refuse(
                    f"object.spec == oldObject.spec\n  && {_SAME_META}\n"
                    + cel(f"""
              && [variables.held, [variables.held[1], variables.held[0]]].all(pair,
                pair[0].all(each, each == "{USER_FINALIZER}" || each in pair[1]))
            """),
                    (
                        f"the people controller writes the finalizer {USER_FINALIZER} of a user "
                        "and the status, and nothing else"
                    ),
                ),
            ],
        ),
        *validating(
            "fairlead-people-groups",
            _PART,
            rules=[on("UPDATE", USER_GROUPS, groups=PEOPLE_GROUP)],
            conditions=is_controller,
            validations=[
                refuse(
                    cel("""
            [object.spec, oldObject.spec].all(each, each.all(key, key == "quotaNames"
                || object.spec[?key] == oldObject.spec[?key]))
            """)
                    + f"\n  && {_SAME_META}"
                    + "\n  && object.metadata.?finalizers == oldObject.metadata.?finalizers",
                    (
                        "the people controller moves a group to the new name of its leaf, and "
                        "changes nothing else of it"
                    ),
                ),
            ],
        ),
    ]
