"""`fairlead doctor`: of which facts which check warns, fails, or stays unknown.

Oracles: the version skew policy, the Pod Security Standards and the API conventions of the
Kubernetes documentation; containerd's table of releases with CDI.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from tests.rules.installation.doctor_facts import (
    AFTER,
    AGENT_POD,
    BEFORE,
    DAY,
    ENFORCE,
    HIDDEN,
    NODE,
    NODE_SPACE,
    NOW,
    SYSTEM,
    WEBHOOK,
    console,
    namespace,
)

from fairlead.model.actions import ObjectRef
from fairlead.model.installation import Installation, Parts
from fairlead.model.installed.facts import (
    DefinitionFact,
    ExtenderFact,
    InstallationFacts,
    InventoryFact,
    LeaseFact,
    Mismatch,
    ObjectFact,
    PodFact,
    SecretFact,
    ServerFact,
    Unread,
    WorkloadFact,
)
from fairlead.model.installed.finding import Finding, State
from fairlead.model.node_choice import ANY_NODE, NodeChoice
from fairlead.rules.installation.doctor import examine
from fairlead.rules.installation.pod_security import violations
from fairlead.wire.quota.tree_definition import quota_tree_definition

SIMULATED = ServerFact("v1.36.3+fairlead", (1, 36), 0.0)


def of(facts: InstallationFacts, check: str) -> Finding:
    """The one finding of a check."""
    [found] = [each for each in examine(facts) if each.check == check]
    return found


HELMS = replace(
    AFTER,
    inventory=InventoryFact("0.2.0", is_complete=True, release="gpus"),
    namespaces={SYSTEM: namespace(annotations={"meta.helm.sh/release-name": "gpus"})},
    releases=("gpus",),
)
"""A sound installation by Helm."""


@pytest.mark.parametrize("facts", [BEFORE, AFTER, HELMS], ids=["before", "after", "by Helm"])
def test_nothing_is_wrong_with_a_sound_cluster(facts: InstallationFacts) -> None:
    found = examine(facts)
    assert [each for each in found if each.state != State.OK] == []
    assert len(found) >= 17


def test_what_mends_a_release_is_a_command_of_helm() -> None:
    gone = replace(HELMS, objects=(replace(console(), found=None),), namespaces={SYSTEM: None})
    for check in ("objects", "namespace"):
        assert of(gone, check).state == State.FAIL
        assert "`helm upgrade gpus`" in of(gone, check).mend
    mismatch = replace(console(), result=Mismatch("conflict"))
    assert "`helm upgrade gpus`" in of(replace(HELMS, objects=(mismatch,)), "changes").mend
    older = replace(HELMS, inventory=InventoryFact("0.1.9", is_complete=True, release="gpus"))
    assert of(older, "inventory").mend == "`helm upgrade gpus`"
    ending = namespace(deletionTimestamp="2026-01-01T00:00:00Z")
    assert of(replace(HELMS, namespaces={SYSTEM: ending}), "namespace").state == State.FAIL


@pytest.mark.parametrize(
    ("facts", "kind", "state"),
    [
        (AFTER, "kubernetes.io/dockerconfigjson", State.OK),
        (AFTER, "kubernetes.io/dockercfg", State.OK),
        (AFTER, "Opaque", State.FAIL),
        (AFTER, None, State.FAIL),
        (BEFORE, None, State.WARN),
        (AFTER, HIDDEN, State.UNKNOWN),
    ],
)
def test_a_pull_secret_exists_and_has_a_type_that_kubelets_use(
    facts: InstallationFacts, kind: str | Unread | None, state: State
) -> None:
    """The types are those of the documentation of Kubernetes: "Pull an Image from a Private
    Registry". A missing one can only be made once its namespace exists.
    """
    found = of(replace(facts, pull_secrets=(SecretFact(SYSTEM, "registry", kind),)), "pull-secret")
    assert found.state == state
    if kind is None:
        assert f"docker-registry registry -n {SYSTEM}" in found.mend


KEY = SecretFact(SYSTEM, "fairlead-sign-in-key", "Opaque")
HOST = {"host": "gpu.example", "tlsSecret": "gpu-tls"}
OIDC = {"oidc": {"issuer": "https://sso.example/", "clientId": "fairlead"}}
DATABASE = {"store": {"url": "postgresql://a@b/c"}}


@pytest.mark.parametrize(
    ("values", "secrets", "check", "state", "words"),
    [
        ({}, (KEY,), "sign-in", State.OK, "Secret `fairlead-sign-in-key` has the key"),
        ({}, (replace(KEY, type=None),), "sign-in", State.FAIL, "has not made it"),
        ({}, (replace(KEY, type=Unread("no")),), "sign-in", State.UNKNOWN, "no"),
        ({"signIn": {"enabled": False}}, (), "sign-in", State.OK, "users do not sign in"),
        ({}, (KEY,), "store", State.WARN, "end with the console's pod"),
        ({"store": {"size": "1Gi"}}, (), "store", State.OK, "a volume"),
        (DATABASE, (SecretFact(SYSTEM, "fairlead-console", "Opaque"),), "store", State.OK, "data"),
        (
            DATABASE,
            (SecretFact(SYSTEM, "fairlead-console", None),),
            "store",
            State.WARN,
            "without a password: Secret `fairlead-console` of namespace `fairlead-system` does not",
        ),
        (
            {"signIn": OIDC},
            (SecretFact(SYSTEM, "fairlead-console", None),),
            "sign-in",
            State.WARN,
            "the console is a public client of `https://sso.example/`",
        ),
        (
            {"signIn": {"oidc": {"issuer": "https://sso.example/"}}},
            (),
            "sign-in",
            State.FAIL,
            "without `signIn.oidc.clientId`",
        ),
        (
            {"ingress": HOST},
            (SecretFact(SYSTEM, "gpu-tls", None),),
            "ingress",
            State.FAIL,
            "`gpu.example` has no certificate: Secret `gpu-tls` of namespace",
        ),
        (
            {"ingress": HOST, "signIn": {"trustedProxies": "10.0.0.0/8"}},
            (SecretFact(SYSTEM, "gpu-tls", "Opaque"),),
            "ingress",
            State.FAIL,
            "Secret `gpu-tls` is of type `Opaque`",
        ),
        (
            {"ingress": HOST},
            (SecretFact(SYSTEM, "gpu-tls", "kubernetes.io/tls"),),
            "ingress",
            State.WARN,
            "no proxy is trusted",
        ),
    ],
)
def test_what_signing_in_at_the_console_needs(
    values: dict[str, Any],
    secrets: tuple[SecretFact, ...],
    check: str,
    state: State,
    words: str,
) -> None:
    chosen = msgspec.convert(values, Installation)
    found = examine(replace(AFTER, chosen=chosen, console_secrets=secrets))
    assert [
        each
        for each in found
        if (each.check, each.state) == (check, state) and words in each.sentence
    ], found
    assert all(each.mend for each in found if each.check == check and each.state != State.OK)


def node(**change: Any) -> dict[str, Any]:
    return {"nodes": (replace(NODE, **change),)}


def plugin(choice: NodeChoice, **change: Any) -> WorkloadFact:
    image = "nvcr.io/nvidia/k8s-device-plugin:v0.17.0"
    fact = WorkloadFact("DaemonSet", "gpu-operator", "nvidia-plugin", (image,), 1, choice)
    return replace(fact, **change)


ELSEWHERE = NodeChoice((("pool", "other"),))

FAULTS: list[tuple[str, InstallationFacts, dict[str, Any], str, State, str]] = [
    # a cluster before an installation
    (
        "an old server with webhooks left",
        BEFORE,
        {"server": ServerFact("v1.35.1", (1, 35), 0.0)},
        "server",
        State.FAIL,
        "Kubernetes v1.35.1; admission by policies needs 1.36",
    ),
    (
        "a server too old for webhooks",
        BEFORE,
        {
            "server": ServerFact("v1.29.1", (1, 29), 0.0),
            "chosen": Installation(admission="webhooks", parts=Parts(node_agent=False)),
        },
        "server",
        State.FAIL,
        "Kubernetes v1.29.1; admission by webhooks needs 1.30",
    ),
    (
        "a server too old for the node agent's policies",
        BEFORE,
        {
            "server": ServerFact("v1.31.9", (1, 31), 0.0),
            "chosen": Installation(admission="webhooks"),
        },
        "server",
        State.FAIL,
        "Kubernetes v1.31.9; admission by webhooks needs 1.32",
    ),
    (
        "a server without a version",
        BEFORE,
        {"server": ServerFact("", None, 0.0)},
        "server",
        State.UNKNOWN,
        "the API server's version is not known",
    ),
    (
        "a kube-scheduler that is newer than the server",
        BEFORE,
        {"chosen": Installation(kube_scheduler_image="example.com/kube-scheduler:v1.37.0")},
        "kube-scheduler",
        State.FAIL,
        "kube-scheduler 1.37 of `example.com/kube-scheduler:v1.37.0` is newer than the API server "
        "1.36",
    ),
    (
        "a kube-scheduler that is too old for the server",
        AFTER,
        {"chosen": Installation(kube_scheduler_image="example.com/kube-scheduler:v1.34.9")},
        "kube-scheduler",
        State.WARN,
        "kube-scheduler 1.34 beside the API server 1.36: more than one minor version older",
    ),
    (
        "a clock that is ahead",
        BEFORE,
        {"server": ServerFact("v1.36.3", (1, 36), 12.5)},
        "clock",
        State.WARN,
        "the API server's clock is 12.5 s ahead of this machine's",
    ),
    (
        "a clock that is far behind",
        BEFORE,
        {"server": ServerFact("v1.36.3", (1, 36), -3600.0)},
        "clock",
        State.FAIL,
        "the API server's clock is 3600.0 s behind this machine's",
    ),
    (
        "kinds that are not served",
        BEFORE,
        {"unserved": ("MutatingAdmissionPolicy of admissionregistration.k8s.io/v1",)},
        "admission",
        State.FAIL,
        "does not serve MutatingAdmissionPolicy of admissionregistration.k8s.io/v1",
    ),
    (
        "rights that lack before",
        BEFORE,
        {"denied": ("DaemonSet in fairlead-system",)},
        "rights",
        State.FAIL,
        "you may not create and patch DaemonSet in fairlead-system",
    ),
    (
        "rights that lack after",
        AFTER,
        {"denied": ("DaemonSet in fairlead-system",)},
        "rights",
        State.WARN,
        "you may not create and patch DaemonSet in fairlead-system",
    ),
    (
        "a namespace that ends",
        BEFORE,
        {"namespaces": {SYSTEM: namespace(deletionTimestamp="2026-01-01T00:00:00Z")}},
        "namespace",
        State.FAIL,
        "namespace `fairlead-system` is being deleted",
    ),
    (
        "a namespace of Helm",
        BEFORE,
        {"namespaces": {SYSTEM: namespace(annotations={"meta.helm.sh/release-name": "mine"})}},
        "namespace",
        State.FAIL,
        "belongs to the Helm release `mine`",
    ),
    (
        "a namespace that is gone",
        AFTER,
        {"namespaces": {SYSTEM: None}},
        "namespace",
        State.FAIL,
        "namespace `fairlead-system` does not exist",
    ),
    (
        "a strict level",
        BEFORE,
        {"namespaces": {NODE_SPACE: namespace(NODE_SPACE)}},
        "pod-security",
        State.FAIL,
        "level `restricted` of namespace `fairlead-nodes` refuses pods of DaemonSet ",
    ),
    (
        "a namespace of another program",
        BEFORE,
        {"namespaces": {SYSTEM: namespace(labels={ENFORCE: "restricted"})}},
        "namespace",
        State.FAIL,
        "namespace `fairlead-system` exists, and was not made for Fairlead",
    ),
    (
        "an unknown level",
        BEFORE,
        {"namespaces": {SYSTEM: namespace(level="strict")}},
        "pod-security",
        State.FAIL,
        "namespace `fairlead-system` has the level `strict`, which does not exist",
    ),
    (
        "no level",
        BEFORE,
        {"namespaces": {SYSTEM: namespace(labels={"fairlead.io/installation": "system"})}},
        "pod-security",
        State.UNKNOWN,
        "the API server's default holds",
    ),
    (
        "a release",
        BEFORE,
        {"releases": ("mine",)},
        "helm",
        State.FAIL,
        "Helm has installed Fairlead here: release `mine`",
    ),
    (
        "no Prometheus",
        BEFORE,
        {"prometheus": ""},
        "prometheus",
        State.WARN,
        "no Prometheus is found",
    ),
    (
        "a Prometheus that only pods ask",
        BEFORE,
        {"chosen": Installation(prometheus="http://p:9090")},
        "prometheus",
        State.UNKNOWN,
        "the pods ask Prometheus at `http://p:9090`",
    ),
    # nodes and other programs
    (
        "a kubelet newer than its server",
        BEFORE,
        node(kubelet="v1.37.0"),
        "kubelets",
        State.FAIL,
        "kubelets newer than the API server (1.36): gpu-1 (v1.37.0)",
    ),
    (
        "a kubelet four minor versions behind",
        BEFORE,
        node(kubelet="v1.32.9"),
        "kubelets",
        State.FAIL,
        "kubelets older than 1.33: gpu-1 (v1.32.9)",
    ),
    ("no node", BEFORE, {"nodes": ()}, "kubelets", State.WARN, "the cluster has no nodes"),
    (
        "a node that is ahead",
        BEFORE,
        {"node_leases": (LeaseFact("kube-node-lease", "gpu-1", "gpu-1", NOW + 30, 40),)},
        "node-clocks",
        State.WARN,
        "gpu-1 (30 s ahead)",
    ),
    (
        "a node that is an hour behind",
        BEFORE,
        {"node_leases": (LeaseFact("kube-node-lease", "gpu-1", "gpu-1", NOW - 3600, 40),)},
        "node-clocks",
        State.FAIL,
        "gpu-1 (3600 s behind)",
    ),
    (
        "two kernels",
        BEFORE,
        {"nodes": (NODE, replace(NODE, name="gpu-2", kernel="5.15.0-91"))},
        "kernels",
        State.WARN,
        "2 GPU nodes: 5.15.0-91 (1 node), 6.12.9 (1 node)",
    ),
    (
        "containerd 1.7",
        BEFORE,
        node(runtime="containerd://1.7.27"),
        "cdi",
        State.UNKNOWN,
        "CDI is off by default: gpu-1 (containerd://1.7.27)",
    ),
    (
        "containerd 1.6",
        BEFORE,
        node(runtime="containerd://1.6.33"),
        "cdi",
        State.FAIL,
        "container runtimes without CDI: gpu-1 (containerd://1.6.33)",
    ),
    (
        "a GPU node without the label",
        BEFORE,
        node(labels={}),
        "agents",
        State.WARN,
        "nodes with GPUs that the node agent does not select: gpu-1 (nvidia.com/gpu)",
    ),
    (
        "a GPU node without an agent",
        AFTER,
        {"pods": (replace(AGENT_POD, is_ready=False),)},
        "agents",
        State.FAIL,
        "GPU nodes without a node agent that is ready: gpu-1",
    ),
    (
        "a plugin on the same node",
        BEFORE,
        {"workloads": (plugin(ANY_NODE),)},
        "device-plugins",
        State.FAIL,
        "DaemonSet gpu-operator/nvidia-plugin (1 node, such as gpu-1)",
    ),
    (
        "an exporter of the vendor",
        BEFORE,
        {
            "workloads": (
                plugin(ANY_NODE, images=("nvcr.io/nvidia/k8s/dcgm-exporter:4",), name="dcgm"),
            )
        },
        "exporters",
        State.WARN,
        "other exporters of GPU metrics: DaemonSet gpu-operator/dcgm",
    ),
    (
        "a second extender",
        BEFORE,
        {
            "workloads": (
                plugin(ANY_NODE, kind="Deployment", name="gpushare-schd-extender", images=()),
            )
        },
        "extenders",
        State.FAIL,
        "Deployment gpu-operator/gpushare-schd-extender",
    ),
    (
        "an extender in a configuration",
        BEFORE,
        {"extenders": (ExtenderFact("kube-system", "sched", ("http://127.0.0.1:32766",)),)},
        "scheduler",
        State.WARN,
        "kube-system/sched (http://127.0.0.1:32766)",
    ),
    # an installation
    (
        "an interrupted run",
        AFTER,
        {"inventory": InventoryFact("0.2.0", is_complete=False)},
        "inventory",
        State.FAIL,
        "a run of version `0.2.0` has not come to its end",
    ),
    (
        "an older installation",
        AFTER,
        {"inventory": InventoryFact("0.1.0", is_complete=True)},
        "inventory",
        State.WARN,
        "version `0.1.0` is installed, this program is `0.2.0`",
    ),
    (
        "a newer installation",
        AFTER,
        {"inventory": InventoryFact("0.10.0", is_complete=True)},
        "inventory",
        State.WARN,
        "version `0.10.0` is installed, and `0.2.0` is older",
    ),
    (
        "another version compares nothing",
        AFTER,
        {"inventory": InventoryFact("0.1.0", is_complete=True)},
        "changes",
        State.UNKNOWN,
        "only the program of the installed version",
    ),
    (
        "an object that is gone",
        AFTER,
        {"objects": (console(), ObjectFact(ObjectRef("v1", "ServiceAccount", "a", SYSTEM), None))},
        "objects",
        State.FAIL,
        "1 of 2 objects of the inventory not found: ServiceAccount fairlead-system/a",
    ),
    (
        "a field of another program",
        AFTER,
        {"objects": (replace(console(), result=Mismatch('conflict with "kubectl": .spec')),)},
        "changes",
        State.FAIL,
        'Deployment fairlead-system/fairlead-console: conflict with "kubectl": .spec',
    ),
    (
        "a field that is removed",
        AFTER,
        {
            "objects": (
                replace(
                    console(),
                    result={
                        "kind": "Deployment",
                        "metadata": {"name": "fairlead-console", "namespace": SYSTEM},
                        "spec": {"replicas": 2, "paused": False},
                    },
                ),
            )
        },
        "changes",
        State.FAIL,
        "Deployment fairlead-system/fairlead-console (spec.paused)",
    ),
    (
        "a workload that is refused",
        AFTER,
        {
            "objects": (
                console(
                    availableReplicas=0,
                    readyReplicas=0,
                    conditions=[
                        {"type": "ReplicaFailure", "status": "True", "message": "exceeded quota"}
                    ],
                ),
            )
        },
        "ready",
        State.FAIL,
        "fairlead-system/fairlead-console: 0 of 2 ready (exceeded quota)",
    ),
    (
        "a workload with a pod of an older version",
        AFTER,
        {"objects": (console(replicas=3),)},
        "ready",
        State.FAIL,
        "console: 2 of 2 ready; 1 of an older version still to be removed",
    ),
    (
        "a workload without its image",
        AFTER,
        {
            "objects": (console(availableReplicas=1, readyReplicas=1),),
            "pods": (
                AGENT_POD,
                PodFact(SYSTEM, "c-1", "fairlead-console", trouble="container c: ImagePullBackOff"),
            ),
        },
        "ready",
        State.FAIL,
        "1 of 2 ready (c-1: container c: ImagePullBackOff)",
    ),
    (
        "a container that restarted",
        AFTER,
        {"pods": (replace(AGENT_POD, restarts=4, restarted_at=NOW - 3599),)},
        "restarts",
        State.WARN,
        "restarted in the last hour: agent-x (4 restarts)",
    ),
    (
        "a Lease that is not held",
        AFTER,
        {"leases": (LeaseFact(SYSTEM, "fairlead-quota"),)},
        "lease",
        State.FAIL,
        "no process holds fairlead-system/fairlead-quota",
    ),
    (
        "a Lease that is not renewed",
        AFTER,
        {"leases": (LeaseFact(SYSTEM, "fairlead-quota", "quota-1", NOW - 16, 15),)},
        "lease",
        State.FAIL,
        "held by quota-1, renewed 16 s ago; it is valid for 15 s",
    ),
    (
        "a webhook without an authority",
        AFTER,
        {"certificates": (replace(WEBHOOK, ends_at=None),)},
        "certificate",
        State.FAIL,
        "ValidatingWebhookConfiguration x has no certificate",
    ),
    (
        "a certificate that ended",
        AFTER,
        {"certificates": (replace(WEBHOOK, ends_at=NOW - DAY),)},
        "certificate",
        State.FAIL,
        "ended 1.0 days ago",
    ),
    (
        "a certificate that ends soon",
        AFTER,
        {"certificates": (replace(WEBHOOK, ends_at=NOW + 6 * DAY),)},
        "certificate",
        State.WARN,
        "ends in 6 days",
    ),
]


@pytest.mark.parametrize(
    ("facts", "change", "check", "state", "sentence"),
    [row[1:] for row in FAULTS],
    ids=[row[0] for row in FAULTS],
)
def test_a_fault_has_its_state_its_sentence_and_what_mends_it(
    facts: InstallationFacts, change: dict[str, Any], check: str, state: State, sentence: str
) -> None:
    found = of(replace(facts, **change), check)
    assert (found.state, found.check) == (state, check)
    assert sentence in found.sentence
    assert found.mend


@pytest.mark.parametrize(
    ("minor", "chosen", "mend"),
    [
        (
            35,
            Installation(),
            "`--set admission=webhooks` works with Kubernetes 1.32 and later, with "
            "`--set kubeSchedulerImage=registry.k8s.io/kube-scheduler:v1.35.PATCH`",
        ),
        (31, Installation(), "upgrade the cluster"),
        (
            31,
            Installation(parts=Parts(node_agent=False), kube_scheduler_image="x/s:v1.31.1"),
            "`--set admission=webhooks` works with Kubernetes 1.30 and later",
        ),
        (29, Installation(admission="webhooks"), "upgrade the cluster"),
    ],
)
def test_an_old_server_is_sent_to_webhooks_only_where_they_work(
    minor: int, chosen: Installation, mend: str
) -> None:
    """docs/reference/compatibility.md has the versions."""
    server = ServerFact(f"v1.{minor}.0", (1, minor), 0.0)
    kinds = ("MutatingAdmissionPolicy of admissionregistration.k8s.io/v1",)
    facts = replace(BEFORE, server=server, chosen=chosen, unserved=kinds)
    assert of(facts, "server").mend == mend
    assert of(facts, "admission").mend == mend


DEFINITION = quota_tree_definition()
NARROW = {**DEFINITION, "spec": {**DEFINITION["spec"], "versions": []}}
FOUND = DefinitionFact(DEFINITION, DEFINITION)
QUOTA = ObjectFact(ObjectRef("apps/v1", "Deployment", "fairlead-quota-controller", SYSTEM), HIDDEN)


@pytest.mark.parametrize(
    ("facts", "definition", "state", "sentence", "mend"),
    [
        (BEFORE, replace(FOUND, found=None), State.OK, "no other program defines", ""),
        (BEFORE, FOUND, State.OK, "another program's definition", ""),
        (BEFORE, replace(FOUND, is_left=True), State.OK, "an earlier `fairlead install` left", ""),
        (HELMS, replace(FOUND, is_left=True), State.OK, "an earlier installation's definition", ""),
        (
            HELMS,
            replace(FOUND, is_left=True, found=NARROW),
            State.FAIL,
            "exists and serves no",
            "remove it with its objects, or install without quota and users",
        ),
        (AFTER, replace(FOUND, found=None), State.OK, "no other program defines", ""),
        (
            replace(AFTER, objects=(QUOTA,)),
            replace(FOUND, found=None),
            State.FAIL,
            "does not exist, and Fairlead needs it",
            "`fairlead upgrade` writes it again; --dry-run prints the difference",
        ),
        (
            replace(HELMS, objects=(QUOTA,)),
            replace(FOUND, found=None),
            State.FAIL,
            "does not exist, and Fairlead needs it",
            "the program that brought it brings it back, or `helm upgrade gpus` with "
            "`--set crds.enabled=true`",
        ),
    ],
    ids=[
        "before",
        "foreign",
        "left",
        "left, by Helm",
        "left, too old",
        "without quota",
        "installed",
        "by Helm",
    ],
)
def test_the_definition_of_the_tree_is_foreign_left_or_missing(
    facts: InstallationFacts, definition: DefinitionFact, state: State, sentence: str, mend: str
) -> None:
    found = of(replace(facts, definitions=(definition,)), "definition")
    assert (found.state, found.mend) == (state, mend)
    assert sentence in found.sentence


def test_just_within_a_bound_is_sound() -> None:
    for change, check in (
        ({"server": ServerFact("v1.36.3", (1, 36), 2.0)}, "clock"),
        (node(kubelet="v1.33.0"), "kubelets"),
        ({"chosen": Installation(kube_scheduler_image="x/s:v1.35.1")}, "kube-scheduler"),
        (node(runtime="containerd://2.0.0"), "cdi"),
        (node(runtime="cri-o://1.33.1"), "cdi"),
        ({"workloads": (plugin(ELSEWHERE),)}, "device-plugins"),
        ({"workloads": (plugin(ANY_NODE, wanted=0),)}, "device-plugins"),
        (
            {"node_leases": (LeaseFact("kube-node-lease", "gpu-1", "x", NOW - 40, 40),)},
            "node-clocks",
        ),
        (
            {
                "node_leases": (LeaseFact("kube-node-lease", "gpu-1", "x", NOW + 12, 40),),
                "read_seconds": 10.0,
            },
            "node-clocks",
        ),
        ({"pods": (replace(AGENT_POD, restarts=4, restarted_at=NOW - 3601),)}, "restarts"),
        ({"leases": (LeaseFact(SYSTEM, "fairlead-quota", "quota-1", NOW - 15, 15),)}, "lease"),
        ({"certificates": (replace(WEBHOOK, ends_at=NOW + 8 * DAY),)}, "certificate"),
    ):
        assert of(replace(AFTER, **change), check).state == State.OK, (check, change)


def test_the_servers_clock_counts_for_leases() -> None:
    """This machine is an hour behind: the Lease is fresh, though its time is not yet here."""
    facts = replace(AFTER, now=NOW - 3600, server=ServerFact("v1.36.3", (1, 36), 3600.0))
    assert of(facts, "lease").sentence.endswith("renewed 3 s ago")
    assert of(facts, "node-clocks").state == State.OK


HIDDEN_FACTS = (
    ("unserved", HIDDEN, "admission"),
    ("denied", HIDDEN, "rights"),
    ("namespaces", {SYSTEM: HIDDEN}, "namespace"),
    ("releases", HIDDEN, "helm"),
    ("definitions", (DefinitionFact({"metadata": {"name": "x"}}, HIDDEN),), "definition"),
    ("prometheus", HIDDEN, "prometheus"),
    ("nodes", HIDDEN, "nodes"),
    ("node_leases", HIDDEN, "node-clocks"),
    ("workloads", HIDDEN, "other-programs"),
    ("extenders", HIDDEN, "scheduler"),
    ("inventory", HIDDEN, "inventory"),
    ("objects", (replace(console(), found=HIDDEN),), "objects"),
    ("objects", (replace(console(), result=HIDDEN),), "changes"),
    ("pods", HIDDEN, "pods"),
    ("pods", HIDDEN, "restarts"),
    ("pods", HIDDEN, "agents"),
    ("leases", (HIDDEN,), "lease"),
    ("certificates", (replace(WEBHOOK, ends_at=HIDDEN),), "certificate"),
)


@pytest.mark.parametrize(
    ("name", "value", "check"), HIDDEN_FACTS, ids=[each[2] for each in HIDDEN_FACTS]
)
def test_what_may_not_be_read_is_unknown_with_the_right_that_lacks(
    name: str, value: object, check: str
) -> None:
    found = of(replace(AFTER, **{name: value}), check)
    assert (found.state, found.sentence) == (State.UNKNOWN, HIDDEN.why)
    assert found.mend


def test_parts_that_are_not_chosen_collide_with_nothing() -> None:
    parts = Parts(gpu_exporter=False, gpu_sharing=False, node_agent=False)
    extender = plugin(ANY_NODE, kind="Deployment", name="hami-scheduler")
    facts = replace(
        BEFORE,
        chosen=Installation(parts=parts),
        agent=None,
        workloads=(plugin(ANY_NODE), plugin(ANY_NODE, name="dcgm-exporter"), extender),
    )
    checks = {each.check for each in examine(facts)}
    assert checks.isdisjoint({"device-plugins", "exporters", "extenders", "cdi", "agents"})


@pytest.mark.parametrize(("name", "level"), [(SYSTEM, "restricted"), (NODE_SPACE, "privileged")])
def test_the_mending_label_is_the_level_that_an_installation_gives(name: str, level: str) -> None:
    facts = replace(AFTER, namespaces={name: namespace(name, labels={})})
    assert of(facts, "pod-security").mend == (
        f"`kubectl label namespace {name} --overwrite {ENFORCE}={level}`"
    )


def test_own_workloads_are_no_other_programs() -> None:
    own = WorkloadFact(
        "DaemonSet", NODE_SPACE, "fairlead-node-agent", ("vgpu-device-plugin",), 1, ANY_NODE
    )
    assert of(replace(AFTER, workloads=(own,)), "device-plugins").state == State.OK
    other = replace(own, name="another")
    assert of(replace(AFTER, workloads=(other,)), "device-plugins").state == State.FAIL


LOCKED = {
    "allowPrivilegeEscalation": False,
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
    "capabilities": {"drop": ["ALL"]},
}


def pod(context: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"containers": [{"name": "c", "securityContext": context}], **spec}


@pytest.mark.parametrize(
    ("spec", "baseline", "restricted"),
    [
        (pod(LOCKED), [], []),
        (
            pod({"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}})
            | {
                "securityContext": {
                    "runAsNonRoot": True,
                    "seccompProfile": {"type": "RuntimeDefault"},
                }
            },
            [],
            [],
        ),
        (pod(LOCKED, hostNetwork=True), ["hostNetwork"], ["hostNetwork"]),
        (
            pod(LOCKED, volumes=[{"name": "v", "hostPath": {"path": "/x"}}]),
            ["hostPath volume `v`"],
            ["hostPath volume `v`"],
        ),
        (pod(LOCKED, volumes=[{"name": "v", "nfs": {}}]), [], ["volume `v`"]),
        (
            pod(LOCKED | {"capabilities": {"drop": ["ALL"], "add": ["SYS_PTRACE"]}}),
            ["capability SYS_PTRACE of container `c`"],
            ["capability SYS_PTRACE of container `c`"],
        ),
        (
            pod(LOCKED | {"capabilities": {"drop": ["ALL"], "add": ["CHOWN"]}}),
            [],
            ["capability CHOWN of container `c`"],
        ),
        (pod(LOCKED | {"runAsNonRoot": False}), [], ["runAsNonRoot of container `c`"]),
        (pod(LOCKED | {"runAsUser": 0}), [], ["runAsUser 0 of container `c`"]),
        (
            pod(LOCKED | {"privileged": True}),
            ["privileged container `c`"],
            ["privileged container `c`"],
        ),
    ],
)
def test_the_pod_security_standards(
    spec: dict[str, Any], baseline: list[str], restricted: list[str]
) -> None:
    assert violations(spec, "baseline") == baseline
    assert violations(spec, "restricted") == restricted
    assert violations(spec, "privileged") == []


def test_on_the_laptop_no_process_of_a_container_is_expected() -> None:
    """A Lease that a process held, and lost, is a fault there, too."""
    lost = LeaseFact(SYSTEM, "fairlead-quota", "quota-1", NOW - 16, 15)
    facts = replace(
        AFTER,
        server=SIMULATED,
        leases=(LeaseFact(SYSTEM, "fairlead-gpushare"), lost),
        certificates=(replace(WEBHOOK, ends_at=None),),
        node_leases=(LeaseFact("kube-node-lease", "gpu-1", "gpu-1", NOW + 3600, 40),),
    )
    clock = "nodes of a simulated cluster have its one clock, which may run faster"
    assert of(facts, "node-clocks") == Finding("node-clocks", State.OK, clock)
    because = "because containers of a simulated cluster run no program"
    found = [each for each in examine(facts) if each.check in ("lease", "certificate")]
    assert [(each.state, each.sentence) for each in found] == [
        (State.OK, f"no process holds {SYSTEM}/fairlead-gpushare, {because}"),
        (
            State.FAIL,
            f"{SYSTEM}/fairlead-quota is held by quota-1, renewed 16 s ago; it is valid for 15 s",
        ),
        (State.OK, f"{WEBHOOK.name} has no certificate, {because}"),
    ]
