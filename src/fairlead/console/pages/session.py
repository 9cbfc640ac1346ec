"""The first answer that a page requests: user, cluster, and what this server can do."""

from __future__ import annotations

from typing import Literal, TypeVar

import msgspec

from fairlead.console.pages.clock import ClockFace
from fairlead.console.pages.envelope import Json, Timestamp
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


class KubeconfigOrder(Json, frozen=True, forbid_unknown_fields=True):
    """`lifetime_seconds`: 600 to 86,400. `note`: what it is for, at most 200 characters."""

    lifetime_seconds: int = 28_800
    note: str = ""


class OwnKubeconfig(Json, frozen=True):
    """`kubeconfig`: YAML with the token, which is kept nowhere. `credential`: the name under which
    it is revoked.
    """

    kubeconfig: str
    credential: str
    expires_at: Timestamp


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
