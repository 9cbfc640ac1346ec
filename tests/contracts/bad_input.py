"""The form of a bad request: a name, the request, and what is compared of the answers.
`bad_bodies`, `bad_objects`, `bad_requests` list them.

`{s}` in paths, bodies and queries is the case's namespace. Every case finds there the objects of
`there` and leaves nothing behind.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.contracts.api_client import ApiClient
from tests.contracts.objects import Object, config_map, deployment, job, pod

MAPS = "/api/v1/namespaces/{s}/configmaps"
PODS = "/api/v1/namespaces/{s}/pods"
SERVICES = "/api/v1/namespaces/{s}/services"
SECRETS = "/api/v1/namespaces/{s}/secrets"
CLAIMS = "/api/v1/namespaces/{s}/persistentvolumeclaims"
DEPLOYMENTS = "/apis/apps/v1/namespaces/{s}/deployments"
JOBS = "/apis/batch/v1/namespaces/{s}/jobs"
CRON_JOBS = "/apis/batch/v1/namespaces/{s}/cronjobs"
BUDGETS = "/apis/policy/v1/namespaces/{s}/poddisruptionbudgets"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"

A_MAP: tuple[str, Object] = (MAPS, config_map(data={"a": "1"}))
A_POD: tuple[str, Object] = (PODS, pod(labels={"x": "y"}))
A_DEPLOYMENT: tuple[str, Object] = (DEPLOYMENTS, deployment())
A_JOB: tuple[str, Object] = (JOBS, job())


@dataclass(frozen=True)
class Bad:
    """`is_worded`: messages are compared, too; not where they contain what differs by nature (whole
    objects, names of Go types, versions).
    """

    name: str
    method: str
    path: str
    body: Any = None
    query: Mapping[str, Any] = field(default_factory=dict)
    media: str | None = None
    accept: str | None = None
    there: tuple[str, Object] | None = None
    is_worded: bool = True

    def __str__(self) -> str:
        return f"{self.name}".replace(" ", "-")[:60]


def named(make: Callable[[str, Any], Bad], cases: Mapping[str, Any]) -> tuple[Bad, ...]:
    """One case per entry; the messages of a case whose name begins with `~` are not compared."""
    made = [(name.startswith("~"), make(name.lstrip("~"), value)) for name, value in cases.items()]
    return tuple(Bad(**{**vars(case), "is_worded": not is_free}) for is_free, case in made)


def answer(api: ApiClient, case: Bad, space: str) -> tuple[Any, ...]:
    """(status, reason, message, warning) of a case, without what names the namespace."""

    def placed(value: Any) -> Any:
        return json.loads(json.dumps(value).replace("{s}", space))

    if case.there:
        made = api.post(placed(case.there[0]), case.there[1])
        assert made.status == 201, made.message
    path = placed(case.path)
    body = case.body if case.body is None or isinstance(case.body, bytes) else placed(case.body)
    headers = {
        **({"Content-Type": case.media} if case.media is not None else {}),
        **({"Accept": case.accept} if case.accept else {}),
    }
    reported = api.ask(case.method, path, body, query=placed(case.query), headers=headers)
    is_bad = reported.status >= 400
    message = reported.message.replace(space, "{s}") if is_bad and case.is_worded else ""
    return (
        reported.status,
        reported.reason if is_bad else "",
        message,
        reported.headers.get("warning", "") if case.is_worded else "",
    )


def clean(api: ApiClient, case: Bad, space: str) -> None:
    """Delete what the case may have created, at once: by default a Job waits for the garbage
    collector.
    """
    for collection in {case.path, *(case.there[:1] if case.there else ())}:
        head, _, _ = collection.partition("?")
        root = (
            "/".join(head.split("/")[:7])
            if head.startswith("/apis")
            else "/".join(head.split("/")[:6])
        )
        if "{s}" in root:
            api.delete(
                root.replace("{s}", space), gracePeriodSeconds=0, propagationPolicy="Background"
            )
