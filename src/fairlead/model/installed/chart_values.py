"""What an operator chooses about a release of Fairlead's Helm chart."""

from __future__ import annotations

from msgspec import Struct

from fairlead.model.installation import Installation


class Definitions(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The definitions of the quota tree, of users and of groups.

    `enabled`: False = the release has none; another program brings them. `keep`: they stay when the
    release goes, and with them all trees, users and groups.
    """

    enabled: bool = True
    keep: bool = True


class Uninstalling(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """`release_waiting`: what waits for quota goes on without it; else it prevents the end."""

    release_waiting: bool = False


class UsersNamespace(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """`create`: False = `kube-ai` exists already, and is not the release's."""

    create: bool = True


class ChartValues(Installation, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The values of an installation, and what only Helm needs to know."""

    crds: Definitions = Definitions()
    users_namespace: UsersNamespace = UsersNamespace()
    uninstall: Uninstalling = Uninstalling()
