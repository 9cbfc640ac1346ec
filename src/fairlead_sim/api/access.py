"""The identity of a request, after impersonation, and whether the store's roles allow it.

Requests of the administrator cost nothing extra: members of system:masters are allowed before a
role is read. What the roles allow is computed again only after one of them was written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import unquote

from starlette.requests import Request

from fairlead.model.access import (
    ANONYMOUS,
    AUTHENTICATED,
    UNAUTHENTICATED,
    AccessRequest,
    Identity,
    PolicyRule,
    account_groups,
    named_account,
)
from fairlead_sim.access.judge import (
    EVERYTHING,
    RBAC_GROUP,
    Judgement,
    Policy,
    judge,
    missing_roles,
    uncovered,
)
from fairlead_sim.api.kube_path import parse_path
from fairlead_sim.api.request import ReceivedRequest
from fairlead_sim.api.tokens import BadToken, Tokens
from fairlead_sim.api.versions import Versions, Watch
from fairlead_sim.objects.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    ROLE_BINDINGS,
    ROLES,
)
from fairlead_sim.objects.watch_log import Object
from fairlead_sim.schema.rbac import escalation, no_right, parse_binding, parse_rules
from fairlead_sim.schema.resource import ResourceKind
from fairlead_sim.schema.status import ApiStatus, bad_request, forbidden, not_found, unauthorized

ANONYMOUS_IDENTITY: Final = Identity(ANONYMOUS, groups=(UNAUTHENTICATED,))
_VERBS: Final = {
    "POST": "create",
    "GET": "get",
    "HEAD": "get",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
_IMPERSONATE: Final = b"impersonate-"
_EXTRA: Final = "impersonate-extra-"

_ROLES = (CLUSTER_ROLES, ROLES)
_BINDINGS = (CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS)


class Access:
    """Authentication, impersonation and authorization of requests over a store."""

    def __init__(self, store: Versions, tokens: Tokens) -> None:
        self._store = store
        self._tokens = tokens
        self._watches: list[Watch] = []
        self._policy = Policy({}, ())

    # --- identity----------------------------------------------------------------------------------

    def admit(self, http: Request) -> Identity:
        """The identity that acts in this request.

        Raises 401 for an unknown token and 403 for what the roles do not allow.
        """
        who = self._authenticated(http)
        request: AccessRequest | None = None
        if any(header.startswith(_IMPERSONATE) for header, _ in http.scope["headers"]):
            request = access_request(http)
            who = self._impersonated(who, http, request)
        if not who.is_master:
            self.check(who, request or access_request(http))
        return who

    def _authenticated(self, http: Request) -> Identity:
        scheme, _, token = http.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return ANONYMOUS_IDENTITY
        try:
            return self._tokens.read(token.strip())[0]
        except BadToken as error:
            raise unauthorized() from error

    def _impersonated(self, who: Identity, http: Request, request: AccessRequest) -> Identity:
        """The user that the `Impersonate-…` headers name, where `who` may act as that user."""
        headers = http.headers
        user, uid, groups = (
            headers.get("impersonate-user", ""),
            headers.get("impersonate-uid", ""),
            headers.getlist("impersonate-group"),
        )
        extra: dict[str, tuple[str, ...]] = {}
        for header in sorted(set(headers.keys())):
            if header.startswith(_EXTRA):
                extra[unquote(header.removeprefix(_EXTRA))] = tuple(headers.getlist(header))
        if not user:
            if not uid and not groups and not extra:
                return who
            raise bad_request(
                "requested a uid, groups or extra fields without impersonating a user name"
            )
        wanted = Identity(user, uid, tuple(groups), extra)
        refused = next(
            (each for each in _impersonations(wanted) if not self.judge(who, each).is_allowed), None
        )
        if refused is not None:
            raise no_right(who, _narrower(wanted, request) or refused)
        return _completed(wanted)

    # --- what -------------------------------------------------------------------------------------

    def check(self, who: Identity, request: AccessRequest) -> None:
        """Raise 403 unless `who` may."""
        judgement = self.judge(who, request)
        if not judgement.is_allowed:
            raise no_right(who, request, judgement.reason)

    def judge(self, who: Identity, request: AccessRequest) -> Judgement:
        return Judgement(is_allowed=True) if who.is_master else judge(who, request, self.policy())

    def policy(self) -> Policy:
        """Roles and bindings as they are now."""
        try:
            is_stale = not self._watches or any(watch.poll() for watch in self._watches)
        except ApiStatus:  # the log no longer has all writes
            is_stale = True
        if is_stale:
            self._policy = self._read_policy()
        return self._policy

    def _read_policy(self) -> Policy:
        for watch in self._watches:
            watch.close()
        self._watches = [self._store.watch(ref) for ref in (*_ROLES, *_BINDINGS)]
        roles = {
            (role["metadata"].get("namespace", ""), role["metadata"]["name"]): parse_rules(role)
            for ref in _ROLES
            for role in self._store.list(ref)
        }
        return Policy(
            roles,
            (parse_binding(binding) for ref in _BINDINGS for binding in self._store.list(ref)),
        )

    # --- giving rights away -----------------------------------------------------------------------

    def check_gift(
        self, who: Identity, request: ReceivedRequest, new: Object, old: Object | None
    ) -> None:
        """Raise 403 when a role or binding gives rights that its writer neither has nor may give.

        The verbs are `escalate` and `bind`.
        """
        if (
            request.ref.group != RBAC_GROUP
            or who.is_master
            or (old is not None and _is_same_gift(old, new))
        ):
            return
        if request.ref.plural in ("roles", "clusterroles"):
            self._check_role(who, request, new, old)
        else:
            self._check_binding(who, request, new)

    def _check_role(
        self, who: Identity, request: ReceivedRequest, new: Object, old: Object | None
    ) -> None:
        ref, name = request.ref, new["metadata"].get("name", "")
        if self._may_give(who, "escalate", ref, request.namespace, request.path.name):
            return
        self._check_covered(who, request, name, parse_rules(new))
        if any((role or {}).get("aggregationRule") for role in (new, old)) and uncovered(
            self.policy().held_rules(who, ""), EVERYTHING
        ):
            raise forbidden(
                ref, name, "must have cluster-admin privileges to use the aggregationRule"
            )

    def _check_binding(self, who: Identity, request: ReceivedRequest, new: Object) -> None:
        role = new.get("roleRef") or {}
        kind, name = role.get("kind", ""), role.get("name", "")
        ref = next((ref for ref in (*_ROLES, *_BINDINGS) if ref.kind == kind), None)
        if ref is None or self._may_give(who, "bind", ref, request.namespace, name):
            return
        rules = self.policy().rules_of(kind, name, request.namespace)
        if rules is None:
            # the real server also reports the binding as missing
            raise not_found(request.ref, name)
        self._check_covered(who, request, new["metadata"].get("name", ""), rules)

    def _may_give(
        self, who: Identity, verb: str, ref: ResourceKind, namespace: str, name: str
    ) -> bool:
        return self.judge(
            who, AccessRequest(verb, RBAC_GROUP, ref.plural, namespace=namespace, name=name)
        ).is_allowed

    def _check_covered(
        self, who: Identity, request: ReceivedRequest, name: str, rules: Sequence[PolicyRule]
    ) -> None:
        missing = uncovered(self.policy().held_rules(who, request.namespace), rules)
        if missing:
            # The real server takes what is being written for what is missing, here as above.
            unresolved = missing_roles(
                who, request.namespace, self.policy(), request.ref.group_resource
            )
            raise escalation(request.ref, name, who, missing, unresolved)


def access_request(http: Request) -> AccessRequest:
    """What a request asks for, before it is known whether that exists."""
    path = parse_path(http.url.path)
    if path is None:
        return AccessRequest(http.method.lower(), path=http.url.path)
    verb, name = _VERBS.get(http.method, ""), path.name
    if not name and verb == "get":
        is_watch = http.query_params.get("watch", "").lower() in ("1", "true")
        verb, name = (
            "watch" if is_watch else "list",
            _chosen_name(http.query_params.get("fieldSelector", "")),
        )
    elif not name and verb == "delete":
        verb = "deletecollection"
    namespace = path.namespace or (name if (path.group, path.plural) == ("", "namespaces") else "")
    return AccessRequest(verb, path.group, path.plural, path.subresource, namespace, name)


def _chosen_name(selector: str) -> str:
    """The one name that a field selector leaves: a list of it alone is a read of one object."""
    names = [
        term.partition("=")[2].lstrip("=")
        for term in selector.split(",")
        if term.startswith("metadata.name=")
    ]
    return names[0] if names else ""


def _is_same_gift(old: Object, new: Object) -> bool:
    """Whether no more than what the garbage collector needs was changed: owners and finalizers."""
    kept = [
        {
            **obj,
            "metadata": {
                key: value
                for key, value in obj["metadata"].items()
                if key not in ("ownerReferences", "finalizers", "managedFields")
            },
        }
        for obj in (old, new)
    ]
    return kept[0] == kept[1]


def _impersonations(wanted: Identity) -> list[AccessRequest]:
    """The rights that are needed, one by one, to act as `wanted`."""
    account = named_account(wanted.name)
    if account:
        needed = [
            AccessRequest(
                "impersonate", "", "serviceaccounts", namespace=account[0], name=account[1]
            )
        ]
    else:
        needed = [AccessRequest("impersonate", "", "users", name=wanted.name)]
    needed += [AccessRequest("impersonate", "", "groups", name=group) for group in wanted.groups]
    group = "authentication.k8s.io"
    needed += [
        AccessRequest("impersonate", group, "userextras", key, name=value)
        for key, values in wanted.extra.items()
        for value in values
    ]
    return needed + (
        [AccessRequest("impersonate", group, "uids", name=wanted.uid)] if wanted.uid else []
    )


def _narrower(wanted: Identity, request: AccessRequest) -> AccessRequest | None:
    """How the real server words a refused impersonation: by the narrower right that would have done
    for this one request.
    """
    is_plain = not (wanted.uid or wanted.groups or wanted.extra)
    if wanted.name.startswith("system:node:"):
        mode = "arbitrary-node" if is_plain else ""
    elif named_account(wanted.name):
        mode = "serviceaccount" if is_plain else ""
    else:
        mode = "user-info"
    if not mode:
        return None
    verb = f"impersonate-on:{mode}:{request.verb}"
    return AccessRequest(
        verb, *(getattr(request, field) for field in AccessRequest.__struct_fields__[1:])
    )


def _completed(wanted: Identity) -> Identity:
    """With the groups that come of themselves."""
    account = named_account(wanted.name)
    groups = wanted.groups or (account_groups(account[0]) if account else ())
    own = UNAUTHENTICATED if wanted.name == ANONYMOUS else AUTHENTICATED
    has_own = own in groups or (own == AUTHENTICATED and UNAUTHENTICATED in groups)
    return Identity(wanted.name, wanted.uid, groups if has_own else (*groups, own), wanted.extra)
