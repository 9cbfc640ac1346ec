"""Document 004's "initialise data sets": its volume and claim are created with kubectl, and the
claim is accelerated, on a laptop with the stand-in of Fluid. The laptop is stopped in between.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.documents.stand_in import install_stand_in
from tests.kube.laptop import Laptop, running_laptop
from tests.kube.servers import run_fairlead

LOGS = Path(__file__).parents[2] / "test-output" / "kube"
MANIFEST = Path(__file__).parents[2] / "examples" / "fashion-mnist.yaml"
SPACE, CLAIM, NAME = "demo-ns", "fashion-demo-pvc", "fashion-demo-pvc-acc"


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "world"


def laptop(kept: Path, *arguments: str, name: str) -> Iterator[Laptop]:
    LOGS.mkdir(parents=True, exist_ok=True)
    flags = (f"--state-dir={kept}", "--speed=30", *arguments)
    with running_laptop(LOGS / f"acceleration-{name}.log", *flags) as one:
        yield one


def fairlead(one: Laptop, *words: str, status: int = 0) -> str:
    return run_fairlead(one.kubeconfig, "dataset", *words, f"--namespace={SPACE}", status=status)


def listed(one: Laptop, *, note: str = "") -> list[list[str]]:
    """Name, type, status and data sets of each row. The key of the volume is in no answer."""
    text = fairlead(one, "list", "-o", "json")
    assert note in text and "AKSECRET" not in text
    rows = json.loads(text[: text.rindex("]") + 1])
    keys = ("name", "type", "status")
    return [[*(row[key] for key in keys), ",".join(row["acceleratedBy"])] for row in rows]


@pytest.mark.turns(2, 0)
def test_the_documents_claim_is_accelerated_and_a_restart_keeps_it(kept: Path) -> None:
    for one in laptop(kept, "--scenario=documents-004", name="first"):
        one.kubectl.run("create", "ns", SPACE)
        one.kubectl.run("create", "-f", str(MANIFEST))
        claims_alone = [[CLAIM, "PersistentVolumeClaim", "Ready", ""]]
        assert listed(one, note="Fluid is not installed") == claims_alone
        refused = fairlead(one, "accelerate", CLAIM, status=1)
        assert "the API server does not serve `datasets`" in refused
        install_stand_in(one)
        accelerated = fairlead(one, "accelerate", CLAIM)
        assert f"{SPACE}/{NAME}" in accelerated
        assert listed(one) == [
            [CLAIM, "PersistentVolumeClaim", "Ready", NAME],
            [NAME, "Dataset", "Ready", ""],
        ]
        table = one.kubectl.run("get", "dataset", NAME, f"--namespace={SPACE}")
        assert table.split("\n")[0].split("  ")[0] == "NAME" and " Bound " in table
    for one in laptop(kept, name="second"):
        assert [row[2] for row in listed(one)] == ["Ready", "Ready"]
        answer = fairlead(one, "unaccelerate", NAME)
        assert NAME in answer
        assert listed(one) == [[CLAIM, "PersistentVolumeClaim", "Ready", ""]]
        pods = one.kubectl.run("get", "pods", f"--namespace={SPACE}", "--output=name")
        assert pods == ""
