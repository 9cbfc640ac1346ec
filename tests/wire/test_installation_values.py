"""Values of an installation: what is taken, and what each refusal names."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
import pytest

from fairlead.errors import OutsideError, UserError
from fairlead.model.actions import object_ref
from fairlead.model.installation import Installation, OwnAccounts, Parts
from fairlead.wire.installation.components import component_objects, installed_objects
from fairlead.wire.installation.inventory import (
    COMPLETE,
    Inventory,
    parse_inventory,
    render_inventory,
)
from fairlead.wire.installation.values import (
    parse_values,
    read_values,
    render_values,
    with_settings,
)

_DAEMON_SETS: Final = "system:serviceaccount:kube-system:daemon-set-controller"


def test_no_values_are_the_defaults() -> None:
    assert parse_values(read_values("", "empty.yaml")) == Installation()


def test_no_liveness_probe_ends_a_server_that_still_starts() -> None:
    containers = [
        each
        for obj in installed_objects(Installation())
        if obj["kind"] in ("Deployment", "DaemonSet")
        for each in obj["spec"]["template"]["spec"]["containers"]
    ]
    live = [each for each in containers if "livenessProbe" in each]
    assert len(live) >= 8
    for each in live:
        start = each["startupProbe"]
        assert start["periodSeconds"] * start["failureThreshold"] >= 300, each["name"]


def test_no_server_gives_way_to_a_user_or_to_another_server() -> None:
    """A console of a lower class was ended for a new scheduler, so that no console was left."""
    classes = {
        obj["metadata"]["name"]: (
            obj["metadata"]["namespace"],
            obj["spec"]["template"]["spec"].get("priorityClassName"),
        )
        for obj in installed_objects(Installation())
        if obj["kind"] in ("Deployment", "DaemonSet")
    }
    assert len(classes) >= 8
    wanted = {"fairlead-system": "system-cluster-critical"}
    assert {
        name: wanted.get(space, "system-node-critical") for name, (space, _) in classes.items()
    } == {name: found for name, (_, found) in classes.items()}


@pytest.mark.parametrize(
    "chosen",
    [
        Installation(),
        Installation(parts=Parts(quota=False), image="r.example.com/fairlead:1", replicas=3),
        Installation(admission="webhooks", scheduler="control-plane", prometheus="http://p:9090"),
        Installation(pull_secrets=("registry", "mirror.example.com")),
    ],
)
def test_what_is_rendered_is_read_back(chosen: Installation) -> None:
    assert parse_values(read_values(render_values(chosen), "x")) == chosen


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("replicas: two", "value `replicas` is `two`: expected `int`, got `str`"),
        ("replicas: 0", "value `replicas` is `0`: expected `int` >= 1"),
        ("parts: {quota: 1}", "value `parts.quota` is `1`: expected `bool`, got `int`"),
        ("parts: [console]", "value `parts` is `['console']`: expected `object`, got `array`"),
        ("admission: none", "value `admission` is `none`: invalid enum value 'none'"),
        ("image: ''", "value `image` is ``: expected `str` of length >= 1"),
        ("imagge: x", "there is no value `imagge`"),
        ("parts: {quotas: true}", "there is no value `parts.quotas`"),
        ("- image", "values `v.yaml` are a list and not a mapping"),
        ("image: a\nimage: b", "values `v.yaml` are not YAML: key `image`"),
        ("image: [", "values `v.yaml` are not YAML: "),
        ("namespace: Fair", "value `namespace` is `Fair`: expected `str` matching regex"),
        (f"namespace: {'x' * 64}", "value `namespace` is `xxx"),
        ("namespace: kube-system", "value `namespace` is `kube-system`, a namespace of Kubernetes"),
        ("nodeNamespace: default", "value `nodeNamespace` is `default`, a namespace of Kubernetes"),
        ("pullSecrets: registry", "value `pullSecrets` is `registry`: expected `array`, got `str`"),
        ("pullSecrets: [a, B]", "value `pullSecrets[1]` is `B`: expected `str` matching regex"),
        ("pullSecrets: [a, 1]", "value `pullSecrets[1]` is `1`: expected `str`, got `int`"),
        ("pullSecrets: [a, b, a]", "value `pullSecrets` names `a` twice"),
        ("pullSecret: [a]", "there is no value `pullSecret`"),
        (
            "{signIn: {enabled: false}, ingress: {host: gpu.example}}",
            "value `ingress.host` is `gpu.example`, and `signIn.enabled` is false",
        ),
        ("store: {url: 'mysql://a', size: 1Gi}", "values `store.url` and `store.size` exclude"),
        ("signIn: {oidc: {isuer: x}}", "there is no value `signIn.oidc.isuer`"),
        ("signIn: {basePath: gpu}", "value `signIn.basePath` is `gpu`: expected `str` matching"),
        ("charts: 'https://x/charts'", "value `charts` is `https://x/charts`: expected `str` ma"),
        ("charts: 'oci://u:p@x/charts'", "value `charts` is `oci://u:p@x/charts`: expected"),
        ("charts: 'oci://x/charts/'", "value `charts` is `oci://x/charts/`: expected `str` match"),
        ("signIn: {trustedProxies: a proxy}", "value `signIn.trustedProxies` is `a proxy`: exp"),
        ("store: {size: 1}", "value `store.size` is `1`: expected `str`, got `int`"),
        ("{namespace: a, nodeNamespace: a}", "values `namespace` and `nodeNamespace` are both `a`"),
    ],
)
def test_bad_values_are_refused_with_the_value(text: str, message: str) -> None:
    with pytest.raises(UserError) as refused:
        parse_values(read_values(text, "v.yaml"))
    assert refused.value.what.startswith(message)
    assert refused.value.hint


def test_a_near_key_is_proposed_and_a_renamed_one_has_its_new_name() -> None:
    with pytest.raises(UserError) as refused:
        parse_values({"replcas": 2})
    assert refused.value.hint.startswith("did you mean `replicas`?")
    with pytest.raises(UserError) as renamed:
        parse_values({"imageName": "x"}, {"imageName": "image"})
    assert renamed.value.what == "value `imageName` has a new name"
    assert renamed.value.hint == "write `image`"


@pytest.mark.parametrize("setting", ["image", "=x", "parts.=x", "image=[", "image.tag=1"])
def test_a_bad_setting_is_refused(setting: str) -> None:
    with pytest.raises(UserError):
        with_settings({"image": "fairlead:1"}, [setting])


def _names(chosen: Installation) -> set[tuple[str, str]]:
    return {(each["kind"], each["metadata"]["name"]) for each in installed_objects(chosen)}


@pytest.mark.parametrize("admission", ["policies", "webhooks"])
@pytest.mark.parametrize("scheduler", ["own", "control-plane"])
@pytest.mark.parametrize("left_out", [None, *Parts.__struct_fields__])
def test_every_binding_finds_its_role_its_account_and_its_policy(
    admission: Any, scheduler: Any, left_out: str | None
) -> None:
    parts = msgspec.structs.replace(Parts(), **({left_out: False} if left_out else {}))
    objects = installed_objects(Installation(parts=parts, admission=admission, scheduler=scheduler))
    names = {(each["kind"], each["metadata"]["name"]) for each in objects}
    refs = [object_ref(each) for each in objects]
    assert len(set(refs)) == len(refs), "each object once"
    accounts = {
        (each["metadata"]["namespace"], each["metadata"]["name"])
        for each in objects
        if each["kind"] == "ServiceAccount"
    }
    for each in objects:
        for subject in each.get("subjects", ()):
            assert (subject["namespace"], subject["name"]) in accounts
        if (role := each.get("roleRef", {}).get("name", "")).startswith("fairlead-"):
            assert (each["roleRef"]["kind"], role) in names
        if "policyName" in each.get("spec", {}):
            kind = each["kind"].removesuffix("Binding")
            assert (kind, each["spec"]["policyName"]) in names
        for hook in each.get("webhooks", ()):
            assert ("Service", hook["clientConfig"]["service"]["name"]) in names
        account = each.get("spec", {}).get("template", {}).get("spec", {}).get("serviceAccountName")
        assert account is None or (each["metadata"]["namespace"], account) in accounts


def test_a_scheduler_of_the_control_plane_keeps_its_pods() -> None:
    own = _names(Installation())
    other = _names(Installation(scheduler="control-plane"))
    assert ("MutatingAdmissionPolicy", "fairlead-gpu-scheduler") in own - other
    assert ("DaemonSet", "fairlead-gpushare-extender") in other - own


@pytest.mark.parametrize("scheduler", ["own", "control-plane"])
def test_every_pod_names_the_pull_secrets_in_their_order(scheduler: Any) -> None:
    chosen = Installation(pull_secrets=("b", "a"), scheduler=scheduler)
    pods = [
        each["spec"]["template"]["spec"]
        for each in installed_objects(chosen)
        if "template" in each.get("spec", {})
    ]
    assert len(pods) == 8
    for pod in pods:
        assert pod["imagePullSecrets"] == [{"name": "b"}, {"name": "a"}]
    assert "imagePullSecrets" not in _text(
        [each for each in installed_objects(Installation()) if "template" in each.get("spec", {})]
    )


@pytest.mark.parametrize("admission", ["policies", "webhooks"])
@pytest.mark.parametrize("scheduler", ["own", "control-plane"])
def test_no_object_names_a_namespace_that_was_not_chosen(admission: Any, scheduler: Any) -> None:
    """Neither in its place, nor in a subject, a flag, a condition or a file."""
    chosen = Installation(
        namespace="one",
        node_namespace="two",
        admission=admission,
        scheduler=scheduler,
        parts=Parts(gpu_exporter_rights=True),
    )
    objects = installed_objects(chosen)
    text = msgspec.json.encode(objects).decode()
    assert "fairlead-system" not in text and "fairlead-nodes" not in text
    places = {each["metadata"].get("namespace") for each in objects}
    assert places == {"one", "two", "kube-system", "kube-ai", None}
    users = set(re.findall(r"system:serviceaccount:[a-z-]+:[a-z-]*", text))
    own = OwnAccounts("one", "two")
    expected = {*own.grant_writers, own.quota_controller, own.people_controller, own.console}
    kubernetes = {"system:serviceaccount:kube-ai:", _DAEMON_SETS}
    assert users - kubernetes == expected


def test_the_rules_of_quota_know_both_namespaces() -> None:
    """Their pods are never charged."""
    objects = installed_objects(Installation(namespace="one", node_namespace="two"))
    deciding = ("quota-controller", "people-controller", "admission-webhook")
    for name in (f"fairlead-{each}" for each in deciding):
        [pod] = [
            each["spec"]["template"]["spec"]
            for each in objects
            if (each["kind"], each["metadata"]["name"]) == ("Deployment", name)
        ]
        [container] = pod["containers"]
        flags = [*container["command"], *container.get("args", ())]
        assert {"--namespace=one", "--node-namespace=two"} <= set(flags), name


@pytest.mark.parametrize("scheduler", ["own", "control-plane"])
def test_pods_are_in_the_namespace_of_what_they_need(scheduler: Any) -> None:
    """Only the namespace of pods that use their node admits these pods."""
    found = {
        (each["metadata"]["namespace"], each["metadata"]["name"]): each["spec"]["template"]["spec"]
        for each in installed_objects(Installation(scheduler=scheduler))
        if "template" in each.get("spec", {})
    }
    use_their_node = {
        key
        for key, pod in found.items()
        if pod.get("hostNetwork")
        or pod.get("hostPID")
        or any("hostPath" in each for each in pod.get("volumes", ()))
    }
    assert use_their_node == {key for key in found if key[0] == "fairlead-nodes"}
    privileged = [key for key, pod in found.items() if '"privileged":true' in _text(pod)]
    assert privileged == []


@pytest.mark.parametrize("admission", ["policies", "webhooks"])
@pytest.mark.parametrize("scheduler", ["own", "control-plane"])
@pytest.mark.parametrize("left_out", [None, *Parts.__struct_fields__])
def test_each_port_of_a_pod_is_behind_a_network_policy_and_no_policy_selects_no_pod(
    admission: Any, scheduler: Any, left_out: str | None
) -> None:
    """Pods in the network of their node are not concerned by NetworkPolicies."""
    parts = msgspec.structs.replace(Parts(), **({left_out: False} if left_out else {}))
    objects = installed_objects(Installation(parts=parts, admission=admission, scheduler=scheduler))
    pods = [
        (each["metadata"]["namespace"], each["spec"]["template"])
        for each in objects
        if "template" in each.get("spec", {})
        and not each["spec"]["template"]["spec"].get("hostNetwork")
    ]
    policies = [each for each in objects if each["kind"] == "NetworkPolicy"]
    for namespace, pod in pods:
        wanted = {
            port["containerPort"]
            for container in pod["spec"]["containers"]
            for port in container.get("ports", ())
        }
        allowed = [
            {port["port"] for rule in each["spec"].get("ingress", ()) for port in rule["ports"]}
            for each in policies
            if _selects(each, namespace, pod)
        ]
        assert allowed == [wanted], pod["metadata"]
    for each in policies:
        assert any(_selects(each, *pod) for pod in pods), each["metadata"]
        assert each["spec"]["policyTypes"] == ["Ingress"]
    for each in objects:
        if each["kind"] == "Service":
            [pod] = [pod for pod in pods if each["spec"]["selector"].items() <= _labels(pod[1])]
            names = {port["targetPort"] for port in each["spec"]["ports"]}
            assert names <= {
                port["name"]
                for container in pod[1]["spec"]["containers"]
                for port in container.get("ports", ())
            }


def _labels(pod: Any) -> Any:
    return pod["metadata"]["labels"].items()


def _selects(policy: Any, namespace: str, pod: Any) -> bool:
    wanted = policy["spec"]["podSelector"]["matchLabels"]
    return policy["metadata"]["namespace"] == namespace and wanted.items() <= _labels(pod)


def test_only_the_webhook_answers_clients_that_are_no_pods() -> None:
    """No selector matches an API server, which runs outside the cluster's network."""
    policies = {
        each["metadata"]["name"]: each["spec"].get("ingress", [])
        for each in installed_objects(Installation())
        if each["kind"] == "NetworkPolicy"
    }
    port = {"protocol": "TCP", "port": 8443}
    assert policies.pop("fairlead-admission-webhook") == [{"ports": [port]}]
    assert {str(rule["from"]) for rules in policies.values() for rule in rules} == {
        "[{'namespaceSelector': {}}]"
    }


def _console(**values: Any) -> dict[str, Any]:
    """The objects of the console by kind."""
    chosen = msgspec.convert(values, Installation)
    return {
        each["kind"]: each
        for name in ("console-access", "console")
        for each in component_objects(name, chosen)
    }


def test_a_console_without_sign_in_is_reached_through_its_pod_alone() -> None:
    found = _console(signIn={"enabled": False}, store={"url": "postgresql://a@b/c"})
    assert found.keys() == {"Deployment", "NetworkPolicy"}
    assert "ingress" not in found["NetworkPolicy"]["spec"]
    [container] = found["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert "--listen=127.0.0.1:8080" in container["command"]
    assert not any("sign-in" in each for each in container["command"])
    probe = container["startupProbe"]["exec"]["command"][-1]
    assert "http://127.0.0.1:8080/readyz" in probe, "an update waits for the new one"
    names = {each["metadata"]["name"] for each in _without_sign_in()}
    assert not names & {"fairlead-console-sign-in", "fairlead-console-people"}
    assert not {each for each in names if each.startswith("fairlead-console-")}


def _without_sign_in() -> list[Any]:
    return installed_objects(msgspec.convert({"signIn": {"enabled": False}}, Installation))


def test_an_ingress_leads_to_the_console_from_anywhere() -> None:
    values = {"host": "gpu.example", "className": "nginx", "tlsSecret": "gpu-tls"}
    found = _console(ingress=values, signIn={"basePath": "/gpu/"})
    assert found["Ingress"]["spec"] == {
        "ingressClassName": "nginx",
        "tls": [{"hosts": ["gpu.example"], "secretName": "gpu-tls"}],
        "rules": [
            {
                "host": "gpu.example",
                "http": {
                    "paths": [
                        {
                            "path": "/gpu/",
                            "pathType": "Prefix",
                            "backend": {
                                "service": {"name": "fairlead-console", "port": {"name": "page"}}
                            },
                        }
                    ]
                },
            }
        ],
    }
    port = {"protocol": "TCP", "port": 8080}
    assert found["NetworkPolicy"]["spec"]["ingress"] == [{"ports": [port]}]
    [container] = found["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert {"--allowed-host=gpu.example", "--base-path=/gpu/"} <= set(container["command"])
    assert "Ingress" not in _console()


def test_a_file_of_the_store_has_one_console_and_a_server_as_many_as_other_parts() -> None:
    kept = _console(store={"size": "1Gi", "storageClass": "fast"}, replicas=3)
    assert kept["PersistentVolumeClaim"]["spec"] == {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "fast",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    spec = kept["Deployment"]["spec"]
    assert spec["replicas"] == 1 and spec["strategy"]["rollingUpdate"]["maxSurge"] == 0
    claim = {"persistentVolumeClaim": {"claimName": "fairlead-console"}}
    assert {"name": "state", **claim} in spec["template"]["spec"]["volumes"]
    url = "postgresql://fairlead@db/fairlead"
    server = _console(store={"url": url}, replicas=3)
    assert server["Deployment"]["spec"]["replicas"] == 3
    assert server.keys() == {
        *("Service", "NetworkPolicy", "Deployment", "PodDisruptionBudget"),
    }
    [container] = server["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert f"--store={url}" in container["command"]


def test_no_object_has_a_key_and_the_key_has_one_name() -> None:
    """Helm renders the same text each time, so nothing random may be in it."""
    objects = installed_objects(Installation())
    assert not [each for each in objects if each["kind"] == "Secret"]
    [container] = _console()["Deployment"]["spec"]["template"]["spec"]["containers"]
    [flag] = (each for each in container["command"] if "key-secret" in each)
    assert flag == "--sign-in-key-secret=fairlead-system/fairlead-sign-in-key"
    [role] = component_objects("console-sign-in", Installation())[2:3]
    assert role["rules"][0]["resourceNames"] == ["fairlead-sign-in-key"]


def test_without_its_value_there_is_no_network_policy() -> None:
    without = _names(Installation(network_policies=False))
    assert _names(Installation()) - without == {
        ("NetworkPolicy", name) for _, name in without & _PARTS
    }


_PARTS = {
    *(("Deployment", f"fairlead-{name}") for name in ("console", "cluster-exporter", "scheduler")),
    *(("Deployment", f"fairlead-{name}") for name in ("quota-controller", "admission-webhook")),
    ("Deployment", "fairlead-people-controller"),
    *(("DaemonSet", f"fairlead-{name}") for name in ("gpu-exporter", "node-agent")),
}


def test_each_part_has_an_account_of_its_own_and_a_token_only_if_it_asks_the_api() -> None:
    for scheduler in ("own", "control-plane"):
        objects = installed_objects(Installation(scheduler=scheduler))  # type: ignore[arg-type]
        pods = [each["spec"]["template"]["spec"] for each in objects if _is_workload(each)]
        accounts = [each["serviceAccountName"] for each in pods]
        assert len(set(accounts)) == len(accounts)
        without = {
            each["serviceAccountName"]
            for each in pods
            if each.get("automountServiceAccountToken") is False
        }
        bound = {subject["name"] for each in objects for subject in each.get("subjects", ())}
        assert set(accounts) - bound == without == {"fairlead-gpu-exporter"}
        held = {each["metadata"]["name"] for each in objects if each["kind"] == "ServiceAccount"}
        assert held == set(accounts)


def _is_workload(each: Any) -> bool:
    return "template" in each.get("spec", {})


@pytest.mark.parametrize("replicas", [1, 3])
def test_what_has_replicas_is_spread_and_can_be_drained(replicas: int) -> None:
    """`maxUnavailable` 1 lets the only replica go, too; `minAvailable` 1 would hold its node."""
    objects = installed_objects(Installation(replicas=replicas))
    budgets = {
        each["metadata"]["name"]: each["spec"]
        for each in objects
        if each["kind"] == "PodDisruptionBudget"
    }
    for each in objects:
        name, spec = each["metadata"]["name"], each.get("spec", {})
        if each["kind"] != "Deployment" or name == "fairlead-console":
            continue
        selector = {"matchLabels": {"app.kubernetes.io/name": name}}
        assert spec["replicas"] == replicas and spec["selector"] == selector
        assert budgets.pop(name) == {
            "maxUnavailable": 1,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": selector,
        }
        [constraint] = spec["template"]["spec"]["topologySpreadConstraints"]
        assert constraint["labelSelector"] == selector
        assert constraint["topologyKey"] == "kubernetes.io/hostname"
    assert budgets == {}


def test_only_the_value_of_the_kernels_log_makes_a_container_privileged() -> None:
    chosen = Installation(kernel_log=True)
    assert _text(installed_objects(chosen)).count('"privileged":true') == 1
    assert _text(installed_objects(Installation())).count("--kmsg=off") == 1
    assert "--kmsg=off" not in _text(installed_objects(chosen))


def _text(obj: Any) -> str:
    return msgspec.json.encode(obj).decode()


def test_values_reach_the_pods() -> None:
    chosen = Installation(
        image="r/f:2", replicas=3, prometheus="http://p:9090", runtime_class="nvidia"
    )
    pods = {
        each["metadata"]["name"]: each["spec"]
        for each in installed_objects(chosen)
        if "template" in each.get("spec", {})
    }
    images = {
        part["image"] for each in pods.values() for part in each["template"]["spec"]["containers"]
    }
    assert images == {"r/f:2", chosen.kube_scheduler_image}
    assert pods["fairlead-quota-controller"]["replicas"] == 3
    assert pods["fairlead-console"]["replicas"] == 1, "a console has no standby"
    (console,) = pods["fairlead-console"]["template"]["spec"]["containers"]
    assert "--prometheus=http://p:9090" in console["command"]
    assert console["startupProbe"]["httpGet"]["path"] == "/readyz", (
        "an update waits for the new one"
    )
    agent = pods["fairlead-node-agent"]["template"]["spec"]
    assert agent["runtimeClassName"] == "nvidia"
    assert "--test-image=r/f:2" in agent["containers"][0]["command"]


def test_an_inventory_is_read_back_and_another_config_map_is_refused() -> None:
    refs = tuple(object_ref(each) for each in installed_objects(Installation()))
    inventory = Inventory("0.1.0", COMPLETE, "replicas: 3\n", refs, "one")
    manifest = render_inventory(inventory)
    assert parse_inventory(manifest) == inventory
    with pytest.raises(OutsideError) as caught:
        parse_inventory({**manifest, "data": {"objects": "[1]"}})
    assert caught.value.what == (
        "ConfigMap `one/fairlead-installation` is no inventory: Expected `array`, got "
        "`int` - at `$[0]`"
    )
