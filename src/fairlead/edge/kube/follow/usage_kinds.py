"""The kinds of objects that the usage recorder follows."""

from __future__ import annotations

from typing import Any, Final

from msgspec import structs

from fairlead.edge.kube.follow.followed_kind import (
    BUDGET_SUBJECT,
    NAMESPACE_SUBJECT,
    NODE_SUBJECT,
    POD_SUBJECT,
    QUOTA_SUBJECT,
    WITHHELD_SUBJECT,
    FollowedKind,
    job_subject,
    workload_subject,
)
from fairlead.kinds.parts.kind import source_of
from fairlead.kinds.registry import KINDS, one_per_resource
from fairlead.kinds.workloads import OWNER_KINDS
from fairlead.wire.usage.manifests import followed_job

TREE_SECONDS: Final = 5.0
"""The longest wait between two tries to read the tree, whose CRD may be installed later."""
JOB_KINDS: Final = tuple(source_of(kind) for kind in one_per_resource(KINDS))
WORKLOAD_NAMES: Final = tuple(kind.name for kind in OWNER_KINDS)
"""`JOB_KINDS`, `WORKLOAD_NAMES`: names of jobs and of owners of pods in `Changes`."""
USAGE_KINDS: Final[tuple[FollowedKind[Any], ...]] = (
    NODE_SUBJECT,
    POD_SUBJECT,
    structs.replace(QUOTA_SUBJECT, versions=None, is_optional=True, retry_seconds=TREE_SECONDS),
    NAMESPACE_SUBJECT,
    BUDGET_SUBJECT,
    structs.replace(WITHHELD_SUBJECT, is_optional=True),
    *(
        structs.replace(job_subject(kind), is_optional=True, with_object=followed_job)
        for kind in one_per_resource(KINDS)
    ),
    *map(workload_subject, OWNER_KINDS),
)
