"""Document 001 on a real node: what `tests/documents/guard_story.py` plays, in real containers.

The program allocates from the stub of NVIDIA's driver, which the container runtime brings into the
container as NVIDIA's runtime does; the guard comes from the node agent alone. The images have the
names of the document's manifests, which are applied unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml
from tests.documents.cuda_malloc import cuda_malloc
from tests.documents.guard_story import (
    GREEDY,
    ISOLATION,
    LINE,
    MEMORY,
    SHARED,
    STATUS,
    TENANTS,
    THIRD,
    USED_MIB,
)
from tests.kube.driver import installed_driver, make_device_files, remove_device_files
from tests.kube.driver_hook import CUDA_VARIABLES, TRUTH
from tests.kube.kubectl import KubectlError
from tests.kube.kubelet import RealNode
from tests.kube.node_images import write_program_images
from tests.kube.node_room import end_one
from tests.kube.servers import Server
from tests.kubelet.admission import admission_policies
from tests.kubelet.agent import MEMORY as GPU_MEMORY
from tests.kubelet.agent import SECONDS, WHOLE, Line, NodeCards, container, shared
from tests.kubelet.driver_count import DriverCount
from tests.native.driver import MIB
from tests.waiting import wait_until

Object = dict[str, Any]
PROGRAM: Final = "cuda-malloc"
SIZES: Final = {"3G": "3072", "6G": "6144"}
"""By tag of the document's image, how many MiB its program takes."""
MORE_MIB: Final = 2048
"""More than a tenant's grant has left."""
FAMILY: Final = "fairlead_container_gpu_"
DENIED: Final = f"{FAMILY}allocations_denied_total"


class NodePlace:
    """The node of the story. `back_offs`: see `guard_story.Place`."""

    def __init__(self, line: Line, counted: DriverCount, exporter: Server, back_offs: int) -> None:
        self.line = line
        self.back_offs = back_offs
        self._counted = counted
        self._exporter = exporter

    def share(self) -> None:
        self.line.label(cgpu="true")

    def apply(self, manifest: Object) -> None:
        text = yaml.safe_dump(manifest)
        self.line.cluster.admin.run("apply", "-n", "default", "-f", "-", stdin=text)

    def pod(self, name: str) -> Object:
        field = f"--field-selector=metadata.name={name}"
        return next(iter(self.line.cluster.admin.get("pods", "-n", "default", field)), {})

    def log(self, pod: str, *, previous: bool = False) -> Sequence[str]:
        flags = ["--previous"] if previous else []
        return self.line.cluster.admin.run("logs", pod, "-n", "default", *flags).splitlines()

    def memory(self, pod: str, container: str = "") -> str:
        return self._run_in(pod, PROGRAM, container=container).strip()

    def more(self, pod: str, container: str = "") -> list[str]:
        """What a further program in the container prints that asks for more than the grant has
        left, and its exit status.
        """
        command = f"{PROGRAM} {MORE_MIB} 2>&1; echo $?"
        return self._run_in(pod, "sh", "-c", command, container=container).splitlines()

    def can_enter(self, pod: str) -> bool:
        """False while the kubelet, which has just started, does not know the pod."""
        try:
            self._run_in(pod, "true")
        except KubectlError:
            return False
        return True

    def used_mib(self, pod: str) -> int:
        found = self.pod(pod)
        return self._counted.of_pod(found["metadata"]["uid"]) >> 20 if found else 0

    def denied(self, pod: str) -> int:
        counts = self._exporter.metrics().by(DENIED, "pod_name")
        return round(counts.get(pod, -1))

    def figures(self, pod: str) -> tuple[float, float]:
        """Accounted and granted MiB on the exporter's page. It knows no process here, because the
        node has process ids of its own.
        """
        page = self._exporter.metrics()
        accounted, limit = (
            page.by(f"{FAMILY}memory_{each}_bytes", "pod_name").get(pod, -1) / MIB
            for each in ("accounted", "limit")
        )
        return accounted, limit

    def inspected(self, *flags: str) -> str:
        return self.line.inspected(*flags)

    def wait(self, what: str, is_so: Callable[[], object]) -> None:
        wait_until(lambda: f"{what}\n{self.line.reported(*TENANTS, THIRD)}", is_so, SECONDS, 0.5)

    def _run_in(self, pod: str, *argv: str, container: str = "") -> str:
        chosen = [f"--container={container}"] if container else []
        variables = [f"{name}={value}" for name, value in CUDA_VARIABLES.items()]
        words = ("exec", pod, "-n", "default", *chosen, "--", "env", *variables, *argv)
        return self.line.cluster.admin.run(*words)


@contextmanager
def guarded_place(line: Line, node: RealNode, folder: Path, back_offs: int) -> Iterator[NodePlace]:
    """The node with the document's card, driver and images, and without its workloads. `folder`:
    for the archive of the images.
    """
    admin = line.cluster.admin
    write_program_images(folder / "images.tar", cuda_malloc(), _images())
    node.import_images(folder / "images.tar")
    with driver_of_the_card(node) as (counted, cards):
        line.use(cards)
        wait_until("a whole card", lambda: line.shown(WHOLE) == ("1", "1"), SECONDS)
        with admission_policies(admin), line.exporter() as exporter:
            place = NodePlace(line, counted, exporter, back_offs)
            try:
                yield place
            finally:
                _remove_workloads(place)
                line.label(cgpu=None)


@contextmanager
def driver_of_the_card(node: RealNode) -> Iterator[tuple[DriverCount, NodeCards]]:
    """The driver on the node, with the document's card."""
    with installed_driver(node.disk, 1, has_cuda=True) as state:
        driver = state.folder.parent
        counted = DriverCount(driver / TRUTH)
        make_device_files(node.room, 1)
        try:
            with counted.shown_by(state):
                inside = f"/var/lib/{driver.name}"
                variables = {"LD_LIBRARY_PATH": inside, "STUB_NVML": f"{inside}/cards"}
                yield counted, NodeCards(("--backend=nvml",), variables)
        finally:
            remove_device_files(node.room)


def users_see_it(place: NodePlace) -> None:
    """`kubectl get pods` and the exporter's page after the story; the watchdog is silent."""
    for name in TENANTS:
        assert _row(place, name)[:3] == ["1/1", "Running", "0"]
        wait_until(
            lambda name=name: f"the page has {name}: {place.figures(name)}",
            lambda name=name: place.figures(name) == (USED_MIB, 4301),
            SECONDS,
        )
    refused = ["0/1", "CrashLoopBackOff"]
    place.wait("the third is shown", lambda: _row(place, THIRD)[:2] == refused)
    events = [each for name in (*TENANTS, THIRD) for each in place.line.events(name)]
    assert [each for each in events if "GPUMemoryOverGrant" in each] == []


def survives_restarts(place: NodePlace) -> None:
    """Agent, kubelet and containerd start anew, one after another. The tenants do not notice, and
    the limits hold: for a new program of a tenant, and for a new third.
    """
    before = [_container(place, name)["containerID"] for name in TENANTS]
    for count, restart in enumerate((_agent, _kubelet, _containerd), 1):
        restart(place.line)
        place.wait("the node shows its memory", lambda: _is_back(place))
        assert place.more(TENANTS[0]) == [LINE, str(STATUS)]
        place.wait("it is counted", lambda count=count: place.denied(TENANTS[0]) == count)
        _delete(place, THIRD)
        place.wait("a new third is refused", lambda: _has_ended(place, THIRD))
        assert place.log(THIRD) == [LINE]
        for name, same in zip(TENANTS, before, strict=True):
            found = _container(place, name)
            assert (found["containerID"], found["restartCount"]) == (same, 0)
            assert (place.memory(name), place.used_mib(name)) == (MEMORY, USED_MIB)


def unusual_containers_are_limited(place: NodePlace) -> None:
    """Two containers of a pod without any right, each with a limit of its own, and one in the pid
    namespace of its node. Removes the workloads of the story first.
    """
    _remove_workloads(place)
    place.share()
    place.wait("the guard limits", lambda: ISOLATION in place.inspected("-o", "wide"))
    rights: Object = {
        "runAsUser": 1000,
        "runAsNonRoot": True,
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    image = next(name for name in _images() if name.endswith(":3G"))
    three, four = (
        {**container(name, units, "exec cuda-malloc 3072"), "image": image, "securityContext": own}
        for name, units, own in (("three", 3, rights), ("four", 4, rights))
    )
    seen = shared("seen", {**four, "securityContext": {}})
    seen["spec"]["hostPID"] = True
    place.line.create(shared("bound", three, four), seen)
    grants = (("bound", "three", 3226), ("bound", "four", 4301), ("seen", "four", 4301))
    place.wait("they take their memory", lambda: place.used_mib("bound") == 2 * USED_MIB)
    place.wait("and the other", lambda: place.used_mib("seen") == USED_MIB)
    for name, part, limit in grants:
        assert place.memory(name, part) == f"{USED_MIB}MiB / {limit:>5}MiB"
        assert place.more(name, part) == [LINE, str(STATUS)]
    assert place.used_mib("bound") == 2 * USED_MIB
    place.line.remove_all()


def without_the_guard_the_third_runs(place: NodePlace) -> None:
    """On a node without isolation, beside the two, whose containers keep the guard."""
    place.line.label(**{"cgpu.disable.isolation": "true"})
    try:
        place.wait("no provider", lambda: " none " in f"{place.inspected('-o', 'wide')} ")
        _delete(place, THIRD)
        taken = 6144 + USED_MIB - 3072
        place.wait("the third runs", lambda: place.used_mib(THIRD) == taken)
        assert _container(place, THIRD)["restartCount"] == 0
        assert place.log(THIRD) == ["allocated"]
        assert [place.memory(name) for name in TENANTS] == [MEMORY, MEMORY]
        place.wait("the watchdog reports it", lambda: _is_over_grant(place, taken))
    finally:
        place.line.label(**{"cgpu.disable.isolation": None})


def _images() -> dict[str, list[str]]:
    """The document's images, with what each runs."""
    texts = [path.read_text(encoding="utf-8") for path in (SHARED, GREEDY)]
    names = re.findall(r"image: (\S+)", "\n".join(texts))
    assert len(names) == len(SIZES)
    return {name: [PROGRAM, SIZES[name.rpartition(":")[2]]] for name in names}


def _row(place: NodePlace, name: str) -> list[str]:
    """READY, STATUS, RESTARTS and more of `kubectl get pod`."""
    words = ("get", "pod", name, "-n", "default", "--no-headers")
    return place.line.cluster.admin.run(*words).split()[1:]


def _agent(line: Line) -> None:
    """It replaces a library of another version, which is a new file: containers that run have the
    old one.
    """
    library = line.agent.state / "guard" / "libfairlead-guard.so"
    shipped = library.read_bytes()
    line.agent.kill()
    other = library.with_name("other")
    other.write_bytes(shipped + b"of another version")
    other.replace(library)
    line.agent.start()
    assert library.read_bytes() == shipped


def _kubelet(line: Line) -> None:
    before = line.agent.times_registered()
    end_one(line.kubelet)
    line.kubelet.start()
    wait_until("it knows the agent", lambda: line.agent.times_registered() > before, SECONDS)


def _containerd(line: Line) -> None:
    end_one(line.containerd)
    line.containerd.start()


def _is_back(place: NodePlace) -> bool:
    is_shown = place.line.is_ready() and place.line.shown(GPU_MEMORY) == ("15", "15")
    return is_shown and all(place.can_enter(name) for name in TENANTS)


def _remove_workloads(place: NodePlace) -> None:
    for path in (GREEDY, SHARED):
        words = ("-f", str(path), "--ignore-not-found")
        place.line.cluster.admin.run("delete", "-n", "default", *words)
    _delete(place, *TENANTS, THIRD)


def _delete(place: NodePlace, *names: str) -> None:
    """Delete pods and wait until none of these, of this time, is left; a controller makes others
    of their names.
    """
    old = [place.pod(name).get("metadata", {}).get("uid") for name in names]
    words = ("--grace-period=0", "--force", "--ignore-not-found", "--wait=false")
    place.line.cluster.admin.run("delete", "pod", *names, "-n", "default", *words)
    for name, uid in zip(names, old, strict=True):
        place.wait(
            f"the old {name} is gone",
            lambda name=name, uid=uid: (
                uid is None or place.pod(name).get("metadata", {}).get("uid") != uid
            ),
        )


def _container(place: NodePlace, name: str) -> Object:
    """The status of the pod's container; empty while there is none."""
    found = place.pod(name).get("status", {}).get("containerStatuses") or ({},)
    return found[0]  # type: ignore[no-any-return]


def _has_ended(place: NodePlace, name: str) -> bool:
    """Whether its program has ended as document 001 has it."""
    found = _container(place, name)
    states = [found.get(each, {}).get("terminated", {}) for each in ("state", "lastState")]
    return STATUS in [each.get("exitCode") for each in states]


def _is_over_grant(place: NodePlace, taken: int) -> bool:
    found = place.line.events(THIRD)
    return any(f"uses {taken} MiB" in each and "its grant is 4301 MiB" in each for each in found)
