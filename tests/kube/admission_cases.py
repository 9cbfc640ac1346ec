"""What may be written on a pod that shares a GPU, and which scheduler is it for? One table for every place where admission is judged:
the functions, the policies of a real API server, the webhook behind one, the laptop's hook.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

Object = dict[str, Any]

EXTENDER: Final = "system:serviceaccount:fairlead-system:fairlead-scheduler"
AGENT: Final = "system:serviceaccount:fairlead-system:fairlead-node-agent"
ALICE: Final = "alice"
BUILDER: Final = "system:serviceaccount:default:fairlead-scheduler"  # the right name in the wrong namespace

OURS: Final = "fairlead-scheduler"
DEFAULT: Final = "default-scheduler"
MEMORY, CORE = "aliyun.com/gpu-mem", "aliyun.com/gpu-core.percentage"


def part(name: str = "a", **more: Any) -> Object:
    """A container; `limits` are given as `limits={…}`."""
    limits = more.pop("limits", {})
    return {"name": name, "image": "app:1", **({"resources": {"limits": limits}} if limits else {}), **more}


def spec(*parts: Object, **more: Any) -> Object:
    return {"containers": list(parts), **more}


SENT: Final[dict[str, tuple[Object, str]]] = {
    "it asks for memory": (spec(part(limits={MEMORY: "4"})), OURS),
    "a number, not a text": (spec(part(limits={MEMORY: 4})), OURS),
    "thousands": (spec(part(limits={MEMORY: "2k"})), OURS),
    "two, in thousandths": (spec(part(limits={MEMORY: "2000m"})), OURS),
    "it asks for nothing": (spec(part()), DEFAULT),
    "zero is nothing": (spec(part(limits={MEMORY: "0"})), DEFAULT),
    "zero of both is nothing": (spec(part(limits={MEMORY: "0", CORE: "0"})), DEFAULT),
    "whole GPUs are not ours": (spec(part(limits={"nvidia.com/gpu": "1"})), DEFAULT),
    "core percent alone": (spec(part(limits={CORE: "30"})), OURS),
    "the second container asks": (spec(part(), part("b", limits={MEMORY: "4"})), OURS),
    "an init container asks": (spec(part(), initContainers=[part("i", limits={MEMORY: "4"})]), OURS),
    "a sidecar asks": (spec(part(), initContainers=[part("i", limits={MEMORY: "4"}, restartPolicy="Always")]), OURS),
    "default-scheduler by name": (spec(part(limits={MEMORY: "4"}), schedulerName=DEFAULT), OURS),
    "another scheduler by name": (spec(part(limits={MEMORY: "4"}), schedulerName="volcano"), "volcano"),
    "ours by name": (spec(part(limits={MEMORY: "4"}), schedulerName=OURS), OURS),
    "ours by name, without a GPU": (spec(part(), schedulerName=OURS), OURS),
}
"""What a pod's spec says, and the scheduler that it is for."""


class Attempt(NamedTuple):
    """`after` is merged into the annotations `before` (None takes a key away). `refused`: the key that is named, "" = it is done."""

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
    "a new pod with a wish": Attempt("create", ALICE, {"fairlead.io/gpu-placement": "spread", "team": "a"}),
    "the same account of another namespace": Attempt("create", BUILDER, {GRANT: "{}"}, GRANT),
    "a new pod by the extender": Attempt("create", EXTENDER, {INDEX: "0"}),
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
"""Who tries what. A Binding's annotations are merged into the pod; a write of the status may change annotations on a real server."""


def result(attempt: Attempt) -> dict[str, str]:
    """The annotations that the attempt would leave."""
    merged: dict[str, str | None] = {**attempt.before, **attempt.after}
    return {key: value for key, value in merged.items() if value is not None}
