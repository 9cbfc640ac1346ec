"""Worked scenarios of elastic quota as data: one TOML file each, for every world that can play them
(the plan in memory, the simulated cluster, a real control plane).

    title, section                          # of docs/spec/quota.md
    resource = "cpu"                        # what plain numbers speak of
    tree = "root[40]{a[10/20] b[30]}"       # name[min/max]; several resources: x[cpu 1/2, nvidia.com/gpu 0/4]; Kubernetes quantities
    namespaces = {a = ["team-a"]}           # default: one, the leaf's name with - for .
    [attributes.root] "fairlead.io/reclaim-scope" = "subtree"
    needs = ["operators"]                   # or "admission": worlds without it leave the scenario out, and say so
    is_slow = true                          # minutes in a world whose time cannot be sped up
    refused_on_entry = ["MaxExceedsParent"] # what is wrong with the tree, which the webhook would refuse: the plan is right all the same

    [[steps]]                               # each is played when the one before has settled
    add = [{name = "web", leaf = "a", kind = "Deployment", replicas = 5, asks = "5"}]   # also priority, gang, preemptible, namespace,
                                            # gate (of another controller), never_preempts
    budgets = [{name = "web", workload = "a/web", allows = 0}]                          # made before what is added
    update = ["a/web"]                      # a new revision of its template, all else the same
    remove = ["a/web"]
    tree = "..."                            # the tree from now on
    attempts = ["remove the gate of a/web"] # of a user; also "set the node of a/web". Each is refused
    wait = 60                               # seconds go by
    [steps.expect]                          # when it has settled: the plan is empty, nothing is stopping
    running = {a = 4}                       # admitted pods by leaf
    evictions = 0                           # since the beginning (E)
    victims = {a = 1}                       # pods evicted or suspended in this step, by leaf
    waiting = {a = {OverMax = 1}}           # units by reason, all of the leaf
    sentences = {a = ["cpu asks 5; a uses 20 of max 20"]}   # each is some unit's
    untouched = {other = 3}                 # pods by namespace off the tree that were never gated and run
    daemons = ["a"]                         # leaves in which pods of DaemonSets run that were never gated
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
    """`kind`: Deployment, StatefulSet, Job, MPIJob, PyTorchJob, DaemonSet, or Pod (bare ones,
    `name-0`, `name-1`, …).

    `leaf`: none of a stranger, who has a namespace instead. `gang`: so many run together.
    `preemptible`: the label; None = without.
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
    """A PodDisruptionBudget over all pods of one workload (`leaf/name`)."""

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
        """The tree that is written, or the one of a step."""
        return parse_tree(text or self.tree, self.attributes, self.resource, self.namespaces)

    def asks(self, workload: ScenarioWorkload) -> Amounts:
        """`5`, or `cpu 2, nvidia.com/gpu 1`."""
        return {name: parse_amount(name, text) for name, text in self.quantities(workload).items()}

    def quantities(self, workload: ScenarioWorkload) -> dict[str, str]:
        """The same, as a manifest writes it."""
        parts = [part.strip().rpartition(" ") for part in workload.asks.split(",")]
        return {word or self.resource: text for word, _, text in parts}

    def namespace(self, workload: ScenarioWorkload) -> str:
        return workload.namespace or self.leaf_namespace(workload.leaf)

    def leaf_namespace(self, name: str) -> str:
        """The first of a leaf."""
        return next(leaf.namespaces[0] for leaf in self.root().leaves() if leaf.name == name)

    def workload(self, key: str) -> ScenarioWorkload:
        """Of `leaf/name`, as a step adds it."""
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
    """Root's max is its min unless it is written."""
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
