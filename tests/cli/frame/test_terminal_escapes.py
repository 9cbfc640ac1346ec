"""Text of the cluster never reaches the terminal as an escape sequence: every command prints
kubectl's replacement characters (logs excepted).

Oracle: `terminalEscaper` and the table printer of cli-runtime 0.36.3: ESC becomes `^[`, a carriage
return `\\r`, and a cell ends with its first line.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from msgspec.structs import replace
from tests.cli.api_objects import Object, node, snapshot_of
from tests.cli.arena import kubeconfig
from tests.cli.command import run_command
from tests.cli.cron.crons import NIGHTLY
from tests.cli.job_objects import job, job_pod, moment
from tests.cli.jobs.scripted_jobs import discovery, listed
from tests.cli.serving_objects import claim, deployment, service, serving_pod
from tests.edge.scripted import ReceivedRequest, Reply, ScriptedServer, Stream, status

from fairlead.cli.frame.verbs import VERBS
from fairlead.model.quota.tree import QuotaNode, QuotaTree
from fairlead.run.main import main
from fairlead.wire.text.tabwriter import render_rows

EVIL: Final = "\x1b]0;mine\x07\x1b[2Jred\r\nforged"
LOG: Final = EVIL.encode() + b"\xff\n"
SHOWN: Final = "^[]0;mine\x07^[[2Jred"

_FREE: Final = frozenset(
    [
        "message",
        "reason",
        "nodeName",
        "hostIP",
        "schedule",
        "concurrencyPolicy",
        "clusterIP",
        "address",
        "priorityClassName",
        "schedulerName",
        "modelName",
        "description",
        "owner",
        "modelSource",
        "mountPoint",
    ]
)
"""Fields with free text of users or controllers (the API server checks the others on write, but a
saved snapshot may contain anything).
"""


def spoilt(value: Any, key: str = "") -> Any:
    """The object with `EVIL` appended to every text of these fields."""
    if isinstance(value, dict):
        return {name: spoilt(each, name) for name, each in value.items()}
    if isinstance(value, list):
        return [spoilt(each, key) for each in value]
    return value + EVIL if isinstance(value, str) and value and key in _FREE else value


BERT = job(
    "MPIJob",
    "bert",
    {"Launcher": (1, 0), "Worker": (1, 1)},
    annotations={"modelSource": "s3"},
    labels={"modelName": "m"},
)
OVER = job("MPIJob", "over", {"Worker": (1, 1)}, states=("Running", "Failed"), ended=60)
WAITING = job_pod(BERT, "bert-worker-0", "worker", gpus=1, phase="Pending")
WAITING["status"]["conditions"] = [
    {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
]
SHARING = job_pod(BERT, "waits", "worker", phase="Pending")
SHARING["spec"]["containers"][0]["resources"]["limits"] = {"aliyun.com/gpu-mem": "40"}
SHARING["status"]["conditions"] = WAITING["status"]["conditions"]
OBJECTS: Final[dict[str, list[Object]]] = {
    "mpijobs": [BERT, OVER],
    "pods": [
        job_pod(BERT, "bert-launcher-x", "launcher", on="n1", ip="10.0.0.1", owner="Job"),
        WAITING,
        SHARING,
        serving_pod("fast", "v1", "fast-1"),
    ],
    "nodes": [
        node("n1", "10.0.0.1", {"aliyun.com/gpu-mem": "30", "aliyun.com/gpu-count": "2"}),
        node("n2", "10.0.0.2", {"nvidia.com/gpu": "2"}),
    ],
    "events": [
        {
            "metadata": {"name": "e", "namespace": "default"},
            "type": "Warning",
            "reason": "FailedScheduling",
            "message": "0/1 nodes are available",
            "lastTimestamp": moment(3),
            "involvedObject": {"kind": "MPIJob", "name": "bert", "uid": BERT["metadata"]["uid"]},
        }
    ],
    "persistentvolumeclaims": [claim("data", ["ReadWriteMany"], description="faces", owner="eve")],
    "datasets": [
        {
            "metadata": {"name": "faces", "namespace": "default"},
            "spec": {"mounts": [{"mountPoint": "s3://faces", "name": "faces"}]},
        }
    ],
    "crons": [NIGHTLY],
    "configmaps": [],
    "deployments": [deployment("fast", "v1", available=1, modelName="m")],
    "services": [service("fast", "v1", {"http": 80})],
}


class HostileServer(ScriptedServer):
    """Serves lists and objects of `OBJECTS` with `EVIL` in them; refuses every change with a
    message that contains `EVIL`.
    """

    def __init__(self) -> None:
        super().__init__({})
        self._objects = {
            plural: [spoilt(each) for each in found] for plural, found in deepcopy(OBJECTS).items()
        }

    def _next_step(self, seen: ReceivedRequest) -> Reply | Stream:
        *_, before, last = ("", *seen.path.split("/"))
        if seen.path == "/apis":
            return discovery("mpijobs", verbs=("list", "create"))
        if last == "log":
            return Reply(LOG)
        if last == "selfsubjectreviews":
            return Reply({"status": {"userInfo": {"username": f"eve{EVIL}"}}})
        if seen.method != "GET":
            return status(403, "Forbidden", f"you may not{EVIL}")
        if last in self._objects:
            return listed(self._objects[last])
        found = [each for each in self._objects.get(before, ()) if each["metadata"]["name"] == last]
        return Reply(found[0]) if found else status(404, "NotFound", f"there is no {last}{EVIL}")


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with HostileServer() as server:
        yield kubeconfig(tmp_path_factory.mktemp("config"), server.url)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A snapshot file of the same nodes and pods, and of a quota tree."""
    path = tmp_path_factory.mktemp("saved") / "s"
    nodes, pods = ([spoilt(each) for each in OBJECTS[plural]] for plural in ("nodes", "pods"))
    leaf = QuotaNode(
        f"team{EVIL}", f"root.team{EVIL}", "root", {"cpu": 1}, namespaces=(f"n{EVIL}",)
    )
    root = QuotaNode("root", "root", min={"cpu": 1}, max={"cpu": 1}, children=(leaf,))
    tree = QuotaTree("elasticquotatree", "kube-system", root)
    run_command(
        f"snapshot save {path}",
        replace(snapshot_of(nodes, pods), quota=root, quota_tree=tree),
        "fairlead",
    )
    return path


QUOTED: Final = "\\x1b]0;mine"
"""The form in arena's log lines, quoted as in Go."""
JSON: Final = "\\u001b]0;mine"
YAML: Final = "\\e]0;mine"
LINES: Final = {
    "arena list": SHOWN,
    "arena list -o wide": SHOWN,
    "arena list -o json": JSON,
    "arena list --legacy": SHOWN,
    "arena get bert": SHOWN,
    "arena get bert -e": SHOWN,
    "arena get bert --explain": SHOWN,
    "arena get bert --legacy": SHOWN,
    "arena get bert -o json": JSON,
    "arena get bert -o yaml": YAML,
    "arena top job": SHOWN,
    "arena top job bert": SHOWN,
    "arena top job --legacy": SHOWN,
    "arena top node": SHOWN,
    "arena top node -d": SHOWN,
    "arena top node -s": SHOWN,
    "arena top node --legacy -d": SHOWN,
    "arena top node -o json": JSON,
    "arena attach bert ls": QUOTED,
    "arena delete bert": QUOTED,
    "arena prune --since 1s": QUOTED,
    "arena scaleout etjob --name bert": "",
    "arena scalein etjob --name bert": "",
    "arena logviewer bert": "",
    "arena submit mpijob --name=j --image=i run": QUOTED,
    "arena serve custom --name=j --image=i --port=80 run": QUOTED,
    "arena serve tensorflow --name=j --model-name=m --model-path=/m": QUOTED,
    "arena serve triton --name=j --model-repository=/m": QUOTED,
    "arena serve kserve --name=j --image=i run": "",
    "arena serve list": "",
    "arena serve get fast": SHOWN,
    "arena serve get fast -o json": JSON,
    "arena serve attach fast ls": QUOTED,
    "arena serve delete fast": QUOTED,
    "arena cron tfjob --name=j --image=i --schedule=@daily run": "",
    "arena cron list": SHOWN,
    "arena cron get nightly": SHOWN,
    "arena cron get nightly -o json": JSON,
    "arena cron suspend nightly": QUOTED,
    "arena cron resume nightly": QUOTED,
    "arena cron delete nightly": QUOTED,
    "arena data list": SHOWN,
    "arena data list -A": SHOWN,
    "arena whoami": JSON,
    "fairlead cron delete nightly": SHOWN,
    "fairlead dataset list": SHOWN,
    "fairlead dataset list -A -o json": JSON,
    "fairlead dataset show faces": SHOWN,
    "fairlead dataset show faces -o json": JSON,
    "fairlead dataset accelerate data --dry-run": "",
    "fairlead dataset preheat faces --dry-run": "",
    "fairlead dataset add new --mount s3://new --dry-run": "",
    "fairlead dataset scale faces --workers 2": "",
    "fairlead dataset unaccelerate faces --wait 0": SHOWN,
    "fairlead component list": SHOWN,
    "fairlead component plan fluid": SHOWN,
    "fairlead component deploy fluid": SHOWN,
    "fairlead component upgrade fluid": SHOWN,
    "fairlead component remove fluid": SHOWN,
    "fairlead component history fluid": SHOWN,
    "fairlead operation list": SHOWN,
    "fairlead operation show abc": SHOWN,
    "fairlead operation follow abc": SHOWN,
    "fairlead operation resume abc": SHOWN,
    "fairlead operation cancel abc": SHOWN,
    "fairlead inspect gpu": SHOWN,
    "fairlead inspect gpu -d": SHOWN,
    "fairlead --snapshot SAVED inspect gpu -d": SHOWN,
    "fairlead --snapshot SAVED why default/bert-worker-0": SHOWN,
    "fairlead --snapshot SAVED why default/bert-launcher-x": SHOWN,
    "fairlead --snapshot SAVED place --gpu-mem 200": "",
    "fairlead --snapshot SAVED quota plan": "",
    "fairlead --snapshot SAVED quota why default/waits": "",
    "fairlead --snapshot SAVED quota doctor": "",
    "fairlead doctor": SHOWN,
    "fairlead --snapshot SAVED quota tree": SHOWN,
    "fairlead --snapshot SAVED quota tree -o json": JSON,
    "fairlead --snapshot SAVED quota tree -o yaml": YAML,
    "fairlead quota validate SAVED": "",
    "fairlead snapshot show SAVED": "",
}
"""Command lines, and the form in which the hostile text appears in their output; "" where none of
it is shown today.
"""
LOGS: Final = ("arena logs bert", "arena serve logs fast")
_OTHER_KINDS: Final = (
    "tfjob",
    "pytorchjob",
    "rayjob",
    "etjob",
    "deepspeedjob",
    "volcanojob",
    "sparkjob",
)
_SERVERS: Final = (
    *(
        "up",
        "console",
        "cluster-exporter",
        "gpu-exporter",
        "scheduler-extender",
        "quota-controller",
        "people-controller",
        "usage-recorder",
    ),
    *("api-server", "admission-webhook", "device-plugin"),
)
NOT_HERE: Final = {
    **dict.fromkeys(
        (
            f"submit {kind}"
            for kind in [
                "tfjob",
                "pytorchjob",
                "rayjob",
                "etjob",
                "deepspeedjob",
                "volcanojob",
                "sparkjob",
            ]
        ),
        "as submit mpijob",
    ),
    **dict.fromkeys(_SERVERS, "servers log"),
    "login": "an ExecCredential for kubectl, as JSON",
    **dict.fromkeys(
        ("env", "time", "completion", "version", "quota demo", "gpu-load"),
        "no text of the cluster",
    ),
    "snapshot save": "writes a file",
    "at": "prints what the command prints of a snapshot (tests/run/test_at.py)",
    **dict.fromkeys(
        (f"store {word}" for word in ("check", "migrate", "export", "import")),
        "no text of the cluster; rows are JSON",
    ),
    **dict.fromkeys(
        ("bundle verify", "bundle extract", "bundle push"), "no text of the cluster: test_bundle"
    ),
    **dict.fromkeys(
        (
            *(f"user {word}" for word in ("create", "list", "show", "update", "delete", "import")),
            *(f"group {word}" for word in ("create", "list", "show", "update", "delete")),
            *(f"kubeconfig {word}" for word in ("create", "list", "show", "delete")),
            "login",
        ),
        "tests/cli/people",
    ),
    **dict.fromkeys(
        ("usage", "cost", "idle", "prices list", "prices add", "prices end", "report"),
        "tests/cli/usage",
    ),
    **dict.fromkeys(("install", "upgrade", "uninstall"), "its own objects, and YAML as rendered"),
}


def words_of(line: str) -> list[str]:
    return [word for word in line.split()[1:] if word not in ("--snapshot", "SAVED")]


def test_every_verb_is_tried() -> None:
    tried = {" ".join(words_of(line)[:count]) for line in (*LINES, *LOGS) for count in (1, 2)}
    assert {verb.name for verb in VERBS} <= tried | NOT_HERE.keys()
    assert not {verb.name for verb in VERBS} & tried & NOT_HERE.keys()


def printed(
    line: str, config: Path, saved: Path, capture: pytest.CaptureFixture[bytes]
) -> tuple[bytes, bytes]:
    program, *words = shlex.split(line.replace("SAVED", str(saved)))
    main(program, words if "SAVED" in line else ["--kubeconfig", str(config), *words])
    sys.stdout.flush()
    return capture.readouterr()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.mark.parametrize(("line", "seen"), LINES.items(), ids=LINES)
def test_no_escape_sequence_comes_through(
    line: str, seen: str, config: Path, saved: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    out, err = printed(line, config, saved, capfdbinary)
    assert b"\x1b" not in out + err and b"\r" not in out + err
    assert seen in (out + err).decode()
    assert bool(seen) == (b"0;mine" in out + err)
    if seen in (JSON, YAML):
        assert repr(EVIL)[1:-1] in repr(yaml.safe_load(out))


@pytest.mark.parametrize("line", LOGS)
def test_a_log_comes_byte_for_byte(
    line: str, config: Path, saved: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert printed(line, config, saved, capfdbinary)[0] == LOG


def test_a_table_is_as_kubectl_prints_it() -> None:
    """Widths are those of the printed text, and a cell ends with its first line."""
    assert (
        render_rows(
            [
                ("NAME", "OWNER", "AGE"),
                ("a", "\x1b[2Jeve\nforged", "1d"),
                ("b", "ann\rforged", "2d"),
            ]
        )
        == "NAME  OWNER        AGE\na     ^[[2Jeve...  1d\nb     ann...       2d\n"
    )
