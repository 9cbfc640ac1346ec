"""The commands for crons: which object `cron tfjob` makes of its flags, and the output and requests
of the others.

See docs/spec/arena-cli.md#crons, docs/spec/arena-cli.md#messages-of-the-commands.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
import yaml
from tests.cli.arena import arena, kubeconfig
from tests.cli.command import Printed
from tests.cli.cron.crons import NIGHTLY
from tests.cli.submitting import KeepingCluster, Manifest, at, create
from tests.edge.scripted import Reply, ScriptedServer, status

from fairlead.errors import UserError

CRON = "cron tfjob --name=nightly --image=i --schedule='0 22 * * *'"
COLLECTION = "/apis/apps.kubedl.io/v1alpha1/namespaces/default/crons"
BARE = {
    "metadata": {"name": "bare", "namespace": "default"},
    "spec": {"schedule": "@daily", "suspend": True, "template": {}},
}
TABLE = """\
NAME     TYPE   SCHEDULE    SUSPEND  DEADLINE              CONCURRENCYPOLICY
bare            @daily      true                           
nightly  TFJob  0 22 * * *  false    2026-10-01T13:00:12Z  Allow
"""  # noqa: W291
BLOCK = """\
Name:               nightly
Namespace:          default
Type:               TFJob
Schedule:           0 22 * * *
Suspend:            false
ConcurrencyPolicy:  Allow
CreationTimestamp:  2026-01-05T08:00:00Z
LastScheduleTime:   2026-01-06T22:00:00Z
Deadline:           2026-10-01T13:00:12Z

History:
NAME                STATUS     TYPE   CREATETIME            FINISHTIME
----                ------     ----   ----------            ----------
nightly-1767650400  Succeeded  TFJob  2026-01-05T22:00:00Z  2026-01-05T22:10:00Z
nightly-1767736800  Running    TFJob  2026-01-06T22:00:00Z  
"""  # noqa: W291


def run_verb(line: str, cluster: KeepingCluster | None = None) -> Printed:
    return create(shlex.split(line), cluster, None)


def dry_run_of(line: str) -> list[Manifest]:
    return list(yaml.safe_load_all(run_verb(line).out))


def test_a_cron_around_a_tfjob_without_a_name() -> None:
    cluster = KeepingCluster(user="alice")
    printed = run_verb(
        (
            f"{CRON} --workers=2 --gpus=1 --ps=1 --suspend --deadline=2026-10-01T21:00:12+08:00 -l "
            "team=x run"
        ),
        cluster,
    )
    assert printed.out == "cron.apps.kubedl.io/nightly created\n"
    assert "The cron tfjob nightly has been submitted successfully" in printed.err
    assert "You can run `arena cron get nightly` to check the cron status" in printed.err
    [cron] = cluster.created
    template = cron["spec"].pop("template")
    assert cron["spec"] == {
        "schedule": "0 22 * * *",
        "concurrencyPolicy": "Allow",
        "historyLimit": 10,
        "suspend": True,
        "deadline": "2026-10-01T13:00:12Z",
    }
    assert (cron["apiVersion"], cron["metadata"]["labels"]["app"], template["kind"]) == (
        "apps.kubedl.io/v1alpha1",
        "cron",
        "TFJob",
    )
    assert template["apiVersion"] == "kubeflow.org/v1" and template["workload"][
        "metadata"
    ].keys() == {"labels", "annotations"}
    assert (
        template["workload"]["metadata"]["labels"]["team"] == "x"
        and template["workload"]["metadata"]["labels"]["app"] == "tfjob"
    )
    assert at(template, "workload|spec|tfReplicaSpecs").keys() == {"PS", "Worker"}


def test_a_file_of_the_jobs_belongs_to_the_cron() -> None:
    cluster = KeepingCluster()
    run_verb(f"{CRON} --config-file=/etc/hostname:/etc/h run", cluster)
    assert [each["kind"] for each in cluster.created] == ["Cron", "ConfigMap"]
    assert [owner["kind"] for owner in cluster.created[1]["metadata"]["ownerReferences"]] == [
        "Cron"
    ]


def test_a_dry_run_is_what_is_created() -> None:
    cluster = KeepingCluster()
    run_verb(f"{CRON} --history-limit=3 run", cluster)
    assert dry_run_of(f"{CRON} --history-limit=3 --dry-run run") == cluster.created


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "cron tfjob --name=j --image=i run",
            "failed to validate command args: --schedule must be set ",
        ),
        ("cron tfjob --name=j --image=i --schedule=often run", "--schedule is invalid: `often`"),
        ("cron tfjob --name=j --image=i --schedule='* * * *' run", "--schedule is invalid"),
        ("cron tfjob --name=j --image=i --schedule='* * * * $(x)' run", "--schedule is invalid"),
        (
            "cron tfjob --name=j --image=i --schedule='0 0 22 * * ?' run",
            "`0 0 22 * * ?`: expected exactly 5 fields, found 6",
        ),
        (
            "cron tfjob --name=j --image=i --schedule='0 0 * * 7' run",
            "`0 0 * * 7`: end of range (7) above maximum (6): 7",
        ),
        (
            "cron tfjob --name=j --image=i --schedule='@every 1d' run",
            ('unknown unit "d" in duration "1d"'),
        ),
        (
            "cron tfjob --name=j --image=i --schedule=@reboot run",
            "`@reboot`: unrecognized descriptor: @reboot",
        ),
        (
            "cron tfjob --name=j --image=i --schedule='TZ=Mars/One @daily' run",
            "unknown time zone Mars/One",
        ),
        ("cron tfjob --name=j --image=i --schedule='0 0 31 2 *' run", "`0 0 31 2 *` never occurs"),
        (
            f"{CRON} --concurrency-policy=Maybe run",
            "--concurrency-policy is invalid: unknown value Maybe",
        ),
        (f"{CRON} --deadline=tomorrow run", "--deadline is invalid: `tomorrow` is not a time"),
        (f"{CRON} --history-limit=-1 run", "--history-limit is invalid"),
        (f"{CRON} --tensorboard run", "--tensorboard is invalid: a cron has none"),
        (f"{CRON}", "not found command args"),
    ],
)
def test_what_cannot_be_is_reported_before_any_request(line: str, message: str) -> None:
    cluster = KeepingCluster()
    with pytest.raises(UserError) as refused:
        run_verb(line, cluster)
    assert message in refused.value.what and cluster.calls == []


@pytest.mark.parametrize(
    "schedule",
    [
        "*/30 8-18 * * MON-FRI",
        "@daily",
        "@every 1h30m",
        "0 22 ? * 0",
        "TZ=Asia/Shanghai 0 22 * * *",
    ],
)
def test_schedules_that_controllers_know(schedule: str) -> None:
    [cron] = dry_run_of(f"cron tfjob --name=j --image=i --schedule='{schedule}' --dry-run run")
    assert cron["spec"]["schedule"] == schedule


def test_a_cron_that_exists_is_named() -> None:
    with pytest.raises(UserError) as refused:
        run_verb(f"{CRON} run", KeepingCluster(full=["nightly"]))
    assert refused.value.what == (
        "the cron nightly is already exist, please delete it first. use 'arena cron delete nightly'"
    )
    assert refused.value.hint == "`arena cron delete nightly -n default` removes it"


LISTED = Reply({"metadata": {"resourceVersion": "1"}, "items": [NIGHTLY, BARE]})


def ask(folder: Path, server: ScriptedServer, *words: str) -> tuple[int, str, str]:
    done = arena(folder, "--kubeconfig", str(kubeconfig(folder, server.url)), "cron", *words)
    return done.returncode, done.stdout, done.stderr


def test_list_get_and_their_documents(tmp_path: Path) -> None:
    with ScriptedServer(
        {COLLECTION: [LISTED] * 2, f"{COLLECTION}/nightly": [Reply(NIGHTLY)] * 2}
    ) as server:
        assert ask(tmp_path, server, "list")[:2] == (0, TABLE)
        assert ask(tmp_path, server, "get", "nightly")[:2] == (0, BLOCK)
        found = yaml.safe_load(ask(tmp_path, server, "list", "-o", "yaml")[1])
        one = json.loads(ask(tmp_path, server, "get", "nightly", "-o", "json")[1])
        assert len(server.seen) == 4
    assert [each["name"] for each in found] == ["bare", "nightly"] and found[1] == one
    assert (one["uuid"], one["historyLimit"], one["suspend"], one["deadline"]) == (
        "u1",
        10,
        False,
        "2026-10-01T13:00:12Z",
    )
    assert one["cronHistory"][0] == {
        "name": "nightly-1767650400",
        "namespace": "default",
        "group": "kubeflow.org/v1",
        "kind": "TFJob",
        "status": "Succeeded",
        "createTime": "2026-01-05T22:00:00Z",
        "finishTime": "2026-01-05T22:10:00Z",
    }


def test_all_namespaces_have_a_column(tmp_path: Path) -> None:
    with ScriptedServer({"/apis/apps.kubedl.io/v1alpha1/crons": [LISTED]}) as server:
        code, out, _ = ask(tmp_path, server, "list", "-A")
    assert (
        code == 0
        and out.splitlines()[0].startswith("NAMESPACE  NAME ")
        and out.count("default") == 2
    )


def test_suspend_and_resume_are_one_patch_each(tmp_path: Path) -> None:
    with ScriptedServer({f"{COLLECTION}/nightly": [Reply(NIGHTLY)]}) as server:
        assert ask(tmp_path, server, "suspend", "nightly")[:2] == (
            0,
            "cron nightly suspend success\n",
        )
        assert ask(tmp_path, server, "resume", "nightly")[:2] == (
            0,
            "cron nightly resume success\n",
        )
        assert [(each.method, json.loads(each.body)) for each in server.seen] == [
            ("PATCH", {"spec": {"suspend": True}}),
            ("PATCH", {"spec": {"suspend": False}}),
        ]


def test_delete_goes_on_after_a_name_that_is_absent(tmp_path: Path) -> None:
    absent = status(404, "NotFound", 'crons.apps.kubedl.io "gone" not found')
    forbidden = status(403, "Forbidden", "no, no")
    steps = {
        "gone": [absent],
        "mine": [forbidden],
        "nightly": [Reply({"kind": "Status", "status": "Success"})],
    }
    with ScriptedServer(
        {f"{COLLECTION}/{name}": replies for name, replies in steps.items()}
    ) as server:
        code, out, err = ask(tmp_path, server, "delete", "gone", "mine", "$(x)", "nightly")
    assert (code, out) == (1, "cron nightly has deleted\n")
    assert (
        "The cron 'gone' does not exist,skip to delete it" in err
        and "no, no" in err
        and "invalid name `$(x)`" in err
    )


@pytest.mark.parametrize("words", [("get", "gone"), ("suspend", "gone")])
def test_a_cron_that_is_absent(tmp_path: Path, words: tuple[str, ...]) -> None:
    with ScriptedServer(
        {f"{COLLECTION}/gone": [status(404, "NotFound", ('crons.apps.kubedl.io "gone" not found'))]}
    ) as server:
        code, out, err = ask(tmp_path, server, *words)
    assert (code, out) == (1, "") and "cron gone is not in namespace default" in err


@pytest.mark.parametrize("words", [("list",), ("get", "x"), ("suspend", "x"), ("delete", "x")])
def test_a_cluster_that_knows_no_crons(tmp_path: Path, words: tuple[str, ...]) -> None:
    with ScriptedServer({}) as server:
        code, out, err = ask(tmp_path, server, *words)
    assert (code, out) == (1, "") and "the cluster serves no crons.apps.kubedl.io" in err


def test_a_cluster_that_knows_no_crons_keeps_the_files_of_one(tmp_path: Path) -> None:
    """The cron works again once its definition is back, so a command that fails removes
    no files.
    """
    files = "/api/v1/namespaces/default/configmaps"
    listed = Reply(
        {
            "metadata": {"resourceVersion": "1"},
            "items": [{"metadata": {"name": "x-0123456789abcde"}}],
        }
    )
    with ScriptedServer({files: [listed], f"{files}/x-0123456789abcde": [Reply({})]}) as server:
        code, _, err = ask(tmp_path, server, "delete", "x")
        assert [each.path for each in server.seen if each.method == "DELETE"] == [f"{COLLECTION}/x"]
    assert code == 1 and "the cluster serves no crons.apps.kubedl.io" in err


@pytest.mark.parametrize(
    "words", [("delete",), ("get", "$(x)"), ("delete", "$(x)"), ("list", "-o", "xml")]
)
def test_bad_words_meet_no_server(tmp_path: Path, words: tuple[str, ...]) -> None:
    with ScriptedServer({}) as server:
        code, _, err = ask(tmp_path, server, *words)
        assert server.seen == []
    assert code == 1 and "bug" not in err
