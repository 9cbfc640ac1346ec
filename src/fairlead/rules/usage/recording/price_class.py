"""What the price of a node depends on (docs/spec/usage.md#node-intervals)."""

from __future__ import annotations

from typing import Final

from fairlead.model.keys import LABEL_GPU_MODEL, LABEL_GPU_PRODUCT
from fairlead.model.node import Node
from fairlead.model.resources import CPU, MEMORY
from fairlead.model.usage.ledger import Amount, PriceClass
from fairlead.model.usage.prices import MATCHED_NODE_LABELS, MODEL_LABEL
from fairlead.rules.usage.recording.amounts import MIB, NodeGpus

_NOTHING: Final = Amount()


def price_class(node: Node, gpus: NodeGpus, held: Amount = _NOTHING) -> PriceClass:
    """The class of a node whose pods hold `held` together: no capacity is below that."""
    model = _model(node) if gpus.gpu else ""
    found = [(key, node.labels[key]) for key in MATCHED_NODE_LABELS if key in node.labels]
    if model:
        found.append((MODEL_LABEL, model))
    return PriceClass(
        tuple(sorted(found)),
        model,
        max(gpus.gpu, held.gpu),
        max(node.allocatable.get(CPU, 0), held.cpu_milli),
        max(node.allocatable.get(MEMORY, 0) // MIB, held.memory_mib),
    )


def _model(node: Node) -> str:
    models = sorted({slot.model for slot in node.gpus if slot.model})
    if models:
        return ",".join(models)
    return node.labels.get(LABEL_GPU_MODEL) or node.labels.get(LABEL_GPU_PRODUCT) or ""
