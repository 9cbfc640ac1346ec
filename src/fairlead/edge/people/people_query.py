"""Reads and writes users, groups and credentials for one command.

Blocking, for the CLI (`cli.frame.context.ClusterPeople`).
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import msgspec

from fairlead.edge.connection.connection import IN_CLUSTER_ORIGIN
from fairlead.edge.kube.api_failure import Conflict
from fairlead.edge.kube.api_page import ItemReader
from fairlead.edge.kube.api_request import ApiRequest, Selection, encode_body
from fairlead.edge.kube.follow.followed_kind import GROUP_SUBJECT, QUOTA_SUBJECT, FollowedKind
from fairlead.edge.kube.kube_blocking import KubeBlocking, in_parallel
from fairlead.edge.kube.object_writer import ObjectWriter
from fairlead.edge.kube.resource import CONFIG_MAPS, SECRETS, SERVICE_ACCOUNTS, Resource
from fairlead.edge.kube.who_am_i import user_name
from fairlead.edge.people.people_api import (
    USER_SUBJECT,
    WORK_SUBJECTS,
)
from fairlead.edge.people.renewal import with_token
from fairlead.errors import FairleadError, Forbidden, NotFound, OutsideError, UserError
from fairlead.model.actions import (
    CreateObject,
    DeleteObject,
    Manifest,
    ObjectRef,
    PatchObject,
    Result,
)
from fairlead.model.people.record import Credential, PeopleRecord, ServerAddress
from fairlead.model.people.renewal import RENEWAL_POLICY
from fairlead.model.people.rows import (
    ANNOTATION_FORCE_DELETE,
    LABEL_BOUND_USER,
    User,
    UserGroup,
)
from fairlead.settings import USERS_NAMESPACE
from fairlead.wire.kube.forms import JsonForm
from fairlead.wire.names import USER_GROUPS, USERS, VENDOR_PEOPLE_API
from fairlead.wire.people.credentials import (
    LABEL_CREDENTIAL,
    WireSecretHead,
    expiry_patch,
    parse_credential,
    parse_issued_token,
    render_credential,
    render_renewal_rights,
    render_token_request,
    render_unbound_request,
)
from fairlead.wire.people.people_actions import group_ref, service_account_ref, user_ref
from fairlead.wire.people.people_objects import render_group, render_user

_NOT_SERVED: Final = "docs/how-to/users.md describes how this part is installed"
CHANGE_TRIES: Final = 5
_POLICY_SECONDS: Final = 10.0
"""How long a new right may take to reach every part of the API server."""


class _Listed(msgspec.Struct):
    items: list[Manifest] = []


class PeopleQuery:
    """The users of one cluster for one command. `now`: epoch seconds."""

    def __init__(self, api: KubeBlocking, now: Callable[[], float]) -> None:
        self._api = api
        self._writer = ObjectWriter(api)
        self._now = now

    def read(self) -> PeopleRecord:
        found = in_parallel(
            [
                partial(self._rows, USER_SUBJECT),
                partial(self._rows, GROUP_SUBJECT),
                partial(self._optional, QUOTA_SUBJECT),
                *(partial(self._optional, each) for each in WORK_SUBJECTS),
            ]
        )
        rows = [_rows_of(each) for each in found]
        users, groups, trees = rows[:3]
        return PeopleRecord(
            {each.name: each for each in users},
            {each.name: each for each in groups},
            next(iter(trees), None),
            tuple(row for each in rows[3:] for row in each),
            _or_unknown(partial(user_name, self._api)),
        )

    def create_user(self, user: User) -> None:
        self._writer.apply(CreateObject(render_user(user), "", USERS, is_strict=True)).expect()

    def create_group(self, group: UserGroup) -> None:
        manifest = render_group(group)
        self._writer.apply(CreateObject(manifest, "", USER_GROUPS, is_strict=True)).expect()

    def change_user(self, before: User, after: User) -> None:
        """Raises OutsideError if the user was changed since `before` was read."""
        target = user_ref(before.name, before.namespace)
        self._change(target, USER_SUBJECT.resource, before, render_user(after)["spec"])

    def change_group(self, before: UserGroup, after: UserGroup) -> None:
        """Raises OutsideError if the group was changed since `before` was read."""
        old, new = render_group(before)["spec"], render_group(after)["spec"]
        target = group_ref(before.name, before.namespace)
        self._change(target, GROUP_SUBJECT.resource, before, {**new, **_without(old, new)})

    def _change(
        self, target: ObjectRef, resource: Resource, before: User | UserGroup, spec: Manifest
    ) -> None:
        """A status that the controller wrote meanwhile is no conflict: the write is sent again."""
        version = before.version
        for left in reversed(range(CHANGE_TRIES)):
            patch = {"metadata": {"resourceVersion": version}, "spec": spec}
            outcome = self._writer.apply(PatchObject(target, patch))
            if not left or not isinstance(outcome.failure, Conflict):
                outcome.expect()
                return
            now = self._api.get(resource, target.name, target.namespace)["metadata"]
            if (now["uid"], now["generation"]) != (before.uid, before.generation):
                outcome.expect()
            version = now["resourceVersion"]

    def delete_user(self, user: User, *, is_forced: bool) -> None:
        target = user_ref(user.name, user.namespace, user.uid)
        if is_forced:
            forced = {"metadata": {"annotations": {ANNOTATION_FORCE_DELETE: "true"}}}
            self._writer.apply(PatchObject(target, forced)).expect(Result.GONE)
        self._writer.apply(DeleteObject(target)).expect(Result.GONE)

    def delete_group(self, group: UserGroup) -> None:
        target = group_ref(group.name, group.namespace, group.uid)
        self._writer.apply(DeleteObject(target)).expect(Result.GONE)

    def vendor_objects(self) -> list[Manifest]:
        group, _, version = VENDOR_PEOPLE_API.partition("/")
        found = list[Manifest]()
        for plural in (USERS, USER_GROUPS):
            path = Resource(group, version, plural).path()
            try:
                answer = self._api.send(ApiRequest("list", "GET", path))
            except NotFound as error:
                raise UserError(
                    f"the cluster serves no {plural} of {VENDOR_PEOPLE_API}",
                    "import the objects from a file",
                ) from error
            found += msgspec.json.decode(answer.body, type=_Listed).items
        return found

    def adopt_service_account(self, name: str) -> None:
        labels = {"metadata": {"labels": {LABEL_BOUND_USER: name}}}
        target = service_account_ref(name, USERS_NAMESPACE)
        self._writer.apply(PatchObject(target, labels)).expect(Result.GONE)

    # --- credentials ------------------------------------------------------------------------------

    def issue(
        self,
        user: str,
        seconds: int,
        note: str,
        *,
        is_renewed: bool = False,
        issued_by: str = "",
    ) -> tuple[Credential, str]:
        """A new token with its record. Nothing is left if no token is issued. `issued_by`: "" = the
        user of this process.

        `issued_by`: the user that asked for it, "" = this client. `is_renewed`: the user may renew
        it. Raises UserError where the cluster does not limit that (`fairlead-renewal`).
        """
        name = f"{user}-{secrets.token_hex(5)}"
        now = self._now()
        me = issued_by or _or_unknown(partial(user_name, self._api))
        asked = Credential(name, user, now, now + seconds, me, note, is_renewed=is_renewed)
        manifest = render_credential(asked, USERS_NAMESPACE)
        made = self._writer.apply(CreateObject(manifest, "", SECRETS.plural)).expect().made
        uid = str((made or {}).get("metadata", {}).get("uid", ""))
        credential = msgspec.structs.replace(asked, uid=uid)
        try:
            token, expires_at = self._token(credential, seconds)
            if is_renewed:
                self._let_renew(credential, token)
        except FairleadError:
            self._delete_secret(credential)
            raise
        granted = msgspec.structs.replace(credential, expires_at=expires_at)
        if round(expires_at) != round(asked.expires_at):
            patch = PatchObject(SECRETS.ref(name, USERS_NAMESPACE), expiry_patch(expires_at))
            self._writer.apply(patch).expect()
        return granted, token

    def _let_renew(self, credential: Credential, token: str) -> None:
        """Give the right to renew, and see that the policy limits it: revoking would end nothing
        if a user could issue tokens that are bound to no Secret.
        """
        role, binding = render_renewal_rights(credential, USERS_NAMESPACE)
        for manifest, plural in ((role, "roles"), (binding, "rolebindings")):
            self._writer.apply(CreateObject(manifest, "", plural)).expect()
        path = SERVICE_ACCOUNTS.path(USERS_NAMESPACE, credential.user, "token")
        body = encode_body(render_unbound_request())
        until = time.monotonic() + _POLICY_SECONDS
        with with_token(self._api.connection, token) as own:
            while True:
                try:
                    own.send(ApiRequest("create", "POST", path, body))
                except Forbidden as error:
                    if RENEWAL_POLICY in error.what:
                        return
                    if time.monotonic() > until:
                        raise
                    time.sleep(0.1)
                else:
                    raise UserError(
                        f"the cluster does not have the policy {RENEWAL_POLICY}, without which "
                        "revoking would not end renewed tokens",
                        "apply deploy/people.yaml (Kubernetes 1.30 and later), or leave out --exec",
                    )

    def credentials(self, user: str = "") -> list[Credential]:
        """Those that were not revoked, of one user or ("") all, the newest first."""
        labels = f"{LABEL_CREDENTIAL}=true" + (f",{LABEL_BOUND_USER}={user}" if user else "")
        reader = ItemReader(SECRETS, JsonForm(WireSecretHead, parse_credential))
        rows = self._api.list_all(reader, Selection(USERS_NAMESPACE, labels)).rows.values()
        return sorted(rows, key=lambda each: (-each.issued_at, each.name))

    def revoke(self, credential: Credential) -> None:
        self._delete_secret(credential)

    def revoke_all(self, user: str) -> int:
        """Revoke every token of the user, also those that are bound to no Secret; returns how many
        credentials were recorded.
        """
        found = self.credentials(user)
        for each in found:
            self._delete_secret(each)
        target = service_account_ref(user, USERS_NAMESPACE)
        self._writer.apply(DeleteObject(target)).expect(Result.GONE)
        return len(found)

    def address(self, named: str) -> ServerAddress:
        """Where users reach the API server. `named`: its URL, "" = as this command reaches it; a
        command in the cluster asks `kube-public/cluster-info`.
        """
        connection = self._api.connection
        own = ServerAddress(connection.server, connection.ca_pem)
        if connection.origin == IN_CLUSTER_ORIGIN and not named:
            own = self._published()
        return ServerAddress(named, own.authority) if named else own

    def _published(self) -> ServerAddress:
        """What kubeadm publishes in every cluster."""
        import base64

        import yaml

        try:
            found = self._api.get(CONFIG_MAPS, "cluster-info", "kube-public")
            text = yaml.safe_load(found["data"]["kubeconfig"])
            cluster = text["clusters"][0]["cluster"]
            authority = base64.b64decode(cluster.get("certificate-authority-data") or "")
            return ServerAddress(str(cluster["server"]), authority or None)
        except (FairleadError, LookupError, TypeError, ValueError, yaml.YAMLError) as error:
            raise UserError(
                "the address of the API server outside the cluster is not known",
                "name it with --server URL",
            ) from error

    def _token(self, credential: Credential, seconds: int) -> tuple[str, float]:
        path = SERVICE_ACCOUNTS.path(USERS_NAMESPACE, credential.user, "token")
        body = encode_body(render_token_request(credential, seconds))
        answer = msgspec.json.decode(self._api.send(ApiRequest("create", "POST", path, body)).body)
        try:
            return parse_issued_token(answer)
        except ValueError as error:
            raise OutsideError(
                "kubernetes", f"the API server's answer is malformed: {error}"
            ) from error

    def _delete_secret(self, credential: Credential) -> None:
        target = SECRETS.ref(credential.name, USERS_NAMESPACE)
        self._writer.apply(DeleteObject(target)).expect(Result.GONE)

    def _rows(self, kind: FollowedKind[Any], version: str = "") -> list[Any]:
        """`version`: another one than the kind's own."""
        resource = kind.resource
        if version:
            resource = msgspec.structs.replace(resource, version=version)
        return list(self._api.list_all(kind.reader(resource), kind.selection).rows.values())

    def _optional(self, kind: FollowedKind[Any]) -> list[Any]:
        """None of a kind that the cluster does not serve."""
        for version in kind.versions or ("",):
            with contextlib.suppress(NotFound):
                return self._rows(kind, version)
        return []


def _rows_of(found: list[Any] | Exception) -> list[Any]:
    """Raises the failure of a list."""
    if isinstance(found, NotFound):
        raise UserError("the cluster has no users and groups", _NOT_SERVED) from found
    if isinstance(found, Exception):
        raise found
    return found


def _without(old: Manifest, new: Manifest) -> Manifest:
    """What a merge patch must name to remove what only `old` has."""
    gone: Manifest = {key: None for key in old if key not in new}
    for key, each in old.items():
        other = new.get(key)
        if isinstance(each, dict) and isinstance(other, dict):
            gone[key] = {**other, **_without(each, other)}
    return gone


def _or_unknown(ask: Callable[[], str]) -> str:
    """The answer, or "" if the API server gives none."""
    try:
        return ask()
    except OutsideError:
        return ""
