"""Writes to nodes and jobs, carried out as the user who asks: the API server checks the rights too.

Specification: docs/spec/console.md#writing-nodes-and-jobs.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from fairlead.console.http.subjects import account_of
from fairlead.console.http.writing.frame import Blocked, PlannedWrite, Written, not_there
from fairlead.console.pages.writing.cluster_actions import (
    JobOrder,
    JobWritten,
    NodeOrder,
    NodeWritten,
)
from fairlead.console.pages.writing.preview import Deleted, Effect
from fairlead.errors import OutsideError
from fairlead.kinds.workloads import workload_of
from fairlead.model.actions import DeleteObject, ObjectRef, PatchObject
from fairlead.model.jobs.job import Job
from fairlead.model.records.audit import AuditTarget
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.ports import ClusterWrites
from fairlead.rules.quota.jobs.turning import resume_action, stop_action


async def plan_node(
    writes: ClusterWrites, seen: ClusterSnapshot, request: Request, body: Any
) -> PlannedWrite:
    """Cordon or uncordon a node."""
    order: NodeOrder = body
    name = request.path_params["name"]
    node = seen.node_by_name.get(name)
    if node is None:
        raise not_there("node", name, "look at the list of nodes")
    target = ObjectRef("v1", "Node", node.name, uid=node.uid, plural="nodes")
    account = account_of(request)

    async def act() -> Written:
        patch = {"spec": {"unschedulable": None if order.schedulable else True}}
        await writes.write(PatchObject(target, patch), account)
        return Written(NodeWritten(node.name, order.schedulable))

    return PlannedWrite(
        target=AuditTarget("Node", "", node.name),
        act=act,
        summary="schedulable" if order.schedulable else "unschedulable",
        effects=[Effect("update", "Node", "", node.name)],
    )


async def plan_job(writes: ClusterWrites, job: Job, request: Request, body: Any) -> PlannedWrite:
    """Suspend or resume a job."""
    order: JobOrder = body
    work = workload_of(job)
    account = account_of(request)
    action = stop_action(work) if order.suspended else resume_action(work)

    async def act() -> Written:
        await writes.write(action, account)
        return Written(JobWritten(job.namespace, job.type, job.name, order.suspended))

    return PlannedWrite(
        target=AuditTarget(job.kind, job.namespace, job.name),
        act=act,
        summary="suspended" if order.suspended else "resumed",
        blocked=_turn_blocked(job, order),
        effects=[Effect("update", job.kind, job.namespace, job.name)],
    )


def _turn_blocked(job: Job, order: JobOrder) -> Blocked | None:
    work = workload_of(job)
    if job.finished_at is not None:
        return Blocked(f"the {job.type} `{job.name}` has ended", "clone it to run it again")
    if not work.can_suspend:
        version = job.api_version.rpartition("/")[2]
        why = (
            f"a {job.kind} of `{version}` cannot be suspended"
            if job.can_suspend
            else f"the {job.type} `{job.name}` cannot be suspended as it is written"
        )
        return Blocked(why, "delete it instead")
    if not order.suspended and work.is_suspended and work.suspended_for:
        return Blocked(
            f"quota has suspended the job for {work.suspended_for}, and resumes it itself",
            "look at why it waits",
        )
    return None


async def plan_job_deletion(writes: ClusterWrites, job: Job, request: Request) -> PlannedWrite:
    """Delete a job with its pods."""
    target = ObjectRef(job.api_version, job.kind, job.name, job.namespace, job.uid)
    account = account_of(request)

    async def act() -> Written:
        await writes.write(DeleteObject(target), account)
        return Written(Deleted(job.name, is_ending=await _is_there(writes, target, account)))

    return PlannedWrite(
        target=AuditTarget(job.kind, job.namespace, job.name),
        act=act,
        summary="deleted",
        effects=[Effect("delete", job.kind, job.namespace, job.name)],
    )


async def _is_there(writes: ClusterWrites, target: ObjectRef, account: str) -> bool:
    """Whether the object of this uid still exists; finalizers may hold it."""
    try:
        found = await writes.read(target, account)
    except OutsideError:
        return False
    return bool(found.get("metadata", {}).get("uid") == target.uid)
