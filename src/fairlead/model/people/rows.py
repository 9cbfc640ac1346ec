"""Users and user groups as the API server has them, and the objects that follow from them.

Specification: docs/spec/people.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct

from fairlead.model.access import Binding
from fairlead.model.moment import Moment
from fairlead.model.resources import Amounts

KIND_USERS: Final = "users"
KIND_GROUPS: Final = "usergroups"
KIND_SERVICE_ACCOUNTS: Final = "serviceaccounts"
KIND_ROLE_BINDINGS: Final = "rolebindings"
KIND_CLUSTER_ROLE_BINDINGS: Final = "clusterrolebindings"
"""Kinds that the people controller follows, by the names of their sources."""

USER_FINALIZER: Final = "fairlead.io/user"
LABEL_BOUND_USER: Final = "fairlead.io/user"
"""On what the controller makes for a user: the user's id. It removes nothing without this label."""
ANNOTATION_FORCE_DELETE: Final = "fairlead.io/force-delete"


class UserRole(StrEnum):
    """What a user is. An admin may do all that a researcher may."""

    ADMIN = "admin"
    RESEARCHER = "researcher"


class ReadyReason(StrEnum):
    """Why a user or a group is ready, or is not. Users: the first eight."""

    BOUND = "Bound"
    PENDING = "Pending"
    DISABLED = "Disabled"
    INVALID = "Invalid"
    NAME_TAKEN = "NameTaken"
    CALL_REFUSED = "CallRefused"
    DELETION_BLOCKED = "DeletionBlocked"
    ENDING = "Ending"
    LEAF_ALREADY_BOUND = "LeafAlreadyBound"
    NO_TREE = "NoTree"
    NO_SUCH_LEAF = "NoSuchLeaf"
    NOT_A_LEAF = "NotALeaf"


class Ready(Struct, frozen=True):
    """The condition `Ready`. `at`: since when it has its value; None in a wanted one."""

    is_true: bool = False
    reason: str = ""
    message: str = ""
    at: Moment | None = None


class BoundRole(Struct, frozen=True, order=True):
    """A binding in a user's status. `namespace`: "" = a ClusterRoleBinding."""

    name: str
    namespace: str
    role: str


class LeafUse(Struct, frozen=True):
    """What a user has admitted in a leaf."""

    leaf: str
    used: Amounts


class UserStatus(Struct, frozen=True):
    """What exists for a user. `service_account`: its name, "" = there is none.

    `namespaces`: those of the user's leaves, in which the user may work. `generation`: of the spec
    that it follows from.
    """

    service_account: str = ""
    namespaces: tuple[str, ...] = ()
    bindings: tuple[BoundRole, ...] = ()
    ready: Ready = Ready()
    generation: int = 0
    used: tuple[LeafUse, ...] = ()


class GroupStatus(Struct, frozen=True):
    """What follows from a group. `leaf`: the leaf that it has, "" = none; `namespaces`: the leaf's,
    as the group last had them. `renamed_to`: the new name of its leaf, which is about to be written
    into the spec. `users`: how many users list the group.
    """

    leaf: str = ""
    namespaces: tuple[str, ...] = ()
    renamed_to: str = ""
    users: int = 0
    ready: Ready = Ready()
    generation: int = 0


class ExternalUser(Struct, frozen=True, rename="camel"):
    """The user in another system, for example an OIDC provider."""

    auth_type: str = ""
    uid: str = ""
    name: str = ""


class User(Struct, frozen=True):
    """`name`: the user's id, also of the ServiceAccount. `user_name`: free text. `aliuid`: kept
    from an import. `version`: of the object, of writes that must not overwrite a later change.
    `is_ending`: it is being deleted. `is_forced`: unfinished pods and jobs do not block that.
    `faults`: why the object is malformed; such a user has no rights.
    """

    name: str
    namespace: str = ""
    uid: str = ""
    version: str = ""
    user_name: str = ""
    roles: tuple[UserRole, ...] = ()
    groups: tuple[str, ...] = ()
    external: ExternalUser = ExternalUser()
    aliuid: str = ""
    is_deletable: bool = True
    is_disabled: bool = False
    is_ending: bool = False
    is_forced: bool = False
    finalizers: tuple[str, ...] = ()
    generation: int = 0
    created_at: Moment = 0.0
    faults: tuple[str, ...] = ()
    status: UserStatus = UserStatus()

    @property
    def is_admin(self) -> bool:
        return UserRole.ADMIN in self.roles

    @property
    def is_held(self) -> bool:
        """Whether the object stays until the controller has removed what belongs to it."""
        return USER_FINALIZER in self.finalizers


class UserGroup(Struct, frozen=True):
    """`leaf`: the full name of its leaf. `default_roles`: more ClusterRoles in the leaf's
    namespaces; `default_cluster_roles`: more of them cluster-wide. `user_caps`: by user and
    resource, the most that a user may have admitted, as it is written; `caps`: the same as amounts.
    Others: see `User`.
    """

    name: str
    namespace: str = ""
    uid: str = ""
    version: str = ""
    group_name: str = ""
    leaf: str = ""
    default_roles: tuple[str, ...] = ()
    default_cluster_roles: tuple[str, ...] = ()
    user_caps: Mapping[str, Mapping[str, str]] = {}
    caps: Mapping[str, Amounts] = {}
    is_ending: bool = False
    generation: int = 0
    created_at: Moment = 0.0
    faults: tuple[str, ...] = ()
    status: GroupStatus = GroupStatus()


class UserServiceAccount(Struct, frozen=True):
    """A ServiceAccount of the users namespace. `user`: the value of its label, "" = none."""

    name: str
    namespace: str
    uid: str = ""
    user: str = ""
    is_ending: bool = False


class UserBinding(Struct, frozen=True):
    """A RoleBinding or ClusterRoleBinding of the cluster. `user`: as for a ServiceAccount."""

    binding: Binding
    uid: str = ""
    version: str = ""
    user: str = ""
    is_ending: bool = False

    @property
    def name(self) -> str:
        return self.binding.name

    @property
    def namespace(self) -> str:
        return self.binding.namespace


class UserWork(Struct, frozen=True):
    """A pod or job that a user made. `kind`: as a user reads it, such as `pod`."""

    kind: str
    namespace: str
    name: str
    user: str
    uid: str = ""
    is_finished: bool = False
