"""Makes KServe's InferenceService from a serving spec.

Specification: docs/spec/arena-cli.md#objects-of-serving-jobs.

With a model format, KServe chooses the server (`spec.predictor.model`); otherwise it runs the given
image.
"""

from __future__ import annotations

from typing import Final

from fairlead.kinds.parts.job_parts import affinity
from fairlead.kinds.serving.kinds import INFERENCE_SERVICES
from fairlead.kinds.serving.parts import add, config_maps, container, metadata, pod_fields
from fairlead.kinds.serving.spec import ServingSpec
from fairlead.model.actions import Manifest
from fairlead.wire import names

_APP: Final = "kserve"


def objects(spec: ServingSpec) -> list[Manifest]:
    group, version, _, kind = INFERENCE_SERVICES
    meta = metadata(spec, _APP, spec.name)
    if spec.kserve.has_prometheus:
        meta["annotations"] = {
            **meta.get("annotations", {}),
            "serving.kserve.io/enable-prometheus-scraping": "true",
        }
    service = {
        "apiVersion": f"{group}/{version}",
        "kind": kind,
        "metadata": meta,
        "spec": {"predictor": _predictor(spec)},
    }
    return [service, *config_maps(spec, _APP)]


def _predictor(spec: ServingSpec) -> Manifest:
    own = spec.kserve
    found: Manifest = {"minReplicas": own.min_replicas}
    options = (
        ("maxReplicas", own.max_replicas),
        ("scaleTarget", own.scale_target),
        ("containerConcurrency", own.container_concurrency),
        ("timeout", own.timeout),
        ("canaryTrafficPercent", own.canary_percent),
    )
    found |= {field: value for field, value in options if value is not None}
    add(found, "scaleMetric", own.scale_metric)
    add(found, "securityContext", dict(own.security_context))
    pods = {names.LABEL_SERVING_NAME: spec.name, names.LABEL_SERVING_TYPE: spec.type}
    add(found, "affinity", affinity(own.affinity_policy, own.affinity_constraint, pods))
    ports = [{"containerPort": spec.ports.http, "protocol": "TCP"}] if spec.ports.http else []
    if own.model_format:
        found["model"] = {**_model(spec), **container(spec, "kserve-container", ports)}
    else:
        found["containers"] = [container(spec, "kserve-container", ports)]
    return {**found, **pod_fields(spec)}


def _model(spec: ServingSpec) -> Manifest:
    own = spec.kserve
    found: Manifest = {"modelFormat": {"name": own.model_format}}
    add(found["modelFormat"], "version", own.model_format_version)
    add(found, "runtime", own.runtime)
    add(found, "runtimeVersion", own.runtime_version)
    add(found, "storageUri", own.storage_uri)
    add(found, "protocolVersion", own.protocol_version)
    return found
