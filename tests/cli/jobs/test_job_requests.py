"""How many requests the job commands send, and what they print when some of them fail. Against a
scripted server.

The budget of the specification: one discovery, one list per served kind, one pod list per family of
labels, one query of Prometheus.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.cli.arena import PROGRAM, arena, kubeconfig
from tests.cli.job_objects import job, job_pod
from tests.cli.jobs.scripted_jobs import MPI, SERVED, TF, collection, discovery, listed, run, script
from tests.edge.pki import Authority
from tests.edge.scripted import Reply, ScriptedServer, Stream, status
from tests.waiting import HANG_SECONDS

WHO = ' is forbidden: User "eve" cannot list resource'


def forbidden(plural: str) -> Reply:
    return status(403, "Forbidden", f"{plural}.kubeflow.org{WHO}")


METRIC = {
    "__name__": "nvidia_gpu_duty_cycle",
    "node_name": "n1",
    "minor_number": "0",
    "uuid": "GPU-1",
    "namespace_name": "default",
}
FOUND = {
    "status": "success",
    "data": {
        "resultType": "vector",
        "result": [{"metric": {**METRIC, "pod_name": "bert-worker-0"}, "value": [1.0, "71"]}],
    },
}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("list", {"/apis": 1, "mpijobs": 1, "tfjobs": 1, "pytorchjobs": 1, "pods": 1}),
        ("list -T mpi", {"/apis": 1, "mpijobs": 1, "pods": 1}),
        (
            "list -o json",
            {"/apis": 1, "mpijobs": 1, "tfjobs": 1, "pytorchjobs": 1, "pods": 1, "query": 1},
        ),
        ("top job", {"/apis": 1, "mpijobs": 1, "tfjobs": 1, "pytorchjobs": 1, "pods": 1}),
        (
            "get bert",
            {"/apis": 1, "mpijobs/bert": 1, "tfjobs/bert": 1, "pytorchjobs/bert": 1, "pods": 1},
        ),
        ("get bert -T mpijob", {"/apis": 1, "mpijobs/bert": 1, "pods": 1}),
        ("get bert -T mpijob -e", {"/apis": 1, "mpijobs/bert": 1, "pods": 1, "events": 3}),
        ("get bert -T mpijob -g", {"/apis": 1, "mpijobs/bert": 1, "pods": 1, "query": 1}),
        ("top job bert -T mpijob", {"/apis": 1, "mpijobs/bert": 1, "pods": 1, "query": 1}),
        ("delete bert -T mpijob", {"/apis": 1, "mpijobs/bert": 2}),
        (
            "delete gone -T mpijob",
            {"/apis": 1, "mpijobs/gone": 1, "configmaps": 1, "deployments": 1, "services": 1},
        ),
    ],
)
def test_the_budget(line: str, expected: dict[str, int], tmp_path: Path) -> None:
    more: dict[str, list[Reply | Stream]] = {
        "/api/v1/query": [Reply(FOUND)],
        "/api/v1/namespaces/default/events": [listed([])],
    }
    with ScriptedServer({**script(), **more}) as server:
        done = run(tmp_path, server, *line.split(), PROMETHEUS_ADDRESS=server.url)
        assert done.returncode == 0, done.stderr
        sent = Counter(_short(each.path) for each in server.seen)
    assert sent == {**expected, "namespaces/default": 1}, (
        "one more than the contract has: does the namespace isolate its users?"
    )


@pytest.mark.parametrize(
    ("line", "selectors"),
    [("list", ["training.kubeflow.org/job-name", "tf-job-name"]), ("get mnist -T tf", None)],
)
def test_pods_of_an_operator_of_earlier_years_are_asked_for_when_there_are_no_others(
    line: str, selectors: list[str] | None, tmp_path: Path
) -> None:
    pod = job_pod(TF, "mnist-worker-0", "worker", gpus=1, on="n1", ip="10.0.0.7")
    pod["metadata"]["labels"] = {
        "tf-job-name": "mnist",
        "tf-replica-type": "worker",
        "tf-replica-index": "0",
    }
    steps = script(mpijobs=[listed([])]) | {
        "/api/v1/namespaces/default/pods": [listed([]), listed([pod])]
    }
    with ScriptedServer(steps) as server:
        done = run(tmp_path, server, *line.split())
        asked = [each.query["labelSelector"] for each in server.seen if each.path.endswith("/pods")]
    assert "10.0.0.7" in done.stdout if selectors else "mnist-worker-0" in done.stdout
    assert asked == (selectors or ["training.kubeflow.org/job-name=mnist", "tf-job-name=mnist"])


def _short(path: str) -> str:
    return (
        path
        if path == "/apis"
        else path.rpartition("/namespaces/default/")[2].removeprefix("/api/v1/")
    )


NO_SUCH = status(404, "NotFound", 'namespaces "nope" not found')
MAY_NOT = status(
    403,
    "Forbidden",
    ('namespaces "nope" is forbidden: User "eve" cannot get resource "namespaces"'),
)


def empty_namespace(answer: Reply) -> dict[str, list[Reply | Stream]]:
    crons = "/apis/apps.kubedl.io/v1alpha1/namespaces/nope/crons"
    claims = "/api/v1/namespaces/nope/persistentvolumeclaims"
    lists = (
        *(collection(plural, "nope") for plural in SERVED),
        "/api/v1/namespaces/nope/pods",
        crons,
        claims,
    )
    served = ("/apis/apps/v1/namespaces/nope/deployments", "/api/v1/namespaces/nope/services")
    return {
        "/apis": [discovery(*SERVED)],
        "/api/v1/namespaces/nope": [answer],
        **{path: [listed([])] for path in (*lists, *served)},
    }


@pytest.mark.parametrize(
    "line", ["list", "list -o json", "top job", "serve list", "cron list", "data list"]
)
@pytest.mark.parametrize(
    "answer",
    [NO_SUCH, MAY_NOT, Reply({"metadata": {"name": "nope"}})],
    ids=["absent", "forbidden", "there"],
)
def test_a_namespace_that_does_not_exist_is_distinguished_from_an_empty_one(
    line: str, answer: Reply, tmp_path: Path
) -> None:
    with ScriptedServer(empty_namespace(answer)) as server:
        done = run(tmp_path, server, *line.split(), "-n", "nope")
    assert done.returncode == 0 and done.stdout
    assert done.stderr.count("namespace nope does not exist") == (answer is NO_SUCH)


def test_a_job_of_a_namespace_that_does_not_exist(tmp_path: Path) -> None:
    with ScriptedServer(empty_namespace(NO_SUCH)) as server:
        done = run(tmp_path, server, "get", "bert", "-n", "nope")
    assert done.returncode == 1 and "hint: namespace nope does not exist" in done.stderr


def test_a_kind_that_is_forbidden_costs_one_warning_and_not_the_others(tmp_path: Path) -> None:
    with ScriptedServer(
        script(mpijobs=[forbidden("mpijobs")], pytorchjobs=[forbidden("pytorchjobs")])
    ) as server:
        done = run(tmp_path, server, "list")
        assert [line.split()[0] for line in done.stdout.splitlines()] == ["NAME", "mnist"]
        assert done.returncode == 0
        assert done.stderr.count("level=warning") == 2
        assert (
            "skipped mpijobs.kubeflow.org: forbidden: mpijobs.kubeflow.org is forbidden: User "
            '\\"eve\\"'
        ) in done.stderr
        assert run(tmp_path, server, "list", "--strict").returncode == 1


@pytest.mark.parametrize("line", ["list", "list -T tfjob", "top job"])
def test_a_user_without_rights_gets_a_sentence_and_no_table(line: str, tmp_path: Path) -> None:
    steps = {plural: [forbidden(plural)] for plural in SERVED}
    with ScriptedServer(script(**steps)) as server:  # type: ignore[arg-type]
        done = run(tmp_path, server, *line.split())
        everywhere = {
            f"/apis/kubeflow.org/{version}/{plural}": [forbidden(plural)]
            for plural, (version, _) in SERVED.items()
        }
        server.script.update(everywhere)  # type: ignore[arg-type]
        whole = run(tmp_path, server, *line.split(), "-A")
    assert (done.returncode, done.stdout) == (1, "")
    assert (
        "the user has no privileges to list the training jobs in namespace default"
    ) in done.stderr
    assert "the user has no privileges to list the training jobs in all namespaces" in whole.stderr


def test_no_served_kind_is_a_warning_and_the_header(tmp_path: Path) -> None:
    with ScriptedServer(script() | {"/apis": [discovery()]}) as server:
        done = run(tmp_path, server, "list")
    assert done.returncode == 0
    assert done.stdout.startswith("NAME  STATUS") and len(done.stdout.splitlines()) == 1
    assert (
        "no training job kind is served by this cluster (looked for: jobs.batch.volcano.sh, "
        "mpijobs.kubeflow.org, "
    ) in done.stderr
    assert done.stderr.count("level=warning") == 1


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (
            status(500, "InternalError", "etcd is away"),
            "skipped mpijobs.kubeflow.org: etcd is away",
        ),
        (Reply(b"<html>no list</html>"), "skipped mpijobs.kubeflow.org: "),
        (status(404, "NotFound", "the server could not find the requested resource"), ""),
    ],
)
def test_a_kind_that_fails_does_not_take_the_others_along(
    reply: Reply, message: str, tmp_path: Path
) -> None:
    with ScriptedServer(script(mpijobs=[reply])) as server:
        done = run(tmp_path, server, "list")
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["NAME", "mnist"]
    assert message in done.stderr
    assert bool(message) is bool(done.stderr)


def test_an_expired_page_starts_that_list_again(tmp_path: Path) -> None:
    first = Reply({"metadata": {"resourceVersion": "1", "continue": "c"}, "items": [MPI]})
    gone = status(410, "Expired", "The provided continue parameter is too old")
    with ScriptedServer(script(mpijobs=[first, gone, listed([MPI])])) as server:
        done = run(tmp_path, server, "list")
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["NAME", "bert", "mnist"]


def test_a_server_that_is_absent_is_one_error(tmp_path: Path) -> None:
    with ScriptedServer({}) as server:
        url = server.url
    done = arena(tmp_path, "--kubeconfig", str(kubeconfig(tmp_path, url)), "list")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("level=error") == 1 and "Traceback" not in done.stderr


def test_pods_that_may_not_be_read_leave_the_jobs(tmp_path: Path) -> None:
    pods: dict[str, list[Reply | Stream]] = {
        "/api/v1/namespaces/default/pods": [status(403, "Forbidden", "pods" + WHO)]
    }
    with ScriptedServer(script() | pods) as server:
        done = run(tmp_path, server, "list")
        shown = run(tmp_path, server, "get", "bert")
    assert [line.split()[-1] for line in done.stdout.splitlines()] == ["NODE", "N/A", "N/A"]
    for ended in (done, shown):
        assert "skipped pods: forbidden" in ended.stderr and ended.returncode == 0


def test_absent_jobs_in_the_words_of_each_verb(tmp_path: Path) -> None:
    with ScriptedServer(script()) as server:
        shown = run(tmp_path, server, "get", "nope")
        logged = run(tmp_path, server, "logs", "nope")
        topped = run(tmp_path, server, "top", "job", "nope")
        deleted = run(tmp_path, server, "delete", "nope")
    assert (
        "Not found training job nope in namespace default,please use 'arena submit' to create it."
    ) in shown.stderr
    for done in (logged, topped):
        assert (
            "training job not found,please use 'arena list' to make sure job is existed"
        ) in done.stderr
    assert [each.returncode for each in (shown, logged, topped, deleted)] == [1, 1, 1, 0]
    assert (
        "The training job 'nope' does not exist,skip to delete it"
    ) in deleted.stderr and deleted.stdout == ""


def test_one_name_in_two_kinds(tmp_path: Path) -> None:
    namesake = job("TFJob", "bert", {"Worker": (1, 1)})
    twice: dict[str, list[Reply | Stream]] = {f"{collection('tfjobs')}/bert": [Reply(namesake)]}
    with ScriptedServer(script() | twice) as server:
        shown = run(tmp_path, server, "get", "bert")
        deleted = run(tmp_path, server, "delete", "bert", "nope")
        named = run(tmp_path, server, "get", "bert", "-T", "MPI", "-o", "name")
        assert not [each for each in server.seen if each.method == "DELETE"]
    text = "there are more than 1 training jobs with the same name bert, please "
    assert text + "check it with `arena list | grep bert` " in shown.stderr
    assert (
        text
        + (
            "double check with `arena list | grep bert`. And use `arena delete bert --type` "
            "to delete "
            "the exact one"
        )
        in deleted.stderr
    )
    assert (shown.returncode, deleted.returncode) == (1, 1)
    assert "'nope' does not exist" in deleted.stderr, (
        "it goes on after a name that it cannot delete"
    )
    assert named.stdout == "mpijob.kubeflow.org/bert\n"


def test_what_the_reference_left_beside_a_job_goes_with_it(tmp_path: Path) -> None:
    charted = job("MPIJob", "bert", {"Worker": (1, 1)}, labels={"heritage": "Helm"})
    note = "/api/v1/namespaces/default/configmaps/bert-mpijob"
    more: dict[str, list[Reply | Stream]] = {
        f"{collection('mpijobs')}/bert": [Reply(charted)],
        note: [Reply({"metadata": {"name": "bert-mpijob", "labels": {"createdBy": "arena"}}})],
    }
    with ScriptedServer(script() | more) as server:
        assert run(tmp_path, server, "delete", "bert").returncode == 0
        deleted = [each for each in server.seen if each.method == "DELETE"]
    assert [each.path for each in deleted] == [f"{collection('mpijobs')}/bert", note]
    assert deleted[0].json()["propagationPolicy"] == "Background"


OWN: dict[str, str] = {"heritage": "fairlead", "release": "bert", "app": "mpijob"}
CORE, APPS = "/api/v1/namespaces/default", "/apis/apps/v1/namespaces/default"
BOARD = (f"{APPS}/deployments/bert-tensorboard", f"{CORE}/services/bert-tensorboard")
FOLDER = "bert-0123456789abcde"


def beside(**meta: Any) -> dict[str, Any]:
    return {"metadata": {"namespace": "default", "labels": OWN, **meta}}


@pytest.mark.parametrize(
    ("board", "boards"), [({}, 0), ({"fairlead.io/tensorboard": "bert-tensorboard"}, 1)]
)
def test_what_came_with_a_job_of_fairlead_and_has_no_owner_goes_with_it(
    board: dict[str, str], boards: int, tmp_path: Path
) -> None:
    """One more list, and two more for a job with a TensorBoard. Objects that the job owns go by
    garbage collection; objects with other names stay.
    """
    own = job("MPIJob", "bert", {"Worker": (1, 1)}, labels=OWN, annotations=board)
    owner = {"ownerReferences": [{"uid": own["metadata"]["uid"], "kind": "MPIJob", "name": "bert"}]}
    more: dict[str, list[Reply | Stream]] = {
        f"{collection('mpijobs')}/bert": [Reply(own)],
        f"{CORE}/configmaps": [
            listed(
                [
                    beside(name=FOLDER),
                    beside(name="bert-123456789abcdef", **owner),
                    beside(name="bert-notes"),
                ]
            )
        ],
        f"{APPS}/deployments": [listed([beside(name="bert-tensorboard")])],
        f"{CORE}/services": [listed([beside(name="bert-tensorboard"), beside(name="bert")])],
        **{path: [Reply({})] for path in (f"{CORE}/configmaps/{FOLDER}", *BOARD)},
    }
    with ScriptedServer(script() | more) as server:
        done = run(tmp_path, server, "delete", "bert", "-T", "mpijob")
        deleted = sorted(each.path for each in server.seen if each.method == "DELETE")
        asked = [
            each.query
            for each in server.seen
            if each.path == f"{CORE}/configmaps" and each.method == "GET"
        ]
    assert deleted == sorted(
        [f"{collection('mpijobs')}/bert", f"{CORE}/configmaps/{FOLDER}", *BOARD * boards]
    )
    assert [each["labelSelector"] for each in asked] == [
        "heritage=fairlead,release=bert,app in (mpijob)"
    ]
    assert "The training job bert has been deleted successfully" in done.stderr


def test_companions_stay_when_the_job_cannot_be_deleted(tmp_path: Path) -> None:
    own = job("MPIJob", "bert", {"Worker": (1, 1)}, labels=OWN)
    steps = [Reply(own), status(403, "Forbidden", "no, no")]
    more: dict[str, list[Reply | Stream]] = {
        f"{collection('mpijobs')}/bert": [*steps],
        f"{CORE}/configmaps": [listed([beside(name=FOLDER)])],
    }
    with ScriptedServer(script() | more) as server:
        done = run(tmp_path, server, "delete", "bert", "-T", "mpijob")
        assert [each.path for each in server.seen if each.method == "DELETE"] == [
            f"{collection('mpijobs')}/bert"
        ]
    assert done.returncode == 1 and "no, no" in done.stderr


@pytest.mark.parametrize(
    "refused", [status(403, "Forbidden", "configmaps" + WHO), status(404, "NotFound", "not here")]
)
def test_a_user_that_may_not_list_companions_deletes_the_job_all_the_same(
    refused: Reply, tmp_path: Path
) -> None:
    own = job("MPIJob", "bert", {"Worker": (1, 1)}, labels=OWN)
    more: dict[str, list[Reply | Stream]] = {
        f"{collection('mpijobs')}/bert": [Reply(own)],
        f"{CORE}/configmaps": [refused],
    }
    with ScriptedServer(script() | more) as server:
        done = run(tmp_path, server, "delete", "bert", "-T", "mpijob")
    assert done.returncode == 0 and "has been deleted successfully" in done.stderr


def test_what_is_left_of_a_job_that_is_gone(tmp_path: Path) -> None:
    more: dict[str, list[Reply | Stream]] = {
        f"{CORE}/configmaps": [listed([beside(name="gone-0123456789abcde"), beside(name=FOLDER)])],
        f"{CORE}/configmaps/gone-0123456789abcde": [Reply({})],
    }
    with ScriptedServer(script() | more) as server:
        done = run(tmp_path, server, "delete", "gone", "-T", "mpijob")
        assert [each.path for each in server.seen if each.method == "DELETE"] == [
            f"{CORE}/configmaps/gone-0123456789abcde"
        ]
    assert "what was left of it has been deleted: configmap/gone-0123456789abcde" in done.stderr


def test_metrics_that_cannot_be_had_cost_one_warning(tmp_path: Path) -> None:
    with ScriptedServer(script()) as server:
        done = run(tmp_path, server, "top", "job", "bert", PROMETHEUS_ADDRESS="http://127.0.0.1:1")
    assert done.returncode == 0
    assert done.stderr.count("GPU metrics unavailable: ") == 1
    assert (
        "  bert-worker-0    Running  1             10.0.0.1  N/A               N/A             "
        "N/A\n"
    ) in done.stdout


def test_a_closed_stdout(tmp_path: Path) -> None:
    with ScriptedServer(script()) as server:
        config = kubeconfig(tmp_path, server.url)
        reading, writing = os.pipe()
        os.close(reading)
        command = [*PROGRAM, "--kubeconfig", str(config), "list"]
        done = subprocess.run(
            command, stdout=writing, stderr=subprocess.PIPE, timeout=HANG_SECONDS, check=False
        )
        os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_ctrl_c_ends_a_watch_quietly(tmp_path: Path) -> None:
    with ScriptedServer(script()) as server:
        config = kubeconfig(tmp_path, server.url)
        command = [*PROGRAM, "--kubeconfig", str(config), "list", "-w"]
        watching = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert watching.stdout is not None
        assert [watching.stdout.readline().split()[0] for _ in range(3)] == [
            "NAME",
            "bert",
            "mnist",
        ]
        watching.send_signal(signal.SIGINT)
        _, printed = watching.communicate(timeout=HANG_SECONDS)
    assert (watching.returncode, printed) == (130, "")


def test_a_watch_shows_again_what_changes(tmp_path: Path) -> None:
    over = job(
        "MPIJob",
        "bert",
        {"Launcher": (1, 0), "Worker": (1, 1)},
        states=["Running", "Succeeded"],
        ended=60,
    )
    with ScriptedServer(script(mpijobs=[listed([MPI]), listed([over])])) as server:
        config = kubeconfig(tmp_path, server.url)
        command = [*PROGRAM, "--kubeconfig", str(config), "list", "-w"]
        watching = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert watching.stdout is not None
        lines = [watching.stdout.readline().split() for _ in range(4)]
        watching.send_signal(signal.SIGINT)
        watching.communicate(timeout=HANG_SECONDS)
    assert [line[:2] for line in lines] == [
        ["NAME", "STATUS"],
        ["bert", "RUNNING"],
        ["mnist", "RUNNING"],
        ["bert", "SUCCEEDED"],
    ]


def test_the_namespace_of_flag_config_file_and_context(tmp_path: Path) -> None:
    """In this order; an invalid namespace is refused wherever it comes from."""
    config = tmp_path / "arena-config"
    config.write_text("namespace=from-config\n")
    with ScriptedServer(script()) as server:
        context = kubeconfig(tmp_path, server.url)
        document = json.loads(context.read_text())
        document["contexts"][0]["context"]["namespace"] = "from-context"
        context.write_text(json.dumps(document))
        words = ["--kubeconfig", str(context), "list", "-T", "mpi"]
        arena(tmp_path, *words)
        arena(tmp_path, *words, ARENA_CONFIG=str(config))
        arena(tmp_path, *words, "-n", "from-flag", ARENA_CONFIG=str(config))
        lists = [each.path.split("/")[5] for each in server.seen if each.path.endswith("/mpijobs")]
        config.write_text("namespace=$(touch x)\n")
        bad = arena(tmp_path, *words, ARENA_CONFIG=str(config))
    assert lists == ["from-context", "from-config", "from-flag"]
    assert bad.returncode == 1 and "invalid namespace `$(touch x)`" in bad.stderr


def test_the_users_name_where_the_server_does_not_return_it(tmp_path: Path) -> None:
    """An old server has no SelfSubjectReview; then the name of the client certificate is used, and
    without one there is an error.
    """
    with ScriptedServer({}) as server:
        assert run(tmp_path, server, "whoami").returncode == 1
        config = kubeconfig(tmp_path, server.url)
        document = json.loads(config.read_text())
        pair = Authority().issue("alice")
        document["users"] = [
            {
                "name": "u",
                "user": {
                    "client-certificate-data": _b64(pair.certificate_pem),
                    "client-key-data": _b64(pair.key_pem),
                },
            }
        ]
        document["contexts"][0]["context"]["user"] = "u"
        config.write_text(json.dumps(document))
        done = arena(tmp_path, "--kubeconfig", str(config), "whoami")
    assert (
        done.stdout
        == '{"Name":"alice","Id":"6384e2b2184bcbf58eccf10ca7a6563c","IsAdminUser":false}\n'
    ), done.stderr


def test_an_administrator_of_arena(tmp_path: Path) -> None:
    review = Reply({"status": {"userInfo": {"username": "alice"}}}, 201)
    admins = Reply({"metadata": {"name": "arena-config"}, "data": {"adminUsers": "bob, alice"}})
    steps: dict[str, list[Reply | Stream]] = {
        "/apis/authentication.k8s.io/v1/selfsubjectreviews": [review],
        "/api/v1/namespaces/arena-system/configmaps/arena-config": [admins],
    }
    with ScriptedServer(steps) as server:
        assert json.loads(run(tmp_path, server, "whoami").stdout)["IsAdminUser"] is True


def _b64(pem: bytes) -> str:
    return base64.b64encode(pem).decode()


@pytest.mark.parametrize("line", ["get", "logs", "top job", "delete"])
@pytest.mark.parametrize("name", ["../secrets", "A", "a b", "-a", "$(touch x)"])
def test_what_can_be_no_name_reaches_no_server(line: str, name: str, tmp_path: Path) -> None:
    with ScriptedServer(script()) as server:
        done = run(tmp_path, server, *line.split(), "--", name)
        assert server.seen == []
    assert done.returncode == 1 and f"invalid name `{name}`" in done.stderr


def test_an_empty_name_is_not_all_jobs(tmp_path: Path) -> None:
    with ScriptedServer(script()) as server:
        assert [
            run(tmp_path, server, verb, "").returncode for verb in ("get", "delete", "logs")
        ] == [1, 1, 1]
        assert server.seen == []


@pytest.mark.parametrize(
    ("balancer", "url"),
    [
        ([], "http://10.0.0.1:30006"),
        ([{"ip": "1.2.3.4"}], "http://1.2.3.4:6006"),
        ([{"hostname": "lb"}], "http://lb:6006"),
    ],
)
def test_where_the_tensorboard_is(balancer: list[dict[str, str]], url: str, tmp_path: Path) -> None:
    """Only a job with a TensorBoard costs the request for its Service."""
    path = "/api/v1/namespaces/default/services/bert-tensorboard"
    service = {
        "spec": {"ports": [{"port": 6006, "nodePort": 30006}]},
        "status": {"loadBalancer": {"ingress": balancer}},
    }
    with_board = job(
        "MPIJob",
        "bert",
        {"Launcher": (1, 0), "Worker": (1, 1)},
        annotations={"fairlead.io/tensorboard": "bert-tensorboard"},
    )
    more: dict[str, list[Reply | Stream]] = {
        f"{collection('mpijobs')}/bert": [Reply(with_board)],
        path: [Reply(service)],
    }
    with ScriptedServer(script() | more) as server:
        shown = run(tmp_path, server, "get", "bert")
        document = json.loads(run(tmp_path, server, "get", "bert", "-o", "json").stdout)
        server.script[path] = [forbidden("services")]
        hidden = run(tmp_path, server, "get", "bert")
    assert shown.stdout.endswith(
        f"\n\nTensorboard:\n  Your tensorboard will be available on: \n  {url}\n"
    )
    assert document["tensorboard"] == url
    assert hidden.returncode == 0 and "Tensorboard" not in hidden.stdout
