"""What an operator chooses about a release of Fairlead's Helm chart."""

from __future__ import annotations

from msgspec import Struct

from fairlead.model.installation import Installation


class Definitions(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The definition of the quota tree.

    `enabled`: False = the release has none; another program brings it. `keep`: it stays when the
    release goes, and with it all trees.
    """

    enabled: bool = True
    keep: bool = True


class Uninstalling(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """`release_waiting`: what waits for quota goes on without it; else it prevents the end."""

    release_waiting: bool = False


class ChartValues(Installation, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The values of an installation, and what only Helm needs to know."""

    crds: Definitions = Definitions()
    uninstall: Uninstalling = Uninstalling()
