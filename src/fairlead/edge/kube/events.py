"""Warning Events of ours about a pod or a node, as requests to an API server."""

from __future__ import annotations

from typing import Final

from fairlead.edge.kube.api_request import ApiRequest, create_request
from fairlead.edge.kube.resource import EVENTS
from fairlead.model.actions import TellEvent
from fairlead.model.pod import Pod
from fairlead.wire.kube.time import render_micro_time

COMPONENT: Final = "fairlead-scheduler"


def event_request(told: TellEvent, now: float) -> ApiRequest:
    """`now`: epoch seconds, which stand in the name, as client-go writes them there.

    Too long words are cut.
    """
    subject = told.subject
    is_pod = isinstance(subject, Pod)
    namespace = subject.namespace if isinstance(subject, Pod) else "default"
    at = render_micro_time(now)
    about = {"kind": "Pod" if is_pod else "Node", "apiVersion": "v1", "name": subject.name, "uid": subject.uid}
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{subject.name[:200]}.{round(now * 1e9):x}", "namespace": namespace},
        "involvedObject": {**about, **({"namespace": namespace} if is_pod else {})},
        "reason": told.reason,
        "message": told.message[:1024],
        "type": "Warning",
        "source": {"component": COMPONENT},
        "firstTimestamp": at[:19] + "Z",
        "lastTimestamp": at[:19] + "Z",
        "count": 1,
    }
    return create_request(EVENTS, event, namespace)
