"""Contract: `fairlead dataset add` over both worlds, with Fluid's own definitions
(docs/spec/datasets.md#other-sources).
"""

from __future__ import annotations

import base64

import pytest
from tests.contracts.data_objects import DataSpace, claim, fluid_controller, with_fluid_node

pytestmark = pytest.mark.turns(2, 1)

KEY = "wJalrXUtnFEMI"
SIZE = ("--workers", "1", "--quota", "1Gi", "--wait", "0")


def test_an_object_store_is_added_with_references_to_its_keys(data_space: DataSpace) -> None:
    space = data_space
    fluid_controller(space.api)
    words = ("add", "faces", "--mount", "oss://bucket/faces", "--endpoint", "oss.example", *SIZE)
    with with_fluid_node(space.api, "add-a"):
        lacking = space.run(*words, "--from-secret", "keys:id,secret", status=1)
        assert f"there is no Secret `{space.space}/keys`" in lacking
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "keys"},
            "data": {"id": base64.b64encode(b"ID").decode()},
        }
        space.create(f"{space.core}/secrets", secret)
        shown = space.run(*words, "--from-secret", "keys:id,secret", "--dry-run")
        assert "kind: AlluxioRuntime" in shown
        done = space.run(*words, "--from-secret", "keys:id,secret")
        assert f"data set {space.space}/faces created" in done
    made = space.api.get(f"{space.fluid}/datasets/faces").body
    (mount,) = made["spec"]["mounts"]
    assert mount["options"] == {"fs.oss.endpoint": "oss.example"}
    assert mount["encryptOptions"] == [
        {
            "name": f"fs.oss.{name}",
            "valueFrom": {"secretKeyRef": {"name": "keys", "key": key}},
        }
        for name, key in (("accessKeyId", "id"), ("accessKeySecret", "secret"))
    ]
    assert "path" not in mount
    again = space.run(*words, status=1)
    assert "name-free: taken: data set `faces`" in again


def test_a_claim_is_added_as_it_is_accelerated(data_space: DataSpace) -> None:
    space = data_space
    space.create(f"{space.core}/persistentvolumeclaims", claim("raw"))
    shown = space.run("add", "fast", "--mount", "pvc://raw/images", *SIZE, "--dry-run", status=1)
    assert 'mountPoint: "pvc://raw/images"' in shown
    assert "`raw` is " in shown
    absent = space.run("add", "fast", "--mount", "pvc://none", *SIZE, status=1)
    assert f"there is no claim `{space.space}/none`" in absent


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("--mount", "faces"), "--mount: `faces` has no scheme"),
        (("--mount", f"s3://id:{KEY}@b"), "put keys into a Secret: --from-secret"),
        (("--mount", "s3://b", "--from-secret", f"{KEY}/x"), "--from-secret is no name"),
        (("--mount", "s3://b", "--from-secret", f"keys:{KEY}"), "--from-secret is no name"),
        (("--mount", "https://h/x", "--from-secret", "keys"), "--from-secret does not fit `https`"),
        (("--mount", "https://h/x", "--endpoint", "e"), "`https` has no endpoint"),
        (("--mount", "s3://b", "--endpoint", f"https://{KEY}@e"), "--endpoint names a user"),
        (("--mount", "s3://b", "--option", f"aws.secretKey={KEY}"), "looks like a key"),
        (("--mount", "s3://b", "--option", "x"), "--option has no `=`"),
        (("--mount", "s3://b", "--secret-option", f"aws.secretKey={KEY}"), "names no key"),
        (
            ("--mount", "s3://b", "--option", "a=b", "--secret-option", "a=keys/x"),
            "the option `a` is named twice",
        ),
        (("--mount", "pvc://raw", "--option", "a=b"), "`pvc://raw` is a claim"),
        (
            (
                "--mount",
                "pvc://raw/../x",
            ),
            "--mount is `../x`",
        ),
        (("--mount", "s3://b", "--quota", "much"), "--quota is `much`"),
        (("--mount", "s3://b", "--workers", "-1"), "--workers is `-1`"),
    ],
)
def test_bad_input_has_its_reason_and_repeats_no_key(
    simulated_data: DataSpace, words: tuple[str, ...], part: str
) -> None:
    printed = simulated_data.run("add", "faces", *words, status=1)
    assert part in printed
    assert KEY not in printed
