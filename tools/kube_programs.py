"""The real programs that the tests need: their versions, and where they lie once built.

Versions stand in `tools/kube/<family>/go.mod` and nowhere else; this module reads them from there.
A program found in KUBEBUILDER_ASSETS (the folder that envtest uses) always wins over a built one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from progress import cache_home

FAMILIES_DIR = Path(__file__).resolve().parent / "kube"
_CONTROL_PLANE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
_KUBE_MODULE = "k8s.io/kubernetes"
_KUBE_VERSION_PACKAGE = "k8s.io/component-base/version"
_KUBE_CLIENT = "k8s.io/client-go"


@dataclass(frozen=True)
class Edit:
    """Text of one file of the module that is another when it is built."""

    file: str
    old: str
    new: str


@dataclass(frozen=True)
class Family:
    """Programs of one Go module that are built together.

    `folder` has the wrapper module that pins it.
    """

    folder: str
    module: str
    packages: dict[str, str]
    edits: tuple[Edit, ...] = ()
    tags: str = ""

    @property
    def version(self) -> str:
        """The pinned version without its `v`, from the wrapper's go.mod."""
        return _pinned(self.folder, self.module)

    @property
    def edition(self) -> str:
        """What a built program is known by in the cache.

        The version, and whether it is the module as it stands.
        """
        return f"{self.version}-edited" if self.edits else self.version

    @property
    def ldflags(self) -> str:
        """Link flags: no symbol tables, and versions that the programs do not know by themselves.

        Without its own, Kubernetes' discovery returns v0.0.0. Without that of Kubernetes,
        `helm template` of Helm 3 takes the cluster for 1.20; Helm 4 knows it.
        """
        values = {}
        if self.module == _KUBE_MODULE:
            major, minor = self.version.split(".")[:2]
            values = {"gitVersion": "v" + self.version, "gitMajor": major, "gitMinor": minor}
        package = _KUBE_VERSION_PACKAGE
        if self.module == "helm.sh/helm/v3":
            package = f"{self.module}/pkg/chartutil"
            minor = _pinned(self.folder, _KUBE_CLIENT).split(".")[1]
            values = {"k8sVersionMajor": "1", "k8sVersionMinor": minor}
        return " ".join(
            ("-s -w", *(f"-X {package}.{name}={value}" for name, value in values.items()))
        )


def _pinned(folder: str, module: str) -> str:
    """The version of a module that a wrapper requires, without its `v`."""
    text = (FAMILIES_DIR / folder / "go.mod").read_text(encoding="utf-8")
    found = re.search(rf"^(?:require)?\s*{re.escape(module)} v(\S+)", text, re.MULTILINE)
    if found is None:
        raise LookupError(f"{folder}/go.mod requires no `{module}`")
    return found.group(1)


def _kubernetes(folder: str, *names: str) -> Family:
    return Family(folder, _KUBE_MODULE, {name: f"{_KUBE_MODULE}/cmd/{name}" for name in names})


KUBERNETES = _kubernetes("kubernetes", *_CONTROL_PLANE, "kube-proxy", "kubectl", "kubelet")
OTHER_KUBERNETES = {
    minor: _kubernetes(f"kubernetes-{minor}", *_CONTROL_PLANE) for minor in ("1.34", "1.35", "1.37")
}
"""By minor version: control planes that Fairlead is tried on, beside that of all other tests."""
ETCD = Family("etcd", "go.etcd.io/etcd/server/v3", {"etcd": "go.etcd.io/etcd/server/v3"})
KWOK = Family("kwok", "sigs.k8s.io/kwok", {"kwok": "sigs.k8s.io/kwok/cmd/kwok"})
MPI_OPERATOR = Family(
    "operators",
    "github.com/kubeflow/mpi-operator",
    {"mpi-operator": "github.com/kubeflow/mpi-operator/cmd/mpi-operator"},
    # No flag moves the port of its health check, and another program may use 8080 already
    # (`fairlead up` does): 0 is
    # any free one.
    (Edit("cmd/mpi-operator/app/server.go", "healthCheckPort = 8080", "healthCheckPort = 0"),),
)
TRAINING_OPERATOR = Family(
    "operators",
    "github.com/kubeflow/training-operator",
    {"training-operator": "github.com/kubeflow/training-operator/cmd/training-operator.v1"},
)
# Debian's knows no CDI. What is left out are kinds of disks, which would want cgo.
CONTAINERD = Family(
    "containerd",
    "github.com/containerd/containerd/v2",
    {
        name: "github.com/containerd/containerd/v2/cmd/" + name
        for name in ("containerd", "containerd-shim-runc-v2", "ctr")
    },
    tags="no_btrfs,no_devmapper,no_zfs",
)
PROMETHEUS_ADAPTER = Family(
    "adapter",
    "sigs.k8s.io/prometheus-adapter",
    {"prometheus-adapter": "sigs.k8s.io/prometheus-adapter/cmd/adapter"},
)
# About 100 s each when built cold; the second one shares most of it.
HELM3 = Family("helm", "helm.sh/helm/v3", {"helm3": "helm.sh/helm/v3/cmd/helm"})
HELM4 = Family("helm", "helm.sh/helm/v4", {"helm4": "helm.sh/helm/v4/cmd/helm"})
# At it the console's tests sign in; its users come from a file.
OIDC_PROVIDER = Family(
    "oidc",
    "github.com/zitadel/oidc/v3",
    {"oidc-provider": "github.com/zitadel/oidc/v3/example/server"},
)
# To it `fairlead bundle push` pushes in the tests. Without the stores of clouds it builds in half a
# minute.
_REGISTRY = "github.com/distribution/distribution/v3"
_CLOUD_STORES = ("azure", "gcs", "middleware/cloudfront", "s3-aws")
REGISTRY = Family(
    "registry",
    _REGISTRY,
    {"registry": f"{_REGISTRY}/cmd/registry"},
    tuple(
        Edit("cmd/registry/main.go", f'\t_ "{_REGISTRY}/registry/storage/driver/{each}"\n', "")
        for each in _CLOUD_STORES
    ),
)
# The peer of `python -m bench quota_admissions`, which builds it when it is first run; no test
# needs it.
KUEUE = Family(
    "kueue",
    "sigs.k8s.io/kueue",
    {"kueue": "sigs.k8s.io/kueue/cmd/kueue"},
    # No flag moves the certificate of its metrics page out of /etc.
    (
        Edit(
            "cmd/kueue/main.go",
            '"/etc/kueue/metrics/certs"',
            'filepath.Join(os.TempDir(), "metrics")',
        ),
    ),
)
# Only their definitions are read: their wrapper builds nothing.
RAY_OPERATOR = Family("definitions", "github.com/ray-project/kuberay/ray-operator", {})
SPARK_OPERATOR = Family("definitions", "github.com/kubeflow/spark-operator/v2", {})
VOLCANO = Family("definitions", "volcano.sh/volcano", {})
KUBEDL = Family("definitions", "github.com/alibaba/kubedl", {})
FLUID = Family("definitions", "github.com/fluid-cloudnative/fluid", {})
KSERVE = Family("definitions", "github.com/kserve/kserve", {})
PROMETHEUS_OPERATOR = Family(
    "monitoring",
    "github.com/prometheus-operator/prometheus-operator",
    {"prometheus-operator": "github.com/prometheus-operator/prometheus-operator/cmd/operator"},
)
# Debian's is built without discovery in Kubernetes. This one discovers there and in files, and has
# no pages.
PROMETHEUS = Family(
    "monitoring",
    "github.com/prometheus/prometheus",
    {"prometheus": "github.com/prometheus/prometheus/cmd/prometheus"},
    tags="remove_all_sd,enable_kubernetes_sd",
)
BUILT = (
    *(KUBERNETES, ETCD, KWOK, MPI_OPERATOR, TRAINING_OPERATOR, CONTAINERD, PROMETHEUS_ADAPTER),
    *(HELM3, HELM4, OIDC_PROVIDER, REGISTRY),
)
MONITORING = (PROMETHEUS_OPERATOR, PROMETHEUS)
# Enforces NetworkPolicies by iptables and ipset; others need `nft … queue`, which kernels may lack.
KUBE_ROUTER = Family(
    "router",
    "github.com/cloudnativelabs/kube-router/v2",
    {"kube-router": "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router"},
)
# The controllers of data sets and of caches by Alluxio, for the group `fluid` alone.
FLUID_CONTROLLERS = Family(
    "fluid",
    "github.com/fluid-cloudnative/fluid",
    {
        f"fluid-{name}": f"github.com/fluid-cloudnative/fluid/cmd/{name}"
        for name in ("dataset", "alluxio")
    },
)
# For one group each. All but Fluid's take ten minutes of compiling or more, and their groups run
# when they are named.
BUILT_ON_DEMAND = (*MONITORING, KUBE_ROUTER, *OTHER_KUBERNETES.values(), FLUID_CONTROLLERS)

# The tests read YAML of these modules (stages, CRDs), also if the programs come from a cache of
# another
# machine.
READ = (
    KWOK,
    MPI_OPERATOR,
    TRAINING_OPERATOR,
    RAY_OPERATOR,
    SPARK_OPERATOR,
    VOLCANO,
    KUBEDL,
    FLUID,
    KSERVE,
    PROMETHEUS_OPERATOR,
)

FAMILY_OF = {
    program: family
    for family in (*BUILT, *MONITORING, KUBE_ROUTER, KUEUE, FLUID_CONTROLLERS)
    for program in family.packages
}


def program_path(name: str) -> Path:
    """Where the program is, or will be once it is built:
    KUBEBUILDER_ASSETS first, then the cache.
    """
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets and os.access(Path(assets) / name, os.X_OK):
        return Path(assets) / name
    return built_path(FAMILY_OF[name], name)


def built_path(family: Family, name: str) -> Path:
    """Where the family's program lies in the cache once it is built."""
    return cache_home() / "bin" / f"{name}-{family.edition}"


def family_path(family: Family, name: str) -> Path:
    """As `program_path`; another Kubernetes version is never that of KUBEBUILDER_ASSETS."""
    return program_path(name) if FAMILY_OF[name] is family else built_path(family, name)


def missing_programs(family: Family) -> list[str]:
    """The family's programs that neither KUBEBUILDER_ASSETS nor the cache has."""
    return [name for name in family.packages if not os.access(family_path(family, name), os.X_OK)]


def build_flags(families: Iterable[Family]) -> list[str]:
    """The flags with which tools/build_kube.py builds these, too.

    >>> build_flags([PROMETHEUS, PROMETHEUS_OPERATOR])
    ['--with=monitoring']
    """
    return [f"--with={folder}" for folder in sorted({family.folder for family in families})]
