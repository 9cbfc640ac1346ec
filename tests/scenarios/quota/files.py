"""Worked scenarios of elastic quota as data: one TOML file each, for every world that can play them
(the plan in memory, the simulated cluster, a real control plane).

    title, section                          # of docs/spec/quota.md
    resource = "cpu"                        # the resource of plain numbers
    tree = "root[40]{a[10/20] b[30]}"       # name[min/max] in Kubernetes quantities;
                                            # several resources: x[cpu 1/2, nvidia.com/gpu 0/4]
    namespaces = {a = ["team-a"]}           # default: one, the leaf's name with - for .
    [attributes.root] "fairlead.io/reclaim-scope" = "subtree"
    needs = ["operators"]                   # or "admission": worlds without it skip the scenario,
                                            # with a message
    is_slow = true                          # takes minutes in a world whose time cannot be sped up
    refused_on_entry = ["MaxExceedsParent"] # faults for which the webhook would refuse the tree;
                                            # the plan is right all the same

    [[steps]]                               # each begins when the one before has settled
    add = [{name = "web", leaf = "a", kind = "Deployment", replicas = 5, asks = "5"}]
                                            # also priority, gang, preemptible, namespace,
                                            # gate (of another controller), never_preempts
    budgets = [{name = "web", workload = "a/web", allows = 0}]  # made before what is added
    update = ["a/web"]                      # a new revision of its template, all else the same
    remove = ["a/web"]
    tree = "..."                            # the tree from now on
    attempts = ["remove the gate of a/web"] # of a user; also "set the node of a/web".
                                            # Each is refused
    wait = 60                               # seconds that pass
    [steps.expect]                          # when settled: the plan is empty, no pod is stopping
    running = {a = 4}                       # admitted pods by leaf
    evictions = 0                           # since the beginning (E)
    victims = {a = 1}                       # pods evicted or suspended in this step, by leaf
    waiting = {a = {OverMax = 1}}           # units by reason, all of the leaf
    sentences = {a = ["cpu asks 5; a uses 20 of max 20"]}   # each is the message of a unit
    untouched = {other = 3}                 # pods outside of the tree that run and were never
                                            # gated, by namespace
    daemons = ["a"]                         # leaves in which pods of DaemonSets run that were
                                            # never gated
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from fairlead.model.quota.tree import QuotaNode
from fairlead.model.resources import Amounts
from fairlead.wire.kube.quantity import parse_amount

_NODE = re.compile(r"\s*([\w.-]+)\[([^\]]*)\]")
HERE = Path(__file__).parent


class ScenarioWorkload(Struct, frozen=True, forbid_unknown_fields=True):
    """`kind`: Deployment, StatefulSet, Job, MPIJob, PyTorchJob, DaemonSet, or Pod (bare pods
    `name-0`, `name-1`, …).

    `leaf`: empty for a workload outside of the tree, which has a namespace instead. `gang`: the
    number of pods that run together. `preemptible`: the label; None = no label.
    """

    name: str
    asks: str
    leaf: str = ""
    kind: str = "Deployment"
    replicas: int = 1
    priority: int = 0
    never_preempts: bool = False
    gate: str = ""
    gang: int = 0
    preemptible: bool | None = None
    namespace: str = ""


class ScenarioBudget(Struct, frozen=True, forbid_unknown_fields=True):
    """A PodDisruptionBudget for all pods of one workload (`leaf/name`)."""

    name: str
    workload: str
    allows: int


class Expectation(Struct, frozen=True, forbid_unknown_fields=True):
    running: dict[str, int]
    evictions: int
    victims: dict[str, int] | None = None
    waiting: dict[str, dict[str, int]] = {}
    sentences: dict[str, list[str]] = {}
    untouched: dict[str, int] = {}
    daemons: list[str] = []


class Step(Struct, frozen=True, forbid_unknown_fields=True):
    expect: Expectation
    add: list[ScenarioWorkload] = []
    budgets: list[ScenarioBudget] = []
    update: list[str] = []
    remove: list[str] = []
    tree: str = ""
    attempts: list[str] = []
    wait: int = 0


class Scenario(Struct, frozen=True, forbid_unknown_fields=True):
    title: str
    section: str
    tree: str
    steps: list[Step]
    resource: str = "cpu"
    namespaces: dict[str, list[str]] = {}
    attributes: dict[str, dict[str, str]] = {}
    needs: list[str] = []
    is_slow: bool = False
    refused_on_entry: list[str] = []

    def root(self, text: str = "") -> QuotaNode:
        """The scenario's tree, or the one in `text` (of a step)."""
        return parse_tree(text or self.tree, self.attributes, self.resource, self.namespaces)

    def asks(self, workload: ScenarioWorkload) -> Amounts:
        """The amounts in `5` or `cpu 2, nvidia.com/gpu 1`."""
        return {name: parse_amount(name, text) for name, text in self.quantities(workload).items()}

    def quantities(self, workload: ScenarioWorkload) -> dict[str, str]:
        """The same amounts as a manifest writes them."""
        parts = [part.strip().rpartition(" ") for part in workload.asks.split(",")]
        return {word or self.resource: text for word, _, text in parts}

    def namespace(self, workload: ScenarioWorkload) -> str:
        return workload.namespace or self.leaf_namespace(workload.leaf)

    def leaf_namespace(self, name: str) -> str:
        """The first namespace of a leaf."""
        return next(leaf.namespaces[0] for leaf in self.root().leaves() if leaf.name == name)

    def workload(self, key: str) -> ScenarioWorkload:
        """The workload `leaf/name`, as a step adds it."""
        leaf, _, name = key.partition("/")
        return next(
            each
            for step in self.steps
            for each in step.add
            if (each.leaf, each.name) == (leaf, name)
        )


def read_scenario(path: Path) -> Scenario:
    return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), Scenario)


def scenario_paths() -> list[Path]:
    return sorted(HERE.glob("*.toml"))


def parse_tree(
    text: str,
    attributes: Mapping[str, Mapping[str, str]] | None = None,
    resource: str = "cpu",
    namespaces: Mapping[str, list[str]] | None = None,
) -> QuotaNode:
    """Root's max is its min unless the text gives a max."""
    found, rest = _Reader(attributes or {}, resource, namespaces or {}).node(text, "", "")
    assert not rest.strip(), rest
    return replace(found, max=found.max or found.min)


class _Reader(Struct):
    attributes: Mapping[str, Mapping[str, str]]
    resource: str
    namespaces: Mapping[str, list[str]]

    def node(self, text: str, parent: str, path: str) -> tuple[QuotaNode, str]:
        match = _NODE.match(text)
        assert match, text
        name, bounds = match.groups()
        least: dict[str, int] = {}
        most: dict[str, int] = {}
        for part in bounds.split(","):
            word, _, numbers = part.strip().rpartition(" ")
            low, _, high = numbers.partition("/")
            each = word or self.resource
            least[each] = parse_amount(each, low)
            if high:
                most[each] = parse_amount(each, high)
        rest, children = text[match.end() :].lstrip(), []
        here = f"{path}.{name}" if path else name
        if rest.startswith("{"):
            rest = rest[1:].lstrip()
            while not rest.startswith("}"):
                child, rest = self.node(rest, name, here)
                children.append(child)
                rest = rest.lstrip()
            rest = rest[1:]
        spaces = () if children else tuple(self.namespaces.get(name, [name.replace(".", "-")]))
        return QuotaNode(
            name, here, parent, least, most, spaces, self.attributes.get(name, {}), tuple(children)
        ), rest
