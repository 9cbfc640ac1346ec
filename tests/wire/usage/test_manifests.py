"""Manifests of jobs as the ledger keeps them: what is left out, and what counts as a change."""

from __future__ import annotations

import json
from typing import Any

from fairlead.model.jobs.job import Job
from fairlead.model.jobs.manifests import spec_of
from fairlead.wire.usage.manifests import (
    MOST_BYTES,
    followed_job,
    kept_manifest,
    parse_kept_manifest,
)

JOB = Job("mpijob", "MPIJob", "kubeflow.org/v2beta1", "team-a", "bert", "uid-1")


def an_object(**more: Any) -> dict[str, Any]:
    env = [{"name": "HF_TOKEN", "value": "hf_secret"}, {"name": "EPOCHS", "value": "3"}]
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {
            "name": "bert",
            "namespace": "team-a",
            "uid": "uid-1",
            "resourceVersion": "7",
            "labels": {"app": "mpijob"},
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "a": "b"},
            "managedFields": [{"manager": "kubectl"}],
        },
        "spec": {"replicas": 2, "env": env},
        "status": {"phase": "Running"},
    } | more


def followed(obj: dict[str, Any]) -> Any:
    return followed_job(JOB, json.dumps(obj).encode())


def test_metadata_and_spec_are_kept_without_secrets_status_and_managed_fields() -> None:
    kept = parse_kept_manifest(followed(an_object()).manifest())
    assert kept.manifest == {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {
            "name": "bert",
            "namespace": "team-a",
            "uid": "uid-1",
            "labels": {"app": "mpijob"},
            "annotations": {"a": "b"},
        },
        "spec": {
            "replicas": 2,
            "env": [
                {"name": "HF_TOKEN", "value": "<redacted>"},
                {"name": "EPOCHS", "value": "3"},
            ],
        },
    }
    assert kept.redacted == ["spec.env[0].value"]


def test_an_item_of_a_list_of_a_built_in_kind_has_its_kind() -> None:
    obj = an_object()
    del obj["kind"], obj["apiVersion"]
    kept = parse_kept_manifest(followed(obj).manifest())
    assert kept.manifest is not None
    assert list(kept.manifest) == ["apiVersion", "kind", "metadata", "spec"]
    assert kept.manifest["kind"] == "MPIJob"


def test_a_status_is_no_change_and_a_spec_is_one() -> None:
    first = followed(an_object())
    later = an_object(status={"phase": "Succeeded"})
    later["metadata"] |= {"resourceVersion": "9", "labels": {"other": "label"}}
    assert followed(later).spec == first.spec
    assert followed(an_object(spec={"replicas": 3})).spec != first.spec
    assert spec_of(first.manifest()) == first.spec != ""


def test_a_manifest_that_is_too_large_leaves_its_size_and_the_digest() -> None:
    found = followed(an_object(spec={"script": "x y " * (MOST_BYTES // 4)}))
    kept = parse_kept_manifest(found.manifest())
    assert (kept.manifest, kept.spec) == (None, found.spec)
    assert kept.size > MOST_BYTES
    assert len(found.manifest()) < 100


def test_a_manifest_that_cannot_be_read_ends_nothing() -> None:
    kept = parse_kept_manifest(kept_manifest("3f", b'{"spec":"' + b"\xff" + b'"}'))
    assert (kept.manifest, kept.spec) == (None, "3f")
    deep = b'{"spec":' + b"[" * 5000 + b"]" * 5000 + b"}"
    assert parse_kept_manifest(kept_manifest("3f", deep)).size == len(deep)
