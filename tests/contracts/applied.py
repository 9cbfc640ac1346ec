"""Writes of one object, sent to both API servers, and what of their answers must be the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final, NamedTuple

from tests.contracts.api_client import APPLY, Answer, ApiClient

MAPS: Final = "/api/v1/namespaces/{s}/configmaps"
SERVICES: Final = "/api/v1/namespaces/{s}/services"
DEPLOYMENTS: Final = "/apis/apps/v1/namespaces/{s}/deployments"

Object = dict[str, Any]


class Step(NamedTuple):
    """One request for the object of a case. `how`: a patch's media type, `POST`, `PUT` or
    `DELETE`; a PUT sends the stored object with the top-level fields of `body`.
    """

    how: str
    by: str
    body: Any = None
    subresource: str = ""
    query: Mapping[str, str] = {}


class Case(NamedTuple):
    """Requests for one object: `path` is that of its kind in a namespace (`{s}`)."""

    path: str
    steps: Sequence[Step]


def applying(by: str, body: Object, *, force: bool = False, to: str = "", **query: str) -> Step:
    forced = {"force": "true"} if force else {}
    return Step(APPLY, by, body, to, {**forced, **query})


def differing(simulated: Any, real: Any, place: str = "") -> Iterator[str]:
    """Where two answers differ, and how."""
    if isinstance(simulated, dict) and isinstance(real, dict):
        for key in {**simulated, **real}:
            yield from differing(
                simulated.get(key, "absent"), real.get(key, "absent"), f"{place}/{key}"
            )
    elif isinstance(simulated, list | tuple) and isinstance(real, list | tuple):
        for index, (one, other) in enumerate(zip_longest(simulated, real, fillvalue="absent")):
            yield from differing(one, other, f"{place}/{index}")
    elif simulated != real:
        yield f"{place}: simulated {simulated!r}, real {real!r}"


def reported_owners(api: ApiClient, space: str, case: Case) -> list[Any]:
    """The answer to each step, and the owners of the stored object after it."""
    path = f"{case.path.replace('{s}', space)}/a"
    reported = []
    try:
        for step in case.steps:
            reported += reported_step(api, space, path, step)
    finally:
        api.patch(path, {"metadata": {"finalizers": None}})
        api.delete(path, gracePeriodSeconds=0)
    return reported


def reported_step(api: ApiClient, space: str, path: str, step: Step) -> list[Any]:
    seen = _seen(_asked(api, path, step), space)
    stored = api.get(path)
    return [seen, _owners(stored.body) if stored.status == 200 else stored.status]


def _asked(api: ApiClient, path: str, step: Step) -> Answer:
    query = {**({"fieldManager": step.by} if step.by else {}), **step.query}
    headers = {"User-Agent": "program/v1 (os)", "Content-Type": "application/json"}
    if step.how == "DELETE":
        return api.delete(path, gracePeriodSeconds=0)
    if step.how == "POST":
        return api.ask("POST", path.removesuffix("/a"), step.body, query=query, headers=headers)
    if step.how == "PUT":
        return api.put(path, {**api.get(path).body, **step.body}, **query)
    at = f"{path}/{step.subresource}" if step.subresource else path
    return api.patch(at, step.body, step.how, **query)


_WATCHED: Final = ("Deployment", "Job", "PersistentVolumeClaim")
"""Kinds to whose metadata controllers of the real cluster write."""


def _seen(answer: Answer, space: str) -> Any:
    """The wish in the answer and its owners; of a refusal all that people read."""
    if answer.status >= 300:
        causes = sorted(map(str, (answer.body.get("details") or {}).get("causes") or ()))
        return answer.status, answer.reason, answer.message.replace(space, "{s}"), causes
    obj = answer.body
    labels = {key: obj["metadata"].get(key) for key in ("labels", "annotations", "finalizers")}
    if obj["kind"] in _WATCHED:
        labels = {}
    spec = {
        key: value
        for key, value in (obj.get("spec") or {}).items()
        if obj["kind"] in ("Deployment", "Gadget")
    }
    ports = [
        {key: value for key, value in port.items() if key != "nodePort"}
        for port in (obj.get("spec") or {}).get("ports") or ()
    ]
    return answer.status, labels, obj.get("data"), spec, ports, _owners(obj)


def _owners(obj: Object) -> list[Object]:
    """The entries, whether they have a time, and without those of the real cluster's controllers.

    The servers order them by their seconds, here they are in the order of their managers.
    """
    entries = [
        {key: value if key != "time" else True for key, value in entry.items()}
        for entry in obj.get("metadata", {}).get("managedFields") or ()
        if not entry["manager"].startswith("kube-")
    ]
    return sorted(entries, key=lambda entry: [entry[key] for key in ("operation", "manager")])
