"""What a container does once it runs, from the name and tag of its image, or from its command.

    train:10m       works for ten minutes, then exits 0
    fail:3s         exits 1 after three seconds
    crash:20s       dies of a segmentation fault (139)
    missing:x       can never be pulled
    cuda-malloc:3G  takes 3 GiB of GPU memory and runs on (dies at once where its grant is smaller)
    nginx, pause …  servers: just run

The registry and path before the name do not matter: `hub.example/team/train:10m` is `train:10m`. If
the image does not define it, the command does (`kubelet/program`); if neither does, a container of
a pod that is not restarted for ever succeeds after a while, and any other runs on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from fairlead.model.resources import is_gpu_resource
from fairlead.wire.kube.quantity import parse_quantity
from fairlead.wire.names import LABEL_JOB_NAME, LABEL_REPLICA_TYPE, PREFIX
from fairlead_sim.kubelet.cuda_malloc import CONTEXT_MIB
from fairlead_sim.kubelet.dcgm_tester import (
    GPU_LOAD,
    MATRICES_MIB,
    PROGRAM,
    ProfTest,
    parse_prof_test,
)
from fairlead_sim.kubelet.program import Program, program_of
from fairlead_sim.objects.chance import between
from fairlead_sim.scheduler.needs import limit_of

Object = dict[str, Any]

LOAD_ANNOTATION = f"{PREFIX}sim-load"
"""Annotation of a pod: its containers' use of GPUs (a name of `sim.load.LOADS`).

It counts if the image does not define the use.
"""

INIT_SECONDS = 3.0
"""An init container without a scripted image ends well after this long: one that just ran would
block its pod for ever.
"""

SHORT_SECONDS, LONG_SECONDS = (5.0, 30.0), (600.0, 1800.0)
"""How long a container with unknown work runs, in a pod that is not restarted for ever: long if it
trains (it holds a GPU, or is part of a training job).
"""

# fmt: off
SERVERS = frozenset((
    "agnhost", "caddy", "consul", "coredns", "echoserver", "elasticsearch", "envoy", "etcd",
    "grafana", "haproxy", "hello-app", "httpd", "jenkins", "kafka", "keycloak",
    "kubernetes-bootcamp", "mariadb", "memcached", "minio", "mongo", "mysql", "nats", "nginx",
    "parameter-server", "pause", "postgres", "prometheus", "rabbitmq", "redis", "registry",
    "tomcat", "traefik", "vault", "whoami", "zookeeper",
))
# fmt: on
"""Images by name that serve until they are stopped, whatever the pod's restart policy."""

PARAMETER_SERVER = "ps"
_SUBMITS = "ray job submit"
_DRAWN = {False: SHORT_SECONDS, True: LONG_SECONDS}
_EXIT_CODES = {"train": 0, "fail": 1, "crash": 139}
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_SERVING_PROGRAMS = ("sshd", "ray")
_SERVING_LOADS = ("notebook", "inference")
_TAG = re.compile(r"(?:\d+(?:\.\d+)?[smhd])+")
_JUPYTER_TAG = re.compile(r"(?:0|1)\.(?:\d|1[0-2])(?:\D|$)|.*jupyter")
_LOAD_BY_NAME = (
    ("train", "training"),
    ("horovod", "training"),
    ("fail", "training"),
    ("crash", "training"),
    ("notebook", "notebook"),
    ("jupyter", "notebook"),
    ("infer", "inference"),
    ("serv", "inference"),
    ("triton", "inference"),
    ("vllm", "inference"),
)


class Behaviour(Struct, frozen=True, gc=False):
    """`run_seconds` None = until it is stopped. `load` is the default use of a held GPU; `gpu_mib`
    a fixed amount of its memory.

    `is_scripted`: the image defines it all. `serves`: it runs on, unless its command defines
    something else. `program`: what its command does, if that was understood; `test`: the arguments
    of dcgmproftester.
    """

    run_seconds: float | None = None
    exit_code: int = 0
    can_pull: bool = True
    load: str = "idle"
    gpu_mib: int | None = None
    is_scripted: bool = False
    serves: bool = False
    program: Program | None = None
    test: ProfTest | None = None


class ContainerContext(Struct, frozen=True, gc=False):
    """What decides how a container behaves whose image does not define it.

    `ends`: its pod is not restarted for ever. `long`: it trains.

    `draw` is the seed and the names from which its run time is drawn. `is_known`: whether the pod
    contains all of its command.
    """

    ends: bool = False
    long: bool = False
    is_init: bool = False
    is_known: bool = True
    draw: tuple[int, str, str, str] = (0, "", "", "")


def behaviour_in(container: Object, around: ContainerContext) -> Behaviour:
    """What a container does: from its image or command, else it ends after a while or runs on."""
    image, command, arguments = (
        container.get("image", ""),
        container.get("command") or (),
        container.get("args") or (),
    )
    word = next(iter(command), "")
    scripted = behaviour_of(image, word)
    if scripted.is_scripted:
        return scripted
    words = (*command, *arguments)
    if is_prof_tester(image, word) or runs_our_tester(image, words):
        return _tester(parse_prof_test(words))
    if around.is_known and not (command or arguments) and starts_notebook(image):
        return replace(scripted, load="notebook", serves=True)
    program = program_of(command, arguments, _environment(container))
    if program is not None:
        return replace(
            scripted, run_seconds=program.run_seconds, exit_code=program.exit_code, program=program
        )
    if around.is_init:
        return replace(scripted, run_seconds=INIT_SECONDS)
    if scripted.serves or not around.ends:
        return scripted
    load = "training" if scripted.load == "idle" else scripted.load
    return replace(
        scripted,
        run_seconds=between(around.draw[0], *_DRAWN[around.long], "run", *around.draw[1:]),
        load=load,
    )


def _tester(test: ProfTest) -> Behaviour:
    mib = MATRICES_MIB + CONTEXT_MIB
    return Behaviour(test.run_seconds, test.exit_code, gpu_mib=mib, is_scripted=True, test=test)


@lru_cache(maxsize=4096)
def behaviour_of(image: str, program: str = "") -> Behaviour:
    """What the image alone defines.

    `program` is the first word of the container's command: an sshd or a Ray node serves for ever.

    >>> behaviour_of("hub.example/vision/train:1h30m").run_seconds
    5400.0
    >>> behaviour_of("fail:3s").exit_code
    1
    """
    name, _, tag = image.partition("@")[0].rpartition("/")[2].partition(":")
    load = next((load for start, load in _LOAD_BY_NAME if name.startswith(start)), "idle")
    if name == "missing":
        return Behaviour(can_pull=False, is_scripted=True)
    if name == "cuda-malloc":
        return Behaviour(load=load, gpu_mib=_mib(tag), is_scripted=True)
    word = program.rpartition("/")[2]
    if name in _EXIT_CODES and _TAG.fullmatch(tag) and word not in _SERVING_PROGRAMS:
        return Behaviour(_seconds(tag), _EXIT_CODES[name], load=load, is_scripted=True)
    if word == "sshd" and load == "idle":
        load = "training"  # an MPI worker: its launcher's program works there
    return Behaviour(
        load=load, serves=word in _SERVING_PROGRAMS or load in _SERVING_LOADS or name in SERVERS
    )


def is_prof_tester(image: str, program: str) -> bool:
    """Whether the container runs NVIDIA's dcgmproftester: by the word of its command, or by the
    name or tag of its image.

    >>> is_prof_tester("nvidia/samples:dcgmproftester-2.0.10", "")
    True
    >>> is_prof_tester("dcgm:4", "/usr/bin/dcgmproftester12")
    True
    """
    name, _, tag = image.rpartition("/")[2].partition(":")
    return any(
        word.startswith(PROGRAM)
        for word in ((program.rpartition("/")[2],) if program else (name, tag))
    )


def runs_our_tester(image: str, words: Sequence[str]) -> bool:
    """Whether the container runs `fairlead gpu-load`.

    By its command, or by a Fairlead image and its first argument.

    >>> runs_our_tester("busybox", ("fairlead", "gpu-load", "-t 1004"))
    True
    >>> runs_our_tester("hub.example/fairlead:1", ("gpu-load",))
    True
    """
    program, verb = (*words, "", "")[:2]
    if program.rpartition("/")[2] == "fairlead":
        return verb == GPU_LOAD
    return program == GPU_LOAD and image.rpartition("/")[2].partition(":")[0] == "fairlead"


def starts_notebook(image: str) -> bool:
    """Whether the image starts Jupyter where it is given no command, as TensorFlow's did up to 1.12
    and those for notebooks do.

    >>> [starts_notebook(f"tensorflow/tensorflow:{tag}") for tag in ("1.4.1-gpu-py3", "2.16.1-gpu")]
    [True, False]
    """
    name, _, tag = image.rpartition("/")[2].partition(":")
    return name == "tensorflow" and bool(_JUPYTER_TAG.match(tag))


def surroundings(
    pod: Object, container: Object, seed: int, *, is_init: bool, is_sidecar: bool
) -> ContainerContext:
    """`is_init`: it has to end before the next container begins."""
    metadata, spec = pod["metadata"], pod["spec"]
    labels = metadata.get("labels") or {}
    ends = (
        spec.get("restartPolicy", "Always") != "Always"
        and not is_sidecar
        and labels.get(LABEL_REPLICA_TYPE) != PARAMETER_SERVER
    )
    long = (
        LABEL_JOB_NAME in labels
        or _has_gpu(container)
        or any(_SUBMITS in word for word in container.get("command") or ())
    )
    names = (seed, metadata["namespace"], metadata["name"], container["name"])
    return ContainerContext(ends, long, is_init, draw=names)


def _has_gpu(container: Object) -> bool:
    asked = (container.get("resources") or {}).get("limits") or {}
    return any(limit_of(container, resource) for resource in asked if is_gpu_resource(resource))


def _environment(container: Object) -> dict[str, str]:
    """The variables whose values stand in the container."""
    return {
        each["name"]: str(each.get("value") or "")
        for each in container.get("env") or ()
        if "valueFrom" not in each
    }


def _seconds(tag: str) -> float:
    return sum(
        float(number) * _SECONDS[unit]
        for number, unit in re.findall(r"(?<![\d.])([\d.]++)([smhd])", tag)
    )


def _mib(tag: str) -> int | None:
    """`3G`, as people write it for GPU memory, means GiB."""
    try:
        return parse_quantity(tag if tag.endswith("i") else f"{tag}i") // (1 << 20) + CONTEXT_MIB
    except ValueError:
        return None
