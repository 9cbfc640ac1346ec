"""`arena serve custom|tensorflow|triton|kserve`: which objects the flags create, what is printed,
and what is refused.
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.submitting import KeepingCluster, Manifest, at, serve
from tests.programs import run_program

from fairlead.errors import OutsideError, UserError

CUSTOM = "custom --name fast --version v1 --image app:1 --restful-port 5000"
TF = "tf --name m --version v1 --model-name mnist --model-path /m/mnist"
TRITON = "triton --name t --version v1 --model-repository /m"
KSERVE = "kserve --name iris --version v1 --model-format sklearn:1.3 --storage-uri gs://models/iris"
POD = "spec|template|spec"
MAIN = f"{POD}|containers|0"
LABELS = {"servingName": "fast", "servingVersion": "v1", "servingType": "custom-serving"}


def objects(line: str) -> list[Manifest]:
    return list(yaml.safe_load_all(serve(f"{line} --dry-run").out))


def workload(line: str) -> Manifest:
    return objects(line)[0]


# --- the objects that are created -----------------------------------------------------------------


def test_a_custom_job_is_a_deployment_and_its_service() -> None:
    deployment, service = objects(
        f"{CUSTOM} --replicas 2 --port 50051 --metrics-port 9100 'python3 app.py'"
    )
    assert (deployment["kind"], deployment["metadata"]["name"]) == (
        "Deployment",
        "fast-v1-custom-serving",
    )
    assert (service["kind"], service["metadata"]["name"]) == ("Service", "fast-v1")
    for labels in (
        deployment["metadata"]["labels"],
        service["metadata"]["labels"],
        at(deployment, "spec|template|metadata|labels"),
    ):
        assert labels.items() >= LABELS.items() and labels["release"] == "fast-v1"
    chosen = at(deployment, "spec|selector|matchLabels")
    assert (
        chosen == at(service, "spec|selector")
        and chosen.items() <= at(deployment, "spec|template|metadata|labels").items()
    )
    assert (
        at(deployment, f"{MAIN}|command") == ["sh", "-c", "python3 app.py"]
        and at(deployment, "spec|replicas") == 2
    )
    assert at(service, "spec|type") == "ClusterIP"
    assert [
        (port["name"], port["port"], port["targetPort"]) for port in at(service, "spec|ports")
    ] == [
        ("grpc-serving", 50051, 50051),
        ("http-serving", 5000, 5000),
        ("http-metrics", 9100, 9100),
    ]
    assert [port["containerPort"] for port in at(deployment, f"{MAIN}|ports")] == [
        50051,
        5000,
        9100,
    ]


def test_without_a_command_the_image_runs_its_own() -> None:
    assert at(workload(CUSTOM), f"{MAIN}|command") is None
    assert at(workload(f"{CUSTOM} --shell bash --command 'a b'"), f"{MAIN}|command") == [
        "bash",
        "-c",
        "a b",
    ]


@pytest.mark.parametrize(
    ("flags", "path", "value"),
    [
        ("", f"{MAIN}|imagePullPolicy", "IfNotPresent"),
        ("--imagePullPolicy Always", f"{MAIN}|imagePullPolicy", "Always"),
        ("--gpus 2", f"{MAIN}|resources|limits", {"nvidia.com/gpu": "2"}),
        (
            "--gpumemory 4 --gpucore 30 --cpu 500m --memory 1Gi",
            f"{MAIN}|resources|requests",
            {
                "cpu": "500m",
                "memory": "1Gi",
                "aliyun.com/gpu-mem": "4",
                "aliyun.com/gpu-core.percentage": "30",
            },
        ),
        ("--device amd.com/gpu=1", f"{MAIN}|resources|limits", {"amd.com/gpu": "1"}),
        ("-e A=1 -e B==", f"{MAIN}|env|6", {"name": "B", "value": "="}),
        (
            "--env-from-secret K=s",
            f"{MAIN}|env|5|valueFrom|secretKeyRef",
            {"name": "s", "key": "K"},
        ),
        ("--image-pull-secret s", f"{POD}|imagePullSecrets", [{"name": "s"}]),
        ("--selector a=b", f"{POD}|nodeSelector", {"a": "b"}),
        ("--toleration all", f"{POD}|tolerations", [{"operator": "Exists"}]),
        ("-l team=a", "spec|template|metadata|labels|team", "a"),
        ("-l servingName=x", "spec|template|metadata|labels|servingName", "fast"),
        ("-a k=v", "metadata|annotations", {"k": "v"}),
        ("-a k=v", "spec|template|metadata|annotations", {"k": "v"}),
        (
            "--enable-istio",
            "spec|template|metadata|annotations",
            {"sidecar.istio.io/inject": "true"},
        ),
        (
            "--share-memory 2Gi",
            f"{POD}|volumes|0|emptyDir",
            {"medium": "Memory", "sizeLimit": "2Gi"},
        ),
        ("-d c:/m", f"{POD}|volumes|0|persistentVolumeClaim", {"claimName": "c"}),
        (
            "-d c:/m --data-subpath-expr 'c:$(ARENA_POD_NAME)/x'",
            f"{MAIN}|volumeMounts|0|subPathExpr",
            "$(ARENA_POD_NAME)/x",
        ),
        ("--data-dir /host:/in", f"{POD}|volumes|0|hostPath", {"path": "/host"}),
        (
            "--temp-dir t:/tmp/x --temp-dir-subpath-expr t:a",
            f"{MAIN}|volumeMounts|0",
            {"name": "t", "mountPath": "/tmp/x", "subPathExpr": "a"},
        ),
        (
            "--max-surge 1 --max-unavailable 25%",
            "spec|strategy|rollingUpdate",
            {"maxSurge": 1, "maxUnavailable": "25%"},
        ),
        ("--model-name bert --model-version 3", "metadata|labels|modelVersion", "3"),
        (
            "--readiness-probe-action httpGet --readiness-probe-action-option 'path: /ok' "
            "--readiness-probe-action-option 'port: 5000' "
            "--readiness-probe-option 'initialDelaySeconds: 3'",
            f"{MAIN}|readinessProbe",
            {"httpGet": {"path": "/ok", "port": 5000}, "initialDelaySeconds": 3},
        ),
        (
            (
                "--liveness-probe-action exec --liveness-probe-action-option 'command=cat "
                "/tmp/healthy'"
            ),
            f"{MAIN}|livenessProbe",
            {"exec": {"command": ["cat", "/tmp/healthy"]}},
        ),
        (
            "--startup-probe-action tcpSocket --startup-probe-action-option port:restful",
            f"{MAIN}|startupProbe|tcpSocket|port",
            "restful",
        ),
    ],
)
def test_a_flag_and_what_it_writes(flags: str, path: str, value: Any) -> None:
    assert at(workload(f"{CUSTOM} {flags}"), path) == value


def test_a_pod_without_a_gpu_sees_none_and_its_author_has_the_last_word() -> None:
    def env(flags: str) -> dict[str, str]:
        return {
            each["name"]: each.get("value", "")
            for each in at(workload(f"{CUSTOM} {flags}"), f"{MAIN}|env")
        }

    assert env("")["NVIDIA_VISIBLE_DEVICES"] == "void"
    reported = env("-e NVIDIA_VISIBLE_DEVICES=all -e ARENA_POD_IP=x")
    assert (reported["NVIDIA_VISIBLE_DEVICES"], reported["ARENA_POD_IP"]) == ("all", "x")
    for asked in ("--gpus 1", "--gpumemory 2", "--device aliyun.com/gpu-mem=2"):
        assert "NVIDIA_VISIBLE_DEVICES" not in env(asked)
    assert list(env(""))[:4] == [
        "ARENA_NODE_NAME",
        "ARENA_POD_NAMESPACE",
        "ARENA_POD_NAME",
        "ARENA_POD_IP",
    ]


def test_a_file_of_this_machine(tmp_path: Path) -> None:
    (tmp_path / "a.conf").write_text("x = 1\n")
    deployment, _, config = objects(f"{CUSTOM} --config-file {tmp_path}/a.conf:/etc/app/a.conf")
    assert (
        config["data"] == {"a.conf": "x = 1\n"}
        and config["metadata"]["labels"].items() >= LABELS.items()
    )
    mount = {
        "name": config["metadata"]["name"],
        "mountPath": "/etc/app/a.conf",
        "subPath": "a.conf",
    }
    assert at(deployment, f"{MAIN}|volumeMounts|0") == mount


def test_without_a_version_it_is_the_minute() -> None:
    (deployment, _) = objects("custom --name fast --image i --port 1")
    assert re.fullmatch(r"fast-(1970|1969)\d{8}-custom-serving", deployment["metadata"]["name"])


def test_exposed_on_every_node() -> None:
    assert at(objects(f"{CUSTOM} --exposeService")[1], "spec|type") == "NodePort"


# --- tensorflow, triton, kserve -------------------------------------------------------------------


def test_tensorflow_serving() -> None:
    deployment, service = objects(TF)
    assert (
        deployment["metadata"]["name"] == service["metadata"]["name"] == "m-v1-tensorflow-serving"
    )
    assert at(deployment, f"{MAIN}|command|2") == (
        "/usr/bin/tensorflow_model_server --port=8500 --rest_api_port=8501 --model_name=mnist "
        "--model_base_path=/m/mnist"
    )
    assert at(deployment, f"{MAIN}|image") == "tensorflow/serving:latest"
    assert at(deployment, f"{MAIN}|readinessProbe|tcpSocket|port") == 8500
    reported = at(
        workload(f"{TF} --model-config-file '/m/my models.config' --monitoring-config-file /m/mon"),
        f"{MAIN}|command|2",
    )
    assert reported.endswith(
        " --rest_api_port=8501 --model_config_file='/m/my models.config' "
        "--monitoring_config_file=/m/mon"
    )
    assert (
        at(workload(f"{TF} --port 0 --restful-port 80"), f"{MAIN}|readinessProbe|tcpSocket|port")
        == 80
    )


def test_tensorflow_takes_its_part_of_a_shared_card() -> None:
    """The shell of the container computes it from the device plugin's variables."""
    command = at(workload(f"{TF} --gpumemory 4"), f"{MAIN}|command|2").replace(
        "/usr/bin/tensorflow_model_server", "echo"
    )
    env = {
        "PATH": "/usr/bin:/bin",
        "ALIYUN_COM_GPU_MEM_CONTAINER": "4",
        "ALIYUN_COM_GPU_MEM_DEV": "15",
    }
    result = run_program(["sh", "-c", command], env=env, check=True)
    assert result.stdout.split()[-1] == "--per_process_gpu_memory_fraction=0.27"
    assert "fraction" not in at(workload(f"{TF} --gpus 1"), f"{MAIN}|command|2")


def test_triton() -> None:
    deployment, service = objects(
        f"{TRITON} --gpus 1 --load-model a --load-model b --allow-metrics --extend-command "
        "'--strict-readiness=1'"
    )
    assert (
        deployment["metadata"]["name"]
        == service["metadata"]["name"]
        == "t-v1-tritoninferenceserver"
    )
    assert at(deployment, f"{MAIN}|command|2") == (
        "tritonserver --http-port=8000 --grpc-port=8001 --metrics-port=8002 "
        "--allow-metrics=true --model-repository=/m "
        "--model-control-mode=explicit --load-model=a --load-model=b --strict-readiness=1"
    )
    assert [port["name"] for port in at(service, "spec|ports")] == [
        "http-serving",
        "grpc-serving",
        "http-metrics",
    ]
    quiet = objects(TRITON)
    assert (
        "--allow-metrics=false" in at(quiet[0], f"{MAIN}|command|2")
        and len(at(quiet[1], "spec|ports")) == 2
    )
    assert at(deployment, f"{MAIN}|readinessProbe|httpGet") == {
        "path": "/v2/health/ready",
        "port": 8000,
    }


def test_kserve_finds_the_server_for_a_format() -> None:
    (service,) = objects(
        f"{KSERVE} --gpus 1 --max-replicas 3 --canary-traffic-percent 10 --security-context "
        "runAsUser=1000 -a k=v"
    )
    assert (service["apiVersion"], service["kind"], service["metadata"]["name"]) == (
        "serving.kserve.io/v1beta1",
        "InferenceService",
        "iris",
    )
    predictor = at(service, "spec|predictor")
    assert at(predictor, "model|modelFormat") == {"name": "sklearn", "version": "1.3"}
    assert at(predictor, "model|storageUri") == "gs://models/iris" and "containers" not in predictor
    assert at(predictor, "model|resources|limits") == {"nvidia.com/gpu": "1"}
    assert (
        predictor["minReplicas"],
        predictor["maxReplicas"],
        predictor["canaryTrafficPercent"],
    ) == (1, 3, 10)
    assert predictor["securityContext"] == {"runAsUser": 1000}
    assert (
        service["metadata"]["labels"].items()
        >= {"servingName": "iris", "servingType": "kserve", "servingVersion": "v1"}.items()
    )
    assert service["metadata"]["annotations"] == {"k": "v"}


def test_kserve_runs_an_image_of_ones_own() -> None:
    (service,) = objects(
        "kserve --name k --image app:1 --port 8080 -d c:/m --enable-prometheus 'run me' "
        "--affinity-policy spread --affinity-constraint required"
    )
    predictor = at(service, "spec|predictor")
    assert "model" not in predictor and "canaryTrafficPercent" not in predictor
    (container,) = predictor["containers"]
    assert (container["name"], container["command"]) == ("kserve-container", ["sh", "-c", "run me"])
    assert container["ports"] == [{"containerPort": 8080, "protocol": "TCP"}]
    assert predictor["volumes"] == [{"name": "c", "persistentVolumeClaim": {"claimName": "c"}}]
    assert service["metadata"]["annotations"] == {
        "serving.kserve.io/enable-prometheus-scraping": "true"
    }
    (term,) = at(
        predictor, "affinity|podAntiAffinity|requiredDuringSchedulingIgnoredDuringExecution"
    )
    assert term["labelSelector"]["matchLabels"] == {"servingName": "k", "servingType": "kserve"}


# --- into a cluster -------------------------------------------------------------------------------


def test_everything_belongs_to_the_workload_and_is_printed_as_people_know_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "f").write_text("x")
    cluster = KeepingCluster(user="alice")
    result = serve(f"{CUSTOM} --config-file {tmp_path}/f:/f", cluster)
    config = cluster.created[2]["metadata"]["name"]
    assert result.out == (
        f"configmap/{config} created\nservice/fast-v1 "
        "created\ndeployment.apps/fast-v1-custom-serving created\n"
    )
    assert "The Job fast has been submitted successfully" in result.err
    assert (
        "You can run `arena serve get fast --type custom-serving -n default` to check the job "
        "status"
    ) in result.err
    deployment, *companions = cluster.created
    for each in companions:
        (owner,) = each["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"]) == ("Deployment", "uid-fast-v1-custom-serving")
    assert deployment["metadata"]["annotations"] == {"arena.kubeflow.org/username": "alice"}
    assert (
        deployment["metadata"]["labels"]["arena.kubeflow.org/uid"]
        == "6384e2b2184bcbf58eccf10ca7a6563c"
    )


def test_one_request_per_object() -> None:
    cluster = KeepingCluster()
    serve(CUSTOM, cluster)
    assert cluster.calls == ["create Deployment fast-v1-custom-serving", "create Service fast-v1"]


def test_what_is_there_already_stays() -> None:
    cluster = KeepingCluster(full=["fast-v1-custom-serving"])
    with pytest.raises(UserError) as refused:
        serve(CUSTOM, cluster)
    assert refused.value.what == (
        "the job fast is already exist, please delete it first. use 'arena serve delete fast'"
    )
    assert refused.value.hint == "`arena serve delete fast --version v1 -n default` removes it"
    assert cluster.created == cluster.deleted == []


def test_nothing_stays_of_a_job_that_failed_half_way() -> None:
    taken, broken = KeepingCluster(full=["fast-v1"]), KeepingCluster(broken=["fast-v1"])
    with pytest.raises(UserError) as caught:
        serve(CUSTOM, taken)
    assert caught.value.what == (
        "the service fast-v1 is already exist, so the job fast-v1-custom-serving was not submitted"
    )
    with pytest.raises(OutsideError) as caught:
        serve(CUSTOM, broken)
    assert caught.value.what == "cannot make fast-v1"
    assert taken.deleted == broken.deleted == ["Deployment fast-v1-custom-serving"]


def test_without_a_cluster_only_a_dry_run() -> None:
    with pytest.raises(UserError) as caught:
        serve(CUSTOM)
    assert caught.value.what == "there is no cluster to submit to"


def test_old_spellings_are_reported() -> None:
    result = serve(
        "tf --servingName m --servingVersion v1 --modelName n --modelPath /m --restfulPort 80 "
        "--enableIstio "
        "--versionPolicy latest --dry-run"
    )
    for name, new in (
        ("servingName", "name"),
        ("modelPath", "model-path"),
        ("enableIstio", "enable-istio"),
    ):
        assert f"Flag --{name} has been deprecated, please use --{new} instead\n" in result.err
    assert "--version-policy has no effect" in result.err
    assert (
        yaml.safe_load(result.out.split("---")[0])["metadata"]["name"] == "m-v1-tensorflow-serving"
    )


# --- what is refused ------------------------------------------------------------------------------

_WHY = "failed to validate command args: "
_EPOCH = time.strftime("%Y%m%d%H%M", time.localtime(0))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("custom --image i --port 1", 'required flag(s) "name" not set'),
        ("custom --name fast --port 1", f"{_WHY}image must be specified"),
        ("custom --name fast --image i", f"{_WHY}all  ports are 0,invalid configuration"),
        (
            f"custom --name {'x' * 50} --image i --port 1",
            f"{_WHY}the len 50 of name {'x' * 50} is too long, it should be less than 49",
        ),
        (
            "custom --name a.b --image i --port 1",
            (
                f"{_WHY}the job name must consist of lower case alphanumeric "
                f"characters or '-', and must start and end with an alphanumeric character"
            ),
        ),
        (
            "custom --name 1a --version v1 --image i --port 1",
            (
                f"{_WHY}--name is invalid: the Service would be called 1a-v1, and the "
                f"name of a Service begins with a letter"
            ),
        ),
        (
            f"tf --name {'x' * 49} --model-name m --model-path /m",
            (
                f"{_WHY}--name and --version are invalid: the Service would be called "
                f"{'x' * 49}-{_EPOCH}-tensorflow-serving, 81 characters; 63 fit"
            ),
        ),
        (f"{CUSTOM} --version V1", f"{_WHY}--version is invalid: `V1`"),
        (f"{CUSTOM} --version v1,x", f"{_WHY}--version is invalid: `v1,x`"),
        (f"{CUSTOM} --gpus -1", f"{_WHY}--gpus is invalid"),
        (
            f"{CUSTOM} --gpus x",
            (
                'invalid argument "x" for "--gpus" flag: strconv.ParseInt: '
                'parsing "x": invalid syntax'
            ),
        ),
        (f"{CUSTOM} --replicas -2", f"{_WHY}--replicas is invalid"),
        (f"{CUSTOM} --port 70000", f"{_WHY}--port is invalid"),
        (f"{CUSTOM} --port 5000", f"{_WHY}ports are invalid: 5000, 5000"),
        (
            f"{CUSTOM} --cpu much",
            f"{_WHY}--cpu is invalid: quantity `much` is not a Kubernetes quantity",
        ),
        (
            f"{CUSTOM} --image-pull-policy Sometimes",
            f"{_WHY}--image-pull-policy is invalid: unknown value Sometimes",
        ),
        (f"{CUSTOM} -d models", f"{_WHY}--data is invalid: `models`"),
        (f"{CUSTOM} -d a:/x -d b:/x", f"{_WHY}/x is the place of two volumes: a and b"),
        (
            f"{CUSTOM} -d a:/x -d a:/y --data-subpath-expr a:b",
            f"{_WHY}--data-subpath-expr is invalid: `a` is mounted at /x and at /y",
        ),
        (
            f"{CUSTOM} --data-subpath-expr a:b",
            f"{_WHY}--data-subpath-expr is invalid: no --data mounts `a`",
        ),
        (
            f"{CUSTOM} -d a:/x --data-subpath-expr a:../b",
            f"{_WHY}--data-subpath-expr is invalid: `a:../b`",
        ),
        (f"{CUSTOM} --temp-dir A:/x", f"{_WHY}--temp-dir is invalid: `A:/x`"),
        (
            f"{CUSTOM} --temp-dir a:/x --temp-dir a:/y",
            f"{_WHY}--temp-dir is invalid: a is given twice",
        ),
        (f"{CUSTOM} --max-surge some", f"{_WHY}--max-surge is invalid: `some`"),
        (f"{CUSTOM} --toleration nonsense::", f"{_WHY}--toleration is invalid: `nonsense::`"),
        (
            f"{CUSTOM} --liveness-probe-action ask",
            f"{_WHY}--liveness-probe-action is invalid: unknown value ask",
        ),
        (
            f"{CUSTOM} --liveness-probe-action httpGet",
            f"{_WHY}--liveness-probe-action-option is invalid: httpGet needs `port`",
        ),
        (
            f"{CUSTOM} --liveness-probe-option 'periodSeconds: 1'",
            f"{_WHY}--liveness-probe-action is not set",
        ),
        (
            (
                f"{CUSTOM} --startup-probe-action grpc --startup-probe-action-option port=1 "
                "--startup-probe-option 'often: 1'"
            ),
            f"{_WHY}--startup-probe-option is invalid: `often: 1`",
        ),
        (
            f"{CUSTOM} --command a b",
            f"{_WHY}--command is invalid: a command stands after the flags as well",
        ),
        (
            f"{CUSTOM} --model-name 'a b'",
            f"{_WHY}--model-name is invalid: `a b` of modelName is no value of a label",
        ),
        (
            f"{CUSTOM} --config-file /nonexistent/words:/x",
            f"{_WHY}config file `/nonexistent/words` cannot be read: No such file or directory",
        ),
        ("tf --name m --model-path /m", f"{_WHY}model name cannot be blank"),
        (
            "tf --name m --model-name n",
            f"{_WHY}modelPath should be specified if no modelConfigFile is specified",
        ),
        (
            "tf --name m --model-name a.b --model-path /m",
            f"{_WHY}model name should be numbers, letters, dashes, and underscores ONLY",
        ),
        (f"{TF} --model-path m", f"{_WHY}--model-path is invalid: `m` is not absolute"),
        ("triton --name t", f"{_WHY}--model-repository must be set"),
        (f"{TRITON} --http-port 0", f"{_WHY}--http-port is invalid"),
        ("kserve --name k", f"{_WHY}--model-format or --image must be set"),
        (
            "kserve --name k --image i --storage-uri gs://x",
            f"{_WHY}--storage-uri is invalid without --model-format",
        ),
        (f"{KSERVE} --max-replicas 0", f"{_WHY}--max-replicas is invalid"),
        (
            f"{KSERVE} --min-replicas 3 --max-replicas 2",
            f"{_WHY}--max-replicas is invalid: it is 2, and --min-replicas 3",
        ),
        (
            f"{KSERVE} --canary-traffic-percent 101",
            f"{_WHY}--canary-traffic-percent is invalid: 101 is more than everything",
        ),
        (f"{KSERVE} --scale-metric mood", f"{_WHY}--scale-metric is invalid: unknown value mood"),
        (
            f"{KSERVE} --affinity-policy near",
            f"{_WHY}--affinity-policy is invalid: unknown value near",
        ),
    ],
)
def test_bad_input_comes_before_any_request(line: str, words: str) -> None:
    cluster = KeepingCluster()
    with pytest.raises(UserError) as caught:
        serve(line, cluster)
    assert caught.value.what == words
    assert cluster.calls == []
