"""Policies by which the API server refuses what a former holder of a Lease decided (Kubernetes 1.30
and later).

A process that stands still between its last look at the clock and its request does not know that
another process has taken the Lease since. Its write names the term in which it was decided as field
manager (`edge/kube/lease`), and the API server compares it with the Lease. The API server may see a
new term some milliseconds late, so a later term than the Lease's is not refused. A deletion has no
field manager; the quota controller deletes only pods that are on no node.

Terms are those of one Lease, by its uid. After the last policy with a parameter of this kind was
deleted and written again, an API server (1.36) compares with the Lease that it saw before, until it
is restarted: a new installation would be compared with the terms of the former one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from fairlead.model.installation import OwnAccounts
from fairlead.settings import QUOTA_LEASE, SHARE_LEASE
from fairlead.wire.installation.policies.policy_parts import (
    WORKLOAD_UPDATES,
    Object,
    cel,
    is_one_of,
    is_user,
    on,
    refuse,
    validating,
)

_TREE_GROUP: Final = "scheduling.sigs.k8s.io"


def term_policies(accounts: OwnAccounts) -> list[Object]:
    return [
        *_of_one_term(
            "fairlead-scheduler-term",
            SHARE_LEASE,
            accounts.namespace,
            rules=[on("UPDATE", "pods"), on("CREATE", "pods/binding bindings")],
            conditions={
                "is-the-scheduler": is_one_of([accounts.scheduler, accounts.extender]),
                "writes-a-grant": cel("""
            object.metadata.?annotations[?"fairlead.io/gpu-allocation"].hasValue()
              && (oldObject == null
                || oldObject.metadata.?annotations[?"fairlead.io/gpu-allocation"]
                  != object.metadata.?annotations[?"fairlead.io/gpu-allocation"])
            """),
            },
        ),
        *_of_one_term(
            "fairlead-quota-term",
            QUOTA_LEASE,
            accounts.namespace,
            rules=[
                on("UPDATE", "pods pods/status namespaces"),
                on("CREATE", "pods/eviction"),
                *WORKLOAD_UPDATES,
                on("UPDATE", "elasticquotatrees/status", groups=_TREE_GROUP, versions="*"),
            ],
            conditions={"is-the-quota-controller": is_user(accounts.quota_controller)},
        ),
    ]


def _of_one_term(
    name: str,
    lease: str,
    namespace: str,
    *,
    rules: Sequence[Object],
    conditions: Mapping[str, str],
) -> list[Object]:
    """The policy that refuses writes of a former term, and its binding."""
    return validating(
        name,
        "accounts",
        rules=rules,
        conditions=conditions,
        variables={
            "manager": 'request.?options.?fieldManager.orValue("")',
            "words": f"""
variables.manager.matches("^{lease}-[0-9]{{1,9}}-.+$")
  ? variables.manager.replace("{lease}-", "", 1).split("-", 2) : ["-1", ""]
""".strip(),
            "term": "int(variables.words[0])",
            "lease": "variables.words[1]",
        },
        validations=[
            refuse(
                cel("""
            variables.term >= params.spec.?leaseTransitions.orValue(0)
              || variables.term >= 0 && variables.lease != params.metadata.uid
            """),
                computed=cel(f"""
            "another process has taken the Lease {lease} since this was decided (term "
              + string(variables.term) + ")"
            """),
            )
        ],
        parameter={"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"},
        bound_to={
            "name": lease,
            "namespace": namespace,
            "parameterNotFoundAction": "Allow",
        },
    )
