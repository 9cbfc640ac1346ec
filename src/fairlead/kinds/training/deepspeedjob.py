"""DeepSpeedJob in arena: a TrainingJob of et-operator with DeepSpeed on a fixed number of workers.

The launcher starts DeepSpeed.

The operator gives the launcher the hosts file that DeepSpeed reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fairlead.kinds.parts.elastic_training import CREATED_VERSIONS as CREATED_VERSIONS
from fairlead.kinds.parts.elastic_training import GROUP as GROUP
from fairlead.kinds.parts.elastic_training import KIND as KIND
from fairlead.kinds.parts.elastic_training import OLDER_POD_LABELS as OLDER_POD_LABELS
from fairlead.kinds.parts.elastic_training import PLURAL as PLURAL
from fairlead.kinds.parts.elastic_training import POD_LABELS as POD_LABELS
from fairlead.kinds.parts.elastic_training import TYPES, training_job
from fairlead.kinds.parts.elastic_training import VERSIONS as VERSIONS
from fairlead.kinds.parts.elastic_training import WIRE as WIRE
from fairlead.kinds.parts.elastic_training import chief_labels as chief_labels
from fairlead.kinds.parts.elastic_training import chief_of as chief_of
from fairlead.kinds.parts.elastic_training import is_member as is_member
from fairlead.kinds.parts.elastic_training import parse as parse
from fairlead.kinds.parts.elastic_training import pod_selectors as pod_selectors
from fairlead.kinds.parts.elastic_training import pods_of as pods_of
from fairlead.kinds.parts.elastic_training import requested_gpus as requested_gpus
from fairlead.kinds.parts.elastic_training import role_of as role_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from fairlead.kinds.parts.job_spec import JobSpec
    from fairlead.model.actions import Manifest

TYPE: Final = TYPES[1]
TITLE: Final = "DEEPSPEEDJOB"
WORDS: Final = ("DeepSpeed", "dp")
READS_SCHEMA: Final = False


def manifest(spec: JobSpec, version: str, spec_fields: Collection[str] | None = None) -> Manifest:
    return training_job(spec, TYPE, version)
