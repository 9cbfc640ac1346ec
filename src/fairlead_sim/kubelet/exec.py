"""The programs that can be executed in a container that runs: what `kubectl exec` does there.

A few programs, and one-liners of a shell as far as `program` understands them. Any other is
refused with the words of a container runtime, and a list of those that exist. No program changes
anything.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from fairlead.model.devices.gpu import GpuMode
from fairlead.wire.names import LABEL_ISOLATION
from fairlead_sim.gpus.card import Card, Hold
from fairlead_sim.gpus.devices import SimulatedDevices
from fairlead_sim.gpus.nvidia_smi import SeenGpu, nvidia_smi
from fairlead_sim.gpus.readings import read_card
from fairlead_sim.kubelet.kubelet import Kubelets
from fairlead_sim.kubelet.pod_status import RUNNING
from fairlead_sim.kubelet.program import Program, program_of
from fairlead_sim.objects.chance import digest
from fairlead_sim.objects.resources import NODES, PODS
from fairlead_sim.scheduler.hooks import EnvironmentHook
from fairlead_sim.store.cluster import StoredCluster
from fairlead_sim.time.clock import SimClock

Object = dict[str, Any]

PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_FOLDERS: Final = re.compile(r"(?:(?:/usr(?:/local)?)?/s?bin/)?([^/]+)")
_SHELLS: Final = frozenset(("sh", "bash", "ash", "dash", "zsh"))
_SHELL_FLAGS: Final = re.compile(r"-[el]*c[el]*")
_ONE_COMMAND: Final = re.compile(r"[\w ./=,:@%+-]+")
_NVIDIA_SMI: Final = "nvidia-smi"
_SHOWING_SHARES: Final = frozenset(("guard", "mps"))
"""Isolation providers with which a program sees its container's share as the whole memory."""


class Execution(Struct, frozen=True):
    """What a program does in a container.

    `script`: what it prints over time, and when it ends; without one it ends at once.
    `copies_input`: it copies stdin to stdout until stdin ends.
    """

    output: bytes = b""
    errors: bytes = b""
    exit_code: int = 0
    script: Program | None = None
    copies_input: bool = False


class NotStarted(Struct, frozen=True):
    """The program cannot be started; the message is that of a kubelet."""

    message: str


class ContainerPrograms:
    """Fills the API server's port for `pods/exec`."""

    def __init__(
        self,
        cluster: StoredCluster,
        kubelets: Kubelets,
        devices: SimulatedDevices,
        clock: SimClock,
        seed: int,
    ) -> None:
        self._cluster = cluster
        self._kubelets = kubelets
        self._devices = devices
        self._clock = clock
        self._seed = seed
        self.environment: EnvironmentHook = lambda pod, container: {}

    def run_number(self, namespace: str, pod: str, container: str) -> int | None:
        """Which run of the container it is, counted from 0; None if it does not run."""
        run = self._kubelets.container(namespace, pod, container)
        return run.restarts if run is not None and run.state == RUNNING else None

    def execute(
        self, namespace: str, pod: str, container: str, command: Sequence[str]
    ) -> Execution | NotStarted:
        """What the command does in a container that runs."""
        found = self._cluster.get(PODS, namespace, pod)
        if found is None:
            return NotStarted(f"container not found ({_quoted(container)})")
        if not command:
            return self._refused(found, container, "args must not be empty")
        seen = self._seen(found, container)
        added = self.environment(found, container) if seen else {}
        inside = _Inside(found, container, seen, added, self._clock.now())
        return self._started(inside, tuple(command))

    def _started(self, inside: _Inside, command: tuple[str, ...]) -> Execution | NotStarted:
        matched = _FOLDERS.fullmatch(command[0])
        name = matched[1] if matched else ""
        if name in _SHELLS:
            return self._in_shell(inside, command)
        act = _PROGRAMS.get(name)
        if act is None or (name == _NVIDIA_SMI and not inside.gpus):
            return self._refused(inside.pod, inside.container, inside.not_found(command[0]))
        return act(inside, command[1:])

    def _in_shell(self, inside: _Inside, command: tuple[str, ...]) -> Execution | NotStarted:
        """A one-liner that is understood, or one command."""
        if len(command) == 3 and _SHELL_FLAGS.fullmatch(command[1]):
            script = None if "$" in command[2] else program_of(command, (), {})
            if script is not None and not script.loop:
                return Execution(exit_code=script.exit_code, script=script)
            words = shlex.split(command[2]) if _ONE_COMMAND.fullmatch(command[2]) else []
            if words and words[0] not in _SHELLS:
                return self._started(inside, tuple(words))
        name = inside.pod["metadata"]["name"]
        return NotStarted(
            f"pod {name} runs in a simulated cluster, where containers have no shell: execute one "
            f"program, for example `kubectl exec {name} -- {inside.example}`"
        )

    def _refused(self, pod: Object, container: str, why: str) -> NotStarted:
        names = (pod["metadata"]["uid"], container, self._clock.now(), why)
        number = digest(self._seed, "exec", *names).hex() + digest(self._seed, *names).hex()
        return NotStarted(
            "error executing command in container: failed to exec in container: failed to start "
            f'exec "{number}": OCI runtime exec failed: exec failed: {why}'
        )

    def _seen(self, pod: Object, container: str) -> list[SeenGpu]:
        """The GPUs that the container holds, by index; each once."""
        node = self._cluster.get(NODES, None, pod["spec"].get("nodeName") or "") or {"metadata": {}}
        provider = (node["metadata"].get("labels") or {}).get(LABEL_ISOLATION, "")
        shows_share = provider in _SHOWING_SHARES
        held: dict[str, list[tuple[Card, Hold]]] = {}
        for card, hold in self._devices.held(pod["metadata"]["uid"], container):
            held.setdefault(card.uuid, []).append((card, hold))
        seen = [
            _seen_gpu(pairs[0][0], [hold for _, hold in pairs], self._clock.now(), shows_share)
            for pairs in held.values()
        ]
        return sorted(seen, key=lambda gpu: gpu.sample.index)


def _seen_gpu(card: Card, holds: Sequence[Hold], now: float, shows_share: bool) -> SeenGpu:
    """`shows_share`: of a shared card, the container's share instead of the card's memory."""
    sample = read_card(card, now)
    profiles = {each.gpu_instance: each.profile for each in card.instances}
    instances = tuple(
        (profiles[hold.gpu_instance], card.instance_uuids[hold.gpu_instance])
        for hold in holds
        if hold.gpu_instance is not None
    )
    is_divisible = bool(card.model.slice_gigabytes)
    if holds[0].mode == GpuMode.SHARE and shows_share:
        counts, total = holds[0].counted(now), holds[0].limit_mib
        used = holds[0].used_mib(now) if counts is None else counts.used >> 20
        return SeenGpu(sample, used, total - used, total, is_divisible=is_divisible)
    used, total, reserved = card.used_mib(now), card.model.total_mib, card.model.reserved_mib
    free = max(0, total - reserved - used)
    return SeenGpu(sample, used, free, total, reserved, instances, is_divisible)


# --- the programs ---------------------------------------------------------------------------------


class _Inside(Struct, frozen=True):
    """What programs find in the container."""

    pod: Object
    container: str
    gpus: list[SeenGpu]
    added: Mapping[str, str]
    now: float

    @property
    def hostname(self) -> str:
        spec = self.pod["spec"]
        if spec.get("hostNetwork"):
            return str(spec["nodeName"])
        return str(spec.get("hostname") or self.pod["metadata"]["name"])

    @property
    def example(self) -> str:
        return _NVIDIA_SMI if self.gpus else "env"

    @property
    def programs(self) -> list[str]:
        return sorted(name for name in _PROGRAMS if name != _NVIDIA_SMI or self.gpus)

    @property
    def environment(self) -> dict[str, str]:
        """PATH, HOSTNAME, the values in the pod, what a device plugin adds, HOME."""
        variables = {"PATH": PATH, "HOSTNAME": self.hostname}
        for each in self._spec.get("env") or ():
            value = each.get("value") or ""
            field = ((each.get("valueFrom") or {}).get("fieldRef") or {}).get("fieldPath", "")
            variables[each["name"]] = self._field(field) if field else str(value)
        if self.gpus:
            uuids = [
                uuid
                for gpu in self.gpus
                for uuid in [each for _, each in gpu.instances] or [gpu.sample.uuid]
            ]
            variables["NVIDIA_VISIBLE_DEVICES"] = ",".join(uuids)
        return {**variables, **self.added, "HOME": "/root"}

    def not_found(self, program: str) -> str:
        """Why the runtime cannot start a program."""
        why = (
            f"stat {program}: no such file or directory"
            if "/" in program
            else "executable file not found in $PATH"
        )
        return (
            f"unable to start container process: exec: {_quoted(program)}: {why}: unknown (this "
            f"container of a simulated cluster has only {', '.join(self.programs)})"
        )

    @property
    def _spec(self) -> Object:
        spec = self.pod["spec"]
        containers = (*spec["containers"], *(spec.get("initContainers") or ()))
        return next((each for each in containers if each["name"] == self.container), {})

    def _field(self, path: str) -> str:
        """A field of the pod that a variable may show; "" for labels and what is not set."""
        value: Any = self.pod
        for step in path.split("."):
            value = value.get(step) if isinstance(value, Mapping) else None
        return value if isinstance(value, str) else ""


def _quoted(text: str) -> str:
    """As Go quotes a text without control characters."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _lines(*lines: str) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def _smi(inside: _Inside, words: Sequence[str]) -> Execution:
    printed = nvidia_smi(words, inside.gpus, inside.now)
    return Execution(_lines(*printed.lines), exit_code=printed.exit_code)


def _env(inside: _Inside, words: Sequence[str]) -> Execution:
    if words:
        errors = _lines(f"env: the simulated env has no arguments, got `{words[0]}`")
        return Execution(errors=errors, exit_code=125)
    return Execution(_lines(*(f"{name}={value}" for name, value in inside.environment.items())))


def _printenv(inside: _Inside, words: Sequence[str]) -> Execution:
    if not words:
        return _env(inside, ())
    values = [inside.environment.get(name) for name in words]
    found = [value for value in values if value is not None]
    return Execution(_lines(*found), exit_code=0 if len(found) == len(values) else 1)


def _hostname(inside: _Inside, words: Sequence[str]) -> Execution:
    if words:
        errors = _lines(f"hostname: the simulated hostname has no arguments, got `{words[0]}`")
        return Execution(errors=errors, exit_code=1)
    return Execution(_lines(inside.hostname))


def _echo(_: _Inside, words: Sequence[str]) -> Execution:
    is_open = bool(words) and words[0] == "-n"
    text = " ".join(words[1:] if is_open else words)
    return Execution(f"{text}{'' if is_open else chr(10)}".encode())


def _cat(_: _Inside, words: Sequence[str]) -> Execution:
    missing = [word for word in words if word != "-"]
    errors = _lines(*(f"cat: {word}: No such file or directory" for word in missing))
    return Execution(errors=errors, exit_code=1 if missing else 0, copies_input=not missing)


def _scripted(name: str) -> Callable[[_Inside, Sequence[str]], Execution]:
    def act(_: _Inside, words: Sequence[str]) -> Execution:
        is_plain = not any("$" in word for word in words)
        script = program_of((name, *words), (), {}) if is_plain else None
        if script is None:
            errors = _lines(f"{name}: the simulated {name} does not know `{' '.join(words)}`")
            return Execution(errors=errors, exit_code=1)
        return Execution(exit_code=script.exit_code, script=script)

    return act


_PROGRAMS: Final[Mapping[str, Callable[[_Inside, Sequence[str]], Execution]]] = {
    "cat": _cat,
    "date": _scripted("date"),
    "echo": _echo,
    "env": _env,
    "false": lambda inside, words: Execution(exit_code=1),
    "hostname": _hostname,
    _NVIDIA_SMI: _smi,
    "printenv": _printenv,
    "sleep": _scripted("sleep"),
    "true": lambda inside, words: Execution(),
}
