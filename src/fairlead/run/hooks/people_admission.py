"""Admission of users, groups and their tokens as a hook of the simulated cluster.

In a real cluster the admission webhook judges users and groups, and the policy `fairlead-renewal`
the tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

import msgspec

from fairlead.model.access import account_name
from fairlead.model.people.record import PeopleRecord
from fairlead.model.people.renewal import RENEWAL_POLICY
from fairlead.model.people.rights import CREDENTIALS_ROLE
from fairlead.model.refusal import Refusal
from fairlead.rules.people.refusals import refuse_group_write, refuse_user_write
from fairlead.rules.people.renewal import refuse_token
from fairlead.rules.people.wanted import binding_of
from fairlead.run.hooks.quota_admission import denied
from fairlead.settings import USERS_NAMESPACE
from fairlead.wire.names import PEOPLE_GROUP, USER_GROUPS, USERS
from fairlead.wire.people.people_objects import WirePerson, parse_group, parse_user
from fairlead.wire.quota.elastic_quota import WireQuotaTree, parse_quota_tree
from fairlead_sim.objects.resources import ELASTIC_QUOTA_TREES, ROLE_BINDINGS, SERVICE_ACCOUNTS
from fairlead_sim.store.admission import DELETE, Write
from fairlead_sim.store.cluster import StoredCluster

_PREFIX: Final = account_name(USERS_NAMESPACE, "")
_people: Final = msgspec.json.Decoder(WirePerson)
_trees: Final = msgspec.json.Decoder(WireQuotaTree)
Object = dict[str, Any]
Row = TypeVar("Row")


class PeoplePolicies:
    """Called before a write is stored; raises the ApiStatus that refuses it."""

    def __init__(self, cluster: StoredCluster) -> None:
        self._cluster = cluster

    def __call__(self, write: Write) -> Object:
        if write.subresource == "token" and write.ref is SERVICE_ACCOUNTS:
            self._token(write)
        elif write.ref.group == PEOPLE_GROUP and write.user and not write.subresource:
            self._person(write)
        return write.new

    def _person(self, write: Write) -> None:
        """What a part of the cluster writes itself, and what changes no spec, is not judged."""
        old, new = write.old, None if write.verb == DELETE else write.new
        if old is not None and new is not None and old.get("spec") == new.get("spec"):
            return
        refusal: Refusal | None = None
        if write.ref.plural == USERS:
            before, after = _row(old, parse_user), _row(new, parse_user)
            refusal = refuse_user_write(before, after, self._record(write.user))
        elif write.ref.plural == USER_GROUPS:
            group, changed = _row(old, parse_group), _row(new, parse_group)
            refusal = refuse_group_write(group, changed, self._record(write.user))
        if refusal is not None:
            message = f'admission webhook "people.fairlead.io" denied the request: {refusal.reason}'
            raise denied(write.ref, _name(write.new), message)

    def _record(self, me: str) -> PeopleRecord:
        trees = self._cluster.scan(ELASTIC_QUOTA_TREES)
        tree = next(
            (parse_quota_tree(_trees.decode(msgspec.json.encode(each))) for each in trees), None
        )
        return PeopleRecord(
            {each.name: each for each in self._rows(USERS, parse_user)},
            {each.name: each for each in self._rows(USER_GROUPS, parse_group)},
            tree,
            me=me,
        )

    def _rows(self, plural: str, parse: Callable[[WirePerson], Row]) -> Iterator[Row]:
        for ref in self._cluster.kinds():
            if (ref.group, ref.plural) == (PEOPLE_GROUP, plural):
                for each in self._cluster.scan(ref):
                    yield parse(_people.decode(msgspec.json.encode(each)))

    def _token(self, write: Write) -> None:
        account = write.old or {}
        place = account.get("metadata", {}).get("namespace", "")
        if not write.user.startswith(_PREFIX) or self._issues(write.user.removeprefix(_PREFIX)):
            return
        spec = write.new.get("spec") or {}
        bound = spec.get("boundObjectRef") or {}
        refusal = refuse_token(
            write.user,
            account_name(place, _name(account)),
            (str(bound.get("kind", "")), str(bound.get("uid", ""))),
            int(spec.get("expirationSeconds") or 0),
        )
        if refusal is not None:
            message = (
                f"ValidatingAdmissionPolicy '{RENEWAL_POLICY}' with binding '{RENEWAL_POLICY}' "
                f"denied request: {refusal.reason}"
            )
            raise denied(write.ref, _name(account), message)

    def _issues(self, user: str) -> bool:
        """Whether the user may issue credentials."""
        name = binding_of(user, USERS_NAMESPACE, USERS_NAMESPACE, CREDENTIALS_ROLE).name
        return self._cluster.get(ROLE_BINDINGS, USERS_NAMESPACE, name) is not None


def _row(obj: Object | None, parse: Callable[[WirePerson], Row]) -> Row | None:
    return None if obj is None else parse(_people.decode(msgspec.json.encode(obj)))


def _name(obj: Object) -> str:
    return str((obj.get("metadata") or {}).get("name", ""))
