"""What the verbs about components share: the cluster that they ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.cli.frame.context import ClusterComponents, Context
from fairlead.cli.frame.object_names import NO_API_SERVER_HINT
from fairlead.errors import OutsideError, UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.model.installed.component_facts import ComponentFacts
    from fairlead.model.operations.component import Component


def components_of(context: Context) -> ClusterComponents:
    """Raises UserError without an API server."""
    found = context.world.components()
    if found is None:
        raise UserError("there is no API server to ask for components", NO_API_SERVER_HINT)
    return found


def facts_of(
    context: Context, components: Sequence[Component], *, with_running: bool = True
) -> ComponentFacts:
    """What the cluster has of these components. `with_running`: with the operations that run."""
    from fairlead.rules.components.state import with_operations

    facts = components_of(context).facts(components)
    operations = context.world.operations() if with_running else None
    if operations is None:
        return facts
    try:
        return with_operations(facts, operations.list())
    except OutsideError as error:
        context.messages.warn(f"operations that run are not shown: {error.what}")
        return facts
