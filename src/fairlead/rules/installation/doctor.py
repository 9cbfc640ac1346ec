"""Whether an installation is sound, or a cluster ready for one: all checks of `fairlead doctor`."""

from __future__ import annotations

from fairlead.model.installed.facts import InstallationFacts
from fairlead.model.installed.finding import Finding
from fairlead.rules.installation.cluster_checks import check_cluster
from fairlead.rules.installation.console_checks import check_console
from fairlead.rules.installation.installed_checks import check_installed
from fairlead.rules.installation.node_checks import check_nodes


def examine(facts: InstallationFacts) -> list[Finding]:
    """A finding for each check. Without an installation, those of a cluster that may get one."""
    return [
        *check_cluster(facts),
        *check_console(facts),
        *check_nodes(facts),
        *check_installed(facts),
    ]
