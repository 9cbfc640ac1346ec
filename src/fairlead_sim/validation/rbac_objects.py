"""The roles and bindings that the API server refuses, and what it fills in."""

from __future__ import annotations

from fairlead_sim.objects.watch_log import Object
from fairlead_sim.schema.names import path_segment_faults, subdomain_faults
from fairlead_sim.schema.resource import ResourceKind
from fairlead_sim.schema.status import FieldError, required, unsupported, wrong_value

GROUP = "rbac.authorization.k8s.io"
_OWN_GROUP = {"User": GROUP, "Group": GROUP, "ServiceAccount": ""}


def with_defaults(binding: Object) -> Object:
    """A binding whose role and subjects name their API group."""
    role, subjects = binding.get("roleRef") or {}, binding.get("subjects") or ()
    filled = {**binding, "roleRef": {"apiGroup": GROUP, **role}}
    if subjects:
        filled["subjects"] = [_subject(subject) for subject in subjects]
    return filled


def _subject(subject: Object) -> Object:
    group = "" if subject.get("apiGroup") else _OWN_GROUP.get(str(subject.get("kind")), "")
    return {**subject, "apiGroup": group} if group else subject


def rbac_errors(ref: ResourceKind, new: Object, old: Object | None) -> list[FieldError]:
    """All faults of a role or a binding, besides those of its metadata."""
    if ref.plural in ("roles", "clusterroles"):
        errors = [
            error
            for number, rule in enumerate(new.get("rules") or ())
            for error in _rule_errors(f"rules[{number}]", rule, ref)
        ]
        return errors + _gathering_errors(new.get("aggregationRule"))
    errors = _role_errors(new["roleRef"], ref)
    for number, subject in enumerate(new.get("subjects") or ()):
        errors += _subject_errors(f"subjects[{number}]", subject, ref)
    if old is not None and old.get("roleRef") != new["roleRef"]:
        detail = {
            key[0].upper() + key[1:] if key != "apiGroup" else "APIGroup": value
            for key, value in new["roleRef"].items()
        }
        errors.append(wrong_value("roleRef", detail, "cannot change roleRef"))
    return errors


def _rule_errors(field: str, rule: Object, ref: ResourceKind) -> list[FieldError]:
    errors = (
        []
        if rule.get("verbs")
        else [required(f"{field}.verbs", "verbs must contain at least one value")]
    )
    urls = rule.get("nonResourceURLs")
    if urls:
        if ref.namespaced:
            errors.append(
                wrong_value(
                    f"{field}.nonResourceURLs",
                    urls,
                    "namespaced rules cannot apply to non-resource URLs",
                )
            )
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            errors.append(
                wrong_value(
                    f"{field}.nonResourceURLs",
                    urls,
                    "rules cannot apply to both regular resources and non-resource URLs",
                )
            )
        return errors
    if not rule.get("apiGroups"):
        errors.append(
            required(f"{field}.apiGroups", "resource rules must supply at least one api group")
        )
    if not rule.get("resources"):
        errors.append(
            required(f"{field}.resources", "resource rules must supply at least one resource")
        )
    return errors


def _gathering_errors(rule: Object | None) -> list[FieldError]:
    if rule is None or rule.get("clusterRoleSelectors"):
        return []
    why = "at least one clusterRoleSelector required if aggregationRule is non-nil"
    return [required("aggregationRule.clusterRoleSelectors", why)]


def _role_errors(role: Object, ref: ResourceKind) -> list[FieldError]:
    kinds = ("Role", "ClusterRole") if ref.namespaced else ("ClusterRole",)
    errors = _choice_errors("roleRef.apiGroup", role.get("apiGroup", ""), (GROUP,))
    errors += _choice_errors("roleRef.kind", role.get("kind", ""), kinds)
    name = role.get("name", "")
    if not name:
        return [*errors, required("roleRef.name")]
    return errors + [wrong_value("roleRef.name", name, why) for why in path_segment_faults(name)]


def _subject_errors(field: str, subject: Object, ref: ResourceKind) -> list[FieldError]:
    errors = [] if subject.get("name") else [required(f"{field}.name")]
    kind = subject.get("kind", "")
    if kind not in _OWN_GROUP:
        return errors + _choice_errors(f"{field}.kind", kind, ("ServiceAccount", "User", "Group"))
    if kind == "ServiceAccount" and subject.get("name"):
        errors += [
            wrong_value(f"{field}.name", subject["name"], why)
            for why in subdomain_faults(subject["name"])
        ]
    errors += _choice_errors(f"{field}.apiGroup", subject.get("apiGroup", ""), (_OWN_GROUP[kind],))
    if kind == "ServiceAccount" and not ref.namespaced and not subject.get("namespace"):
        errors.append(required(f"{field}.namespace"))
    return errors


def _choice_errors(field: str, value: str, choices: tuple[str, ...]) -> list[FieldError]:
    return [] if value in choices else [unsupported(field, value, choices)]
