"""Real kubectl prints the same for the simulated cluster and for the real control plane, command by
command.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest
from tests.kube.control_plane import ControlPlane
from tests.kube.twins import Twins, running_twins

pytestmark = pytest.mark.turns(4, 1)


@pytest.fixture(scope="module")
def twins(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twins]:
    with running_twins(tmp_path_factory.mktemp("twins"), control_plane.kubeconfig) as both:
        yield both


@pytest.fixture
def space(twins: Twins, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace of the test's own, of the same name in both worlds, with its service account."""
    name = "twin-" + request.node.name.removeprefix("test_").replace("_", "-")[:40].strip("-")
    twins.same("create", "namespace", name)
    for world in ("simulated", "real"):
        answer = twins.ask(
            world, "wait", "--for=create", "serviceaccount/default", "-n", name, "--timeout=90s"
        )
        assert answer.endswith("exit 0\n"), answer
    yield name
    for world in ("simulated", "real"):
        twins.ask(world, "delete", "namespace", name, "--wait=false")


def test_the_life_of_a_deployment(twins: Twins, space: str) -> None:
    twins.walk(
        space,
        (
            "create deployment web --image=web:1 --replicas=2",
            "~rollout status deployment/web --timeout=90s",
            "get deployment web",
            "get deployment web -o wide",
            "get deployments,replicasets",
            (
                "get pods -l app=web -o "
                "custom-columns=PHASE:.status.phase,IMAGE:.spec.containers[0].image"
            ),
            "get pods -l app=web --field-selector=status.phase=Running -o name",
            "set image deployment/web web=web:2",
            "~rollout status deployment/web --timeout=90s",
            "rollout history deployment/web",
            "rollout history deployment/web --revision=2",
            "annotate deployment/web kubernetes.io/change-cause=second",
            "~wait --for=jsonpath={.status.observedGeneration}=3 deployment/web --timeout=90s",
            "rollout undo deployment/web",
            "~rollout status deployment/web --timeout=90s",
            "rollout pause deployment/web",
            "rollout pause deployment/web",
            "set env deployment/web A=b",
            "set resources deployment/web --limits=cpu=100m",
            "rollout resume deployment/web",
            "~rollout status deployment/web --timeout=90s",
            "rollout restart deployment/web",
            "~rollout status deployment/web --timeout=90s",
            "rollout undo deployment/web --to-revision=99",
            "scale deployment web --replicas=3",
            "scale deployment web --current-replicas=9 --replicas=3",
            "scale replicasets -l app=absent --replicas=3",
            "~wait --for=jsonpath={.status.readyReplicas}=3 deployment/web --timeout=90s",
            "get deployment web -o jsonpath={.spec.replicas}",
            "get deployment web --subresource=scale -o yaml",
            "describe deployment web --show-events=false",
            "expose deployment web --port=80",
            "get service web -o yaml",
            "autoscale deployment web --min=1 --max=3",
            "delete deployment web --cascade=foreground",
            "delete service/web",
        ),
    )


def test_a_service_and_the_pods_behind_it(twins: Twins, space: str) -> None:
    slices = "get endpointslices -l kubernetes.io/service-name=web -o"
    twins.walk(
        space,
        (
            "create service clusterip web --tcp=80:8080",
            "~wait --for=create endpointslice -l kubernetes.io/service-name=web --timeout=90s",
            (
                f"{slices} "
                f"jsonpath={{.items[*].metadata.labels}}{{.items[*].metadata.generateName}}{{.items[*].metadata.ownerReferences}}"
            ),
            (
                f"{slices} "
                f"jsonpath={{.items[*].addressType}}{{.items[*].endpoints}}{{.items[*].ports}}"
            ),
            "describe service web",
            "create deployment web --image=web:1",
            "~rollout status deployment/web --timeout=90s",
            (
                "~wait --for=jsonpath={.endpoints[0].conditions.ready}=true endpointslice -l "
                "kubernetes.io/service-name=web --timeout=90s"
            ),
            (
                f"{slices} "
                f"jsonpath={{.items[*].ports}}{{.items[*].endpoints[*].conditions}}{{.items[*].endpoints[*].targetRef}}"
            ),
            "describe service web",
            "delete deployment/web service/web",
        ),
    )


def test_jobs_and_cron_jobs(twins: Twins, space: str) -> None:
    twins.walk(
        space,
        (
            "create job once --image=train:1h",
            "~wait --for=jsonpath={.status.ready}=1 job/once --timeout=90s",
            "get job once",
            "get job once -o wide",
            "describe job once --show-events=false",
            "create cronjob nightly --image=train:1h --schedule='0 3 * * *'",
            "get cronjob nightly -o wide",
            "describe cronjob nightly --show-events=false",
            "create job by-hand --from=cronjob/nightly",
            "get job by-hand -o jsonpath={.metadata.annotations}",
            "delete job once --cascade=orphan",
            "get pods -l job-name=once -o name",
            "delete pods --all --grace-period=0 --force",
            # before their owner: otherwise the garbage collector may delete them first, in either
            # world
            "delete job --all",
            "delete cronjob --all",
        ),
    )


@pytest.mark.parametrize(
    "what",
    [
        "configmap made --from-literal=a=b",
        "secret generic made --from-literal=a=b",
        "secret tls made --cert=/nowhere --key=/nowhere",
        "serviceaccount made",
        "role made --verb=get --resource=pods",
        "rolebinding made --role=made --user=jane",
        "poddisruptionbudget made --selector=a=b --min-available=50%",
        "service clusterip made --tcp=80:8080",
        "service nodeport made-open --tcp=80",
        "ingress made --rule=a.example/=made:80",
    ],
)
def test_what_is_created_is_described_alike(twins: Twins, what: str) -> None:
    kind, *rest = what.split()
    name = next(word for word in rest if word.startswith("made"))
    try:
        twins.same("create", *what.split())
        if "tls" not in rest:
            twins.same("get", kind, name, "-o", "name")
            if kind == "service":
                _wait_for_endpoints(twins, name)
            twins.same("describe", kind, name, "--show-events=false")
    finally:
        for world in ("simulated", "real"):
            twins.ask(world, "delete", kind, name, "--ignore-not-found")


def _wait_for_endpoints(twins: Twins, service: str) -> None:
    """A Service's slice is written a moment after it; until then
    `describe` prints something else.
    """
    for world in ("simulated", "real"):
        answer = twins.ask(
            world,
            "wait",
            "--for=create",
            "endpointslice",
            "-l",
            f"kubernetes.io/service-name={service}",
            "--timeout=90s",
        )
        assert answer.endswith("exit 0\n"), f"{world}: {answer}"


_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}}
_CHANGED = {**_MAP, "data": {"a": "2", "b": "3"}}


def test_apply_diff_and_replace(twins: Twins, space: str) -> None:
    def sent(manifest: object, *arguments: str) -> str:
        return twins.same("-n", space, *arguments, "-f", "-", stdin=json.dumps(manifest))

    assert sent(_MAP, "apply") == "configmap/c created\nexit 0\n"
    assert sent(_MAP, "apply") == "configmap/c unchanged\nexit 0\n"
    assert '+ b: "3"' in sent(_CHANGED, "diff")
    assert sent(_CHANGED, "apply", "--dry-run=server") == (
        "configmap/c configured (server dry run)\nexit 0\n"
    )
    assert sent(_CHANGED, "apply") == "configmap/c configured\nexit 0\n"
    assert sent(_MAP, "apply") == "configmap/c configured\nexit 0\n"
    assert "b:" not in twins.same("-n", space, "get", "configmap", "c", "-o", "jsonpath={.data}"), (
        "what is no longer applied goes"
    )
    assert "kind: ConfigMap" in twins.same("-n", space, "apply", "view-last-applied", "configmap/c")
    assert sent(_CHANGED, "apply", "--server-side", "--force-conflicts").startswith(
        "configmap/c serverside-applied"
    )
    assert "already exists" in sent(_MAP, "create")
    assert sent(_MAP, "replace") == "configmap/c replaced\nexit 0\n"
    assert "configmap/c replaced" in sent(_MAP, "replace", "--force")
    labelled = {**_MAP, "metadata": {"name": "pruned", "labels": {"set": "x"}}}
    other = {**_MAP, "metadata": {"name": "kept", "labels": {"set": "x"}}}
    sent(labelled, "apply")
    assert "configmap/pruned pruned" in sent(
        other, "apply", "--prune", "-l", "set=x", "--prune-allowlist=core/v1/ConfigMap"
    )
    assert 'unknown field "zip"' in sent({**_MAP, "zip": 1}, "apply")
    assert 'unknown field "zip"' in sent({**_MAP, "zip": 1}, "apply", "--validate=warn")
    assert "field not declared in schema" in sent(
        {**_MAP, "zip": 1}, "apply", "--server-side", "--validate=false"
    )
    assert sent({**_MAP, "metadata": {"name": "A_b"}}, "apply").count("RFC 1123 subdomain") == 1


_PLAIN = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 0,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web:1"}]},
        },
    },
}


def _with_spec(**spec: object) -> dict[str, object]:
    return {**_PLAIN, "spec": {**_PLAIN["spec"], **spec}}  # type: ignore[dict-item]


_MANAGERS = (
    "{range .metadata.managedFields[*]}{.manager} {.operation} {.subresource}{'\\n'}{end}"
).replace("'", '"')


def test_server_side_apply(twins: Twins, space: str) -> None:
    """From `kubectl apply` to `kubectl apply --server-side`, with its conflicts and diffs."""

    def sent(manifest: object, *arguments: str) -> str:
        return twins.same("-n", space, *arguments, "-f", "-", stdin=json.dumps(manifest))

    def owners() -> str:
        return twins.same("-n", space, "get", "configmap", "c", "-o", f"jsonpath={_MANAGERS}")

    assert sent(_MAP, "apply") == "configmap/c created\nexit 0\n"
    assert "kubectl-client-side-apply Update" in owners()
    assert '+ b: "3"' in sent(_CHANGED, "diff", "--server-side")
    assert sent(_CHANGED, "apply", "--server-side") == "configmap/c serverside-applied\nexit 0\n"
    moved = owners()
    assert "kubectl Apply" in moved and "client-side" not in moved, "the client's are the server's"
    assert sent(_MAP, "apply", "--server-side") == "configmap/c serverside-applied\nexit 0\n"
    assert "b:" not in twins.same("-n", space, "get", "configmap", "c", "-o", "jsonpath={.data}")
    assert "exit 0" in sent(_MAP, "diff", "--server-side")
    refused = sent(_CHANGED, "apply", "--server-side", "--field-manager=other")
    assert 'Apply failed with 1 conflict: conflict with "kubectl": .data.a' in refused
    assert "exit 1" in refused
    forced = ("--server-side", "--field-manager=other", "--force-conflicts")
    assert "exit 0" in sent(_CHANGED, "apply", *forced)
    shown = twins.same(
        "-n",
        space,
        "get",
        "configmap",
        "c",
        "-o",
        "jsonpath={.metadata.managedFields[*].fieldsV1}",
        "--show-managed-fields",
    )
    assert '"f:b":{}' in shown
    assert "managedFields" not in twins.ask(
        "simulated", "-n", space, "get", "configmap", "c", "-o", "yaml"
    )
    assert "managedFields" in twins.ask(
        "simulated", "-n", space, "get", "configmap", "c", "-o", "yaml", "--show-managed-fields"
    )
    assert "exit 0" in sent(_PLAIN, "apply", "--server-side")
    twins.same("-n", space, "scale", "deployment", "web", "--replicas=1")
    refused = sent(_PLAIN, "apply", "--server-side")
    assert 'with subresource "scale" using apps/v1: .spec.replicas' in refused
    assert "exit 0" in sent(_with_spec(replicas=0), "apply", "--server-side", "--force-conflicts")
    twins.same("-n", space, "set", "image", "deployment/web", "web=web:2")
    assert 'conflict with "kubectl-set" using apps/v1' in sent(_PLAIN, "apply", "--server-side")


def test_edit_by_script(twins: Twins, space: str) -> None:
    def edited(script: str) -> str:
        return twins.same("-n", space, "edit", "configmap", "c", editor=f"sed -i {script}")

    twins.same("-n", space, "create", "configmap", "c", "--from-literal=word=before")
    assert edited("s/before/after/") == "configmap/c edited\nexit 0\n"
    assert edited("s/nothing/else/") == "Edit cancelled, no changes made.\nexit 0\n"
    assert "was changed" in edited("s/name:.c/name:\\ d/")
    twins.same("-n", space, "label", "configmap", "c", "a=good")
    refused = edited("s/good/-bad-/")
    assert "is invalid" in refused and "no valid changes were saved" in refused


def test_labels_annotations_and_taints(twins: Twins, space: str) -> None:
    twins.walk(
        space,
        (
            "create configmap c",
            "label configmap c x=y",
            "label configmap c x=z",
            "label configmap c x=z --overwrite",
            "label configmap c 'x y=z'",
            "label configmap c x-",
            "label configmap c x-",
            "annotate configmap c x=y",
            "annotate configmap c x=z",
            "annotate configmap c x=z --overwrite",
            "annotate configmap c x-",
            'patch configmap c -p {"data":{"q":"1"}}',
            'patch configmap c --type=json -p [{"op":"test","path":"/data/q","value":"zz"}]',
            'patch configmap c --type=merge -p {"data":',
            "get configmap c -o go-template={{.data.q}}",
            "taint node twin-1 a=b:NoSchedule",
            "taint node twin-1 a=c:NoSchedule",
            "taint node twin-1 a=c:NoSchedule --overwrite",
            "taint node twin-1 a=b:Nope",
            "taint node twin-1 a-",
            "taint node twin-1 a-",
            "cordon twin-1 --dry-run=server",
            "cordon twin-1",
            "cordon twin-1",
            "uncordon twin-1",
            "uncordon twin-1",
        ),
    )


def test_a_drain_waits_for_the_disruption_budget(twins: Twins, space: str) -> None:
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"p-{name}", "namespace": space, "labels": {"app": "guarded"}},
            "spec": {
                "nodeName": name,
                "terminationGracePeriodSeconds": 0,
                "containers": [{"name": "main", "image": "web:1"}],
            },
        }
        for name in ("twin-1", "twin-2")
    ]
    twins.same(
        "create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": pods})
    )
    chosen = ("-l", "app=guarded")
    drain = (
        "drain",
        "twin-1",
        f"--pod-selector=app=guarded,kubernetes.io/metadata.name!={space}",
        "--force",
    )
    twins.same("-n", space, "wait", "--for=condition=Ready", "pod", *chosen, "--timeout=90s")
    twins.same("-n", space, "create", "pdb", "guard", "--selector=app=guarded", "--min-available=2")
    twins.same(
        "-n",
        space,
        "wait",
        "--for=jsonpath={.status.currentHealthy}=2",
        "pdb/guard",
        "--timeout=90s",
    )
    try:
        twins.same("drain", "twin-1", "--pod-selector=app=guarded")
        assert "(dry run)" in twins.same(*drain, "--dry-run=client")
        assert "Cannot evict pod as it would violate the pod's disruption budget." in twins.same(
            *drain, "--timeout=2s"
        )
        twins.same("-n", space, "delete", "pdb", "guard")
        assert "node/twin-1 drained" in twins.same(*drain)
        assert twins.same("-n", space, "get", "pods", "-o", "name") == "pod/p-twin-2\nexit 0\n"
    finally:
        twins.same("uncordon", "twin-1")


def test_waiting_and_deleting(twins: Twins, space: str) -> None:
    twins.walk(
        space,
        (
            "run one --image=web:1 --labels=a=b",
            "wait --for=condition=Ready pod/one --timeout=90s",
            "wait --for=jsonpath={.status.phase}=Running pod/one --timeout=5s",
            "wait --for=condition=Nope pod/one --timeout=1s",
            "wait --for=delete pod/one --timeout=1s",
            "wait --for=delete pod/absent --timeout=1s",
            "get pod one -o jsonpath={.status.phase}",
            "get pod one --no-headers -o custom-columns=:metadata.name",
            "get pods -l a=b --sort-by=.metadata.name -o name",
            "get pods --chunk-size=1 -o name",
            "get pod one two",
            "get nobodies",
            "get pods -l 'a in b'",
            "get pods --field-selector=x.y=z",
            "get pods,serviceaccounts -o name",
            "logs absent",
            "logs one -c absent",
            "delete pod one --now",
            "delete pod one",
            "delete pod one --ignore-not-found",
            "delete pods --all",
            "delete pods -l a=b",
            "top pods",
            "top nodes",
            "auth can-i list pods",
            "auth can-i list pods --as=stranger",
            "get pods --as=stranger",
            "cluster-info",
            "get --raw /healthz",
            "get --raw /nope",
            (
                "get namespaces,nodes --no-headers -o custom-columns=:kind -l "
                "kubernetes.io/hostname=twin-1"
            ),
            "api-resources --api-group=apps",
            "api-resources --api-group=batch -o name",
            "describe namespace " + space,
            "delete namespace default",
            "create priorityclass twin --value=5",
            "describe priorityclass twin",
            "delete priorityclass twin",
        ),
    )


def test_a_watch_reports_what_happens(twins: Twins, space: str) -> None:
    twins.same("-n", space, "create", "configmap", "c")
    reported = {world: _watched(twins, world, space) for world in ("simulated", "real")}
    assert reported == {"simulated": ["1 2 ", "1 2 "], "real": ["1 2 ", "1 2 "]}


def _watched(twins: Twins, world: str, space: str) -> list[str]:
    """What `--watch`, after the initial list, and `--watch-only`
    print of two changes of a label.
    """
    shown = ("--field-selector=metadata.name=c", "-o", "jsonpath={.metadata.labels.n}{' '}")
    watching = [
        twins.start(world, "-n", space, "get", "configmap", *shown, flag)
        for flag in ("--watch", "--watch-only")
    ]
    outputs = [process.stdout for process in watching if process.stdout is not None]
    try:
        assert outputs[0].read(1) == " "
        time.sleep(1.0)  # --watch-only prints nothing when it starts
        for number in ("1", "2"):
            twins.ask(world, "-n", space, "label", "configmap", "c", f"n={number}", "--overwrite")
        return [output.read(4) for output in outputs]
    finally:
        for process in watching:
            process.kill()
            process.wait()


def test_events_of_a_pod_that_no_node_can_take(twins: Twins, space: str) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "big"},
        "spec": {
            "nodeSelector": {"twin": "none"},
            "containers": [{"name": "main", "image": "web:1"}],
        },
    }
    twins.same("-n", space, "create", "-f", "-", stdin=json.dumps(pod))
    twins.same(
        "-n", space, "wait", "--for=condition=PodScheduled=False", "pod/big", "--timeout=90s"
    )
    for arguments in (["get", "pod", "big"], ["describe", "pod", "big", "--show-events=false"]):
        simulated, real = twins.both("-n", space, *arguments)
        assert _unnamed(simulated) == _unnamed(real)


def _unnamed(text: str) -> list[str]:
    """The object without the volume and mount of a service account's token, which the simulated
    cluster does not project.
    """
    words = (
        "kube-api-access",
        "Mounts:",
        "Volumes:",
        " Type: Projected",
        "TokenExpiration",
        "ConfigMapName",
        "Optional:",
        "DownwardAPI",
    )
    return [line for line in text.splitlines() if not any(word in line for word in words)]


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("exec one -- ls", "this container of a simulated cluster has only"),
        ("cp one:/etc/hosts /tmp/x", "this container of a simulated cluster has only"),
        ("attach one", "containers are scripts without a process or a network"),
        ("port-forward one 8080:80", "containers are scripts without a process or a network"),
        ("debug one --image=x:1", "containers are scripts without a process or a network"),
    ],
)
def test_into_a_container_leads_no_way(twins: Twins, command: str, why: str) -> None:
    twins.ask("simulated", "run", "one", "--image=web:1")
    twins.ask("simulated", "wait", "--for=condition=Ready", "pod/one", "--timeout=90s")
    answer = twins.ask("simulated", *command.split())
    assert why in answer and answer.endswith("exit 1\n")


def test_logs_of_many_containers(twins: Twins) -> None:
    twins.ask("simulated", "create", "namespace", "logs")
    twins.ask("simulated", "-n", "logs", "create", "job", "chatty", "--image=train:1m")
    twins.ask(
        "simulated", "-n", "logs", "wait", "--for=condition=complete", "job/chatty", "--timeout=90s"
    )
    whole = twins.ask("simulated", "-n", "logs", "logs", "job/chatty")
    lines = whole.splitlines()[:-1]
    assert lines[0] == "starting train:1m" and lines[-1] == "finished" and len(lines) > 3
    assert (
        twins.ask("simulated", "-n", "logs", "logs", "job/chatty", "--tail=1")
        == "finished\nexit 0\n"
    )
    by_label = twins.ask(
        "simulated",
        "-n",
        "logs",
        "logs",
        "-l",
        "job-name=chatty",
        "--prefix",
        "--all-containers",
        "--tail=1",
    )
    assert by_label.startswith("[pod/chatty-") and by_label.endswith("/chatty] finished\nexit 0\n")
    assert twins.ask("simulated", "-n", "logs", "logs", "-f", "job/chatty") == whole
    assert twins.ask("simulated", "-n", "logs", "logs", "job/chatty", "--previous").endswith(
        "exit 1\n"
    )
