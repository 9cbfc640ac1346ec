"""Builders of admission objects: policies with their binding, and webhook configurations.

Rules and expressions are written once, in the modules that call these functions; what all policies
of Fairlead have in common (`failurePolicy: Fail`, the labels, one binding of the same name) is
here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import dedent
from typing import Any, Final

from fairlead.model.people.rows import LABEL_BOUND_USER

Object = dict[str, Any]

ENFORCED: Final = {"fairlead.io/quota": "enforced"}
"""Labels of the namespaces that quota concerns."""
OF_USER: Final = f'?labels[?"{LABEL_BOUND_USER}"]'
"""Of the metadata of an object: the name of its user."""
WEBHOOK_SERVICE: Final = "fairlead-admission-webhook"
_API: Final = "admissionregistration.k8s.io/v1"


def cel(text: str) -> str:
    """An expression of several lines without the indent of the source."""
    return dedent(text).strip()


BEFORE_AND_AFTER: Final = {
    "before": cel("""
        oldObject == null ? {} : oldObject.metadata.?annotations.orValue({})
        """),
    "after": "object.metadata.?annotations.orValue({})",
}
"""Variables: the annotations of the object as it is, and as it would be."""


def is_user(name: str) -> str:
    """The expression that is true for requests of this user."""
    return f'request.userInfo.username == "{name}"'


def is_one_of(names: Sequence[str]) -> str:
    """The expression that is true for requests of one of these users."""
    listed = ",\n  ".join(f'"{name}"' for name in names)
    return f"request.userInfo.username in [\n  {listed}]"


def on(operations: str, resources: str, *, groups: str = "", versions: str = "v1") -> Object:
    """A rule about requests; several words are separated by spaces.

    >>> on("CREATE", "pods pods/status")["resources"]
    ['pods', 'pods/status']
    """
    return {
        "apiGroups": groups.split() or [""],
        "apiVersions": versions.split(),
        "operations": operations.split(),
        "resources": resources.split(),
    }


WORKLOAD_UPDATES: Final = (
    on("UPDATE", "jobs", groups="batch", versions="*"),
    on("UPDATE", "mpijobs tfjobs pytorchjobs", groups="kubeflow.org", versions="*"),
    on("UPDATE", "rayjobs", groups="ray.io", versions="*"),
)
"""Rules about changes of the jobs that the quota controller suspends, resumes and scales."""


def refuse(
    unless: str, message: str = "", *, computed: str = "", reason: str = "Forbidden"
) -> Object:
    """A validation: a request for which `unless` is false is refused.

    `computed`: a CEL expression that gives the message.
    """
    found: Object = {"expression": unless}
    if message:
        found["message"] = message
    if computed:
        found["messageExpression"] = computed
    return {**found, "reason": reason}


def validating(
    name: str,
    part: str,
    *,
    rules: Sequence[Object],
    validations: Sequence[Object],
    conditions: Mapping[str, str] | None = None,
    variables: Mapping[str, str] | None = None,
    parameter: Mapping[str, str] | None = None,
    bound_to: Mapping[str, str] | None = None,
    namespaces: Mapping[str, str] | None = None,
) -> list[Object]:
    """A ValidatingAdmissionPolicy that denies, and its binding.

    `part`: the value of the label `fairlead.io/admission`. `parameter`, `bound_to`: the kind of its
    parameter and the object. `namespaces`: labels of the namespaces in which it holds; None = all.
    """
    spec = _spec(rules, conditions, variables)
    if parameter:
        spec["paramKind"] = dict(parameter)
    spec["validations"] = list(validations)
    binding: Object = {"policyName": name}
    if bound_to:
        binding["paramRef"] = dict(bound_to)
    binding["validationActions"] = ["Deny"]
    return _with_binding("ValidatingAdmissionPolicy", name, part, spec, binding, namespaces)


def mutating(
    name: str,
    part: str,
    *,
    rules: Sequence[Object],
    applied: str = "",
    patch: str = "",
    conditions: Mapping[str, str] | None = None,
    namespaces: Mapping[str, str] | None = None,
) -> list[Object]:
    """A MutatingAdmissionPolicy and its binding. `applied`: the expression of an apply
    configuration; `patch`: of a JSON patch; one of the two is given.
    """
    spec = {**_spec(rules, conditions, None), "reinvocationPolicy": "IfNeeded"}
    spec["mutations"] = [
        {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": applied}}
        if applied
        else {"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}
    ]
    return _with_binding(
        "MutatingAdmissionPolicy", name, part, spec, {"policyName": name}, namespaces
    )


def webhook(
    name: str,
    path: str,
    namespace: str,
    *,
    rules: Sequence[Object],
    conditions: Mapping[str, str] | None = None,
    namespaces: Mapping[str, str] | None = None,
    seconds: int = 5,
    is_repeated: bool = False,
) -> Object:
    """One webhook of a configuration, for requests that the API server sends to `path`.

    The server is `fairlead admission-webhook` in this namespace.

    `seconds`: how long the API server waits. `is_repeated`: it asks again after other mutations.
    """
    service = {"namespace": namespace, "name": WEBHOOK_SERVICE, "path": path, "port": 443}
    found: Object = {
        "name": name,
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "timeoutSeconds": seconds,
        "clientConfig": {"service": service},
        "rules": list(rules),
    }
    if is_repeated:
        found["reinvocationPolicy"] = "IfNeeded"
    if namespaces:
        found["namespaceSelector"] = {"matchLabels": dict(namespaces)}
    if conditions:
        found["matchConditions"] = _named(conditions)
    return found


def webhook_configuration(kind: str, name: str, part: str, hooks: Sequence[Object]) -> Object:
    """A MutatingWebhookConfiguration or ValidatingWebhookConfiguration.

    `caBundle` is absent: `fairlead admission-webhook` writes it at run time.
    """
    return {
        "apiVersion": _API,
        "kind": kind,
        "metadata": _metadata(name, part),
        "webhooks": list(hooks),
    }


def _spec(
    rules: Sequence[Object],
    conditions: Mapping[str, str] | None,
    variables: Mapping[str, str] | None,
) -> Object:
    spec: Object = {"failurePolicy": "Fail", "matchConstraints": {"resourceRules": list(rules)}}
    if conditions:
        spec["matchConditions"] = _named(conditions)
    if variables:
        spec["variables"] = _named(variables)
    return spec


def _with_binding(
    kind: str,
    name: str,
    part: str,
    spec: Object,
    binding: Object,
    namespaces: Mapping[str, str] | None,
) -> list[Object]:
    if namespaces:
        binding["matchResources"] = {"namespaceSelector": {"matchLabels": dict(namespaces)}}
    return [
        {"apiVersion": _API, "kind": each, "metadata": _metadata(name, part), "spec": content}
        for each, content in ((kind, spec), (f"{kind}Binding", binding))
    ]


def _metadata(name: str, part: str) -> Object:
    return {
        "name": name,
        "labels": {"app.kubernetes.io/part-of": "fairlead", "fairlead.io/admission": part},
    }


def _named(expressions: Mapping[str, str]) -> list[Object]:
    return [{"name": name, "expression": expression} for name, expression in expressions.items()]
