"""The job commands beyond the samples: no rows and many rows, order, filters, missing values, and
lines that are refused.
"""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
import yaml
from tests.cli.api_objects import node, reading, snapshot_of
from tests.cli.api_objects import pod as any_pod
from tests.cli.arena import arena, arena_process
from tests.cli.command import run_command
from tests.cli.job_objects import CREATED, as_job, cluster, job, job_pod
from tests.cli.jobs.company import ASIDE, BERT, MNIST, company

from fairlead.errors import OutsideError, UserError
from fairlead.model.event import Event
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.model.source import Source


def names(printed: str) -> list[str]:
    return [
        line.split()[0]
        for line in printed.splitlines()[1:]
        if line and not line.startswith("Total")
    ]


# --- tables ---------------------------------------------------------------------------------------


def test_no_job_is_a_header() -> None:
    assert run_command("list", cluster([])).out == (
        "NAME  STATUS  TRAINER  DURATION  GPU(Requested)  GPU(Allocated)  NODE\n"
    )
    assert run_command("top job", cluster([])).out == (
        "NAME  STATUS  TRAINER  AGE  GPU(Requested)  GPU(Allocated)  NODE\n\nTotal "
        "Allocated/Requested GPUs of Training Jobs: 0/0\n"
    )
    assert run_command("list -o json", cluster([])).out == "[]"
    assert run_command("list --legacy", cluster([])).out == "NAME  STATUS  TRAINER  AGE  NODE\n"


def test_newest_first_in_the_namespace_and_in_all() -> None:
    assert names(run_command("list", company()).out) == ["aside", "mnist", "bert", "over"]
    assert names(run_command("list -A", company()).out) == [
        "other",
        "default",
        "default",
        "default",
        "default",
    ]


def test_the_hungriest_first() -> None:
    assert names(run_command("top job", company()).out) == ["bert", "mnist", "aside", "over"]


def test_gpus_of_every_role_before_any_pod_exists() -> None:
    """PS replicas request none; chief, workers and evaluator one each."""
    (mnist,) = [
        line.split()
        for line in run_command("list", company()).out.splitlines()
        if line.startswith("mnist")
    ]
    assert mnist == ["mnist", "RUNNING", "TFJOB", "50s", "5", "0", "N/A"]


def test_what_ended_or_waits_for_its_turn_has_nothing_allocated() -> None:
    rows = {
        line.split()[0]: line.split() for line in run_command("list", company()).out.splitlines()
    }
    assert [rows[name][1] for name in ("over", "aside")] == ["FAILED", "SUSPENDED"]
    assert [rows[name][5] for name in ("over", "aside", "bert")] == ["N/A", "N/A", "8"]
    queued = msgspec.structs.replace(
        as_job(ASIDE), annotations={"scheduling.x-k8s.io/suspend": "true"}
    )
    assert " QUEUING " in run_command("list", ClusterSnapshot(jobs=(queued,))).out


def test_a_duration_stops_with_the_job() -> None:
    soon, late = (
        run_command("list --status failed", company(after=after)).out for after in (0, 86400)
    )
    assert soon == late and "  1h  " in soon


def test_a_running_job_with_a_waiting_pod_is_pending() -> None:
    waiting = job_pod(MNIST, "mnist-worker-0", "worker", phase="Pending")
    assert "mnist  PENDING  " in run_command("list", cluster([MNIST], [waiting])).out


def test_a_longer_name_moves_the_columns_by_code_points() -> None:
    wide = job("TFJob", "训练-任务", {"Worker": (1, 1)})
    head, *rows = run_command(
        "list", cluster([wide, job("TFJob", "b", {"Worker": (1, 1)})])
    ).out.splitlines()
    assert [line.index("RUNNING") for line in rows] == [head.index("STATUS")] * 2 == [7, 7]


def test_many_rows() -> None:
    jobs = [
        job("TFJob", f"job-{number}", {"Worker": (1, 1)}, created=number) for number in range(500)
    ]
    lines = run_command("list", cluster(jobs)).out.splitlines()
    assert (len(lines), lines[1].split()[0], lines[-1].split()[0]) == (501, "job-499", "job-0")


def test_status_and_order_by_flags() -> None:
    assert names(run_command("list --status failed,Suspended", company()).out) == ["aside", "over"]
    assert names(run_command("list --sort-by name", company()).out) == [
        "aside",
        "bert",
        "mnist",
        "over",
    ]
    assert names(run_command("list --sort-by gpus", company()).out) == [
        "bert",
        "mnist",
        "aside",
        "over",
    ]
    nothing = run_command("list --status Runing", company())
    assert (names(nothing.out), nothing.status) == ([], 0)
    assert "no job is RUNING; those here are FAILED, RUNNING, SUSPENDED" in nothing.err
    with pytest.raises(UserError, match="`size`"):
        run_command("list --sort-by size", company())


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("MPI", ["bert"]),
        ("tensorflow", ["mnist"]),
        ("PY", ["aside", "over"]),
        ("rj", []),
        ("et", []),
    ],
)
def test_types_in_any_case(word: str, found: list[str]) -> None:
    assert names(run_command(f"list -T {word}", company()).out) == found


@pytest.mark.parametrize(
    "line",
    ["list -T x", "get bert -T x", "top job -T x", "logs bert -T x", "delete bert -T x"],
)
def test_an_unknown_type(line: str) -> None:
    with pytest.raises(UserError) as caught:
        run_command(line, company())
    assert caught.value.what == (
        "unsupport job type,arena only supports: "
        "[mpi(MPI),tf(Tensorflow),py(Pytorch),rj(RayJob),volcano(Volcano),et(ElasticTraining),dp(DeepSpeed),spark(Spark),horovod(Horovod)]"
    )


def test_a_type_that_is_not_built_is_a_warning() -> None:
    printed = run_command("list -T horovod", company())
    assert (
        "no training job kind is served by this cluster (looked for: horovod)"
    ) in printed.err and printed.status == 0


@pytest.mark.parametrize("line", ["list -o xml", "get bert -o xml", "top job -o xml"])
def test_an_unknown_format(line: str) -> None:
    with pytest.raises(UserError) as caught:
        run_command(line, company())
    assert caught.value.what == "unknown output format,only support:[wide|json|yaml]"


def test_cpu_and_memory_by_flag() -> None:
    line = run_command("top job --resources", company()).out.splitlines()
    assert line[0].split()[-2:] == ["CPU(Requested/Total)", "MEMORY(Requested/Total)"]
    assert line[1].endswith("  0/0                   0.0/0.0 GiB")


def test_the_old_spelling_of_a_flag_is_reported() -> None:
    printed = run_command("list --allNamespaces", company())
    assert printed.out == run_command("list -A", company()).out
    assert printed.err == (
        "Flag --allNamespaces has been deprecated, please use --all-namespaces instead\n"
    )


@pytest.mark.parametrize("line", ["list", "get bert", "top job", "top job bert"])
def test_the_legacy_layout_by_variable_and_by_config_file(line: str, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("output=legacy\n")
    legacy = run_command(f"{line} --legacy", company()).out
    assert legacy != run_command(line, company()).out
    assert run_command(line, company(), env={"ARENA_OUTPUT": "legacy"}).out == legacy
    assert run_command(line, company(), env={"ARENA_CONFIG": str(config)}).out == legacy


# --- documents ------------------------------------------------------------------------------------

JOB_KEYS = (
    "uuid name namespace duration status trainer tensorboard chiefName instances priority "
    "requestGPUs allocatedGPUs "
    "creationTimestamp modelName modelVersion modelSource"
)
INSTANCE_KEYS = "ip status name age node nodeIP chief requestGPUs gpuMetrics creationTimestamp"


def test_json_has_the_contracts_keys() -> None:
    readings = [reading("n2", 0, 16.0, 8.0, 71.0, [("default", "bert-worker-9")])]
    (bert,) = [
        each
        for each in json.loads(run_command("list -o json", company(readings=readings)).out)
        if each["name"] == "bert"
    ]
    assert set(JOB_KEYS.split()) <= bert.keys()
    assert (bert["duration"], bert["trainer"], bert["status"], bert["chiefName"]) == (
        "90s",
        "mpijob",
        "RUNNING",
        "bert-launcher-z",
    )
    assert (bert["requestGPUs"], bert["allocatedGPUs"], bert["creationTimestamp"]) == (
        8,
        8,
        int(CREATED) - 100,
    )
    assert [each["name"] for each in bert["instances"]] == [
        "bert-launcher-z",
        "bert-worker-9",
        "bert-worker-10",
    ], "natural order"
    assert all(set(INSTANCE_KEYS.split()) == each.keys() for each in bert["instances"])
    assert bert["instances"][1]["gpuMetrics"] == {
        "0": {"gpuDutyCycle": 71, "usedGPUMemory": 8 << 30, "totalGPUMemory": 16 << 30}
    }


def test_json_and_yaml_agree_and_end_as_agreed() -> None:
    for line in ("get bert", "list", "top job", "top job bert"):
        as_json, as_yaml = (
            run_command(f"{line} -o json", company()).out,
            run_command(f"{line} -o yaml", company()).out,
        )
        assert json.loads(as_json) == yaml.safe_load(as_yaml)
        assert not as_json.endswith("\n") and as_yaml.endswith("\n")
    assert isinstance(json.loads(run_command("get bert -o json", company()).out), dict)


def test_only_the_name() -> None:
    assert run_command("get mnist -o name", company()).out == "tfjob.kubeflow.org/mnist\n"


# --- one job --------------------------------------------------------------------------------------


def test_what_gpus_do_not_report_is_not_zero() -> None:
    """A pod with several GPUs is named once; pods of the same name in other namespaces are not
    mixed in.
    """
    readings = [
        reading("n2", 0, 16.0, None, None, [("default", "bert-worker-9")]),
        reading(
            "n2", 3, None, None, 5.0, [("default", "bert-worker-9"), ("other", "bert-worker-9")]
        ),
        reading("n1", 0, 16.0, 1.0, 99.0, [("other", "bert-worker-10")]),
    ]
    printed = run_command("get bert -g", company(readings=readings)).out
    assert [
        line.split() for line in printed.splitlines() if "N/A" in line and "Priority" not in line
    ] == [
        ["bert-launcher-z", "10.0.0.1", "0", "N/A", "N/A", "N/A"],
        ["bert-worker-9", "10.0.0.2", "4", "0", "N/A", "N/A"],
        ["3", "5.0%", "N/A"],
        ["bert-worker-10", "10.0.0.1", "4", "N/A", "N/A", "N/A"],
    ]


def test_no_readings_at_all_are_one_warning() -> None:
    for line in ("get bert -g", "top job bert", "list -o json"):
        assert run_command(line, company()).err.count("GPU metrics unavailable: ") == 1
    assert run_command("get bert", company()).err == "", "it was not requested"


def test_an_ended_job_shows_no_gpus() -> None:
    done = job("TFJob", "done", {"Worker": (1, 1)}, states=["Succeeded"], ended=60)
    assert "GPUs:" not in run_command("get done -g", cluster([done])).out
    assert "GPUs:" in run_command("get over -g", company()).out


def test_the_model_follows_the_end() -> None:
    labels, source = {"modelName": "bert", "modelVersion": "3"}, {"modelSource": "oss://m"}
    printed = run_command(
        "get j",
        cluster([job("TFJob", "j", {"Worker": (1, 1)}, labels=labels, annotations=source)]),
    ).out
    assert (
        "EndTime:       \nModelName:     bert\nModelVersion:  3\nModelSource:   "
        "oss://m\n\nInstances:\n"
    ) in printed


def test_events_by_object() -> None:
    seen = Event(
        "default",
        "e",
        type="Warning",
        reason="BackOff",
        message="again\n and again",
        object_uid=_uid("bert-worker-9"),
        at=CREATED,
    )
    lines = (
        run_command("get bert -e", company(after=125, events=[seen]))
        .out.partition("Events:\n")[2]
        .splitlines()
    )
    assert [line.split(maxsplit=3) for line in lines if line] == [
        ["SOURCE", "TYPE", "AGE", "MESSAGE"],
        ["------", "----", "---", "-------"],
        ["pod/bert-worker-9", "Warning", "2m", "[BackOff] again and again"],
    ]
    assert lines.count("") == 4, "one blank line per object, and the launcher's Job is one"
    assert run_command("get mnist -e", company()).out.endswith(
        "\n\nEvents:\n  No events for resources\n"
    )


def _uid(pod: str) -> str:
    return f"uid-pod-default-{pod}"


def test_why_it_waits() -> None:
    assert (
        "\n\nPending:\n  mnist: PodsMissing: 0 of 7 pods exist; "
        in run_command("get mnist --explain", cluster([{**MNIST, "status": {}}])).out
    )
    assert (
        "Pending:\n  aside: Suspended: the job is suspended\n"
        in run_command("get aside --explain", cluster([ASIDE])).out
    )
    assert "Pending:" not in run_command("get bert --explain", company()).out


def test_why_it_finds_no_shared_gpu() -> None:
    full = any_pod(
        "full",
        "share-1",
        {"aliyun.com/gpu-mem": "14"},
        annotations={"scheduler.framework.gpushare.allocation": '{"0":{"0":14}}'},
    )
    nodes = snapshot_of(
        [node("share-1", "10.0.0.9", {"aliyun.com/gpu-mem": "15", "aliyun.com/gpu-count": "1"})],
        [full],
    )
    waiting = job_pod(ASIDE, "aside-master-0", "master", phase="Pending")
    waiting["spec"]["containers"][0]["resources"]["limits"] = {"aliyun.com/gpu-mem": "6"}
    jobs = cluster([ASIDE], [waiting])
    whole = msgspec.structs.replace(jobs, nodes=nodes.nodes, pods=(*jobs.pods, *nodes.pods))
    printed = run_command("get aside --explain", whole).out
    own = (
        "aside-master-0: the only node that it may use does not share GPUs (0/1 nodes have room: 1 "
    )
    assert own in printed
    assert printed.index(own) < printed.index("; it starts"), "our own sentence first"


def test_absent_and_twice() -> None:
    with pytest.raises(UserError) as caught:
        run_command("get nope", company())
    assert caught.value.what == (
        "Not found training job nope in namespace default,please use 'arena submit' to create it."
    )
    namesake = job("TFJob", "bert", {"Worker": (1, 1)})
    with pytest.raises(UserError) as caught:
        run_command("get bert", cluster([BERT, namesake]))
    assert caught.value.what == (
        "there are more than 1 training jobs with the same name bert, please check it with "
        "`arena list | grep bert` "
    )
    assert "Trainer:     TFJOB" in run_command("get bert -T tf", cluster([BERT, namesake])).out


# --- top job JOB ----------------------------------------------------------------------------------


def test_one_instance() -> None:
    printed = run_command("top job bert -i bert-worker-9", company()).out
    assert "bert-worker-9" in printed and "bert-worker-10" not in printed
    with pytest.raises(UserError) as caught:
        run_command("top job bert -i x", company())
    assert caught.value.what == (
        "invalid instance name x in job bert,please use 'arena get bert' to make sure instance name"
    )


def test_refresh_needs_a_job_and_separates() -> None:
    with pytest.raises(UserError) as caught:
        run_command("top job -r", company())
    assert caught.value.what == "you must specify the job name when using `-r` flag"

    class Enough(Exception):
        pass

    naps: list[float] = []

    def nap(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 2:
            raise Enough

    with pytest.raises(Enough):
        run_command("top job bert -r", company(), sleep=nap)
    assert naps == [2.0, 2.0]


# --- from a file ----------------------------------------------------------------------------------


def test_a_saved_snapshot_shows_what_was_saved_and_does_not_age(tmp_path: Path) -> None:
    """In any locale and terminal width; times in the user's time zone."""
    seen = Event(
        "default", "e", reason="训练", message="再次", object_uid=_uid("bert-worker-9"), at=CREATED
    )
    saved = tmp_path / "jobs.snapshot"
    run_command(f"snapshot save {saved}", company(events=[seen]), "fairlead")
    for line in ("list", "get bert -e", "top job"):
        words = [*line.split(), "--snapshot", str(saved)]
        shown = arena_process(tmp_path, *words, LANG="C", COLUMNS="20", TZ="UTC")
        assert (shown.returncode, shown.stderr) == (0, "")
        assert (
            shown.stdout
            == arena(tmp_path, *words, LANG="zh_CN.UTF-8", COLUMNS="200", TZ="UTC").stdout
        )
    assert (
        "bert   RUNNING    MPIJOB      1m  "
        in arena(tmp_path, "list", "--snapshot", str(saved)).stdout
    )
    east = arena(tmp_path, "get", "bert", "--snapshot", str(saved), TZ="Asia/Shanghai")
    assert "CreateTime:  2026-01-05 17:58:20" in east.stdout


# --- what a snapshot file cannot do ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "why"), [("whoami", "knows no users"), ("logs bert", "has no logs")]
)
def test_what_needs_a_cluster_is_reported(line: str, why: str) -> None:
    with pytest.raises(UserError) as caught:
        run_command(line, company())
    assert caught.value.what == f"a snapshot of the tests {why}"


def test_a_snapshot_is_not_changed() -> None:
    printed = run_command("delete bert nope", company())
    assert printed.status == 1
    assert "a snapshot of the tests cannot be changed" in printed.err
    assert "The training job 'nope' does not exist,skip to delete it" in printed.err


# --- what could not be read -----------------------------------------------------------------------


def test_a_kind_has_one_name_among_the_sources_and_people_read_its_whole_one() -> None:
    """The message has the whole name, as the specification requires; the source has the short name
    that boards and exporters use.

    See docs/spec/arena-cli.md#partial-results.
    """
    kinds = {
        "mpijobs": Source("mpijobs", "forbidden", "forbidden: no"),
        "jobs.batch.volcano.sh": Source("v", "failing", "etcd is away"),
    }
    printed = run_command("list", company(sources=kinds)).err
    assert (
        "skipped mpijobs.kubeflow.org: forbidden: no" in printed
        and ("skipped jobs.batch.volcano.sh: etcd is away") in printed
    )
    with pytest.raises(OutsideError) as caught:
        run_command(
            "get nope",
            company(sources={"mpijobs": Source("mpijobs", "forbidden", "forbidden: no")}),
        )
    assert caught.value.what == (
        "Not found training job nope in namespace default,please use 'arena submit' to "
        "create it. (mpijobs.kubeflow.org: forbidden: no)"
    )


@pytest.mark.parametrize("source", ["gpu-telemetry", "gpu-withheld", "events"])
def test_that_something_else_could_not_be_read_makes_no_job_doubtful(source: str) -> None:
    with pytest.raises(UserError) as caught:
        run_command("get nope", company(sources={source: Source(source, "forbidden", "no")}))
    assert caught.value.what == (
        "Not found training job nope in namespace default,please use 'arena submit' to create it."
    )
