"""Actions on objects of any kind as requests to an API server, and the answers as outcomes.

Both writers use this module; it sends nothing. "Already exists" and "not found" are outcomes, not
failures: the caller decides what they mean.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from fairlead.edge.connection.decoders import decoder_of
from fairlead.edge.kube.api_discovery import Discovery
from fairlead.edge.kube.api_failure import NOT_JSON, ApiFailure
from fairlead.edge.kube.api_request import (
    ApiRequest,
    PatchKind,
    create_request,
    delete_request,
    encode_body,
    patch_request,
)
from fairlead.edge.kube.resource import JOBS, PODS, QUOTA_TREES, WELL_KNOWN, Resource
from fairlead.errors import FairleadError, OutsideError, UserError
from fairlead.model.actions import (
    Action,
    AdmitPod,
    BindPod,
    CreateObject,
    DeleteObject,
    EvictPod,
    ObjectAction,
    ObjectRef,
    Outcome,
    PatchObject,
    RecordEvent,
    RecordObjectEvent,
    Result,
    ScaleJob,
    SetPodCondition,
    TouchPod,
    WriteGrants,
    WriteTreeStatus,
    object_ref,
)
from fairlead.model.keys import (
    ANNOTATION_LOWERED,
    ANNOTATION_PARALLELISM,
    ANNOTATION_SUSPENDED_FOR,
    ANNOTATION_SUSPENDED_PRIORITY,
    QUOTA_GATE,
)
from fairlead.wire.kube.time import render_micro_time
from fairlead.wire.quota.tree_status import render_tree_status

_LOOK: Final = "check whether it exists: `arena list`"
_CERTAIN: Final = range(400, 500)


def target_of(action: ObjectAction) -> ObjectRef:
    return (
        object_ref(action.manifest, action.namespace, action.plural)
        if isinstance(action, CreateObject)
        else action.target
    )


def known_resource(target: ObjectRef, discovery: Discovery | None = None) -> Resource | None:
    """The resource of the target without a request: from the action, the well-known resources,
    or the given discovery.
    """
    group, version = target.group_version
    if target.plural:
        return Resource(group, version, target.plural, kind=target.kind)
    wanted = (group, version, target.kind)
    served: Iterable[Resource] = (
        (each.resource for each in discovery.served if "create" in each.verbs) if discovery else ()
    )
    return next(
        (
            each
            for each in (*WELL_KNOWN, *served)
            if (each.group, each.version, each.kind) == wanted
        ),
        None,
    )


def no_such_kind(target: ObjectRef) -> UserError:
    what = f"the cluster serves no {target.kind} of `{target.api_version}`"
    return UserError(what, "`kubectl api-resources` lists what it serves")


def object_request(action: ObjectAction, resource: Resource) -> ApiRequest:
    target = target_of(action)
    match action:
        case CreateObject():
            return create_request(
                resource,
                action.manifest,
                target.namespace,
                dry_run=action.is_trial,
                is_strict=action.is_strict,
            )
        case PatchObject():
            patch = action.patch
            # a precondition: another object's uid is immutable, and the API server refuses (422)
            if target.uid:
                patch = {**patch, "metadata": {**patch.get("metadata", {}), "uid": target.uid}}
            way: PatchKind = "strategic" if action.is_strategic else "merge"
            return patch_request(
                resource,
                target.name,
                patch,
                target.namespace,
                kind=way,
                subresource=action.subresource or None,
            )
        case DeleteObject():
            return delete_request(resource, target.name, target.namespace, uid=target.uid)


def pod_request(action: AdmitPod | EvictPod | SetPodCondition) -> ApiRequest:
    """The request; it names the pod by uid, so that a later pod of the same name is not touched."""
    target = action.target
    match action:
        case AdmitPod():
            place = f"/spec/schedulingGates/{action.gate}"
            patch = [
                {"op": "test", "path": "/metadata/uid", "value": target.uid},
                {"op": "test", "path": f"{place}/name", "value": QUOTA_GATE},
                {"op": "remove", "path": place},
            ]
            return patch_request(PODS, target.name, patch, target.namespace, kind="json")
        case EvictPod():
            options: dict[str, Any] = {"preconditions": {"uid": target.uid}}
            if action.grace_seconds is not None:
                options["gracePeriodSeconds"] = action.grace_seconds
            if action.is_trial:
                options["dryRun"] = ["All"]
            meta = {"name": target.name, "namespace": target.namespace}
            eviction = {
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": meta,
                "deleteOptions": options,
            }
            return ApiRequest(
                "create",
                "POST",
                PODS.path(target.namespace, target.name, "eviction"),
                encode_body(eviction),
            )
        case SetPodCondition():
            suspend_mark = action.condition
            at = (
                {}
                if suspend_mark.at is None
                else {"lastTransitionTime": render_micro_time(suspend_mark.at)[:19] + "Z"}
            )
            condition = {
                "type": suspend_mark.type,
                "status": suspend_mark.status,
                "reason": suspend_mark.reason,
                "message": suspend_mark.message,
                **at,
            }
            body = {"metadata": {"uid": target.uid}, "status": {"conditions": [condition]}}
            return patch_request(
                PODS, target.name, body, target.namespace, kind="strategic", subresource="status"
            )


def scale_request(action: ScaleJob) -> ApiRequest:
    """A JSON patch that tests the values that it changes, to detect a concurrent change."""
    target = action.target
    patch: list[dict[str, Any]] = [
        {"op": "test", "path": "/metadata/uid", "value": target.uid},
        {"op": "test", "path": "/spec/parallelism", "value": action.before},
        {"op": "replace", "path": "/spec/parallelism", "value": action.count},
    ]
    if action.is_resumed:
        patch += [
            {"op": "test", "path": "/spec/suspend", "value": True},
            {"op": "replace", "path": "/spec/suspend", "value": False},
        ]
    if not action.has_annotations:
        patch.append({"op": "test", "path": "/metadata/annotations", "value": None})
        patch.append({"op": "add", "path": "/metadata/annotations", "value": {}})
    is_own = action.count == action.own
    marks: dict[str, str | None] = {
        ANNOTATION_PARALLELISM: None if is_own else str(action.own),
        ANNOTATION_LOWERED: None if is_own else str(action.count),
        ANNOTATION_SUSPENDED_PRIORITY: str(action.priority)
        if action.priority and not is_own
        else None,
    }
    if action.is_resumed:
        marks[ANNOTATION_SUSPENDED_FOR] = None
    for key, value in marks.items():
        place = "/metadata/annotations/" + key.replace("/", "~1")
        patch.append({"op": "add", "path": place, "value": value or ""})
        if value is None:  # an absent value cannot be removed, so it is added first
            patch.append({"op": "remove", "path": place})
    return patch_request(JOBS, target.name, patch, target.namespace, kind="json")


def tree_status_request(action: WriteTreeStatus) -> ApiRequest:
    """A JSON patch of the tree's status that tests the uid.

    With a merge patch the API server does not check the uid of a custom object.
    """
    tree = action.tree
    patch = [
        {"op": "test", "path": "/metadata/uid", "value": tree.uid},
        {"op": "add", "path": "/status", "value": render_tree_status(action)},
    ]
    return patch_request(
        QUOTA_TREES, tree.name, patch, tree.namespace, kind="json", subresource="status"
    )


def outcome_of_answer(action: ObjectAction, body: bytes) -> Outcome:
    """The outcome of an answer with a good status and this `body`."""
    if isinstance(action, DeleteObject):
        return Outcome()
    try:
        answer = decoder_of(Any).decode(body)
    except NOT_JSON:
        answer = None
    if not isinstance(answer, dict) or not isinstance(answer.get("metadata"), dict):
        kind = target_of(action).kind
        done = "made" if isinstance(action, CreateObject) else "changed"
        failure = OutsideError(
            "kubernetes",
            f"the API server {done} a {kind} and answered with something else",
            _LOOK,
        )
        return Outcome(Result.UNKNOWN, failure.what, failure=failure)
    return Outcome(made=answer)


def not_sent(error: FairleadError) -> Outcome:
    """The outcome of a failure before anything was sent: the object's resource is unknown."""
    return Outcome(Result.REFUSED, error.what, failure=error)


def outcome_of_failure(action: Action, error: FairleadError) -> Outcome:
    """The outcome of a failure; no answer to a write does not mean that it was not done.

    Only an answer of the API server is certain: after a time-out, a lost connection or a 5xx the
    outcome is UNKNOWN, and also for "already assigned", perhaps by an earlier attempt of this
    process.
    """
    if not isinstance(error, ApiFailure):
        return Outcome(Result.UNKNOWN, error.what, failure=error)
    result = Result.UNKNOWN
    if isinstance(action, CreateObject) and error.reason == "AlreadyExists":
        result = Result.THERE
    elif _is_gone(action, error):
        result = Result.GONE
    elif (
        error.status in _CERTAIN and error.status != 408 and "already assigned" not in error.message
    ):
        result = Result.REFUSED
    return Outcome(result, error.message, failure=error, is_busy=error.status == 429)


def _is_gone(action: Action, error: ApiFailure) -> bool:
    """Whether the object does not exist, or a later one has its name."""
    match action:
        case CreateObject() | BindPod() | RecordEvent() | RecordObjectEvent():
            return False
        case (
            PatchObject()
            | WriteGrants()
            | TouchPod()
            | AdmitPod()
            | ScaleJob()
            | SetPodCondition()
            | WriteTreeStatus()
        ):
            return error.status == 404 or (
                error.status == 422 and "metadata.uid: " in error.message
            )
        case DeleteObject() | EvictPod():
            return error.status == 404 or (
                error.status == 409 and "precondition" in error.message.lower()
            )
