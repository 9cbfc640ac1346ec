"""docs/reference/compatibility.md and README.md name the versions that are pinned and required in
code.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from fairlead.settings import OLDEST_KUBERNETES

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "reference" / "compatibility.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
TESTED = PAGE.partition("\n## Tested with\n")[2].partition("\n## ")[0]
OTHERS = [folder.name for folder in sorted((ROOT / "tools" / "kube").glob("kubernetes-*"))]
"""Folders of the Kubernetes versions that run by name only."""
PINNED = {
    "k8s.io/kubernetes": "kubernetes",
    "go.etcd.io/etcd/server/v3": "etcd",
    "github.com/containerd/containerd/v2": "containerd",
    "github.com/kubeflow/mpi-operator": "operators",
    "github.com/kubeflow/training-operator": "operators",
    "github.com/prometheus-operator/prometheus-operator": "monitoring",
    "sigs.k8s.io/prometheus-adapter": "adapter",
}
"""Go modules of the programs that the tests run, and the folder in `tools/kube` that pins each."""


def pinned(module: str, folder: str = "") -> str:
    """The version without its `v`, as the folder pins it; by default that of all tests."""
    place = ROOT / "tools" / "kube" / (folder or PINNED[module])
    text = (place / "go.mod").read_text(encoding="utf-8")
    (version,) = re.findall(rf"^(?:require )?\s*{re.escape(module)} v(\S+)$", text, re.MULTILINE)
    return str(version)


@pytest.mark.parametrize("module", PINNED)
def test_the_versions_that_the_tests_run_are_those_of_the_table(module: str) -> None:
    assert re.search(rf"[| ]{re.escape(pinned(module))}[ ,|]", TESTED)


def test_readme_names_no_other_kubernetes_as_tested() -> None:
    version, others = (
        pinned("k8s.io/kubernetes"),
        [pinned("k8s.io/kubernetes", each) for each in OTHERS],
    )
    assert f"The tests run Kubernetes {version};" in README
    listed = f"{', '.join(others[:-1])} and {others[-1]}"
    assert f"control planes of {listed}." in " ".join(README.split())
    assert (
        f"| kube-apiserver, kube-controller-manager, kube-scheduler | {', '.join(others)} |"
        in TESTED
    )
    assert set(re.findall(r"1\.\d\d\.\d+", README + PAGE)) == {version, *others}


def test_the_oldest_api_server_is_that_of_the_code() -> None:
    oldest = ".".join(map(str, OLDEST_KUBERNETES))
    assert f"| boards, cluster exporter, `arena`, `fairlead why`, snapshots | {oldest} |" in PAGE
    assert f"cluster exporter | {oldest} |" in README


def test_python_is_the_one_that_packages_require() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = project["requires-python"].removeprefix(">=")
    assert f"wheel | {needed} or newer |" in PAGE
    assert f"Python {needed} or newer" in README


def test_what_both_pages_list_has_the_same_oldest_version() -> None:
    """The rows of README are fewer; the numbers of a row are those of the page's rows about it."""
    rows = {
        "`arena attach`": ("`arena attach`",),
        "GPU exporter": ("GPU exporter: pods",),
        "node agent": ("node agent",),
        "sharing a GPU": ("GPU sharing, admission by policies", "GPU sharing, admission by the"),
        "elastic quota": ("elastic quota, admission by p", "elastic quota, admission by the"),
        "`fairlead install`": ("`fairlead install` |", "`fairlead install --set admission"),
    }
    for front, details in rows.items():
        cell = row_of(README, front)[1]
        wanted = [re.findall(r"1\.\d\d", row_of(PAGE, each)[1])[0] for each in details]
        assert re.findall(r"1\.\d\d", cell) == wanted, front


def row_of(text: str, begins: str) -> list[str]:
    """The cells of the one row of a table that begins so."""
    (row,) = [line for line in text.splitlines() if line.startswith(f"| {begins}")]
    return [cell.strip() for cell in row.strip("|").split("|")]
