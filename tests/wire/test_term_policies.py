"""Which writes of the quota controller are compared with its Lease: all that its role allows, but
for the few that need not or cannot be.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

Object = dict[str, Any]
DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
NOT_COMPARED = {
    ("coordination.k8s.io", "leases"),  # the Lease itself
    ("", "events"),  # reports, which decide nothing
}


def objects(name: str) -> Iterator[Object]:
    yield from yaml.safe_load_all((DEPLOY / name).read_text(encoding="utf-8"))


def test_each_write_of_the_quota_controller_names_its_term() -> None:
    """A deletion has no field manager; `fairlead-quota-ends` limits it to pods on no node."""
    allowed = {
        (group, resource, verb)
        for each in objects("quota-controller.yaml")
        if each["kind"] in ("Role", "ClusterRole")
        for rule in each["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        if verb not in ("get", "list", "watch", "delete") and (group, resource) not in NOT_COMPARED
    }
    (policy,) = (
        each
        for each in objects("account-admission.yaml")
        if (each["kind"], each["metadata"]["name"])
        == ("ValidatingAdmissionPolicy", "fairlead-quota-term")
    )
    verbs = {"UPDATE": "patch", "CREATE": "create"}
    compared = {
        (group, resource, verbs[operation])
        for rule in policy["spec"]["matchConstraints"]["resourceRules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for operation in rule["operations"]
    }
    assert compared == allowed
