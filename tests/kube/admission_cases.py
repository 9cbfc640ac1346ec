"""Cases of admission for pods that share GPUs: what may be written on such a pod, which scheduler
it gets, and which pods no node can run.

One table for every implementation of the rules: the functions, the policies of a real API server,
the webhook behind a real API server, and the laptop's hook.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

Object = dict[str, Any]

EXTENDER: Final = "system:serviceaccount:fairlead-system:fairlead-scheduler"
ON_MASTERS: Final = "system:serviceaccount:fairlead-nodes:fairlead-gpushare-extender"
AGENT: Final = "system:serviceaccount:fairlead-nodes:fairlead-node-agent"
ALICE: Final = "alice"
# the right name in the wrong namespace
BUILDER: Final = "system:serviceaccount:default:fairlead-scheduler"
AGENT_BESIDE: Final = "system:serviceaccount:fairlead-system:fairlead-node-agent"
STRANGERS: Final = (BUILDER, AGENT_BESIDE)

OWN: Final = "fairlead-scheduler"
DEFAULT: Final = "default-scheduler"
MEMORY, CORE = "aliyun.com/gpu-mem", "aliyun.com/gpu-core.percentage"


def part(name: str = "a", **more: Any) -> Object:
    """A container; `limits` are given as `limits={…}`."""
    limits = more.pop("limits", {})
    return {
        "name": name,
        "image": "app:1",
        **({"resources": {"limits": limits}} if limits else {}),
        **more,
    }


def spec(*parts: Object, **more: Any) -> Object:
    return {"containers": list(parts), **more}


SENT: Final[dict[str, tuple[Object, str]]] = {
    "it asks for memory": (spec(part(limits={MEMORY: "4"})), OWN),
    "a number, not a text": (spec(part(limits={MEMORY: 4})), OWN),
    "thousands": (spec(part(limits={MEMORY: "2k"})), OWN),
    "two, in thousandths": (spec(part(limits={MEMORY: "2000m"})), OWN),
    "it asks for nothing": (spec(part()), DEFAULT),
    "zero is nothing": (spec(part(limits={MEMORY: "0"})), DEFAULT),
    "zero of both is nothing": (spec(part(limits={MEMORY: "0", CORE: "0"})), DEFAULT),
    "whole GPUs are not Fairlead's": (spec(part(limits={"nvidia.com/gpu": "1"})), DEFAULT),
    "the second container asks": (spec(part(), part("b", limits={MEMORY: "4"})), OWN),
    "an init container asks": (
        spec(part(), initContainers=[part("i", limits={MEMORY: "4"})]),
        OWN,
    ),
    "a sidecar asks": (
        spec(part(), initContainers=[part("i", limits={MEMORY: "4"}, restartPolicy="Always")]),
        OWN,
    ),
    "default-scheduler by name": (spec(part(limits={MEMORY: "4"}), schedulerName=DEFAULT), OWN),
    "another scheduler by name": (
        spec(part(limits={MEMORY: "4"}), schedulerName="volcano"),
        "volcano",
    ),
    "Fairlead's by name": (spec(part(limits={MEMORY: "4"}), schedulerName=OWN), OWN),
    "Fairlead's by name, without a GPU": (spec(part(), schedulerName=OWN), OWN),
}
"""What a pod's spec contains, and the scheduler that the pod gets."""

WHOLE, COUNT = "nvidia.com/gpu", "aliyun.com/gpu-count"
PLACEMENT, SPLIT = "fairlead.io/gpu-placement", "fairlead.io/gpu-split"
BOTH = "asks for whole and shared GPUs; no node offers both"
SHARES: Final = spec(part(limits={MEMORY: "8", CORE: "20"}))


class Asking(NamedTuple):
    """`fault`: why no node can run the pod; "" = the pod is accepted.

    See docs/spec/gpu-sharing.md#resources-and-device-ids,
    docs/spec/gpu-sharing.md#pod-annotations-labels-and-environment.
    """

    spec: Object
    fault: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


def both(whole: str) -> Object:
    return spec(part(limits={MEMORY: "4", whole: "1"}))


ASKED: Final[dict[str, Asking]] = {
    "memory": Asking(spec(part(limits={MEMORY: "4"}))),
    "memory and core": Asking(spec(part(limits={MEMORY: "4", CORE: "30"}))),
    "the least core": Asking(spec(part(limits={MEMORY: "4", CORE: "5"}))),
    "the most core": Asking(spec(part(limits={MEMORY: "4", CORE: "100"}))),
    "whole GPUs alone": Asking(spec(part(limits={WHOLE: "1"}))),
    "nothing": Asking(spec(part())),
    "whole GPUs and no memory": Asking(spec(part(limits={MEMORY: "0", WHOLE: "1"}))),
    "whole and shared": Asking(both(WHOLE), BOTH),
    "time slices and shared": Asking(both("nvidia.com/gpu.shared"), BOTH),
    "cards by topology and shared": Asking(both("aliyun.com/gpu"), BOTH),
    "whole in another container": Asking(
        spec(part(limits={MEMORY: "4"}), part("b", limits={WHOLE: "1"})), BOTH
    ),
    "whole in an init container": Asking(
        spec(part(limits={MEMORY: "4"}), initContainers=[part("i", limits={WHOLE: "1"})]), BOTH
    ),
    "core alone": Asking(spec(part(limits={CORE: "30"})), "gpu-core needs gpu-mem"),
    "core of a container without memory": Asking(
        spec(part(limits={MEMORY: "4"}), part("b", limits={CORE: "30"})), "gpu-core needs gpu-mem"
    ),
    "core beside whole GPUs": Asking(
        spec(part(limits={CORE: "30", WHOLE: "1"})), "gpu-core needs gpu-mem"
    ),
    "a malformed core": Asking(
        spec(part(limits={MEMORY: "4", CORE: "7"})),
        "gpu-core 7 is not a multiple of 5 from 5 to 100",
    ),
    "too much core": Asking(
        spec(part(limits={MEMORY: "4", CORE: "105"})),
        "gpu-core 105 is not a multiple of 5 from 5 to 100",
    ),
    "a malformed core of an init container": Asking(
        spec(
            part(limits={MEMORY: "4"}), initContainers=[part("i", limits={MEMORY: "1", CORE: "1"})]
        ),
        "gpu-core 1 is not a multiple of 5 from 5 to 100",
    ),
    "two cards": Asking(SHARES, "", {COUNT: "2"}),
    "no even split of memory": Asking(
        SHARES, "gpu-mem 8 cannot be split over 3 GPUs", {COUNT: "3"}
    ),
    "no even split of core": Asking(
        SHARES, "gpu-core 20 cannot be split over 8 GPUs", {COUNT: "8"}
    ),
    "no card": Asking(SHARES, "label aliyun.com/gpu-count=0 is not a number of GPUs", {COUNT: "0"}),
    "a word": Asking(
        SHARES, "label aliyun.com/gpu-count=two is not a number of GPUs", {COUNT: "two"}
    ),
    "an empty count": Asking(
        SHARES, ('label aliyun.com/gpu-count="" is not a number of GPUs'), {COUNT: ""}
    ),
    "a word, but nothing is shared": Asking(spec(part()), "", {COUNT: "two"}),
    "spread": Asking(SHARES, "", {}, {PLACEMENT: "spread", SPLIT: "per-container"}),
    "no placement": Asking(
        SHARES,
        "annotation fairlead.io/gpu-placement=tight is neither binpack nor spread",
        {},
        {PLACEMENT: "tight"},
    ),
    "no split": Asking(
        SHARES, "annotation fairlead.io/gpu-split=even is not per-container", {}, {SPLIT: "even"}
    ),
    "a long word": Asking(
        SHARES,
        f"annotation fairlead.io/gpu-split={'e' * 40}… is not per-container",
        {},
        {SPLIT: "e" * 99},
    ),
    "for a foreign scheduler": Asking({**both(WHOLE), "schedulerName": "volcano"}),
    "for Fairlead's by name": Asking({**both(WHOLE), "schedulerName": OWN}, BOTH),
}
"""What a new pod requests of shared GPUs."""


class Attempt(NamedTuple):
    """`after` is merged into the annotations `before` (None removes a key). `refused`: the key that
    the refusal names; "" = the write succeeds.
    """

    how: str
    user: str
    after: dict[str, str | None]
    refused: str = ""
    before: dict[str, str] = {}


INDEX, POD, GRANT = "ALIYUN_COM_GPU_MEM_IDX", "ALIYUN_COM_GPU_MEM_POD", "fairlead.io/gpu-allocation"
GROUP = "topology.kubernetes.io/gpu-group"
HELD: Final = {INDEX: "0", GRANT: "{}"}

ATTEMPTS: Final[dict[str, Attempt]] = {
    "a new pod with a grant": Attempt("create", ALICE, {INDEX: "0"}, INDEX),
    "the first key is named": Attempt("create", ALICE, {POD: "4", GRANT: "{}"}, GRANT),
    "whole cards of the topology": Attempt("create", ALICE, {GROUP: "0"}, GROUP),
    "an empty grant is none": Attempt("create", ALICE, {INDEX: ""}),
    "a new pod with a wish": Attempt(
        "create", ALICE, {"fairlead.io/gpu-placement": "spread", "team": "a"}
    ),
    "the same account of another namespace": Attempt("create", BUILDER, {GRANT: "{}"}, GRANT),
    "the agent of the other namespace": Attempt("create", AGENT_BESIDE, {INDEX: "0"}, INDEX),
    "a new pod by the extender": Attempt("create", EXTENDER, {INDEX: "0"}),
    "a new pod by the extender of the control plane": Attempt("create", ON_MASTERS, {INDEX: "0"}),
    "a new pod by the node agent": Attempt("create", AGENT, {INDEX: "0"}),
    "an update adds one": Attempt("update", ALICE, {GRANT: "{}"}, GRANT),
    "an update changes one": Attempt("update", ALICE, {INDEX: "1"}, INDEX, HELD),
    "an update drops one": Attempt("update", ALICE, {INDEX: None}, INDEX, HELD),
    "an update of something else": Attempt("update", ALICE, {"team": "b"}, "", HELD),
    "an update by the node agent": Attempt("update", AGENT, {INDEX: "1"}, "", HELD),
    "a merge patch": Attempt("merge", ALICE, {INDEX: "1"}, INDEX, HELD),
    "a merge patch of something else": Attempt("merge", ALICE, {"team": "b"}, "", HELD),
    "a merge patch takes one away": Attempt("merge", ALICE, {GRANT: None}, GRANT, HELD),
    "a JSON patch": Attempt("json", ALICE, {INDEX: "1"}, INDEX, HELD),
    "a server-side apply": Attempt("apply", ALICE, {INDEX: "1"}, INDEX, HELD),
    "a patch by the extender": Attempt("merge", EXTENDER, {INDEX: "1"}, "", HELD),
    "a status with annotations": Attempt("status", ALICE, {INDEX: "1"}, INDEX, HELD),
    "a status that forges": Attempt("status", ALICE, {GRANT: "{}"}, GRANT),
    "a status with other annotations": Attempt("status", ALICE, {"team": "b"}, "", HELD),
    "a binding with a grant": Attempt("binding", ALICE, {INDEX: "0"}, INDEX),
    "a binding without": Attempt("binding", ALICE, {}),
    "a binding by the extender": Attempt("binding", EXTENDER, {INDEX: "0", GRANT: "{}"}),
    "the old way to bind, with a grant": Attempt("bindings", ALICE, {INDEX: "0"}, INDEX),
    "the old way to bind, without": Attempt("bindings", ALICE, {}),
}
"""Which user tries which write. A Binding's annotations are merged into the pod; a write of the
status may change annotations on a real server.
"""


def result(attempt: Attempt) -> dict[str, str]:
    """The annotations that the attempt would leave."""
    merged: dict[str, str | None] = {**attempt.before, **attempt.after}
    return {key: value for key, value in merged.items() if value is not None}
