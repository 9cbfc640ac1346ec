"""A whole submit: the output, which objects are created in which order, and which stay when it
fails.

See docs/spec/arena-cli.md#messages-of-the-commands, docs/spec/arena-cli.md#objects,
docs/spec/arena-cli.md#requests.
"""

from __future__ import annotations

import shlex

import pytest
import yaml
from tests.cli.submit.document_000 import DOCUMENT_000
from tests.cli.submitting import KeepingCluster, at, dry_run, submit

from fairlead.cli.frame.parser import split_verb
from fairlead.errors import OutsideError, UserError

PT = "pytorchjob --name=j --image=i"
FIRST = "template|spec|containers|0"


def test_the_command_of_document_000() -> None:
    cluster = KeepingCluster(user="alice")
    printed = submit(DOCUMENT_000.replace("\\\n", " "), cluster)
    assert printed.out == "mpijob.kubeflow.org/mpi-test created\n"
    assert [line.partition("msg=")[2] for line in printed.err.splitlines()] == [
        '"The Job mpi-test has been submitted successfully"',
        '"You can run `arena get mpi-test --type mpijob -n default` to check the job status"',
    ]
    assert all("level=info" in line for line in printed.err.splitlines())
    [job] = cluster.created
    launcher, worker = (
        at(job, f"spec|mpiReplicaSpecs|{role}|{FIRST}") for role in ("Launcher", "Worker")
    )
    assert (job["apiVersion"], job["kind"], job["metadata"]["namespace"]) == (
        "kubeflow.org/v2beta1",
        "MPIJob",
        "default",
    )
    assert launcher["command"][:2] == ["sh", "-c"] and launcher["command"][2].startswith(
        "mpirun python /benchmarks/scripts/tf_cnn"
    )
    assert launcher["command"][2].endswith("--save_summaries_steps=10") and "command" not in worker
    assert worker["workingDir"] == "/perseus-demo/tensorflow-demo/"
    assert worker["resources"]["limits"] == {"nvidia.com/gpu": "1"} and "resources" not in launcher
    assert job["metadata"]["labels"]["arena.kubeflow.org/uid"] == "6384e2b2184bcbf58eccf10ca7a6563c"
    assert job["metadata"]["annotations"] == {
        "requestGPUsOfJobOwner": "1",
        "arena.kubeflow.org/username": "alice",
    }


@pytest.mark.parametrize(
    ("served", "wanted"),
    [
        (("v1", "v2beta1"), "v2beta1"),
        (("v1alpha1", "v1"), "v1"),
        (("v1alpha1",), "v1alpha1"),
        (("v9", "v1"), "v1"),
    ],
)
def test_the_cluster_decides_the_version(served: tuple[str, ...], wanted: str) -> None:
    cluster = KeepingCluster({"MPIJob": served})
    submit("mpi --name=j --image=i --workers 2 --gpus 1 --retry 2 run", cluster)
    [job] = cluster.created
    assert job["apiVersion"] == f"kubeflow.org/{wanted}"
    if wanted == "v1alpha1":
        assert {
            key: job["spec"][key]
            for key in ("replicas", "cleanPodPolicy", "backoffLimit", "mountsOnLauncher")
        } == {
            "replicas": 2,
            "cleanPodPolicy": "All",
            "backoffLimit": 2,
            "mountsOnLauncher": False,
        }
        assert (
            at(job, f"spec|{FIRST}|command") == ["sh", "-c", "run"]
            and "mpiReplicaSpecs" not in job["spec"]
        )


def test_a_kind_that_is_not_served_is_reported_and_nothing_is_made() -> None:
    cluster = KeepingCluster({"TFJob": ("v1",)})
    with pytest.raises(UserError) as refused:
        submit("mpi --name=j --image=i run", cluster)
    assert refused.value.what == (
        "the cluster serves no mpijobs.kubeflow.org (looked for: v2beta1, v1, v1alpha1)"
    )
    assert not cluster.created


def test_fields_follow_the_served_schema() -> None:
    old = KeepingCluster(spec_fields=frozenset({"cleanPodPolicy", "tfReplicaSpecs"}))
    printed = submit("tf --name=j --image=i --starting-timeout 5s run", old)
    spec = old.created[0]["spec"]
    assert (
        "runPolicy" not in spec
        and spec["cleanPodPolicy"] == "Running"
        and "startingDeadlineSeconds" not in spec
    )
    assert (
        "the cluster's operator does not support `spec.startingDeadlineSeconds`: it is omitted"
    ) in printed.err
    new = KeepingCluster(spec_fields=frozenset({"runPolicy", "nprocPerNode"}))
    assert "knows no" not in submit(f"{PT} --nproc-per-node 2 run", new).err
    assert (new.created[0]["spec"]["nprocPerNode"], "runPolicy" in new.created[0]["spec"]) == (
        "2",
        True,
    )
    assert new.calls == ["refused kubeflow.org/v1", "served PyTorchJob v1", "create PyTorchJob j"]


def test_companions_come_after_the_job_and_belong_to_it() -> None:
    cluster = KeepingCluster()
    printed = submit(f"{PT} --tensorboard --config-file /etc/hostname run", cluster)
    config_map = cluster.created[1]["metadata"]["name"]
    assert printed.out == (
        f"pytorchjob.kubeflow.org/j created\nconfigmap/{config_map} created\n"
        "deployment.apps/j-tensorboard created\nservice/j-tensorboard created\n"
    )
    for each in cluster.created[1:]:
        assert each["metadata"]["ownerReferences"] == [
            {
                "apiVersion": "kubeflow.org/v1",
                "kind": "PyTorchJob",
                "name": "j",
                "uid": "uid-j",
                "controller": False,
            }
        ]
    assert cluster.calls == [
        f"create {each['kind']} {each['metadata']['name']}" for each in cluster.created
    ], "one create per object"


def test_a_job_that_exists_is_left_alone() -> None:
    cluster = KeepingCluster(full=["j"])
    with pytest.raises(UserError) as refused:
        submit(f"{PT} --tensorboard run", cluster)
    assert refused.value.what == (
        "the job j is already exist, please delete it first. use 'arena delete j'"
    )
    assert refused.value.hint == "`arena delete j --type pytorchjob -n default` removes it"
    assert refused.value.printed.out == ""  # type: ignore[attr-defined]
    assert (cluster.created, cluster.deleted) == ([], [])


@pytest.mark.parametrize("trouble", ["broken", "full"])
def test_a_submit_that_fails_on_the_way_removes_what_it_made_and_prints_nothing(
    trouble: str,
) -> None:
    cluster = KeepingCluster(**{trouble: ["j-tensorboard"]})
    with pytest.raises((OutsideError, UserError)) as failed:
        submit(f"{PT} --tensorboard --config-file /etc/hostname run", cluster)
    assert [each.split()[0] for each in cluster.deleted] == ["ConfigMap", "PyTorchJob"]
    assert failed.value.printed.out == ""  # type: ignore[union-attr]


def test_the_priority_must_exist_and_one_that_cannot_be_read_is_trusted() -> None:
    cluster = KeepingCluster(priorities={"high": True, "absent": False, "secret": None})
    assert submit(f"{PT} -p high run", cluster).err.count("level=warning") == 0
    with pytest.raises(UserError) as caught:
        submit(f"{PT} -p absent run", cluster)
    assert caught.value.what == (
        "failed to validate command args: the priority absent doesn't exist. Please check "
        "with `kubectl get priorityclass` to get a valid priority."
    )
    assert "level=warning" in submit(f"{PT} -p secret run", cluster).err
    assert len(cluster.created) == 2


def test_deprecated_spellings_work_and_are_reported() -> None:
    old = (
        "tfjob --name=j --workerImage w --psImage p --ps 1 --workers 2 --workingDir /w "
        "--dataDir /d --workerCpu 1 --ChiefCpu 2 --chief "
        "--workerPort 1 --psPort 2 --chiefPort 3 --workerMemory 1Gi --psCpu 1 --psMemory 2Gi "
        "--ChiefMemory 3Gi --evaluatorCpu 1 "
        "--evaluatorMemory 1Gi --cleanTaskPolicy All --syncMode git --syncSource s "
        "--syncImage i --tensorboardImage t run"
    )
    new = old
    pairs = {
        **{
            f"{old}{part.title()}": f"{old.lower()}-{part}"
            for old in ("worker", "ps", "Chief", "evaluator")
            for part in ("cpu", "memory")
        },
        **{f"{role}Port": f"{role}-port" for role in ("worker", "ps", "chief")},
        "workerImage": "worker-image",
        "psImage": "ps-image",
        "workingDir": "working-dir",
        "dataDir": "data-dir",
        "cleanTaskPolicy": "clean-task-policy",
        "syncMode": "sync-mode",
        "syncSource": "sync-source",
        "syncImage": "sync-image",
        "tensorboardImage": "tensorboard-image",
    }
    for twin, flag in pairs.items():
        assert f"--{twin} " in old
        new = new.replace(f"--{twin} ", f"--{flag} ")
    assert dry_run(old) == dry_run(new)
    printed = submit(f"{old.removesuffix('run')} --dry-run run").err.splitlines()
    assert sorted(printed) == sorted(
        f"Flag --{twin} has been deprecated, please use --{flag} instead"
        for twin, flag in pairs.items()
    )
    assert submit(f"{new.removesuffix('run')} --dry-run run").err == ""


@pytest.mark.parametrize("word", ["mpijob", "mpi", "mj", "tfjob", "tf", "pytorchjob", "pytorch"])
def test_every_alias_is_a_verb(word: str) -> None:
    kind = yaml.safe_load(submit(f"{word} --name=j --image=i --dry-run run").out)["kind"]
    assert kind == {"m": "MPIJob", "t": "TFJob", "p": "PyTorchJob"}[word[0]]


def test_kinds_that_are_not_built_are_reported() -> None:
    with pytest.raises(UserError) as caught:
        split_verb(["submit", "horovodjob", "--name=j"], "arena")
    assert caught.value.what == "not implemented: submit horovodjob"


def test_a_dry_run_prints_yaml_and_nothing_else_with_and_without_a_cluster() -> None:
    alone = submit(f"{PT} --dry-run --tensorboard run")
    cluster = KeepingCluster()
    asked = submit(f"{PT} --dry-run --tensorboard run", cluster)
    assert alone.out == asked.out and alone.err == asked.err == "" and not cluster.created
    assert alone.out.count("\n---\n") == 2 and alone.out.startswith("apiVersion: ")
    unreachable = submit(f"{PT} --dry-run --tensorboard run", KeepingCluster(unreachable=True))
    assert (
        unreachable.out == alone.out
        and "not checked against the cluster: no answer" in unreachable.err
    )


def test_without_a_cluster_nothing_can_be_submitted() -> None:
    with pytest.raises(UserError) as caught:
        submit(f"{PT} run")
    assert caught.value.what == "there is no cluster to submit to"


@pytest.mark.parametrize(
    "text",
    [
        "1e3",
        "0o17",
        "yes",
        "y",
        "null",
        "~",
        "1:30",
        "a: b",
        "a #b",
        "- x",
        "é\u2028",
        "'",
        '"',
        "\\n",
        "",
        " x ",
    ],
)
def test_values_that_yaml_readers_take_for_something_else_stay_text(text: str) -> None:
    job = dry_run([*shlex.split(PT), "-e", f"A={text}", "--", "run"])[0]
    reported = {
        each["name"]: each.get("value")
        for each in at(job, f"spec|pytorchReplicaSpecs|Master|{FIRST}|env")
    }
    assert reported["A"] == text


@pytest.mark.parametrize("text", ["1e3", "0o17", "y", "N", "1_0"])
def test_what_kubectls_reader_takes_for_a_number_or_a_truth_is_quoted(text: str) -> None:
    assert f'value: "{text}"\n' in submit(f"{PT} --dry-run -e A={text} run").out


@pytest.mark.parametrize("words", [["-e", "A=\udcff", "run"], ["run", "\udcff"]])
def test_bytes_that_are_no_text_are_refused(words: list[str]) -> None:
    with pytest.raises(UserError, match=r"udcff`.*UTF-8"):
        submit([*shlex.split(PT), "--dry-run", *words])


def test_words_after_the_flags_are_one_command() -> None:
    job = dry_run(f"{PT} --gpus 1 python 'a b' -- --epochs 3 -x")[0]
    assert at(job, f"spec|pytorchReplicaSpecs|Master|{FIRST}|command") == [
        "sh",
        "-c",
        "python a b --epochs 3 -x",
    ]
