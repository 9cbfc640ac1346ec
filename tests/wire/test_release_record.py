"""The record of a Helm release: what it describes, and what is no record."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairlead.errors import OutsideError
from fairlead.wire.installation.release import parse_release, release_name

SYSTEM = "fairlead-system"
BARE = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n", "namespace": SYSTEM}}
TREE = "CustomResourceDefinition"


def record(**change: Any) -> dict[str, Any]:
    values = {"parts": {"console": False}, "replicas": 3}
    data = {
        "release": "gpus",
        "version": "0.1.0",
        "definitions": "true",
        "values": json.dumps(values),
    }
    metadata = {"name": "fairlead-release", "namespace": SYSTEM}
    return {**BARE, "metadata": metadata, "data": {**data, **change}}


def test_a_record_describes_an_installation() -> None:
    found = parse_release(record())
    assert (found.release, found.version, found.state) == ("gpus", "0.1.0", "complete")
    assert found.values == "parts:\n  console: false\nreplicas: 3\n"
    names = {(each.kind, each.name) for each in found.objects}
    assert ("Deployment", "fairlead-quota-controller") in names
    assert ("Deployment", "fairlead-console") not in names
    assert ("Namespace", SYSTEM) not in names, "Helm makes it"
    assert any(each.kind == TREE for each in found.objects)
    without = parse_release(record(definitions="false")).objects
    assert not any(each.kind == TREE for each in without)


@pytest.mark.parametrize(
    "manifest, words",
    [
        (BARE, "ConfigMap fairlead-system/n is no record: 'data'"),
        (
            record(release=3),
            (
                "ConfigMap fairlead-system/fairlead-release is no record: "
                "Expected `str`, got `int` - at `$.release`"
            ),
        ),
        (
            record(values="{"),
            (
                "ConfigMap fairlead-system/fairlead-release: values `ConfigMap "
                "fairlead-system/fairlead-release` are not YAML: did not find "
                "expected node content (line 2)"
            ),
        ),
        (
            record(values='{"replica": 3}'),
            "ConfigMap fairlead-system/fairlead-release: there is no value `replica`",
        ),
    ],
)
def test_what_is_no_record_is_reported_with_the_command_that_mends_it(
    manifest: dict[str, Any], words: str
) -> None:
    with pytest.raises(OutsideError) as refused:
        parse_release(manifest)
    assert refused.value.what == words
    assert "`helm upgrade`" in refused.value.hint or "version 0.1.0" in refused.value.hint


def test_the_name_needs_no_values() -> None:
    assert release_name(record(values="{")) == "gpus"
