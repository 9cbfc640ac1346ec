"""The kubelets of all nodes: they admit, pull, start, restart and end the pods.

One `PodRun` per bound pod, moved by timers; the API only ever sees the rendered status. A kubelet
never looks at the phase it wrote: what it knows is in the run, so a status patched by a person is
simply written over at the next change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from fairlead.wire.kube.time import parse_time
from fairlead.wire.names import ANNOTATION_GPU_ASSIGNED, ANNOTATION_REFERENCE_ASSIGNED
from fairlead_sim.gpus.cards import CardModel
from fairlead_sim.gpus.devices import SimulatedDevices
from fairlead_sim.gpus.load import LOADS
from fairlead_sim.kubelet.adoption import take_status
from fairlead_sim.kubelet.allocation import (
    allocate,
    annotated_shares,
    hold_again,
    take_lasting_shares,
    take_shares,
)
from fairlead_sim.kubelet.behaviour import LOAD_ANNOTATION, Behaviour, behaviour_in, surroundings
from fairlead_sim.kubelet.cuda_malloc import CONTEXT_MIB, NO_MEMORY_STATUS
from fairlead_sim.kubelet.image_name import image_name_fault
from fairlead_sim.kubelet.node_sums import UNEXPECTED, NodeSums, Rejection, unsuited
from fairlead_sim.kubelet.pod_status import (
    RUNNING,
    TERMINATED,
    WAITING,
    ContainerRun,
    PodRun,
    render_status,
)
from fairlead_sim.objects.chance import between
from fairlead_sim.objects.conditions import is_true, phase_of, status_of
from fairlead_sim.objects.resources import NODES, PODS
from fairlead_sim.objects.saved import HeldCard
from fairlead_sim.objects.watch_log import DELETED, LoggedChange
from fairlead_sim.scheduler.hooks import AgentHook
from fairlead_sim.scheduler.needs import is_sidecar
from fairlead_sim.scheduler.pod_shape import unreadable
from fairlead_sim.store.cluster import StoredCluster
from fairlead_sim.store.recorder import Recorder
from fairlead_sim.time.timers import Timers

Object = dict[str, Any]

COMPONENT, AGENT = "kubelet", "fairlead-device-plugin"
LOOK_SECONDS = 2.0
"""How often the node's agent looks at what programs take."""
BACK_OFF_SECONDS = (1.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0)
BACK_OFF_RESET_SECONDS = 600.0
LOOKUP_SECONDS = 1.0
"""Seconds until a kubelet learns that an image does not exist."""
LOOK_AGAIN_SECONDS = 12.0
"""How often a kubelet looks for an image that it may not pull."""
ASK_AGAIN_SECONDS = 0.7
"""Delay of the first retry for a container that the agent refused; later `LOOK_AGAIN_SECONDS`."""
CONFIG_ERROR = "CreateContainerConfigError"
PULL_ERROR_SECONDS = 2.0
"""Seconds for which a pod has `ErrImagePull` before it has `ImagePullBackOff`."""
NO_DEVICE = 1
"""How a program that needs a card ends without one."""
CUDA_ERROR_SECONDS = 2.0
"""How long a program lives that finds its card broken, or its grant too small."""


Behaves = Callable[[Object, Object, bool], Behaviour]
"""How a container of a pod behaves; the bool: whether it stands among the init containers."""


class Kubelets:
    """`goes_on`: whether a container whose image and command define nothing runs on, also in a pod
    that is not restarted for ever.
    """

    def __init__(
        self,
        cluster: StoredCluster,
        timers: Timers,
        devices: SimulatedDevices,
        recorder: Recorder,
        seed: int,
        *,
        goes_on: bool = False,
    ) -> None:
        self._cluster = cluster
        self._timers = timers
        self._devices = devices
        self._recorder = recorder
        self._seed = seed
        self._goes_on = goes_on
        self._runs: dict[str, PodRun] = {}
        self._images: set[tuple[str, str]] = set()
        self._addresses: dict[str, int] = {}
        self._silent: set[str] = set()
        self._sums = NodeSums(self._is_alive)
        self.agent: AgentHook = annotated_shares
        cluster.subscribe(PODS, self._on_pod)

    def container(self, namespace: str, pod: str, name: str) -> ContainerRun | None:
        """A container of a pod that some kubelet has, by name."""
        found = self._cluster.get(PODS, namespace, pod)
        run = self._runs.get(found["metadata"]["uid"]) if found else None
        return (
            next((container for container in run.containers if container.name == name), None)
            if run
            else None
        )

    def card_model(self, namespace: str, pod: str) -> CardModel | None:
        """What kind of card the pod's node has; None without any."""
        found = self._cluster.get(PODS, namespace, pod)
        cards = self._devices.cards(found["spec"].get("nodeName") or "") if found else ()
        return cards[0].model if cards else None

    def kill(self, uid: str, name: str, exit_code: int) -> None:
        """A program dies before its time: its GPU failed under it."""
        run = self._runs.get(uid)
        container = (
            next((container for container in run.containers if container.name == name), None)
            if run
            else None
        )
        if run is not None and container is not None:
            self._exit(run, container, container.restarts, exit_code)

    def adopt(self, pod: Object, node: Object) -> Object:
        """Adopt a pod as running, with its cards; returns its status.

        For worlds that do not begin empty.
        """
        now = self._timers.clock.now()
        run = self._runs[pod["metadata"]["uid"]] = _new_run(pod, node, now, self._behaviour)
        allocate(pod, run.node, self._devices)
        self._sums.admit(pod, run.node)
        self._give_address(run, pod)
        for container in run.apps:
            take_shares(pod, container.name, run.node, self._devices, self.agent)
            self._images.add((run.node, container.image))
            self._run(run, container, pod)
        run.settle()
        return render_status(run, status_of(pod), now)

    def take_over(
        self,
        pod: Object,
        node: Object,
        held: Sequence[HeldCard],
        lived_since: Callable[[float], float],
    ) -> None:
        """Continue with a pod of an earlier life from its status, on the cards that it `held`.

        Nothing is written.

        `lived_since` returns for how long the world has lived since an instant: it decides what a
        program has left to run.
        """
        run = take_status(_new_run(pod, node, self._timers.clock.now(), self._behaviour), pod)
        if run.phase == "Pending" and not status_of(pod).get("startTime"):
            return
        self._runs[run.uid] = run
        self._images |= {
            (run.node, container.image)
            for container in run.containers
            if container.state != WAITING or container.restarts
        }
        self._note_address(run)
        if run.is_finished:
            return
        hold_again(pod, run.node, held, self._devices)
        self._sums.admit(pod, run.node)
        for container in run.containers:
            if container.state == RUNNING:
                take_shares(pod, container.name, run.node, self._devices, self.agent)
            elif container in run.inits and not container.is_sidecar:
                self._devices.release(run.uid, container.name)
        if run.is_ending:
            ends_at = parse_time(pod["metadata"]["deletionTimestamp"])
            self._later(run, max(0.1, -lived_since(ends_at)), self._end)
        starts_afresh = not run.is_ending
        for container in run.containers:
            if container.state == RUNNING:
                self._act(run, container, pod, lived_since(container.started_at))
                starts_afresh = starts_afresh and container in run.inits and container.is_sidecar
            elif (
                container.restarts
                or container.last
                or (container.state == TERMINATED and run.will_restart(container))
            ):
                self._resume_back_off(run, container, lived_since)
                starts_afresh = False
        if starts_afresh and not run.is_stuck:
            self._later(run, 0.5, lambda run: self._pull(run, _images(run)))

    def _resume_back_off(
        self, run: PodRun, container: ContainerRun, lived_since: Callable[[float], float]
    ) -> None:
        seconds = BACK_OFF_SECONDS[
            min(container.failures, len(BACK_OFF_SECONDS) - 1)
        ] - lived_since(container.finished_at)
        container.failures += 1
        self._later(run, max(0.1, seconds), lambda run: self._restart(run, container))

    def _note_address(self, run: PodRun) -> None:
        """Addresses are given out in order: the next one comes after those in use."""
        if run.pod_ip and run.pod_ip != run.host_ip:
            last = int(run.pod_ip.rpartition(".")[2])
            self._addresses[run.node] = max(self._addresses.get(run.node, 0), last - 1)

    def fall_silent(self, node: str) -> None:
        """The node's kubelet writes nothing more and ends no pod; its containers work on."""
        self._silent.add(node)

    def come_back(self, node: str) -> None:
        """The kubelet reports again: it writes what happened meanwhile and does what was asked."""
        self._silent.discard(node)
        for run in [run for run in self._runs.values() if run.node == node]:
            pod = self._pod(run)
            if pod is not None and "deletionTimestamp" in pod["metadata"]:
                self._begin_end(run, pod)
            else:
                self._write(run)

    # --- events of the API ------------------------------------------------------------------------

    def _on_pod(self, event: LoggedChange) -> None:
        pod = event.object
        uid = pod["metadata"]["uid"]
        if event.type == DELETED:
            if self._runs.pop(uid, None) is not None:
                self._devices.release(uid)
            return
        run = self._runs.get(uid)
        if run is None:
            node = pod["spec"].get("nodeName")
            if node and phase_of(pod) == "Pending":
                self._admit_soon(pod, node)
        elif "deletionTimestamp" in pod["metadata"] and not run.is_ending:
            self._begin_end(run, pod)

    def _admit_soon(self, pod: Object, node_name: str) -> None:
        node = self._cluster.get(NODES, None, node_name)
        if node is None or not is_true(node, "Ready") or unreadable(pod):
            return
        run = _new_run(pod, node, self._timers.clock.now(), self._behaviour)
        self._runs[run.uid] = run
        self._later(run, self._delay(run, "admit", 0.1, 0.5), self._admit)
        if "deletionTimestamp" in pod["metadata"]:
            self._begin_end(run, pod)

    # --- a pod's life -----------------------------------------------------------------------------

    def _admit(self, run: PodRun) -> None:
        pod = self._pod(run)
        if pod is None or run.is_ending:
            return
        rejected = self._rejection(run, pod)
        if rejected is not None:
            run.reject(rejected.reason, f"Pod was rejected: {rejected.message}")
            self._recorder.warning(pod, rejected.reason, rejected.message, COMPONENT, run.node)
            self._write(run)
            return
        self._sums.admit(pod, run.node)
        run.admitted_at = self._timers.clock.now()
        has_all = take_lasting_shares(pod, run.node, self._devices, self.agent)
        self._write(run, _assigned if has_all else None)
        self._pull(run, _images(run))

    def _rejection(self, run: PodRun, pod: Object) -> Rejection | None:
        node = self._cluster.get(NODES, None, run.node)
        short = (
            (self._sums.rejection(pod, node) or unsuited(pod, node)) if node is not None else None
        )
        if short is not None and short.reason == UNEXPECTED:
            return short
        reason = allocate(pod, run.node, self._devices)
        if reason:
            return Rejection(UNEXPECTED, reason)
        if short is not None:
            self._devices.release(run.uid)
        return short

    def _is_alive(self, uid: str) -> bool:
        run = self._runs.get(uid)
        return run is not None and not run.is_finished

    def _pull(self, run: PodRun, images: Sequence[tuple[str, bool]]) -> None:
        """Pull what the node does not have, one image after another, then start."""
        pod = self._pod(run)
        if pod is None or run.is_ending:
            return
        rest = [
            (image, can_pull) for image, can_pull in images if (run.node, image) not in self._images
        ]
        if not rest:
            self._later(run, self._delay(run, "sandbox", 0.4, 1.6), self._start_next)
            return
        image, can_pull = rest[0]
        if fault := image_name_fault(image):
            self._refuse_name(run, pod, rest, fault)
            return
        if any(container.image == image and not container.may_pull for container in run.containers):
            self._refuse_pull(run, pod, image, rest)
            return
        self._recorder.normal(pod, "Pulling", f'Pulling image "{image}"', COMPONENT, run.node)
        if not can_pull:
            self._later(run, LOOKUP_SECONDS, lambda run: self._fail_pull(run, image, rest))
            return
        seconds = between(self._seed, 4.0, 40.0, "pull", run.node, image)
        self._later(run, seconds, lambda run: self._pulled(run, image, seconds, rest[1:]))

    def _refuse_name(
        self, run: PodRun, pod: Object, images: Sequence[tuple[str, bool]], fault: str
    ) -> None:
        """No image can have this name, however often it is looked at."""
        image = images[0][0]
        why = (
            f'Failed to apply default image tag "{image}": couldn\'t parse image name "{image}": '
            f"{fault}"
        )
        self._recorder.warning(pod, "InspectFailed", why, COMPONENT, run.node)
        self._wait_for_image(run, pod, image, "InvalidImageName", why)
        self._later(run, LOOK_AGAIN_SECONDS, lambda run: self._pull(run, images))

    def _refuse_pull(
        self, run: PodRun, pod: Object, image: str, images: Sequence[tuple[str, bool]]
    ) -> None:
        """The pod forbids to pull the image: check again whether another pod has brought it."""
        why = f'Container image "{image}" is not present with pull policy of Never'
        self._recorder.warning(pod, "ErrImageNeverPull", why, COMPONENT, run.node)
        self._wait_for_image(run, pod, image, "ErrImageNeverPull", why)
        self._later(run, LOOK_AGAIN_SECONDS, lambda run: self._pull(run, images))

    def _pulled(
        self, run: PodRun, image: str, seconds: float, images: Sequence[tuple[str, bool]]
    ) -> None:
        self._images.add((run.node, image))
        run.pulled.add(image)
        pod = self._pod(run)
        if pod is not None:
            took = f"{seconds:.3f}s"
            message = (
                f'Successfully pulled image "{image}" in {took} ({took} including waiting). Image '
                f"size: {_image_size(image)} bytes."
            )
            self._recorder.normal(pod, "Pulled", message, COMPONENT, run.node)
        self._pull(run, images)

    def _fail_pull(self, run: PodRun, image: str, images: Sequence[tuple[str, bool]]) -> None:
        """Report why, then that it will be tried again, each time after a longer pause."""
        pod = self._pod(run)
        if pod is None or run.is_ending:
            return
        why = (
            f'failed to pull and unpack image "{image}": failed to resolve reference "{image}": '
            f"{image}: not found"
        )
        self._recorder.warning(
            pod, "Failed", (f'Failed to pull image "{image}": {why}'), COMPONENT, run.node
        )
        self._wait_for_image(run, pod, image, "ErrImagePull", why)
        run.failed_pulls += 1
        seconds = BACK_OFF_SECONDS[min(run.failed_pulls, len(BACK_OFF_SECONDS) - 1)]
        self._later(run, PULL_ERROR_SECONDS, lambda run: self._back_off_pull(run, image, why))
        self._later(run, seconds, lambda run: self._pull(run, images))

    def _back_off_pull(self, run: PodRun, image: str, why: str) -> None:
        pod = self._pod(run)
        if pod is not None and not run.is_ending:
            self._recorder.normal(
                pod, "BackOff", (f'Back-off pulling image "{image}"'), COMPONENT, run.node
            )
            self._wait_for_image(
                run,
                pod,
                image,
                "ImagePullBackOff",
                (f'Back-off pulling image "{image}": ErrImagePull: {why}'),
            )

    def _wait_for_image(
        self, run: PodRun, pod: Object, image: str, reason: str, message: str
    ) -> None:
        self._recorder.warning(pod, "Failed", f"Error: {reason}", COMPONENT, run.node)
        self._give_address(run, pod)
        for container in run.containers:
            if container.image == image:
                container.wait(reason, message)
        self._write(run)

    def _start_next(self, run: PodRun) -> None:
        """Start the next init container; after the last one, all others."""
        pod = self._pod(run)
        if pod is None or run.is_ending or run.is_finished:
            return
        self._give_address(run, pod)
        pending = next((init for init in run.inits if init.state == "waiting"), None)
        if pending is not None:
            self._start(run, pending, pod)
            self._write(run)
            if pending.is_sidecar and pending.state == RUNNING:
                self._later(run, 0.5, self._start_next)
            return
        if run.is_initialized:
            for app in run.apps:
                if app.state == "waiting":
                    self._start(run, app, pod)
            self._write(run)

    def _give_address(self, run: PodRun, pod: Object) -> None:
        """The sandbox has one, before there is a container in it."""
        if not run.pod_ip:
            run.pod_ip = (
                run.host_ip if pod["spec"].get("hostNetwork") else self._next_address(run.node)
            )

    def _start(self, run: PodRun, container: ContainerRun, pod: Object) -> None:
        if refusal := take_shares(pod, container.name, run.node, self._devices, self.agent):
            self._refuse_start(run, container, pod, refusal)
            return
        self._run(run, container, pod)
        if container.image in run.pulled:
            run.pulled.discard(container.image)
        else:
            message = (
                f'Container image "{container.image}" already present on machine and can be '
                "accessed by the pod"
            )
            self._recorder.normal(pod, "Pulled", message, COMPONENT, run.node)
        self._recorder.normal(pod, "Created", "Container created", COMPONENT, run.node)
        self._recorder.normal(pod, "Started", "Container started", COMPONENT, run.node)

    def _refuse_start(self, run: PodRun, container: ContainerRun, pod: Object, why: str) -> None:
        """Its node's agent gives it nothing: that is asked for again, without end."""
        seconds = LOOK_AGAIN_SECONDS if container.reason == CONFIG_ERROR else ASK_AGAIN_SECONDS
        container.wait(CONFIG_ERROR, why)
        self._recorder.warning(pod, "Failed", f"Error: {why}", COMPONENT, run.node)
        self._later(run, seconds, lambda run: self._start_again(run, container))

    def _start_again(self, run: PodRun, container: ContainerRun) -> None:
        pod = self._pod(run)
        if pod is None or run.is_ending or run.is_finished or container.state != WAITING:
            return
        self._start(run, container, pod)
        self._write(run, _assigned if container.state == RUNNING else None)
        if container in run.inits and container.is_sidecar and container.state == RUNNING:
            self._later(run, 0.5, self._start_next)

    def _run(self, run: PodRun, container: ContainerRun, pod: Object) -> None:
        container.run(self._timers.clock.now())
        self._act(run, container, pod)

    def _act(
        self, run: PodRun, container: ContainerRun, pod: Object, lived_seconds: float = 0.0
    ) -> None:
        """What a container does from its start on, or from when it had already `lived_seconds`."""
        behaviour = self._acting(run, container, pod, lived_seconds)
        if behaviour.run_seconds is not None:
            restarts, left = container.restarts, max(0.0, behaviour.run_seconds - lived_seconds)
            self._later(
                run, left, lambda run: self._exit(run, container, restarts, behaviour.exit_code)
            )

    def _acting(
        self, run: PodRun, container: ContainerRun, pod: Object, lived_seconds: float
    ) -> Behaviour:
        """How the container behaves with the cards it got; puts its load on them."""
        behaviour = container.behaviour
        grants = self._devices.held(run.uid, container.name)
        if not grants:
            return (
                behaviour
                if behaviour.test is None
                else Behaviour(CUDA_ERROR_SECONDS, exit_code=NO_DEVICE)
            )
        refused = Behaviour(CUDA_ERROR_SECONDS, exit_code=NO_MEMORY_STATUS)
        if any(not card.is_healthy for card, _ in grants):
            return refused
        named_load = (pod["metadata"].get("annotations") or {}).get(LOAD_ANNOTATION, "")
        load = (
            behaviour.test.tests
            if behaviour.test is not None
            else named_load
            if named_load in LOADS
            else behaviour.load
        )
        wanted = behaviour.gpu_mib
        sizes = None if wanted is None else (CONTEXT_MIB, wanted - CONTEXT_MIB)
        warnings = self._devices.start(run.uid, container.name, load, sizes, lived_seconds)
        if warnings is None:
            return refused
        if warnings and not lived_seconds:
            restarts = container.restarts
            self._later(
                run, LOOK_SECONDS, lambda run: self._report(run, container, restarts, warnings)
            )
        return behaviour

    def _report(
        self,
        run: PodRun,
        container: ContainerRun,
        restarts: int,
        warnings: Sequence[tuple[str, str]],
    ) -> None:
        """The node's agent reports a program that is still there when it looks."""
        pod = self._pod(run)
        if pod is None or container.state != RUNNING or container.restarts != restarts:
            return
        for reason, message in warnings:
            self._recorder.warning(pod, reason, message, AGENT, run.node)

    def _exit(self, run: PodRun, container: ContainerRun, restarts: int, exit_code: int) -> None:
        if container.state != RUNNING or container.restarts != restarts:
            return
        self._devices.stop(run.uid, container.name)
        if container in run.inits and not container.is_sidecar:
            self._devices.release(run.uid, container.name)
        now = self._timers.clock.now()
        container.end(now, exit_code)
        if container in run.inits and exit_code == 0 and not container.is_sidecar:
            self._write(run)
            self._later(run, 0.5, self._start_next)
        elif run.will_restart(container):
            self._restart_later(run, container, now)
        elif container in run.inits and not container.is_sidecar:
            self._finish(run, "Failed")
        else:
            run.settle()
            self._finish(run, run.phase)

    def _restart_later(self, run: PodRun, container: ContainerRun, now: float) -> None:
        if now - container.started_at > BACK_OFF_RESET_SECONDS:
            container.failures = 0
        seconds = BACK_OFF_SECONDS[min(container.failures, len(BACK_OFF_SECONDS) - 1)]
        if container.failures:
            self._record_back_off(run, container, seconds)
        container.failures += 1
        run.settle()
        self._write(run)
        self._later(run, seconds, lambda run: self._restart(run, container))

    def _record_back_off(self, run: PodRun, container: ContainerRun, seconds: float) -> None:
        pod = f"{run.name}_{run.namespace}({run.uid})"
        container.wait(
            "CrashLoopBackOff",
            (
                f"back-off {_spell_seconds(seconds)} restarting failed container={container.name} "
                f"pod={pod}"
            ),
        )
        found = self._pod(run)
        if found is not None:
            message = f"Back-off restarting failed container {container.name} in pod {pod}"
            self._recorder.warning(found, "BackOff", message, COMPONENT, run.node)

    def _restart(self, run: PodRun, container: ContainerRun) -> None:
        pod = self._pod(run)
        if pod is None or run.is_ending or run.is_finished:
            return
        container.restarts += 1
        self._start(run, container, pod)
        run.settle()
        self._write(run)

    def _finish(self, run: PodRun, phase: str) -> None:
        """Write what ended; a finished pod lets go of its cards."""
        run.phase = phase
        if run.is_finished:
            now, pod = self._timers.clock.now(), self._pod(run)
            for sidecar in run.inits:
                if sidecar.state == RUNNING:
                    self._record_killing(run, pod, sidecar)
                    sidecar.end(now, 0)
            self._devices.release(run.uid)
        self._write(run)

    # --- its end by deletion ----------------------------------------------------------------------

    def _begin_end(self, run: PodRun, pod: Object) -> None:
        if run.node in self._silent:
            return
        run.is_ending = True
        live = [container for container in run.containers if container.state == RUNNING]
        for container in live:
            self._record_killing(run, pod, container)
        grace = float(pod["metadata"].get("deletionGracePeriodSeconds") or 0)
        seconds = min(grace, self._delay(run, "stop", 0.8, 3.5)) if live else 0.1
        self._later(run, seconds, self._end)

    def _end(self, run: PodRun) -> None:
        if run.node in self._silent:
            return
        now = self._timers.clock.now()
        for container in run.containers:
            if container.state == RUNNING:
                self._devices.stop(run.uid, container.name)
                container.end(now, 143)
        run.settle()
        if self._pod(run) is not None:
            self._write(run)
            self._cluster.delete(PODS, run.namespace, run.name, grace_seconds=0, uid=run.uid)

    def _record_killing(self, run: PodRun, pod: Object | None, container: ContainerRun) -> None:
        if pod is not None:
            self._recorder.normal(
                pod, "Killing", f"Stopping container {container.name}", COMPONENT, run.node
            )

    # --- small things -----------------------------------------------------------------------------

    def _behaviour(self, pod: Object, container: Object, is_init: bool) -> Behaviour:
        sidecar = is_init and is_sidecar(container)
        around = surroundings(
            pod, container, self._seed, is_init=is_init and not sidecar, is_sidecar=sidecar
        )
        return behaviour_in(
            container, replace(around, ends=False, is_known=False) if self._goes_on else around
        )

    def _pod(self, run: PodRun) -> Object | None:
        """The run's pod, unless it is gone or a namesake took its place."""
        pod = self._cluster.get(PODS, run.namespace, run.name)
        return pod if pod is not None and pod["metadata"]["uid"] == run.uid else None

    def _write(self, run: PodRun, change: Callable[[Object], Object] | None = None) -> None:
        run.settle()
        if run.node in self._silent:
            return
        now = self._timers.clock.now()

        def with_status(pod: Object) -> Object | None:
            if pod["metadata"]["uid"] != run.uid:
                return None
            new = {**pod, "status": render_status(run, status_of(pod), now)}
            return change(new) if change else new

        self._cluster.mutate(PODS, run.namespace, run.name, with_status)

    def _later(self, run: PodRun, seconds: float, then: Callable[[PodRun], None]) -> None:
        """Go on with the run after a while, unless its pod is gone by then."""
        self._timers.after(seconds, lambda: then(run) if self._runs.get(run.uid) is run else None)

    def _delay(self, run: PodRun, what: str, low: float, high: float) -> float:
        return between(self._seed, low, high, what, run.namespace, run.name)

    def _next_address(self, node: str) -> str:
        """The next address of the node's pod network; used ones come round again after 253."""
        used = self._addresses.get(node, 0)
        self._addresses[node] = used + 1
        found = self._cluster.get(NODES, None, node)
        cidr = ((found or {}).get("spec") or {}).get("podCIDR") or "10.244.255.0/24"
        return f"{cidr.rpartition('.')[0]}.{2 + used % 253}"


def _new_run(pod: Object, node: Object, now: float, behaves: Behaves) -> PodRun:
    metadata, spec = pod["metadata"], pod["spec"]
    addresses = status_of(node).get("addresses") or ()
    host_ip = next(
        (address["address"] for address in addresses if address["type"] == "InternalIP"), ""
    )
    inits = [
        _container_run(container, behaves(pod, container, True), is_init=True)
        for container in spec.get("initContainers") or ()
    ]
    apps = [
        _container_run(container, behaves(pod, container, False), is_init=False)
        for container in spec["containers"]
    ]
    if inits:
        for container in (*inits, *apps):
            container.reason = "PodInitializing"
    policy = spec.get("restartPolicy", "Always")
    return PodRun(
        metadata["namespace"],
        metadata["name"],
        metadata["uid"],
        spec["nodeName"],
        host_ip,
        policy,
        inits,
        apps,
        now,
    )


def _container_run(container: Object, behaviour: Behaviour, *, is_init: bool) -> ContainerRun:
    may_pull = container.get("imagePullPolicy") != "Never"
    return ContainerRun(
        container["name"],
        container.get("image", ""),
        behaviour,
        is_init and is_sidecar(container),
        may_pull,
    )


def _images(run: PodRun) -> list[tuple[str, bool]]:
    """The images that the pod needs, each once, and whether it can be pulled."""
    return list(
        dict.fromkeys(
            (container.image, container.behaviour.can_pull) for container in run.containers
        )
    )


def _assigned(pod: Object) -> Object:
    """What the node agent notes once a shared pod's containers have their cards."""
    annotations = pod["metadata"].get("annotations") or {}
    if ANNOTATION_GPU_ASSIGNED not in annotations:
        return pod
    noted = {**annotations, ANNOTATION_GPU_ASSIGNED: "true", ANNOTATION_REFERENCE_ASSIGNED: "true"}
    return {**pod, "metadata": {**pod["metadata"], "annotations": noted}}


def _image_size(image: str) -> int:
    return int(between(0, 80e6, 6e9, "size", image))


def _spell_seconds(seconds: float) -> str:
    """As Go prints a duration: `40s`, `1m20s`, `5m0s`."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"
