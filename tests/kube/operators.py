"""Starts the real operators of training jobs, mpi-operator and training-operator, as plain
processes beside a test cluster.

training-operator serves with the certificate in its TMPDIR, but begins only when there is one in a
folder of which a machine has only one, too. So a lock lets one pair start at a time. (mpi-operator
is built without its fixed port: `tools/kube_programs`.)
"""

from __future__ import annotations

import base64
import os
import shutil
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.kube.addresses import free_port
from tests.kube.certificates import KeyPair
from tests.kube.component import Component
from tests.kube.control_plane import ControlPlane
from tests.kube.crds import install_job_kinds
from tests.kube.machine_turn import only_run
from tests.kube.programs import program

MPI_NAMESPACE = "mpi-operator"
"""The namespace of its lease."""
TRAINING_NAMESPACE = "kubeflow"
"""The namespace of its secret."""
CERTIFICATES = Path("k8s-webhook-server/serving-certs")
"""The folder of its certificate, in MACHINE and in its TMPDIR."""
MACHINE = Path("/tmp")
WEBHOOKS = ("tfjob", "pytorchjob")
_LOCK = Path("/tmp/fairlead-test-operators.lock")
_READY_SECONDS = 120.0


@contextmanager
def running_operators(cluster: ControlPlane) -> Iterator[None]:
    """Both operators at work in this cluster for the block, with their CRDs and training-operator's
    webhook.
    """
    with ExitStack() as leaving:
        install_job_kinds(cluster.admin)
        cluster.admin.apply(
            [_core("Namespace", name) for name in (MPI_NAMESPACE, TRAINING_NAMESPACE)]
        )
        leaving.enter_context(_mpi_operator(cluster))
        with only_run("operator starts", _LOCK):
            leaving.enter_context(_training_operator(cluster))
        yield


@contextmanager
def running_mpi_operator(cluster: ControlPlane) -> Iterator[None]:
    """mpi-operator alone, which needs no turn, with all CRDs."""
    install_job_kinds(cluster.admin)
    cluster.admin.apply([_core("Namespace", MPI_NAMESPACE)])
    with _mpi_operator(cluster):
        yield


@contextmanager
def _mpi_operator(cluster: ControlPlane) -> Iterator[None]:
    flags = [
        "-kubeConfig",
        _kubeconfig(cluster, "mpi-operator"),
        "-kube-api-qps=200",
        "-kube-api-burst=400",
    ]
    with _started(cluster, "mpi-operator", flags) as component:
        component.wait_until(
            lambda: bool(cluster.admin.get("leases", "-n", MPI_NAMESPACE)), _READY_SECONDS
        )
        yield


@contextmanager
def _training_operator(cluster: ControlPlane) -> Iterator[None]:
    """training-operator with its webhook, so that what it refuses is refused here, too."""
    probe, webhook = free_port(), free_port()
    flags = [
        "-kubeconfig",
        _kubeconfig(cluster, "training-operator"),
        "-metrics-bind-address=0",
        f"-health-probe-bind-address=127.0.0.1:{probe}",
        f"-webhook-server-port={webhook}",
        "-kube-api-qps=200",
        "-kube-api-burst=400",
        *(f"-enable-scheme={kind}" for kind in WEBHOOKS),
    ]
    cluster.admin.apply(
        [_core("Secret", "training-operator-webhook-cert", namespace=TRAINING_NAMESPACE)]
    )
    pair = cluster.issue("training-operator-webhook", names=["127.0.0.1"])
    with ExitStack() as leaving:
        own = cluster.folder / "training-operator"
        leaving.callback(shutil.rmtree, own, ignore_errors=True)
        _put(pair, own)
        _put(pair, MACHINE)
        try:
            component = leaving.enter_context(_started(cluster, "training-operator", flags, own))
            component.wait_until(
                lambda: _answers(f"http://127.0.0.1:{probe}/readyz"), _READY_SECONDS
            )
        finally:
            shutil.rmtree((MACHINE / CERTIFICATES).parent)
        cluster.admin.apply([_webhooks(cluster, webhook)])
        yield
        cluster.admin.delete("validatingwebhookconfigurations", "training-operator")


def _put(pair: KeyPair, place: Path) -> None:
    (place / CERTIFICATES).mkdir(parents=True, exist_ok=True)
    shutil.copy(pair.certificate, place / CERTIFICATES / "tls.crt")
    shutil.copy(pair.key, place / CERTIFICATES / "tls.key")


@contextmanager
def _started(
    cluster: ControlPlane, name: str, flags: Sequence[str], temporary: Path = MACHINE
) -> Iterator[Component]:
    # A small environment: KUBECONFIG overrides mpi-operator's flag, and a proxy receives even
    # loopback requests.
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "TMPDIR": str(temporary)}
    component = Component(name, [program(name), *flags], cluster.logs / f"{name}.log", environment)
    try:
        component.start()
        yield component
    finally:
        component.stop()


def _kubeconfig(cluster: ControlPlane, name: str) -> str:
    return str(cluster.write_user_kubeconfig(name, ["system:masters"]))


def _core(kind: str, name: str, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, **metadata}}


def _webhooks(cluster: ControlPlane, port: int) -> dict[str, Any]:
    """The webhooks of training-operator's own manifest, by address: no Service of this cluster
    leads anywhere.
    """
    authority = base64.b64encode(cluster.authority.read_bytes()).decode()
    webhooks = [
        {
            "name": f"validator.{kind}.training-operator.kubeflow.org",
            "clientConfig": {
                "url": f"https://127.0.0.1:{port}/validate-kubeflow-org-v1-{kind}",
                "caBundle": authority,
            },
            "rules": [
                {
                    "apiGroups": ["kubeflow.org"],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": [f"{kind}s"],
                }
            ],
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        for kind in WEBHOOKS
    ]
    metadata = {"name": "training-operator"}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": metadata,
        "webhooks": webhooks,
    }


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2):
            return True
    except OSError:
        return False
