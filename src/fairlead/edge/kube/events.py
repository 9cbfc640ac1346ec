"""Events that Fairlead records about objects, as requests to an API server."""

from __future__ import annotations

from typing import Final

from fairlead.edge.kube.api_request import ApiRequest, create_request
from fairlead.edge.kube.resource import EVENTS
from fairlead.model.actions import ObjectRef, RecordEvent, RecordObjectEvent
from fairlead.model.pod import Pod
from fairlead.wire.kube.time import render_micro_time

SCHEDULER: Final = "fairlead-scheduler"
QUOTA_CONTROLLER: Final = "fairlead-quota-controller"


def event_request(action: RecordEvent, now: float) -> ApiRequest:
    """A warning about a pod or a node. `now`: epoch seconds."""
    subject = action.subject
    is_pod = isinstance(subject, Pod)
    namespace = subject.namespace if isinstance(subject, Pod) else ""
    target = ObjectRef("v1", "Pod" if is_pod else "Node", subject.name, namespace, subject.uid)
    return _request(target, "Warning", action.reason, action.message, SCHEDULER, now)


def object_event_request(action: RecordObjectEvent, now: float) -> ApiRequest:
    return _request(
        action.target, action.type, action.reason, action.message, QUOTA_CONTROLLER, now
    )


def _request(
    target: ObjectRef, kind: str, reason: str, message: str, component: str, now: float
) -> ApiRequest:
    """`now` is part of the name, as in client-go. Text that is too long is cut."""
    namespace = target.namespace or "default"
    at = render_micro_time(now)
    about = {
        "kind": target.kind,
        "apiVersion": target.api_version,
        "name": target.name,
        "uid": target.uid,
    }
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{target.name[:200]}.{round(now * 1e9):x}", "namespace": namespace},
        "involvedObject": {**about, **({"namespace": namespace} if target.namespace else {})},
        "reason": reason,
        "message": message[:1024],
        "type": kind,
        "source": {"component": component},
        "firstTimestamp": at[:19] + "Z",
        "lastTimestamp": at[:19] + "Z",
        "count": 1,
    }
    return create_request(EVENTS, event, namespace)
