"""The writes of the cluster: what each endpoint plans for the frame of `http/writing`."""

from __future__ import annotations

from typing import Any, Final

from starlette.requests import Request

from fairlead.console.http.routes.components import read_components
from fairlead.console.http.routes.console import (
    Console,
    Planning,
    cluster_writes,
    from_api_server,
    job_forms,
    sign_in_desk,
    states_of,
    usage_ledger,
)
from fairlead.console.http.routes.datasets import read_data
from fairlead.console.http.routes.jobs import named_job
from fairlead.console.http.routes.operations import operation_desk
from fairlead.console.http.writing.cluster_actions import (
    plan_job,
    plan_job_deletion,
    plan_node,
)
from fairlead.console.http.writing.components import ComponentPlans
from fairlead.console.http.writing.data_sources import plan_data_set
from fairlead.console.http.writing.data_workers import plan_scale
from fairlead.console.http.writing.datasets import DataPlans
from fairlead.console.http.writing.frame import PlannedWrite
from fairlead.console.http.writing.jobs import Submitting
from fairlead.console.http.writing.operations import plan_cancel, plan_retry, plan_start
from fairlead.console.http.writing.prices import plan_price
from fairlead.console.http.writing.quota_tree import plan_tree
from fairlead.console.http.writing.store_password import StorePasswords


async def plan_quota_tree(console: Console, request: Request, body: Any) -> PlannedWrite:
    board_state = await console.board_states.latest("quota")
    return await plan_tree(
        cluster_writes(console), sign_in_desk(console), board_state, request, body
    )


async def plan_node_change(console: Console, request: Request, body: Any) -> PlannedWrite:
    board_state = await console.board_states.latest()
    return await plan_node(cluster_writes(console), board_state.snapshot, request, body)


async def plan_job_change(console: Console, request: Request, body: Any) -> PlannedWrite:
    _, each, _ = await named_job(console, request)
    return await plan_job(cluster_writes(console), each.job, request, body)


async def plan_deletion_of_job(console: Console, request: Request, body: Any) -> PlannedWrite:
    _, each, _ = await named_job(console, request)
    return await plan_job_deletion(cluster_writes(console), each.job, request)


async def plan_new_job(console: Console, request: Request, body: Any) -> PlannedWrite:
    tools = Submitting(cluster_writes(console), job_forms(console))
    board_state = await states_of(console, request).latest("offers", "jobs")
    return await tools.plan(board_state, request, body)


async def plan_own_user(console: Console, request: Request, body: Any) -> PlannedWrite:
    return await console.plans.create_own_user(request, body, sign_in_desk(console).renewed)


def data_plans(console: Console) -> DataPlans:
    return DataPlans(read_data(console), operation_desk(console))


def component_plans(console: Console) -> ComponentPlans:
    desk = operation_desk(console)
    return ComponentPlans(read_components(console), desk, console.world.installation)


def store_passwords(console: Console) -> StorePasswords:
    world = console.world
    without = "no password can be written"
    return StorePasswords(
        from_api_server(console, world.stores, without),
        from_api_server(console, world.installation, without),
        from_api_server(console, world.operated, without),
    )


PLANS: Final[dict[str, Planning]] = {
    "change_node": plan_node_change,
    "create_job": plan_new_job,
    "change_job": plan_job_change,
    "delete_job": plan_deletion_of_job,
    "write_quota_tree": plan_quota_tree,
    "add_dataset": lambda console, request, body: plan_data_set(data_plans(console), request, body),
    "accelerate": lambda console, request, body: data_plans(console).accelerate(request, body),
    "unaccelerate": lambda console, request, _: data_plans(console).unaccelerate(request),
    "preheat": lambda console, request, body: data_plans(console).preheat(request, body),
    "plan_component": lambda console, request, body: component_plans(console).plan(request, body),
    "write_store_password": lambda console, _, body: store_passwords(console).plan(body),
    "plan_components": lambda console, request, body: component_plans(console).plan_several(
        request, body
    ),
    "scale_dataset": lambda console, request, body: plan_scale(
        data_plans(console), cluster_writes(console), request, body
    ),
    "start_operation": lambda console, request, body: plan_start(
        operation_desk(console), request, body
    ),
    "cancel_operation": lambda console, request, _: plan_cancel(operation_desk(console), request),
    "retry_operation": lambda console, request, _: plan_retry(operation_desk(console), request),
    "add_price": lambda console, request, body: plan_price(
        usage_ledger(console), request, body, console.now_ms()
    ),
    "create_user": lambda console, request, body: console.plans.create_user(request, body),
    "create_own_user": plan_own_user,
    "change_user": lambda console, request, body: console.plans.change_user(request, body),
    "delete_user": lambda console, request, body: console.plans.delete_user(request, body),
    "create_group": lambda console, request, body: console.plans.create_group(request, body),
    "change_group": lambda console, request, body: console.plans.change_group(request, body),
    "delete_group": lambda console, request, body: console.plans.delete_group(request, body),
    **{
        name: lambda console, request, body: console.credential_plans.issue_token(request, body)
        for name in ("issue_token", "issue_my_token")
    },
    **{
        name: lambda console, request, body: console.credential_plans.issue_kubeconfig(
            request, body
        )
        for name in ("issue_kubeconfig", "issue_my_kubeconfig")
    },
    **{
        name: lambda console, request, body: console.credential_plans.revoke(request, body)
        for name in ("revoke_token", "revoke_my_token")
    },
    "revoke_tokens": lambda console, request, body: console.credential_plans.revoke_all(
        request, body
    ),
}
"""The writes of the cluster, by the name of their endpoint."""
