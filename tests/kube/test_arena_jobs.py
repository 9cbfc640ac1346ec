"""Do `arena list`, `get`, `top job`, `logs` and `delete` agree with kubectl, on a real cluster and
on the laptop's?

Rights are tried on both servers alike: kubeconfigs impersonate a user, and RBAC decides.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.contracts.simulated import simulated_server
from tests.kube.control_plane import ControlPlane
from tests.kube.kubectl import Kubectl
from tests.kube.laptop import Laptop, running_laptop
from tests.kube.programs import program
from tests.kube.servers import arena_answer, run_arena
from tests.waiting import wait_until

from fairlead.edge.files.clock import WallClock

LOGS = Path(__file__).parents[2] / "test-output" / "kube"
STATUS = {
    "bert": "RUNNING",
    "waits": "PENDING",
    "finished": "SUCCEEDED",
    "mnist": "RUNNING",
    "broken": "FAILED",
}
REQUESTED = {"bert": "12", "waits": "12", "finished": "1", "mnist": "2", "broken": "2"}


def rows(table: str) -> dict[str, dict[str, str]]:
    """Rows by name; cells are separated by two or more blanks."""
    head, *lines = [
        re.split(r"\s{2,}", line.strip())
        for line in table.splitlines()
        if line.strip() and not line.startswith("Total")
    ]
    found = [dict(zip(head, line, strict=True)) for line in lines]
    return {row["NAME"]: row for row in found}


class TestRealCluster:
    def test_list(self, company: ControlPlane) -> None:
        found = rows(run_arena("list", "-n", "research", kubeconfig=company.kubeconfig))
        assert {name: row["STATUS"] for name, row in found.items()} == STATUS
        assert {name: row["GPU(Requested)"] for name, row in found.items()} == REQUESTED
        assert {name: row["GPU(Allocated)"] for name, row in found.items()} == {
            "bert": "12",
            "waits": "0",
            "mnist": "2",
            "finished": "N/A",
            "broken": "N/A",
        }
        pods = {pod["metadata"]["name"]: pod for pod in company.admin.get("pods", "-n", "research")}
        chief = pods["bert-launcher"]
        assert found["bert"]["NODE"] == chief["status"].get("hostIP", "N/A")
        assert found["finished"]["DURATION"] == found["broken"]["DURATION"] == "1h"
        assert (
            rows(run_arena("list", "-A", kubeconfig=company.kubeconfig))["mnist"]["NAMESPACE"]
            == "research"
        )

    def test_the_node_is_the_chiefs(self, company: ControlPlane) -> None:
        """The node is the chief's host IP, which a kubelet would have written."""
        host = {"hostIP": "10.1.0.77", "hostIPs": [{"ip": "10.1.0.77"}]}
        company.admin.patch_status("pods", "bert-launcher", "research", host)
        assert (
            rows(run_arena("list", "-n", "research", kubeconfig=company.kubeconfig))["bert"]["NODE"]
            == "10.1.0.77"
        )
        assert (
            rows(run_arena("top", "job", "-n", "research", kubeconfig=company.kubeconfig))["bert"][
                "NODE"
            ]
            == "10.1.0.77"
        )

    def test_top_job(self, company: ControlPlane) -> None:
        printed = run_arena("top", "job", "-n", "research", kubeconfig=company.kubeconfig)
        assert list(rows(printed))[:2] in (["bert", "waits"], ["waits", "bert"])
        assert printed.endswith("\n\nTotal Allocated/Requested GPUs of Training Jobs: 14/14\n")

    def test_get(self, company: ControlPlane) -> None:
        reported = json.loads(
            run_arena("get", "bert", "-n", "research", "-o", "json", kubeconfig=company.kubeconfig)
        )
        pods = {pod["metadata"]["name"]: pod for pod in company.admin.get("pods", "-n", "research")}
        assert [each["name"] for each in reported["instances"]] == [
            "bert-launcher",
            *(f"bert-worker-{index}" for index in range(3)),
        ]
        for each in reported["instances"]:
            assert each["node"] == pods[each["name"]]["spec"]["nodeName"]
            assert each["nodeIP"] == pods[each["name"]]["status"].get("hostIP", "")
        assert (reported["chiefName"], reported["requestGPUs"], reported["allocatedGPUs"]) == (
            "bert-launcher",
            12,
            12,
        )

    def test_why_a_job_waits_and_its_events(self, company: ControlPlane) -> None:
        printed = run_arena(
            "get", "waits", "-n", "research", "--explain", "-e", kubeconfig=company.kubeconfig
        )
        own = r"needs 12 GPUs on one node; the largest of \d+, gpu-\d+, has 8"
        assert re.search(
            (
                rf"^Pending:\n  waits-worker-0: {own}; "
                r"Unschedulable: 0/22 nodes are available"
            ),
            printed,
            re.MULTILINE,
        ), printed
        assert re.search(
            (
                r"^  pod/waits-worker-0 +Warning +\S+ "
                r"+\[FailedScheduling\] "
            ),
            printed,
            re.MULTILINE,
        ), printed

    def test_metrics_that_are_missing_are_reported_once(self, company: ControlPlane) -> None:
        done = arena_answer("top", "job", "bert", "-n", "research", kubeconfig=company.kubeconfig)
        assert done.returncode == 0
        assert done.stderr.count("GPU metrics unavailable: no Prometheus Service is labelled") == 1

    def test_delete(self, company: ControlPlane) -> None:
        """A job that kubectl created is deleted like one that Fairlead created."""
        company.admin.create([_mpijob("doomed", "default")])
        done = arena_answer("delete", "absent", "doomed", kubeconfig=company.kubeconfig)
        assert (done.returncode, done.stdout) == (0, "")
        assert (
            "'absent' does not exist" in done.stderr
            and ("The training job doomed has been deleted successfully") in done.stderr
        )
        assert "doomed" not in [each["metadata"]["name"] for each in company.admin.get("mpijobs")]

    def test_whoami_by_review(self, company: ControlPlane) -> None:
        mine = company.write_user_kubeconfig("alice", ["dev"])
        assert json.loads(run_arena("whoami", kubeconfig=mine)) == {
            "Name": "alice",
            "Id": "6384e2b2184bcbf58eccf10ca7a6563c",
            "IsAdminUser": False,
        }


def _mpijob(name: str, namespace: str) -> dict[str, Any]:
    def replicas(gpus: int) -> dict[str, Any]:
        limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
        containers = [
            {
                "name": "mpi",
                "image": "registry.example.com/train:5m",
                "resources": {"limits": limits},
            }
        ]
        return {"replicas": 1, "template": {"spec": {"containers": containers}}}

    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"mpiReplicaSpecs": {"Launcher": replicas(0), "Worker": replicas(1)}},
    }


@pytest.fixture(scope="module", params=["simulated", "real"])
def admin(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kubectl]:
    """The administrator of a server where `limited` may list and get tfjobs in the namespace
    `rights`, and the user `nobody` has no rights.
    """
    if request.param == "real":
        kubectl: Kubectl = request.getfixturevalue("company").admin
        yield from _with_rights(kubectl)
    else:
        folder = tmp_path_factory.mktemp("rights")
        with simulated_server(folder, WallClock()) as server:
            yield from _with_rights(Kubectl(program("kubectl"), server.kubeconfig, folder))


def _with_rights(kubectl: Kubectl) -> Iterator[Kubectl]:
    kubectl.run("create", "namespace", "rights")
    kubectl.run(
        "create",
        "role",
        "tf",
        "-n",
        "rights",
        "--verb=get,list",
        "--resource=tfjobs.kubeflow.org,pods",
    )
    kubectl.run("create", "rolebinding", "tf", "-n", "rights", "--role=tf", "--user=limited")
    spec = {
        "tfReplicaSpecs": {
            "Worker": {
                "replicas": 1,
                "template": {"spec": {"containers": [{"name": "tensorflow", "image": "x"}]}},
            }
        }
    }
    metadata = {"name": "mine", "namespace": "rights"}
    kubectl.create(
        [{"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": metadata, "spec": spec}]
    )
    yield kubectl
    kubectl.run("delete", "namespace", "rights", "--wait=false")


def _as(person: str, kubectl: Kubectl, folder: Path) -> Path:
    document = yaml.safe_load(Path(kubectl.kubeconfig).read_text(encoding="utf-8"))
    document["users"][0]["user"]["as"] = person
    path = folder / f"{person}.kubeconfig"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


class TestRights:
    def test_a_user_that_may_only_list_tfjobs_gets_those(
        self, admin: Kubectl, tmp_path: Path
    ) -> None:
        mine = _as("limited", admin, tmp_path)
        wait_until(
            "the role counts",
            lambda: (
                arena_answer("list", "-n", "rights", "-T", "tf", kubeconfig=mine).returncode == 0
            ),
        )
        done = arena_answer("list", "-n", "rights", kubeconfig=mine)
        assert list(rows(done.stdout)) == ["mine"] and done.returncode == 0
        skipped = re.findall(r"skipped (\S+): forbidden: ", done.stderr)
        assert {"mpijobs.kubeflow.org", "pytorchjobs.kubeflow.org"} <= set(skipped) and len(
            skipped
        ) == len(set(skipped))
        assert arena_answer("list", "-n", "rights", "-T", "mpi", kubeconfig=mine).returncode == 1
        assert arena_answer("get", "mine", "-n", "rights", kubeconfig=mine).returncode == 0
        absent = arena_answer("get", "absent", "-n", "rights", kubeconfig=mine)
        assert absent.returncode == 1 and "forbidden" in absent.stderr, (
            "it may be there, as another kind"
        )
        refused = arena_answer("delete", "mine", "-n", "rights", "-T", "tf", kubeconfig=mine)
        assert refused.returncode == 1 and 'cannot delete resource \\"tfjobs\\"' in refused.stderr

    def test_a_user_without_any_right_gets_a_sentence(self, admin: Kubectl, tmp_path: Path) -> None:
        unknown = _as("nobody", admin, tmp_path)
        done = arena_answer("list", "-n", "rights", kubeconfig=unknown)
        assert (done.returncode, done.stdout) == (1, "")
        assert (
            "the user has no privileges to list the training jobs in namespace rights"
        ) in done.stderr
        assert json.loads(run_arena("whoami", kubeconfig=unknown))["Name"] == "nobody"


@pytest.fixture(scope="module")
def laptop() -> Iterator[Laptop]:
    LOGS.mkdir(parents=True, exist_ok=True)
    with running_laptop(LOGS / "arena-jobs.log", "--scenario=documents-000", "--speed=20") as one:
        yield one


class TestLaptop:
    def test_a_jobs_life(self, laptop: Laptop) -> None:
        """From before its pods to after its end, with GPU values, which a laptop's exporter
        reports.
        """
        config = laptop.kubeconfig
        laptop.kubectl.create([_mpijob("mpi-test", "default")])
        assert rows(run_arena("list", kubeconfig=config))["mpi-test"]["GPU(Requested)"] == "1"
        followed = arena_answer("logs", "mpi-test", "-f", kubeconfig=config)
        assert followed.returncode == 0, followed.stderr
        lines = followed.stdout.splitlines()
        assert lines[0].startswith("starting ") and len(lines) > 3, (
            "followed from Pending to its end"
        )
        assert (
            run_arena("logs", "mpi-test", "--tail", "2", kubeconfig=config).splitlines()
            == lines[-2:]
        )
        stamped = run_arena("logs", "mpi-test", "--timestamps", "-t", "1", kubeconfig=config)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\S+Z " + re.escape(lines[-1]) + "\n", stamped)
        wait_until("it has succeeded", lambda: "SUCCEEDED" in run_arena("list", kubeconfig=config))
        first, second = (rows(run_arena("list", kubeconfig=config))["mpi-test"] for _ in range(2))
        assert (first["DURATION"], first["GPU(Allocated)"]) == (second["DURATION"], "N/A")
        assert arena_answer("delete", "mpi-test", kubeconfig=config).returncode == 0
        assert rows(run_arena("list", kubeconfig=config)) == {}

    def test_a_pod_that_is_not_the_jobs(self, laptop: Laptop) -> None:
        laptop.kubectl.create([_mpijob("other", "default")])
        done = arena_answer("logs", "other", "-i", "nothing", kubeconfig=laptop.kubeconfig)
        text = (
            "invalid instance name nothing in job other,please use 'arena get other' to make sure "
            "instance name"
        )
        assert done.returncode == 1 and text in done.stderr
