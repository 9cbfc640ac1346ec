"""What the people controller knows of the cluster: rows by name, kept current by lists and watches.

`shown` gets the key of each object that a list or a watch has shown, so that the decider knows when
the effect of its own call is seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from fairlead.model.changes import KIND_NAMESPACES, KIND_QUOTA_TREES, Changes
from fairlead.model.people.rows import (
    KIND_CLUSTER_ROLE_BINDINGS,
    KIND_GROUPS,
    KIND_ROLE_BINDINGS,
    KIND_SERVICE_ACCOUNTS,
    KIND_USERS,
    User,
    UserBinding,
    UserGroup,
    UserServiceAccount,
    UserWork,
)
from fairlead.model.quota.rows import Namespace
from fairlead.model.quota.tree import QuotaTree

ALWAYS_FOLLOWED: Final = (
    KIND_USERS,
    KIND_GROUPS,
    KIND_QUOTA_TREES,
    KIND_NAMESPACES,
    KIND_SERVICE_ACCOUNTS,
    KIND_ROLE_BINDINGS,
    KIND_CLUSTER_ROLE_BINDINGS,
)
WorkCount = tuple[str, str]
"""(namespace, kind) of unfinished pods and jobs."""


class PeopleFeed:
    """`work_kinds`: names of the kinds whose rows are `UserWork`. `shown`: called with the kind,
    namespace and name of each object that was added, changed or removed.
    """

    def __init__(self, work_kinds: Collection[str], shown: Callable[[str, str, str], None]) -> None:
        self._kinds = (*ALWAYS_FOLLOWED, *work_kinds)
        self._work_kinds = tuple(work_kinds)
        self._shown = shown
        self._rows: dict[str, dict[str, Any]] = {kind: {} for kind in self._kinds}
        self._listed: set[str] = set()

    @property
    def is_complete(self) -> bool:
        """Whether each kind was listed since the last `rebuild`."""
        return len(self._listed) == len(self._kinds)

    def rebuild(self) -> None:
        self._listed.clear()

    def observe(self, changes: Changes[Any]) -> None:
        """Take a list or a change; kinds that the controller does not follow are an error."""
        known = self._rows[changes.kind]
        if changes.is_list:
            rows = changes.all_rows()
            for uid in changes.unreadable:
                if uid in known:
                    rows[uid] = known[uid]
            self._rows[changes.kind] = rows
            self._listed.add(changes.kind)
            return
        for uid, row in changes.rows.items():
            before = known.pop(uid, None)
            if row is not None:
                known[uid] = row
            named = row if row is not None else before
            if named is not None:
                self._shown(changes.kind, getattr(named, "namespace", ""), named.name)

    # --- views ------------------------------------------------------------------------------------

    def users(self) -> dict[str, User]:
        return {each.name: each for each in self._rows[KIND_USERS].values()}

    def groups(self) -> dict[str, UserGroup]:
        return {each.name: each for each in self._rows[KIND_GROUPS].values()}

    def tree(self) -> QuotaTree | None:
        return next(iter(self._rows[KIND_QUOTA_TREES].values()), None)

    def namespaces(self) -> frozenset[str]:
        """Those that exist and are not being deleted."""
        rows: Collection[Namespace] = self._rows[KIND_NAMESPACES].values()
        return frozenset(each.name for each in rows if not each.is_ending)

    def service_accounts(self) -> dict[str, UserServiceAccount]:
        return {each.name: each for each in self._rows[KIND_SERVICE_ACCOUNTS].values()}

    def bindings(self) -> dict[tuple[str, str], UserBinding]:
        """By namespace and name; the namespace of a ClusterRoleBinding is ""."""
        return {
            (each.namespace, each.name): each
            for kind in (KIND_ROLE_BINDINGS, KIND_CLUSTER_ROLE_BINDINGS)
            for each in self._rows[kind].values()
        }

    def work(self) -> dict[str, Mapping[WorkCount, int]]:
        """Unfinished pods and jobs of each user."""
        found: dict[str, Counter[WorkCount]] = {}
        for kind in self._work_kinds:
            rows: Collection[UserWork] = self._rows[kind].values()
            for each in rows:
                if not each.is_finished:
                    found.setdefault(each.user, Counter())[each.namespace, each.kind] += 1
        return dict(found)
