"""Documents 001 and 003 on a real node, with their YAML in which only the image is replaced: what a
container gets, and what a user sees.

No GPU is here. The image's program prints what it received, and the one that wants too much memory
ends by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.documents.guard_story import LINE
from tests.kube.kubelet import NODE
from tests.kube.node_images import PRINTS, TAKES_TOO_MUCH
from tests.kube.node_room import NODE_ADDRESS
from tests.kubelet.admission import admission_policies
from tests.kubelet.agent import MEMORY, SECONDS, WHOLE, Line
from tests.kubelet.agent_cases import four_units_of_a_pod
from tests.waiting import wait_until

pytestmark = pytest.mark.turns(2, 1)

Object = dict[str, Any]
MANIFESTS = Path(__file__).parents[2] / "examples"
DASHES = "-" * (len(f"{NODE}\t{NODE_ADDRESS}\t0/15\t0/15\n") + 20)
FIRST_LOOK = f"""\
NAME       IPADDRESS  GPU0(Allocated/Total)  GPU Memory(GiB)
{NODE}  {NODE_ADDRESS}  0/15                   0/15
{DASHES}
Allocated/Total GPU Memory In Cluster:
0/15 (0%)
"""
TWO_SHARE = f"""\
NAME:       {NODE}
IPADDRESS:  {NODE_ADDRESS}

NAME         NAMESPACE  GPU0(Allocated)
app-3g-v1-0  default    4
app-3g-v1-1  default    4
Allocated :  8 (53%)
Total :      15
--------------------------------------------------------

Allocated/Total GPU Memory In Cluster:  8/15 (53%)
"""
"""Both outputs of docs/spec/gpu-sharing.md#inspect, which has document 001's text, with this node's
name and address.
"""


@pytest.fixture(scope="module")
def line(whole_line: Line) -> Iterator[Line]:
    """Shared GPUs have a scheduler of their own, which the documents' YAML does not name, so it is
    added.
    """
    admin = whole_line.cluster.admin
    with admission_policies(admin):
        yield whole_line
        for name in {path.name for path in MANIFESTS.glob("*.yaml")} & {
            "app-6g-v1.yaml",
            "gpu_deployment.yaml",
            *SHARED,
        }:
            admin.run("delete", "-f", str(MANIFESTS / name), "--ignore-not-found", "--wait=false")
        whole_line.label(cgpu=None)


SHARED = (
    "app-3g-v1-shared.yaml",
    "mem_deployment.yaml",
    "mem_deployment-2.yaml",
    "mem_deployment-3.yaml",
)


def test_document_001(line: Line) -> None:
    line.use("1xTesla-V100-SXM2-16GB")
    wait_until("a whole card", lambda: line.shown(WHOLE) == ("1", "1"), SECONDS)
    (card,) = line.cards()

    apply(line, "app-3g-v1.yaml")
    line.runs("app-3g-v1-0")
    assert given(line, "app-3g-v1-0", "app-3g-v1") == [f"NVIDIA_VISIBLE_DEVICES={card['uuid']}"]

    line.label(cgpu="true")
    wait_until("the card drains", lambda: line.modes() == {card["uuid"]: "draining"}, SECONDS)
    wait_until("and is not given away", lambda: line.shown(WHOLE) == ("1", "0"), SECONDS)
    assert line.shown(MEMORY)[1] in (None, "0")
    assert line.inspected() == FIRST_LOOK, (
        "in the document's order: the pod that has the whole card still runs"
    )
    remove(line, "app-3g-v1.yaml")
    wait_until(
        "its memory",
        lambda: (line.shown(WHOLE), line.shown(MEMORY)) == (("0", "0"), ("15", "15")),
        SECONDS,
    )
    wait_until("their count", lambda: line.shown("aliyun.com/gpu-count") == ("1", "1"), SECONDS)
    assert line.inspected() == FIRST_LOOK

    apply(line, "app-3g-v1-shared.yaml")
    both = ("app-3g-v1-0", "app-3g-v1-1")
    line.runs(*both)
    for name in both:
        assert given(line, name, "app-3g-v1") == four_units_of_a_pod(card["uuid"], 15, 4509925376)
    assert line.inspected("-d") == TWO_SHARE

    apply(line, "app-6g-v1.yaml", TAKES_TOO_MUCH)
    wait_until("it is started again", lambda: line.restarts("app-6g-v1-0") >= 1, SECONDS)
    assert LINE in line.log("app-6g-v1-0", "app-6g-v1")
    wait_until(
        "kubectl prints it",
        lambda: "CrashLoopBackOff" in line.cluster.admin.run("get", "pods", "-n", "default"),
        SECONDS,
    )
    assert [line.restarts(name) for name in both] == [0, 0]
    assert "Allocated :  12 (80%)" in line.inspected("-d")

    line.label(cgpu="false")
    wait_until("the card drains", lambda: line.modes() == {card["uuid"]: "draining"}, SECONDS)
    assert line.shown(WHOLE)[1] == "0"
    remove(line, "app-6g-v1.yaml")
    assert [line.phase(name) for name in both] == ["Running", "Running"]
    remove(line, "app-3g-v1-shared.yaml")
    wait_until(
        "it is whole again",
        lambda: (line.shown(WHOLE), line.shown(MEMORY)[1]) == (("1", "1"), "0"),
        SECONDS,
    )


def test_document_003(line: Line) -> None:
    line.use("1xTesla-T4")
    wait_until(
        "a whole card",
        lambda: line.shown(WHOLE) == ("1", "1") and line.cards()[0]["model"] == "Tesla T4",
        SECONDS,
    )
    apply(line, "gpu_deployment.yaml")
    wait_until(
        "one of two runs",
        lambda: sorted(phases(line, "tf-notebook-gpu")) == ["Pending", "Running"],
        SECONDS,
    )
    (waits,) = [
        name for name, phase in named(line, "tf-notebook-gpu").items() if phase == "Pending"
    ]
    message = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
    wait_until(
        "it shows the reason", lambda: any(message in each for each in line.events(waits)), SECONDS
    )
    remove(line, "gpu_deployment.yaml")

    line.label(cgpu="true")
    wait_until(
        "its memory",
        lambda: (line.shown(WHOLE), line.shown(MEMORY)) == (("0", "0"), ("14", "14")),
        SECONDS,
    )
    names = ("tf-notebook", "tf-notebook-2", "tf-notebook-3")
    for number, name in enumerate(names):
        apply(line, SHARED[1 + number])
        wait_until(
            lambda name=name: f"{name} runs",
            lambda name=name: phases(line, name) == ["Running"],
            SECONDS,
        )
    for name in names:
        (pod,) = named(line, name)
        assert f"limit_bytes {4308 << 20} " in "\n".join(given(line, pod, "tf-notebook"))
    assert "Allocated :" in line.inspected("-d") and "12 (85%)" in line.inspected("-d")

    fourth = (
        MANIFESTS.joinpath("mem_deployment-3.yaml")
        .read_text(encoding="utf-8")
        .replace("tf-notebook-3", "tf-notebook-4")
    )
    send(line, fourth, PRINTS)
    (pod,) = wait_for_pods(line, "tf-notebook-4")
    wait_until(
        "the fourth shows the reason",
        lambda: any("need 4 GiB, largest free 2 GiB" in each for each in line.events(pod)),
        SECONDS,
    )
    line.cluster.admin.run("delete", "deployment,service", "tf-notebook-4", "-n", "default")


# --- helpers --------------------------------------------------------------------------------------


def apply(line: Line, name: str, image: str = PRINTS) -> None:
    send(line, MANIFESTS.joinpath(name).read_text(encoding="utf-8"), image)


def send(line: Line, text: str, image: str) -> None:
    """Apply the document's YAML; only the image is replaced."""
    replaced = re.sub(r"^( +image: ).*$", rf"\g<1>{image}", text, flags=re.MULTILINE)
    assert len(list(yaml.safe_load_all(replaced))) == len(list(yaml.safe_load_all(text)))
    line.cluster.admin.run("apply", "-n", "default", "-f", "-", stdin=replaced)


def remove(line: Line, name: str) -> None:
    line.cluster.admin.run("delete", "-n", "default", "-f", str(MANIFESTS / name))
    app = name.removesuffix(".yaml").removesuffix("-shared")
    wait_until(
        "its pods are gone",
        lambda: not named(line, "tf-notebook-gpu" if app == "gpu_deployment" else app),
        SECONDS,
    )


def named(line: Line, app: str) -> dict[str, str]:
    """The phases of its pods, by name."""
    found = line.cluster.admin.get("pods", "-n", "default", f"--selector=app={app}")
    return {each["metadata"]["name"]: each["status"]["phase"] for each in found}


def phases(line: Line, app: str) -> list[str]:
    return list(named(line, app).values())


def wait_for_pods(line: Line, app: str) -> list[str]:
    wait_until(f"{app} has a pod", lambda: named(line, app), SECONDS)
    return list(named(line, app))


def given(line: Line, pod: str, container: str) -> list[str]:
    """What its program prints about what it received; an absent file is left out."""
    printed = line.printed(pod, container)
    has_region = any(re.fullmatch(r"region \d+", text) for text in printed)
    strange = re.compile(r"region( \d+)?$|end$|cat: can't open|stat: can't stat")
    return [text for text in printed if not strange.match(text)] + (
        ["region"] if has_region else []
    )
