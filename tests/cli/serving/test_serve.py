"""`arena serve list`, `get`, `logs`, `delete` and `arena data list`: tables with no row, one row
and many, documents, and lines that are refused.
"""

from __future__ import annotations

import json

import pytest
import yaml
from tests.cli.serving_objects import (
    Servings,
    claim,
    deployment,
    inference_service,
    run_serving,
    service,
    serving_pod,
)

from fairlead.errors import OutsideError, UserError
from fairlead.model.jobs.datasets import DataMount, DataSet
from fairlead.model.source import Source

BOTH = {"grpc-serving": 8500, "http-serving": 8501, "http-metrics": 9090}
HEAD = "NAME  TYPE  VERSION  DESIRED  AVAILABLE  ADDRESS  PORTS\n"


def fast(**more: object) -> Servings:
    """One custom job with a pod that has a GPU."""
    return Servings(
        deployments=[
            deployment("fast", "v1", available=1, limits={"nvidia.com/gpu": "1", "cpu": "500m"})
        ],
        services=[service("fast", "v1", {"http-serving": 5000})],
        pods=[serving_pod("fast", "v1", "fast-v1-a", limits={"nvidia.com/gpu": "1"}, restarts=2)],
        **more,
    )


def many() -> Servings:
    tf = {"type_": "tf-serving"}
    return Servings(
        deployments=[
            deployment("m", "v2", replicas=2, available=1, **tf),
            deployment("m", "v1", replicas=1, available=1, **tf),
            deployment("fast", "v1", namespace="other", limits={"aliyun.com/gpu-mem": "6"}),
            deployment("strange", "v1", type_="nothing-known"),
        ],
        services=[
            service(
                "m", "v1", BOTH, node_ports={"grpc-serving": 31000, "http-serving": 31001}, **tf
            ),
            service("m", "v2", BOTH, balancer="47.1.2.3", ip="10.96.0.9", **tf),
            service("fast", "v1", {"restful-serving": 80}, namespace="other", ip="None"),
        ],
        pods=[
            serving_pod("m", "v2", "m-v2-10", **tf),
            serving_pod("m", "v2", "m-v2-9", on="", phase="Pending", **tf),
            serving_pod(
                "fast", "v1", "fast-v1-b", namespace="other", limits={"aliyun.com/gpu-mem": "6"}
            ),
        ],
        units={"n1": 15.0},
    )


# --- list -----------------------------------------------------------------------------------------


def test_no_job_is_a_header() -> None:
    assert run_serving("serve list", Servings()).out == HEAD
    assert run_serving("serve ls -A", Servings()).out == f"NAMESPACE  {HEAD}"
    assert run_serving("serve list -o json", Servings()).out == "[]"


def test_one_job_with_gpus_has_a_column_for_them() -> None:
    assert run_serving("serve list", fast()).out == (
        "NAME  TYPE    VERSION  DESIRED  AVAILABLE  ADDRESS    PORTS         GPU\n"
        "fast  Custom  v1       1        1          10.96.0.7  RESTFUL:5000  1\n"
    )


def test_many_jobs_by_namespace_name_and_version() -> None:
    """Node ports, a load balancer's address, a Service without an address, a port with arena's old
    name; part of a card counts as a part.
    """
    assert run_serving("serve list -A", many()).out == (
        "NAMESPACE  NAME  TYPE        VERSION  DESIRED  AVAILABLE  ADDRESS    PORTS           "
        "                      GPU\n"
        "default    m     Tensorflow  v1       1        1          10.96.0.7  "
        "GRPC:31000->8500,RESTFUL:31001->8501  0\n"
        "default    m     Tensorflow  v2       2        1          47.1.2.3   "
        "GRPC:8500,RESTFUL:8501                0\n"
        "other      fast  Custom      v1       1        0          N/A        RESTFUL:80      "
        "                      0.4\n"
    )


def test_without_gpus_there_is_no_column_and_without_service_no_address() -> None:
    assert run_serving("serve list", Servings(deployments=[deployment("a", "1")])).out.splitlines()[
        1
    ].split() == [*("a", "Custom", "1", "1", "0", "N/A", "N/A")]


def test_a_pod_that_does_not_run_holds_no_gpu() -> None:
    waiting = serving_pod("a", "1", "a-1", limits={"nvidia.com/gpu": "4"}, phase="Pending")
    table = run_serving(
        "serve list", Servings(deployments=[deployment("a", "1")], pods=[waiting])
    ).out
    assert "GPU" not in table


@pytest.mark.parametrize(
    ("word", "versions"),
    [("tf", 2), ("Tensorflow", 2), ("tf-serving", 2), ("CUSTOM", 0), ("triton", 0)],
)
def test_only_one_type(word: str, versions: int) -> None:
    assert len(run_serving(f"serve list -T {word}", many()).out.splitlines()) == 1 + versions


def test_kserve_is_its_own_object_with_the_deployments_of_its_operator() -> None:
    kserve = {"type_": "kserve"}
    cluster = Servings(
        inference=[
            inference_service("iris", "v1", "http://iris.default.example.com"),
            inference_service("new", "v1"),
        ],
        deployments=[deployment("iris", "v1", replicas=3, available=2, **kserve)],
        services=[service("iris", "v1", {"http": 80}, **kserve)],
        pods=[serving_pod("iris", "v1", "iris-a", **kserve)],
    )
    assert run_serving("serve list", cluster).out == (
        "NAME  TYPE    VERSION  DESIRED  AVAILABLE  ADDRESS                          PORTS\n"
        "iris  KServe  v1       3        2          http://iris.default.example.com  :80\n"
        "new   KServe  v1       0        0          N/A                              N/A\n"
    )
    assert "  iris-a  Running" in run_serving("serve get iris", cluster).out


def test_an_unknown_type_and_an_unknown_format() -> None:
    with pytest.raises(UserError) as caught:
        run_serving("serve list -T nonsense", fast())
    assert caught.value.what == (
        "Unknown serving job type,arena only supports: "
        "[custom(Custom),tf(Tensorflow),triton(Triton),kserve(KServe),kf(KFServing),trt(Tensorrt),seldon(Seldon),distributed(Distributed)]"
    )
    with pytest.raises(UserError) as caught:
        run_serving("serve list -o xml", fast())
    assert caught.value.what == "unknown output format,only support:[wide|json|yaml]"


def test_what_could_not_be_read_is_reported() -> None:
    gone = {"inferenceservices.serving.kserve.io": Source("i", "missing", "not served")}
    no_services = {"services": Source("services", "forbidden", "forbidden: services")}
    result = run_serving("serve list", fast(sources={**gone, **no_services}))
    assert result.err.count("skipped services: forbidden") == 1 and "not served" not in result.err
    assert (
        "is not served by this cluster"
        in run_serving("serve list -T kserve", fast(sources=gone)).err
    )
    with pytest.raises(UserError) as caught:
        run_serving(
            "serve list -A", fast(sources={"deployments.apps": Source("d", "forbidden", "no")})
        )
    assert (
        caught.value.what == "the user has no privileges to list the serving jobs in all namespaces"
    )
    with pytest.raises(OutsideError) as caught:
        run_serving(
            "serve list", fast(sources={"deployments.apps": Source("d", "failing", "broken")})
        )
    assert caught.value.what == "no serving job can be listed: broken"


@pytest.mark.parametrize(
    "verb", ["serve list", "serve get x", "serve delete x", "serve logs x", "data list"]
)
def test_without_a_cluster_there_is_a_sentence(verb: str) -> None:
    if verb == "serve delete x":
        result = run_serving(verb, None)
        assert result.status == 1 and "there is no API server" in result.err
        return
    with pytest.raises(UserError) as caught:
        run_serving(verb, None)
    assert caught.value.what == (
        "there is no API server to ask for volume claims"
        if verb == "data list"
        else "serving jobs are Deployments and Services, and there is no API server to ask for them"
    )


# --- get ------------------------------------------------------------------------------------------


def test_get_with_gpus() -> None:
    assert run_serving("serve get fast", fast()).out == (
        "Name:       fast\n"
        "Namespace:  default\n"
        "Type:       Custom\n"
        "Version:    v1\n"
        "Desired:    1\n"
        "Available:  1\n"
        "Age:        1m\n"
        "Address:    10.96.0.7\n"
        "Port:       RESTFUL:5000\n"
        "GPU:        1\n"
        "\n"
        "Instances:\n"
        "  NAME       STATUS   AGE  READY  RESTARTS  GPU  NODE\n"
        "  ----       ------   ---  -----  --------  ---  ----\n"
        "  fast-v1-a  Running  1m   1/1    2         1    n1\n"
        "\n"
    )


def test_get_without_gpus_and_pods_in_natural_order() -> None:
    printed = run_serving("serve get m -v v2", many()).out
    assert printed.startswith("Name:       m\n") and "GPU" not in printed
    assert printed.endswith(
        "Port:       GRPC:8500,RESTFUL:8501\n\n\nInstances:\n"
        "  NAME     STATUS   AGE  READY  RESTARTS  NODE\n"
        "  ----     ------   ---  -----  --------  ----\n"
        "  m-v2-9   Pending  1m   0/1    0         \n"
        "  m-v2-10  Running  1m   1/1    0         n1\n\n"
    )


def test_the_model_of_a_job() -> None:
    labelled = deployment("a", "1", modelName="bert", modelVersion="7")
    assert (
        "Port:       \nModelName:    bert\nModelVersion: 7\n"
        in run_serving("serve get a", Servings(deployments=[labelled])).out
    )


def test_documents() -> None:
    printed = json.loads(run_serving("serve get fast -o json", fast()).out)
    assert printed == yaml.safe_load(run_serving("serve get fast -o yaml", fast()).out)
    assert [printed] == json.loads(run_serving("serve list -o json", fast()).out)
    (instance,) = printed.pop("instances")
    assert printed == {
        "uuid": "uid-default-fast-v1-x",
        "name": "fast",
        "namespace": "default",
        "type": "Custom",
        "version": "v1",
        "age": "1m",
        "desiredInstances": 1,
        "availableInstances": 1,
        "endpoints": [{"name": "RESTFUL", "port": 5000, "nodePort": 0}],
        "ip": "10.96.0.7",
        "requestCPUs": 0.5,
        "requestGPUs": 1,
        "requestGPUMemory": 0,
        "requestGPUCore": 0,
        "creationTimestamp": 1767607200,
    }
    assert instance == {
        "name": "fast-v1-a",
        "status": "Running",
        "age": "1m",
        "readyContainers": 1,
        "totalContainers": 1,
        "restartCount": 2,
        "nodeIP": "10.0.0.1",
        "nodeName": "n1",
        "ip": "",
        "requestGPUs": 1,
        "requestGPUMemory": 0,
        "requestGPUCore": 0,
        "creationTimestamp": 1767607200,
    }


def test_a_name_that_is_absent_or_has_several_versions() -> None:
    with pytest.raises(UserError) as caught:
        run_serving("serve get nope", many())
    assert (
        caught.value.what
        == "Not found serving job nope, please check it with `arena serve list | grep nope`"
    )
    with pytest.raises(UserError) as caught:
        run_serving("serve get m", many())
    assert caught.value.what == (
        "there are 2 serving jobs of this name:\n\nNAME  TYPE        VERSION\nm     "
        "tf-serving  v1\nm     tf-serving  v2\n\nplease use '--type' or '--version' to "
        "filter."
    )


@pytest.mark.parametrize(
    "line",
    [
        "serve get 'a,b'",
        "serve get A",
        "serve get x -v 'v1,servingName=y'",
        "serve delete -- -x",
    ],
)
def test_what_can_be_no_name(line: str) -> None:
    """A comma would separate two requirements of a selector."""
    try:
        result = run_serving(line, many())
    except UserError as error:
        assert error.what.startswith("invalid ")
    else:
        assert result.status == 1 and "invalid name" in result.err


# --- logs, delete ---------------------------------------------------------------------------------


def test_the_log_of_the_only_pod() -> None:
    result = run_serving("serve logs fast --tail 5 --timestamps", fast())
    assert result.out == (
        "default/fast-v1-a [('container', 'main'), ('tailLines', 5), ('timestamps', 'true')]\n"
    )


def test_which_pod_when_there_are_several() -> None:
    with pytest.raises(UserError) as caught:
        run_serving("serve logs m -v v2", many())
    assert caught.value.what == (
        "there are 2 instances:\n\nm-v2-10\nm-v2-9\n\nplease use '-i' or '--instance' to filter."
    )
    assert run_serving("serve log m -v v2 -i m-v2-10", many()).out.startswith("default/m-v2-10 ")
    with pytest.raises(UserError) as caught:
        run_serving("serve logs m -v v2 -i x", many())
    assert caught.value.what == (
        "invalid instance name x of serving job m,please use 'arena serve get m' to get "
        "instance names."
    )
    with pytest.raises(UserError) as caught:
        run_serving("serve logs m -v v1", many())
    assert caught.value.what == (
        "not found instances of serving job,please use 'arena serve get m' to get job information"
    )


def test_a_container_that_has_not_begun() -> None:
    waiting = serving_pod("a", "1", "a-1", phase="Pending")
    with pytest.raises(UserError) as caught:
        run_serving("serve logs a", Servings(deployments=[deployment("a", "1")], pods=[waiting]))
    assert caught.value.what == "container main of pod a-1 has not begun: ContainerCreating"


def test_following_ends_with_a_pod_that_ended_before_its_container_began() -> None:
    evicted = serving_pod("a", "1", "a-1", phase="Failed")
    with pytest.raises(UserError) as caught:
        run_serving("serve logs a -f", Servings(deployments=[deployment("a", "1")], pods=[evicted]))
    assert caught.value.what == "container main of pod a-1 has not begun: ContainerCreating"


def test_a_serving_job_that_is_scaled_to_nothing_is_shown_so() -> None:
    with pytest.raises(UserError) as caught:
        run_serving(
            "serve logs a -f", Servings(deployments=[deployment("a", "1", replicas=0)], pods=[])
        )
    assert caught.value.hint == "it is scaled to 0 instances"


def test_delete_goes_on_after_a_name_that_is_absent() -> None:
    cluster = many()
    result = run_serving("serve delete nope m -v v1", cluster)
    assert (result.status, result.out, cluster.deleted) == (0, "", ["m-v1-x"])
    assert "The serving job 'nope' does not exist,skip to delete it." in result.err
    assert "The serving job m with version v1 has been deleted successfully" in result.err


def test_delete_never_chooses_between_versions() -> None:
    cluster = many()
    result = run_serving("serve delete m", cluster)
    assert (result.status, cluster.deleted) == (1, []) and (
        "there are 2 serving jobs of this name"
    ) in result.err


# --- data -----------------------------------------------------------------------------------------


def test_data_that_can_be_mounted() -> None:
    claims = [
        claim(
            "tfmodel", ["ReadWriteMany"], description="this is tfmodel for mnist", owner="tester"
        ),
        claim("two", ["ReadWriteMany", "ReadWriteOnce"]),
        claim("waits", ["ReadWriteOnce"], phase="Pending"),
        claim("goes", ["ReadWriteOnce"], deleted=True),
        claim("far", ["ReadWriteOnce"], namespace="other", owner="a\nb"),
    ]
    assert run_serving("data list", Servings(claims=claims, after=31.0)).out == (
        "NAME     ACCESSMODE                   DESCRIPTION                OWNER   AGE\n"
        "tfmodel  ReadWriteMany                this is tfmodel for mnist  tester  31s\n"
        "two      ReadWriteOnce,ReadWriteMany                                     31s\n"
    )
    assert run_serving("data list --allNamespaces", Servings(claims=claims[-1:])).out == (
        "NAME  NAMESPACE  ACCESSMODE     DESCRIPTION  OWNER  AGE\nfar   other      "
        "ReadWriteOnce               a b    1m\n"
    )
    assert run_serving("data ls", Servings()).out == "NAME  ACCESSMODE  DESCRIPTION  OWNER  AGE\n"


def test_where_fluid_is_installed_a_last_column_has_what_is_cached() -> None:
    claims = [claim("raw", ["ReadWriteMany"]), claim("two", ["ReadWriteMany"], owner="eve")]
    data_sets = (DataSet("default", "fast", (DataMount("pvc://raw/images"),)),)
    found = Servings(claims=claims, data_sets=data_sets, after=31.0)
    assert run_serving("data list", found).out == (
        "NAME  ACCESSMODE     DESCRIPTION  OWNER  AGE  ACCELERATED\n"
        "raw   ReadWriteMany                      31s  fast\n"
        "two   ReadWriteMany               eve    31s  No\n"
    )
