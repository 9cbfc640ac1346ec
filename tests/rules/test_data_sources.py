"""Sources of data sets that are no claims (docs/spec/datasets.md#other-sources)."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.model.installed.finding import State
from fairlead.model.jobs.acceleration import Acceleration, AccelerationFacts, CachedSource
from fairlead.model.jobs.datasets import ControllerState, DataSet, SecretOption
from fairlead.model.node import Condition, Node
from fairlead.rules.data.acceleration import begun_data_set
from fairlead.rules.data.sources import check_source, uri_fault
from fairlead.wire.data.fluid import render_acceleration

GIB = 1 << 30
NODE = Node("a", conditions=(Condition("Ready", "True"),), allocatable={"memory": 64 * GIB})
FACTS = AccelerationFacts(
    None,
    nodes=(NODE,),
    has_kinds=True,
    controllers=(ControllerState("alluxioruntime-controller", 1, 1),),
    csi_nodes=frozenset({"a"}),
    has_volume=False,
    has_release=False,
)
KEYS = CachedSource(
    "s3://bucket/faces",
    (("alluxio.underfs.s3.endpoint", "https://s3.example"),),
    (
        SecretOption("aws.accessKeyId", "keys", "id"),
        SecretOption("aws.secretKey", "keys", "secret"),
    ),
)
WEB = CachedSource("https://files.example/faces")


def asked(source: CachedSource) -> Acceleration:
    return Acceleration("n", "", "faces", quota=GIB, source=source)


@pytest.mark.parametrize(
    "uri",
    [
        "s3://bucket",
        "s3://bucket/folder/a-b_c",
        "oss://bucket/x",
        "https://host:8443/a",
        "hdfs://name:9000/x",
        "hdfs:///x",
        "local:///mnt/x",
        "pvc://raw/a",
    ],
)
def test_a_source_is_taken(uri: str) -> None:
    assert uri_fault(uri) == ("", "")


KEY = "wJalrXUtnFEMI"


@pytest.mark.parametrize(
    ("uri", "what"),
    [
        ("bucket", "`bucket` has no scheme"),
        ("", "`` has no scheme"),
        ("S3://bucket", "it is no URI"),
        ("s3://a b", "it is no URI"),
        ("s3://bucket\n", "it is no URI"),
        ("s3://", "`s3://` names no place"),
        ("pvc:///a", "`pvc:///a` names no place"),
        ("local:///", "`local:///` names no place"),
        ("dataset://other/faces", "`dataset://other/faces` is a data set"),
        (f"s3://id:{KEY}@bucket", "it names a user, a password or a query after `s3://`"),
        (f"https://h/a?sign={KEY}", "it names a user, a password or a query after `https://`"),
        (f"id:{KEY}@bucket", "it has no scheme"),
    ],
)
def test_what_is_no_source_has_its_reason_and_repeats_no_key(uri: str, what: str) -> None:
    found, hint = uri_fault(uri)
    assert found == what
    assert hint
    assert KEY not in found + hint


@pytest.mark.parametrize(
    ("source", "secrets", "bad"),
    [
        (KEYS, {"keys": True}, []),
        (KEYS, {"keys": False}, [("secret", State.FAIL)]),
        (KEYS, {"keys": None}, [("secret", State.UNKNOWN)]),
        (CachedSource("oss://public"), {}, [("secret", State.WARN)]),
        (WEB, {}, []),
    ],
)
def test_a_secret_must_exist(source: CachedSource, secrets: Any, bad: Any) -> None:
    found = check_source(FACTS, asked(source), source, secrets)
    assert [(each.check, each.state) for each in found if each.state is not State.OK] == bad


def test_a_source_has_the_checks_of_a_cache() -> None:
    found = check_source(FACTS, asked(WEB), WEB, {})
    assert [each.check for each in found] == [
        *("fluid-crds", "runtime-controller", "csi"),
        *("name-free", "nodes", "room", "namespace-quota"),
    ]


def test_keys_are_references_and_their_source_is_not_at_the_root() -> None:
    """Options of a source at `/` are in a ConfigMap of Fluid 1.0.8: perhaps the values of keys."""
    data_set, runtime = render_acceleration(asked(KEYS))
    assert data_set["spec"] == {
        "placement": "Shared",
        "mounts": [
            {
                "mountPoint": "s3://bucket/faces",
                "name": "faces",
                "readOnly": True,
                "options": {"alluxio.underfs.s3.endpoint": "https://s3.example"},
                "encryptOptions": [
                    {
                        "name": "aws.accessKeyId",
                        "valueFrom": {"secretKeyRef": {"name": "keys", "key": "id"}},
                    },
                    {
                        "name": "aws.secretKey",
                        "valueFrom": {"secretKeyRef": {"name": "keys", "key": "secret"}},
                    },
                ],
            }
        ],
    }
    assert "annotations" not in data_set["metadata"]
    assert runtime["metadata"]["name"] == "faces"


def test_a_source_without_keys_is_at_the_root() -> None:
    data_set, _ = render_acceleration(asked(WEB))
    assert data_set["spec"]["mounts"] == [
        {
            "mountPoint": "https://files.example/faces",
            "name": "faces",
            "readOnly": True,
            "path": "/",
        }
    ]


def test_the_data_set_of_another_program_is_not_taken_for_a_begun_one() -> None:
    facts = AccelerationFacts(None, data_sets=(DataSet("n", "faces"),))
    assert begun_data_set(facts, asked(WEB)) is None
