"""Starts a real control plane for tests: etcd, kube-apiserver, controller-manager, scheduler and
KWOK.

They are plain processes on free loopback ports, with certificates of a throw-away authority. KWOK
plays the nodes: a Node with the annotation `kwok.x-k8s.io/node: fake` becomes Ready. Any component
may be killed and started again; its port and its data stay the same.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import shutil
import ssl
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tests.kube.addresses import address_beyond_loopback, free_port, is_listening
from tests.kube.administrator import Administrator
from tests.kube.certificates import Authority, KeyPair, write_signing_key
from tests.kube.component import Component, ComponentError
from tests.kube.kubeconfigs import certificate_user, token_user, write_kubeconfig
from tests.kube.kwok_stages import write_stages
from tests.kube.programs import module_folder, program
from tests.waiting import wait_until

OUTPUT = Path(__file__).resolve().parents[2] / "test-output" / "kube"
SERVICE_RANGE = "10.96.0.0/16"
POD_RANGE = "10.244.0.0/16"
START_SECONDS = 180.0
LOGS_KEPT_SECONDS = 7200.0
"""How long the logs of a cluster stay: until all groups of a whole run have ended."""


class ControlPlane:
    """A running cluster. `admin` is kubectl as cluster admin; `components` are its programs by
    name.
    """

    def __init__(
        self,
        folder: Path,
        logs: Path,
        advertise_address: str,
        *,
        routes_to_endpoints: bool = False,
        audited: Sequence[str] = (),
        has_real_nodes: bool = False,
        kubernetes: str = "",
        emulated: str = "",
        flags: Mapping[str, Sequence[str]] | None = None,
        commands: Path | None = None,
    ) -> None:
        self._flags = flags or {}
        self._commands = commands
        self.folder = folder
        self.logs = logs
        self.port = free_port()
        self.server = f"https://127.0.0.1:{self.port}"
        self._advertise_address = advertise_address
        self.routes_to_endpoints = routes_to_endpoints
        self._audited = audited
        self.audit_log = logs / "audit.log"
        self._has_real_nodes = has_real_nodes
        self._kubernetes = kubernetes
        self._emulated = emulated
        self._authority = Authority(folder, "ca")
        self.authority = self._authority.certificate
        self.admin_pair = self._authority.issue("admin", ["system:masters"])
        self.admin_headers: dict[str, str] = {}
        self.kubeconfig = self.write_kubeconfig("admin", self.admin_pair)
        self.admin = Administrator(
            program("kubectl"),
            self.kubeconfig,
            folder,
            port=self.port,
            authority=self.authority,
            pair=self.admin_pair,
        )
        self.components = {component.name: component for component in self._describe_components()}

    @property
    def address(self) -> str:
        """An address of this machine beyond loopback, for servers that the cluster reaches as if
        they were pods.
        """
        return self._advertise_address

    @property
    def server_for_nodes(self) -> str:
        """The API server's URL for nodes with a network of their own (`nodes_at`)."""
        return f"https://{self._advertise_address}:{self.port}"

    def issue(self, common_name: str, names: Sequence[str] = ()) -> KeyPair:
        """A certificate of the cluster's own authority, for a client or, with `names`, for a server
        beside it.
        """
        return self._authority.issue(common_name, names=names)

    def issue_user(self, user: str, groups: Sequence[str] = ("system:masters",)) -> KeyPair:
        """A client certificate of a user with all rights; the test chooses the name."""
        return self._authority.issue(user, groups)

    def extra_component(self, program_name: str, name: str, *arguments: str) -> Component:
        """One more program, which is not started and stopped with the others; its log is
        `<name>.log`.
        """
        return self._component(program_name, *_NO_SERVING, *arguments, log=name)

    def write_kubeconfig(self, name: str, pair: KeyPair) -> Path:
        """A kubeconfig file for a client certificate."""
        return write_kubeconfig(
            self.folder / f"{name}.kubeconfig", self.server, self.authority, certificate_user(pair)
        )

    def write_user_kubeconfig(self, user: str, groups: Sequence[str] = ()) -> Path:
        """A kubeconfig for a user with a client certificate, who has only the rights that RBAC
        grants.
        """
        return self.write_kubeconfig(user, self._authority.issue(user, groups))

    def write_service_account_kubeconfig(
        self, name: str, rules: Sequence[Mapping[str, Sequence[str]]], namespace: str = "default"
    ) -> Path:
        """A kubeconfig with the token of a service account that has the rights `rules` in the whole
        cluster.
        """
        account = {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": name, "namespace": namespace},
        }
        rbac = "rbac.authorization.k8s.io"
        role = {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name},
            "rules": [dict(rule) for rule in rules],
        }
        binding = {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        }
        self.admin.apply([account, role, binding])
        token = self.admin.run("create", "token", name, "-n", namespace, "--duration=2h").strip()
        return write_kubeconfig(
            self.folder / f"{name}.kubeconfig", self.server, self.authority, token_user(token)
        )

    def start(self) -> None:
        """Start all components in an order that keeps waiting short. Returns when pods can be
        created, and nothing writes further objects on its own.
        """
        self.start_component("etcd")
        self.start_component("kube-apiserver")
        for name in self.components:
            if name not in ("etcd", "kube-apiserver"):
                self.start_component(name)
        wait_until("the namespaces are complete", self._is_complete, START_SECONDS)

    def stop(self) -> None:
        """End all components by pid, the API server's clients first. The caller removes the data
        folder.
        """
        for component in reversed(list(self.components.values())):
            component.stop()

    def start_component(self, name: str) -> None:
        """Start a component and wait until it serves; also after `kill` or `stop` of it."""
        component = self.components[name]
        component.start()
        if name == "etcd":
            component.wait_until(lambda: is_listening(self._etcd_port), START_SECONDS)
        elif name == "kube-apiserver":
            component.wait_until(self.is_api_ready, START_SECONDS)

    def is_api_ready(self) -> bool:
        """Whether `/readyz` answers 200 on the API server's port, and the answer comes from this
        API server, not from another program on its port.
        """
        context = ssl.create_default_context(cafile=str(self.authority))
        context.load_cert_chain(*self.admin_pair)
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=2, context=context)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def etcd_keys(self) -> set[str]:
        """The keys of all objects, as etcd itself lists them."""
        prefix, after = (base64.b64encode(text).decode() for text in (b"/registry/", b"/registry0"))
        question = json.dumps({"key": prefix, "range_end": after, "keys_only": True})
        with urllib.request.urlopen(
            f"http://127.0.0.1:{self._etcd_port}/v3/kv/range", question.encode(), timeout=10
        ) as answer:
            rows = json.load(answer)["kvs"]
        return {base64.b64decode(row["key"]).decode() for row in rows}

    def has_completed(self, *namespaces: str) -> bool:
        """Whether the controller manager has written what it writes in each of these namespaces:
        it does so one after the other, some time after they are created.
        """
        return self.etcd_keys() >= {
            f"/registry/{kind}/{each}/{name}"
            for each in namespaces
            for kind, name in (("serviceaccounts", "default"), ("configmaps", "kube-root-ca.crt"))
        }

    def _is_complete(self) -> bool:
        for component in self.components.values():
            if not component.is_running:
                raise ComponentError(
                    f"{component.name} ended with status "
                    f"{component.exit_status}\n{component.log_tail()}"
                )
        return self.has_completed("default", "kube-node-lease", "kube-public", "kube-system")

    def _describe_components(self) -> Iterator[Component]:
        write_signing_key(self.folder / "service-accounts.key")
        yield self._etcd()
        yield self._kube_apiserver()
        yield self._kube_controller_manager()
        yield self._component(
            "kube-scheduler",
            f"--kubeconfig={self._component_kubeconfig('kube-scheduler')}",
            *_NO_SERVING,
        )
        if not self._has_real_nodes:
            yield self.kwok()

    def _component(self, name: str, *arguments: str, log: str = "") -> Component:
        # Go's HTTP clients send even loopback requests through a proxy if the environment names
        # one.
        environment = {
            key: value
            for key, value in os.environ.items()
            if not key.lower().endswith("_proxy") and key != "KUBECONFIG"
        }
        if name == "kwok" and self._commands is not None:
            environment["PATH"] = f"{self._commands}{os.pathsep}{environment['PATH']}"
        return Component(
            name,
            [program(name, self._kubernetes), *arguments, *self._flags.get(name, ())],
            self.logs / f"{log or name}.log",
            environment,
        )

    def _component_kubeconfig(self, name: str) -> Path:
        return self.write_kubeconfig(
            name, self._authority.issue(f"system:{name}", ["system:masters"])
        )

    def _etcd(self) -> Component:
        self._etcd_port, peer_port = free_port(), free_port()
        client, peer = f"http://127.0.0.1:{self._etcd_port}", f"http://127.0.0.1:{peer_port}"
        return self._component(
            "etcd",
            f"--data-dir={self.folder / 'etcd'}",
            "--unsafe-no-fsync",
            "--log-level=warn",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
        )

    def _kube_apiserver(self) -> Component:
        serving = self._authority.issue(
            "kube-apiserver", names=["127.0.0.1", "localhost", self._advertise_address, "10.96.0.1"]
        )
        kubelet_client = self._authority.issue("kube-apiserver-kubelet-client", ["system:masters"])
        front_proxy_authority = Authority(self.folder, "front-proxy-ca")
        front_proxy = front_proxy_authority.issue("front-proxy-client")
        accounts_key = self.folder / "service-accounts.key"
        return self._component(
            "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            f"--bind-address={'0.0.0.0' if self._has_real_nodes else '127.0.0.1'}",
            f"--secure-port={self.port}",
            f"--advertise-address={self._advertise_address}",
            f"--tls-cert-file={serving.certificate}",
            f"--tls-private-key-file={serving.key}",
            f"--client-ca-file={self.authority}",
            f"--kubelet-client-certificate={kubelet_client.certificate}",
            f"--kubelet-client-key={kubelet_client.key}",
            "--kubelet-preferred-address-types=InternalIP",
            f"--requestheader-client-ca-file={front_proxy_authority.certificate}",
            "--requestheader-allowed-names=front-proxy-client",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={front_proxy.certificate}",
            f"--proxy-client-key-file={front_proxy.key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={accounts_key}",
            f"--service-account-signing-key-file={accounts_key}",
            f"--service-cluster-ip-range={SERVICE_RANGE}",
            "--allow-privileged=true",  # as kubeadm has it
            f"--enable-aggregator-routing={str(self.routes_to_endpoints).lower()}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--shutdown-delay-duration=0s",
            "--shutdown-watch-termination-grace-period=1s",
            *self._audit_flags(),
            *([f"--emulated-version={self._emulated}"] if self._emulated else []),
        )

    def _audit_flags(self) -> list[str]:
        """A line of JSON in `audit_log` for each request of these users."""
        if not self._audited:
            return []
        policy = self.folder / "audit-policy.json"
        rules = [
            {"level": "Metadata", "users": list(self._audited)},
            {"level": "None"},
        ]
        head = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy"}
        policy.write_text(
            json.dumps({**head, "omitStages": ["RequestReceived"], "rules": rules}),
            encoding="utf-8",
        )
        return [f"--audit-policy-file={policy}", f"--audit-log-path={self.audit_log}"]

    def _kube_controller_manager(self) -> Component:
        return self._component(
            "kube-controller-manager",
            f"--kubeconfig={self._component_kubeconfig('kube-controller-manager')}",
            f"--root-ca-file={self.authority}",
            f"--service-account-private-key-file={self.folder / 'service-accounts.key'}",
            "--use-service-account-credentials=true",
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
            # Autoscalers look every two seconds and forget a peak after five seconds, instead of 15
            # s and 5 min.
            "--horizontal-pod-autoscaler-sync-period=2s",
            "--horizontal-pod-autoscaler-downscale-stabilization=5s",
            # A node whose link is down is NotReady after this time, instead of 50 s.
            *(("--node-monitor-grace-period=20s",) if self._has_real_nodes else ()),
            *_NO_SERVING,
        )

    def kwok(self) -> Component:
        """The program that plays nodes, not started."""
        stages = self.folder / "stages.yaml"
        write_stages(module_folder("KWOK"), stages)
        return self._component(
            "kwok",
            f"--kubeconfig={self._component_kubeconfig('kwok')}",
            f"--config={stages}",
            "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
            "--node-lease-duration-seconds=40",
            f"--cidr={POD_RANGE}",
            *self._exec_flags(),
        )

    def _exec_flags(self) -> list[str]:
        """With them KWOK serves `exec`, as the kubelet of each node does."""
        if self._commands is None:
            return []
        rule = self.folder / "exec.json"
        everywhere = {"containers": [], "local": {"workDir": str(self.folder)}}
        head = {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "ClusterExec"}
        document = {**head, "metadata": {"name": "all"}, "spec": {"execs": [everywhere]}}
        rule.write_text(json.dumps(document), encoding="utf-8")
        serving = self.issue("kwok", names=[self._advertise_address])
        return [
            f"--config={rule}",
            f"--node-ip={self._advertise_address}",
            f"--node-port={free_port()}",
            f"--tls-cert-file={serving.certificate}",
            f"--tls-private-key-file={serving.key}",
        ]


# No port of its own, and no lease: a component that is killed and started again works at once.
_NO_SERVING = ("--secure-port=0", "--leader-elect=false")


@contextmanager
def running_control_plane(
    *,
    routes_to_endpoints: bool = False,
    nodes_at: str = "",
    audited: Sequence[str] = (),
    kubernetes: str = "",
    emulated: str = "",
    flags: Mapping[str, Sequence[str]] | None = None,
    commands: Path | None = None,
) -> Iterator[ControlPlane]:
    """A running cluster for the block. Its logs stay in `test-output/kube/<pid>-…` for two hours,
    all else is removed.

    `routes_to_endpoints`: the API server reaches aggregated APIs at the addresses of their
    EndpointSlices, because nothing here routes the addresses of Services. It then no longer calls
    webhooks behind a Service with an external name.

    `nodes_at`: an address of this machine at which nodes with a network of their own reach the API
    server. KWOK then plays none.

    `audited`: users of which requests are written to `audit_log`.

    `kubernetes`: another minor version of Kubernetes, "1.34" for example (`other_kubernetes`).
    `emulated`: an earlier one, of which the API server has the features and the expressions.
    `flags`: further flags of a program, by its name; of two that differ the later is in force.
    `commands`: a folder of programs. `exec` in any container that KWOK plays runs them here, and
    otherwise those of this machine.
    """
    _remove_outputs_of_dead_runs()
    OUTPUT.mkdir(parents=True, exist_ok=True)
    logs = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=OUTPUT))
    with ExitStack() as leaving:
        folder = logs / "cluster"
        folder.mkdir()
        leaving.callback(shutil.rmtree, folder, ignore_errors=True)
        address = nodes_at or leaving.enter_context(address_beyond_loopback())
        control_plane = ControlPlane(
            folder,
            logs,
            address,
            routes_to_endpoints=routes_to_endpoints,
            audited=audited,
            has_real_nodes=bool(nodes_at),
            kubernetes=kubernetes,
            emulated=emulated,
            flags=flags,
            commands=commands,
        )
        leaving.callback(control_plane.stop)
        control_plane.start()
        yield control_plane


def _remove_outputs_of_dead_runs() -> None:
    for folder in OUTPUT.glob("[0-9]*-*"):
        if Path("/proc", folder.name.partition("-")[0]).exists():
            continue
        shutil.rmtree(folder / "cluster", ignore_errors=True)
        with suppress(FileNotFoundError):  # another process removes it, too
            if time.time() - folder.stat().st_mtime > LOGS_KEPT_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)
