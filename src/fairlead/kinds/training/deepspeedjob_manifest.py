"""How is a DeepSpeedJob written? As a TrainingJob; the operator gives its launcher the list of hosts that DeepSpeed reads."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from fairlead.kinds.parts.elastic_manifest import CREATED_VERSIONS as CREATED_VERSIONS
from fairlead.kinds.parts.elastic_manifest import chief_labels as chief_labels
from fairlead.kinds.parts.elastic_manifest import requested_gpus as requested_gpus
from fairlead.kinds.parts.elastic_manifest import training_job
from fairlead.kinds.parts.job_parts import Manifest
from fairlead.kinds.parts.job_spec import JobSpec
from fairlead.kinds.training.deepspeedjob import TYPE

READS_SCHEMA: Final = False


def manifest(spec: JobSpec, version: str, spec_fields: Collection[str] | None = None) -> Manifest:
    return training_job(spec, TYPE, version)
