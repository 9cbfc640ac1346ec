"""The first answer that a page requests: user, cluster, and what this server can do."""

from __future__ import annotations

from typing import Literal, TypeVar

import msgspec

from fairlead.console.pages.clock import ClockFace
from fairlead.console.pages.envelope import Json
from fairlead.errors import UserError

Form = TypeVar("Form", bound=Json)


class Person(Json, frozen=True):
    """`id`: of the User, "" for one without a User. `namespaces`, `leaves`, `groups`: the own ones;
    an administrator sees those of others, too.
    """

    name: str
    role: str
    id: str
    groups: list[str]
    leaves: list[str]
    namespaces: list[str]


class SignInOrder(Json, frozen=True, forbid_unknown_fields=True):
    """`secret`: a Kubernetes token, or the one-time code."""

    way: Literal["code", "token"]
    secret: str


class SignInFailure(Json, frozen=True):
    """Why the OIDC provider's answer did not sign in: as in an error."""

    code: str
    error: str
    hint: str


class SignInMethods(Json, frozen=True):
    """`ways`: `code`, `oidc` and `token`; none where there is no sign-in. `failure`: of this
    browser's last sign-in at the OIDC provider.
    """

    ways: list[str]
    failure: SignInFailure | None


class SignedIn(Json, frozen=True):
    """`is_signed_in`: whether this browser is now."""

    is_signed_in: bool


class ActAs(Json, frozen=True, forbid_unknown_fields=True):
    """`user`: id of a User of a simulated cluster, "" for oneself."""

    user: str


class ConsoleRight(Json, frozen=True):
    """What the user may do in this console. `where`: `everywhere`, or `own`: in the own namespaces.
    `verbs`: some of `get`, `create`, `update`, `delete`.
    """

    resource: str
    where: str
    verbs: list[str]


class KubectlRule(Json, frozen=True):
    """`kind`: `write` (all usual verbs), `read` (get, list, watch), or `other` (`verbs`).
    `resources`: with their API group, such as `jobs.batch`.
    """

    kind: str
    verbs: list[str]
    resources: list[str]


class KubectlRight(Json, frozen=True):
    """A role that is bound to the user. `namespaces`: where; `is_cluster_wide`: by a
    ClusterRoleBinding. `rules`: none of a role that is not Fairlead's.
    """

    role: str
    namespaces: list[str]
    is_cluster_wide: bool
    rules: list[KubectlRule]


class OwnRights(Json, frozen=True):
    """`kubectl`: none for a client that is no user."""

    console: list[ConsoleRight]
    kubectl: list[KubectlRight]


class ClusterName(Json, frozen=True):
    """`version` is Fairlead's snapshot version, a number that grows with every change."""

    name: str
    world: Literal["simulated", "kubernetes"]
    version: str


class Features(Json, frozen=True):
    """`clock`: whether `/clock` moves this cluster's time.

    `history_seconds`: how far back charts reach; null where Prometheus answers, which alone knows.
    """

    prometheus: bool
    clock: bool
    history_seconds: int | None


class Me(Json, frozen=True):
    """`csrf` goes back in `X-Fairlead-Csrf` with every write. `version` is the server's program
    version.

    `build` is the build of the page that this server serves: a page of another build is outdated.

    `way`: how the user signed in; `none` where there is no sign-in. `can_act_as`: ids of the users
    that a client with the code of a simulated cluster may look as.
    """

    user: Person
    way: str
    can_act_as: list[str]
    csrf: str
    cluster: ClusterName
    clock: ClockFace
    features: Features
    version: str
    build: str


def parse_body(body: bytes, form: type[Form], example: str) -> Form:
    """The body of a write. Raises UserError for anything that is not such a body."""
    try:
        return msgspec.json.decode(body or b"null", type=form)
    except msgspec.DecodeError as error:
        raise UserError(
            f"this body is malformed: {error}", f"send JSON such as {example}"
        ) from error
