"""Realistic pods, and a server that returns them over TLS as an API server does.

The server is a process of its own (its memory and its core are not the client's). Pages and watch
events are rendered before it reports that it is ready, so that a run measures the client: in
protobuf and gzip where taken (`with_protobuf`), else in JSON.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import multiprocessing
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from tests.edge.pki import Authority
from tests.protobuf_bodies import encoded, envelope, frame, list_body

PAGE = 500
JSON, PROTOBUF = "application/json", "application/vnd.kubernetes.protobuf"
STARTED = "2026-01-05T08:00:00Z"
NETWORK = (
    '[{"name":"cbr0","interface":"eth0","ips":["10.42.7.19"],"mac":"3a:5e:1f:00:00:01",'
    '"default":true}]'
)


def pod(number: int, *, phase: str = "Running", version: int = 1) -> dict[str, Any]:
    """A training worker of a job of eight as an API server returns it, about 4.4 kB."""
    job, index = divmod(number, 8)
    namespace, name, node = (
        f"team-{job % 40:02}",
        f"train-{job:05}-worker-{index}",
        f"gpu-node-{number % 5000:04}",
    )
    started = (
        f"2026-01-{1 + number % 28:02}T{number % 24:02}:{number // 24 % 60:02}:"
        f"{number // 7 % 60:02}Z"
    )
    requests = {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "1", "ephemeral-storage": "20Gi"}
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"{number:08x}-1c4e-4b5a-9d3f-0242ac120002",
            "resourceVersion": str(1_000_000 + number + version),
            "creationTimestamp": started,
            "labels": {
                "training.kubeflow.org/job-name": f"train-{job:05}",
                "training.kubeflow.org/job-role": "worker",
                "training.kubeflow.org/operator-name": "mpi-operator",
                "training.kubeflow.org/replica-index": str(index),
                "app.kubernetes.io/part-of": "training",
                "team": namespace,
            },
            "annotations": {
                "kubectl.kubernetes.io/default-container": "worker",
                "k8s.v1.cni.cncf.io/network-status": NETWORK,
                "requestGPUsOfJobOwner": "8",
            },
            "ownerReferences": [
                {
                    "apiVersion": "kubeflow.org/v2beta1",
                    "kind": "MPIJob",
                    "name": f"train-{job:05}",
                    "uid": f"{job:08x}-77aa-4b5a-9d3f-0242ac120002",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
            "managedFields": [_managed("mpi-operator", "spec"), _managed("kubelet", "status")],
        },
        "spec": {
            "volumes": [
                {
                    "name": "ssh-auth",
                    "secret": {"secretName": f"train-{job:05}-ssh", "defaultMode": 384},
                },
                {"name": "dshm", "emptyDir": {"medium": "Memory", "sizeLimit": "16Gi"}},
                {"name": "data", "persistentVolumeClaim": {"claimName": "imagenet"}},
                {
                    "name": f"kube-api-access-{number % 99999:05}",
                    "projected": {
                        "sources": [
                            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}
                        ]
                    },
                },
            ],
            "containers": [
                {
                    "name": "worker",
                    "image": "registry.example/ai/pytorch:2.6-cuda12.4",
                    "command": ["/usr/sbin/sshd"],
                    "args": ["-De", "-f", "/home/mpiuser/.sshd_config"],
                    "env": [
                        {"name": f"NCCL_{name}", "value": "1"}
                        for name in ("DEBUG", "IB_HCA", "SOCKET_IFNAME", "ALGO", "PROTO")
                    ],
                    "resources": {"limits": {**requests}, "requests": {**requests}},
                    "volumeMounts": [
                        {"name": "dshm", "mountPath": "/dev/shm"},
                        {"name": "data", "mountPath": "/data", "readOnly": True},
                    ],
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                    "imagePullPolicy": "IfNotPresent",
                }
            ],
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default",
            "nodeName": node,
            "hostname": name,
            "subdomain": f"train-{job:05}",
            "schedulerName": "default-scheduler",
            "tolerations": [
                {
                    "key": f"node.kubernetes.io/{why}",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                }
                for why in ("not-ready", "unreachable")
            ],
            "priority": 0,
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
        },
        "status": {
            "phase": phase,
            "conditions": [
                {
                    "type": kind,
                    "status": "True",
                    "lastProbeTime": None,
                    "lastTransitionTime": started,
                }
                for kind in (
                    "PodReadyToStartContainers",
                    "Initialized",
                    "Ready",
                    "ContainersReady",
                    "PodScheduled",
                )
            ],
            "hostIP": f"10.0.{number // 250 % 250}.{number % 250}",
            "podIP": f"10.42.{number // 250 % 250}.{number % 250}",
            "podIPs": [{"ip": f"10.42.{number // 250 % 250}.{number % 250}"}],
            "startTime": started,
            "containerStatuses": [
                {
                    "name": "worker",
                    "state": {"running": {"startedAt": started}},
                    "lastState": {},
                    "ready": True,
                    "restartCount": 0,
                    "image": "registry.example/ai/pytorch:2.6-cuda12.4",
                    "imageID": f"registry.example/ai/pytorch@sha256:{number:064x}",
                    "containerID": f"containerd://{number:064x}",
                    "started": True,
                }
            ],
            "qosClass": "Guaranteed",
        },
    }


def _managed(manager: str, part: str) -> dict[str, Any]:
    fields = {
        f'k:{{"type":"{name}"}}': {".": {}, "f:status": {}, "f:type": {}}
        for name in ("Ready", "Initialized", "ContainersReady")
    }
    return {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": STARTED,
        "fieldsType": "FieldsV1",
        "fieldsV1": {
            f"f:{part}": {
                "f:containers": fields,
                "f:restartPolicy": {},
                "f:hostIP": {},
                "f:podIP": {},
            }
        },
    }


def encode(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def render_pages(count: int) -> list[bytes]:
    pages = []
    for start in range(0, count, PAGE):
        end = min(start + PAGE, count)
        meta: dict[str, Any] = {"resourceVersion": "5000000"}
        if end < count:
            meta |= {"continue": str(end), "remainingItemCount": count - end}
        items = b",".join(encode(pod(number)) for number in range(start, end))
        pages.append(
            b'{"kind":"PodList","apiVersion":"v1","metadata":%s,"items":[%s]}\n'
            % (encode(meta), items)
        )
    return pages


def render_events(count: int, pods: int) -> bytes:
    phases = ("Running", "Succeeded", "Failed", "Pending")
    return b"".join(
        b'{"type":"MODIFIED","object":%s}\n'
        % encode(pod(number % pods, phase=phases[number % 4], version=number + 10))
        for number in range(count)
    )


def render_message_pages(count: int) -> list[bytes]:
    """The same in protobuf, compressed as an API server does."""
    pages = []
    for start in range(0, count, PAGE):
        end = min(start + PAGE, count)
        items = [encoded("core.Pod", pod(number)) for number in range(start, end)]
        pages.append(
            gzip.compress(
                list_body("Pod", items, version="5000000", token=str(end) if end < count else ""), 1
            )
        )
    return pages


def render_frames(count: int, pods: int) -> bytes:
    phases = ("Running", "Succeeded", "Failed", "Pending")
    changed = (
        pod(number % pods, phase=phases[number % 4], version=number + 10) for number in range(count)
    )
    return b"".join(
        frame("MODIFIED", envelope("Pod", encoded("core.Pod", each))) for each in changed
    )


@contextlib.contextmanager
def pod_server(
    pods: int, events: int, directory: Path, *, with_protobuf: bool = False
) -> Iterator[Path]:
    """The path of a kubeconfig for a server with these pods.

    A watch gets `events` events and then stays open.
    """
    authority = Authority("bench")
    pair = authority.issue("server")
    (directory / "server.crt").write_bytes(pair.certificate_pem)
    (directory / "server.key").write_bytes(pair.key_pem)
    (directory / "ca.crt").write_bytes(authority.pem)
    parent, child = multiprocessing.Pipe()
    server = multiprocessing.Process(
        target=_serve, args=(pods, events, str(directory), with_protobuf, child), daemon=True
    )
    server.start()
    port = parent.recv()
    kubeconfig = directory / "kubeconfig"
    kubeconfig.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "bench",
                "clusters": [
                    {
                        "name": "bench",
                        "cluster": {
                            "server": f"https://127.0.0.1:{port}",
                            "certificate-authority": "ca.crt",
                        },
                    }
                ],
                "users": [{"name": "bench", "user": {"token": "bench"}}],
                "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
            }
        )
    )
    try:
        yield kubeconfig
    finally:
        server.terminate()
        server.join()


class Prepared(NamedTuple):
    pages: list[bytes]
    stream: bytes
    form: str


def _serve(pods: int, events: int, directory: str, with_protobuf: bool, ready: Any) -> None:
    plain = Prepared(
        [_response(page, JSON) for page in render_pages(pods)], render_events(events, pods), JSON
    )
    messages = None
    if with_protobuf:
        pages = [
            _response(page, PROTOBUF, "Content-Encoding: gzip\r\n")
            for page in render_message_pages(pods)
        ]
        messages = Prepared(pages, render_frames(events, pods), PROTOBUF)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{directory}/server.crt", f"{directory}/server.key")
    listener = socket.create_server(("127.0.0.1", 0))
    ready.send(listener.getsockname()[1])
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(
            target=_answer_all, args=(context, connection, plain, messages), daemon=True
        ).start()


def _response(body: bytes, form: str, more: str = "") -> bytes:
    return (
        f"HTTP/1.1 200 OK\r\nContent-Type: {form}\r\n{more}Content-Length: {len(body)}\r\n\r\n"
    ).encode() + body


def _answer_all(
    context: ssl.SSLContext, connection: socket.socket, plain: Prepared, messages: Prepared | None
) -> None:
    with (
        contextlib.suppress(OSError),
        context.wrap_socket(connection, server_side=True) as line,
        line.makefile("rb") as reader,
    ):
        while first := reader.readline():
            head = b""
            while (more := reader.readline()) not in (b"\r\n", b""):
                head += more
            prepared = messages if messages is not None and PROTOBUF.encode() in head else plain
            query = dict(parse_qsl(urlsplit(first.split(b" ")[1].decode()).query))
            if "watch" in query:
                _send_stream(line, prepared)
                threading.Event().wait()
            line.sendall(prepared.pages[int(query.get("continue", "0")) // PAGE])


def _send_stream(line: ssl.SSLSocket, prepared: Prepared) -> None:
    """Chunks of 16 kB, which is about what a busy API server writes at a time."""
    line.sendall(
        (
            "HTTP/1.1 200 OK\r\nContent-Type: "
            f"{prepared.form}\r\nTransfer-Encoding: chunked\r\n\r\n"
        ).encode()
    )
    size = 16 << 10
    for start in range(0, len(prepared.stream), size):
        piece = prepared.stream[start : start + size]
        line.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
