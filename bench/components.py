"""Components on a real API server: what an upgrade that changes nothing costs."""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml
from tests.kube.control_plane import running_control_plane
from tests.kube.objects import namespace
from tests.kube.programs import program

from bench.support.options import options
from bench.support.processes import Cost, print_costs, run
from fairlead.model.actions import Manifest
from fairlead.model.installation import INSTALLATION_LABEL, SYSTEM_PART

FAIRLEAD = str(Path(sys.executable).parent / "fairlead")
SYSTEM, SPACE = "fairlead-system", "component"
OBJECTS, UPGRADE_AIM = 60, 0.5
OWN, PEER = "fairlead component upgrade", "helm upgrade"


def measure_component_upgrade() -> None:
    """An upgrade of a component of 60 objects that changes nothing, against Helm's.

        python -m bench component_upgrade [--runs 5]

    On a real API server, in fresh processes that take turns, with the same ConfigMaps. Fairlead
    makes all checks and a dry run of each object, and records the operation.
    """
    parser = options(measure_component_upgrade)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    costs: dict[str, list[Cost]] = {OWN: [], PEER: []}
    with running_control_plane() as cluster, tempfile.TemporaryDirectory() as home:
        system = namespace(SYSTEM)
        system["metadata"]["labels"] = {INSTALLATION_LABEL: SYSTEM_PART}
        cluster.admin.create([system, namespace(SPACE), namespace("by-helm")])
        env = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "HOME": home}
        file = Path(home) / "objects.yaml"
        file.write_text(yaml.safe_dump_all(_objects()), encoding="utf-8")
        chart = _chart(Path(home) / "chart", file.read_text(encoding="utf-8"))
        helm = str(program("helm3"))
        own = [
            FAIRLEAD,
            "component",
            "VERB",
            "mpi-operator",
            "--in",
            SPACE,
            "--manifests",
            str(file),
        ]
        peer = [helm, "upgrade", "--install", "parts", chart, "-n", "by-helm"]
        run(["deploy" if word == "VERB" else word for word in own], env)
        run(peer, env)
        upgrade = ["upgrade" if word == "VERB" else word for word in own]
        for number in range(runs + 1):  # the first of each warms server and caches
            for name, words in ((OWN, upgrade), (PEER, peer)):
                cost = run(words, env)
                if number:
                    costs[name].append(cost)
    found = {
        name: Cost(*map(statistics.median, zip(*rows, strict=True))) for name, rows in costs.items()
    }
    print_costs(found, [PEER], runs)
    ratio = found[OWN].wall / found[PEER].wall
    print(f"\naim: {ratio:.2f} x Helm's wall (<= {UPGRADE_AIM})")


def _objects() -> list[Manifest]:
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"part-{number}"},
            "data": {"a": "b"},
        }
        for number in range(OBJECTS)
    ]


def _chart(folder: Path, template: str) -> str:
    values: dict[str, Any] = {"apiVersion": "v2", "name": "parts", "version": "1.0.0"}
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    (folder / "templates" / "parts.yaml").write_text(template, encoding="utf-8")
    return str(folder)
