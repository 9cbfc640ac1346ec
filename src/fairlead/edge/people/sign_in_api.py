"""The API server as the console's sign-in needs it (`ports.SignInApi`): whose token is this, what
may its owner do, and which users and groups exist now.

A token is sent in the body of a TokenReview and stands in no message.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import Any, Final

from msgspec import structs

from fairlead.edge.kube.follow.followed_kind import GROUP_SUBJECT
from fairlead.edge.kube.follow.follower import Follower
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.resource import SECRETS, SERVICE_ACCOUNTS, Resource
from fairlead.edge.kube.who_am_i import REVIEWS
from fairlead.edge.people.people_api import USER_SUBJECT
from fairlead.edge.people.sign_in_keys import kept_keys
from fairlead.errors import Forbidden, NotFound, OutsideError
from fairlead.model.access import Identity
from fairlead.model.changes import Observe
from fairlead.model.people.token_bounds import BoundObject
from fairlead.model.refusal import Refusal
from fairlead.settings import USERS_NAMESPACE
from fairlead.wire.names import PEOPLE_GROUP, USERS
from fairlead.wire.people.credentials import WireSecretHead

_AUTHENTICATION: Final = "authentication.k8s.io"
_AUTHORIZATION: Final = "authorization.k8s.io"
TOKEN_REVIEWS: Final = Resource(
    _AUTHENTICATION, "v1", "tokenreviews", is_namespaced=False, kind="TokenReview"
)
ACCESS_REVIEWS: Final = Resource(
    _AUTHORIZATION, "v1", "subjectaccessreviews", is_namespaced=False, kind="SubjectAccessReview"
)
FOLLOWED: Final = tuple(
    structs.replace(kind, is_optional=True) for kind in (USER_SUBJECT, GROUP_SUBJECT)
)
_BOUND: Final = {each.plural: each for each in (SECRETS, SERVICE_ACCOUNTS)}
_log = logging.getLogger(__name__)
_REFUSED: Final = "the API server does not accept this token"


class KubeSignInApi:
    """One cluster. The client's own user asks (docs/spec/console.md#sign-in has its rights)."""

    def __init__(
        self,
        api: KubeApi,
        *,
        rng: random.Random | None = None,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
    ) -> None:
        self._api = api
        self._rng = rng
        self._sleep = sleep
        self._is_blind = False

    async def follow(self, observe: Observe) -> None:
        await Follower(self._api, observe, rng=self._rng, sleep=self._sleep).run(FOLLOWED)

    async def owner_of(self, token: str) -> Identity | Refusal:
        status = await self._ask(TOKEN_REVIEWS, {"token": token})
        if not status.get("authenticated"):
            return Refusal(_reason(str(status.get("error") or "")))
        return _identity(status.get("user"))

    async def is_there(self, bound: BoundObject) -> bool:
        try:
            found = await self._api.get(
                _BOUND[bound.plural], bound.name, USERS_NAMESPACE, WireSecretHead
            )
        except NotFound:
            return False
        except Forbidden as error:
            if not self._is_blind:
                _log.warning("sign-ins outlive revoked tokens: %s", error.log_line)
            self._is_blind = True
            return True
        uid: str = found.metadata.uid or ""
        return uid == bound.uid

    async def own_identity(self) -> Identity:
        status = await self._ask(REVIEWS, None)
        return _identity(status.get("userInfo"))

    async def may_make_users(self, identity: Identity) -> bool:
        status = await self._ask(
            ACCESS_REVIEWS,
            {
                "user": identity.name,
                "uid": identity.uid,
                "groups": list(identity.groups),
                "extra": {key: list(values) for key, values in identity.extra.items()},
                "resourceAttributes": {
                    "verb": "update",
                    "group": PEOPLE_GROUP,
                    "resource": USERS,
                    "namespace": USERS_NAMESPACE,
                },
            },
        )
        return status.get("allowed") is True

    async def keys(self, namespace: str, name: str) -> tuple[bytes, ...]:
        return await kept_keys(self._api, namespace, name)

    async def _ask(self, resource: Resource, spec: dict[str, Any] | None) -> dict[str, Any]:
        question: dict[str, Any] = {
            "apiVersion": f"{resource.group}/{resource.version}",
            "kind": resource.kind,
            **({} if spec is None else {"spec": spec}),
        }
        answer = await self._api.create(resource, question)
        status = answer.get("status") if isinstance(answer, dict) else None
        if not isinstance(status, dict):
            raise OutsideError("kubernetes", f"the API server's {resource.kind} has no status")
        return status


def _reason(error: str) -> str:
    """The API server's reason in few words.

    Its own text may contain the token's issuer or key id, of another cluster perhaps, and several
    attempts, separated by commas.
    """
    lowered = error.lower()
    if "expired" in lowered:
        return f"{_REFUSED}: it has expired"
    if "has been invalidated" in lowered or "not found" in lowered or "deleted" in lowered:
        return f"{_REFUSED}: its ServiceAccount, or the Secret that it is bound to, is gone"
    if "audience" in lowered:
        return f"{_REFUSED}: it is for another audience"
    return f"{_REFUSED}: it is not a token of this cluster"


def _identity(user: Any) -> Identity:
    """Raises OutsideError if the API server names no user."""
    name = user.get("username") if isinstance(user, dict) else None
    if not isinstance(name, str) or not name:
        raise OutsideError("kubernetes", "the API server's answer names no user")
    groups, extra = user.get("groups"), user.get("extra")
    return Identity(
        name,
        str(user.get("uid") or ""),
        tuple(str(each) for each in groups) if isinstance(groups, list) else (),
        {
            str(key): tuple(str(each) for each in values)
            for key, values in (extra.items() if isinstance(extra, dict) else ())
            if isinstance(values, list)
        },
    )
