"""The number of workers of a data set, changed as the user who asks.

Specification: docs/spec/console.md#writing-data-sets.
"""

from __future__ import annotations

from starlette.requests import Request

from fairlead.console.boards.data.dataset_rows import DATA_SET
from fairlead.console.http.subjects import account_of
from fairlead.console.http.writing.datasets import (
    MOST_WORKERS,
    DataPlans,
    command_line,
    fault_of,
    shown_checks,
)
from fairlead.console.http.writing.frame import PlannedWrite, Written, invalid, not_there
from fairlead.console.pages.data.datasets import DataSetScaled, ScaleOrder, ScalePreview
from fairlead.console.pages.envelope import FieldFault
from fairlead.console.pages.writing.preview import Effect
from fairlead.model.actions import PatchObject
from fairlead.model.installed.finding import State
from fairlead.model.operations.data_parts import fluid_ref
from fairlead.model.records.audit import AuditTarget
from fairlead.ports import ClusterWrites
from fairlead.rules.data.plans import data_set_subject
from fairlead.rules.data.scale import check_scale


async def plan_scale(
    plans: DataPlans, writes: ClusterWrites, request: Request, order: ScaleOrder
) -> PlannedWrite:
    """More workers, or fewer. Raises Refused: 404 for an unknown data set, 422 for a number that is
    none.
    """
    namespace, name = (request.path_params[key][:253] for key in ("namespace", "name"))
    if not 1 <= order.workers <= MOST_WORKERS:
        what = f"`{order.workers}` is no number of workers: 1 to {MOST_WORKERS}"
        raise invalid([FieldFault("workers", "workers", what)])
    facts = await plans.data.facts(namespace, "", name)
    data_set = next((each for each in facts.data_sets if each.name == name), None)
    if data_set is None:
        raise not_there("data set", f"{namespace}/{name}", "look at the list of data sets")
    runtimes = [each for each in facts.runtimes if each.name == name]
    found = check_scale(data_set, runtimes, facts.claims, facts.nodes, order.workers)
    failed = [fault_of(each) for each in found if each.state is State.FAIL]
    blocked = await plans.blocked(
        failed, data_set_subject(namespace, name), f"`{name}` is not scaled"
    )
    moved = [each for each in runtimes if each.replicas != order.workers]
    effects = [Effect("update", each.kind, namespace, name) for each in moved]
    account = account_of(request)

    async def act() -> Written:
        for each in moved:
            target = fluid_ref(each.kind, namespace, name, each.uid)
            patch = {"spec": {"replicas": order.workers}}
            await writes.write(PatchObject(target, patch), account)
        plans.data.wrote()
        return Written(DataSetScaled(namespace, name, order.workers))

    words = ["fairlead", "dataset", "scale", name, "-n", namespace]
    return PlannedWrite(
        target=AuditTarget(DATA_SET, namespace, name),
        act=act,
        summary="workers",
        blocked=blocked,
        effects=effects,
        preview=ScalePreview(
            valid=blocked is None,
            fields=list(blocked.fields) if blocked is not None else [],
            effects=effects if blocked is None else [],
            checks=shown_checks(found),
            line=command_line([*words, "--workers", str(order.workers)]),
        ),
    )
