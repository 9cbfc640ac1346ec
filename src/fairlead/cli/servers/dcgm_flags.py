"""The flags and variables that dcgm-exporter takes, and which of them mean something here (telemetry contract
1.2).

None may be refused, or swapping the image would break a DaemonSet's start; but one that changes nothing must
say so, or somebody believes that it does.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Final, NamedTuple

from fairlead.cli.frame.flags import BooleanFlag, is_true
from fairlead.errors import UserError

WORKS, NOT_YET, NEVER = "works", "no effect yet", "no effect: there is no DCGM here"
REFUSED = "ends the start until it works"


class DcgmFlag(NamedTuple):
    """`spellings`: the long one first.

    `metavar` None: a boolean. `default`: what dcgm-exporter takes for "not asked".
    """

    spellings: tuple[str, ...]
    effect: str
    help: str
    metavar: str | None = None
    default: str = ""
    variable: str = ""

    @property
    def name(self) -> str:
        return self.spellings[0].lstrip("-").replace("-", "_")

    @property
    def env(self) -> str:
        return self.variable or f"DCGM_EXPORTER_{self.name.upper()}"


FLAGS: Final = (
    DcgmFlag(("--kubernetes", "-k"), WORKS, "name the pod that has a GPU for itself on its DCGM samples"),
    DcgmFlag(("--kubernetes-enable-pod-uid",), WORKS, "and the pod's UID (label pod_uid)"),
    DcgmFlag(("--no-hostname", "-n"), WORKS, "leave the host's name out of DCGM samples"),
    DcgmFlag(("--use-old-namespace", "-o"), WORKS, "labels uuid, pod_name, pod_namespace, container_name"),
    DcgmFlag(("--replace-blanks-in-model-name", "--rbmn", "-rbmn"), WORKS, "blanks of model names become -"),
    DcgmFlag(("--fake-gpus",), WORKS, "the same as --backend sim", variable="DCGM_EXPORTER_USE_FAKE_GPUS"),
    DcgmFlag(("--debug",), WORKS, "log more (--loglevel debug)"),
    DcgmFlag(
        ("--devices", "-d"), WORKS, "which GPUs of a node to print: f (all), g, g:0,2-4", "f|g[:…]|i[:…]", "f", "DCGM_EXPORTER_DEVICES_STR"
    ),
    DcgmFlag(("--configmap-data", "-m"), NOT_YET, "read the CSV from a ConfigMap", "NS:NAME", "none"),
    DcgmFlag(("--kubernetes-enable-pod-labels",), NOT_YET, "pod labels on DCGM samples"),
    DcgmFlag(("--kubernetes-pod-label-allowlist-regex",), NOT_YET, "which pod labels", "REGEX"),
    DcgmFlag(("--kubernetes-gpu-id-type",), NOT_YET, "how the kubelet names GPUs", "uid|device-name", "uid"),
    DcgmFlag(("--kubernetes-virtual-gpus",), NOT_YET, "every DCGM series again per pod", variable="KUBERNETES_VIRTUAL_GPUS"),
    DcgmFlag(("--kubernetes-enable-dra",), NOT_YET, "labels of resource claims", variable="KUBERNETES_ENABLE_DRA"),
    DcgmFlag(("--pod-resources-kubelet-socket",), NOT_YET, "the kubelet's socket", "PATH", variable="DCGM_POD_RESOURCES_KUBELET_SOCKET"),
    DcgmFlag(("--nvidia-resource-names",), NOT_YET, "more resources that are GPUs", "NAMES", variable="NVIDIA_RESOURCE_NAMES"),
    DcgmFlag(("--container-labels",), NOT_YET, "labels of the container runtime"),
    DcgmFlag(("--container-runtime-socket",), NOT_YET, "the runtime's socket", "PATH", variable="DCGM_CONTAINER_RUNTIME_SOCKET"),
    DcgmFlag(("--xid-count-window-size", "-x"), WORKS, "window of DCGM_EXP_XID_ERRORS_COUNT", "MS", "300000"),
    DcgmFlag(("--clock-events-count-window-size",), WORKS, "window of DCGM_EXP_CLOCK_EVENTS_COUNT", "MS", "300000"),
    DcgmFlag(("--hpc-job-mapping-dir",), NOT_YET, "files that name the jobs of GPUs", "DIR", variable="DCGM_HPC_JOB_MAPPING_DIR"),
    DcgmFlag(("--config-file",), NOT_YET, "settings as YAML", "FILE"),
    DcgmFlag(("--web-config-file",), REFUSED, "TLS and passwords", "FILE"),
    DcgmFlag(("--web-systemd-socket",), NOT_YET, "listen on systemd's socket", variable="DCGM_EXPORTER_SYSTEMD_SOCKET"),
    DcgmFlag(("--web-read-timeout",), NOT_YET, "longest request", "DURATION"),
    DcgmFlag(("--web-write-timeout",), NOT_YET, "longest answer", "DURATION"),
    DcgmFlag(("--log-format",), NOT_YET, "log lines as JSON", "text|json", "text"),
    DcgmFlag(("--remote-hostengine-info", "-r"), NEVER, "address of a DCGM", "HOST:PORT", variable="DCGM_REMOTE_HOSTENGINE_INFO"),
    DcgmFlag(("--switch-devices", "-s"), NEVER, "which switches", "f|g[:…]|i[:…]", "f", "DCGM_EXPORTER_OTHER_DEVICES_STR"),
    DcgmFlag(("--cpu-devices", "-p"), NEVER, "which CPUs", "f|g[:…]|i[:…]", "f", "DCGM_EXPORTER_CPU_DEVICES_STR"),
    DcgmFlag(("--enable-dcgm-log",), NEVER, "DCGM's own log"),
    DcgmFlag(("--dcgm-log-level",), NEVER, "its level", "LEVEL", "NONE"),
    DcgmFlag(("--dump-enabled",), NEVER, "debugging dumps"),
    DcgmFlag(("--dump-directory",), NEVER, "where to", "DIR"),
    DcgmFlag(("--dump-retention",), NEVER, "for how many hours", "HOURS", "24"),
    DcgmFlag(("--dump-compression",), NEVER, "gzip them"),
    DcgmFlag(("--enable-pprof",), NEVER, "profiles of the Go program"),
    DcgmFlag(("--disable-startup-validate",), NEVER, "no checks at the start"),
    DcgmFlag(("--enable-gpu-bind-unbind-watch",), NEVER, "follow GPUs that come and go"),
    DcgmFlag(("--gpu-bind-unbind-poll-interval",), NEVER, "how often", "DURATION"),
)


def add_dcgm_flags(parser: argparse.ArgumentParser) -> None:
    """All of them; those that change nothing say so in their help."""
    for flag in FLAGS:
        words = flag.help if flag.effect == WORKS else f"{flag.help} ({flag.effect})"
        if flag.metavar is None:
            parser.add_argument(*flag.spellings, dest=flag.name, action=BooleanFlag, help=words)
        else:
            parser.add_argument(*flag.spellings, dest=flag.name, metavar=flag.metavar, help=words)
        parser.set_defaults(**{flag.name: None})


def fill_dcgm_flags(args: argparse.Namespace, env: Mapping[str, str]) -> None:
    """Flag, else variable, else off.

    Raises UserError for a variable that is neither true nor false where one of them is needed.
    """
    for flag in FLAGS:
        if getattr(args, flag.name) is None:
            text = env.get(flag.env, "")
            setattr(args, flag.name, _truth(flag, text) if flag.metavar is None else text)


def refuse_open_page(args: argparse.Namespace) -> None:
    """Raises UserError for flags that would guard the page, if they worked: it must not be open instead."""
    asked = [flag for flag in FLAGS if flag.effect == REFUSED and _is_asked(flag, args)]
    if asked:
        hint = "leave it out, listen on loopback (`--listen 127.0.0.1:9400`) and put a proxy before the page"
        raise UserError(f"`{asked[0].spellings[0]}` does not work yet, and without it the page would be open", hint)


def _truth(flag: DcgmFlag, text: str) -> bool:
    truth = is_true(text) if text else False
    if truth is None:
        raise UserError(f"{flag.env} is `{text}`, which is neither true nor false", "set it to `true` or `false`")
    return truth


def warnings_of(args: argparse.Namespace) -> list[str]:
    """At most one sentence per kind: which of the flags and variables that were given change nothing."""
    return [
        f"{', '.join(given)}: {effect}"
        for effect in (NOT_YET, NEVER)
        if (given := [f"`{flag.spellings[0]}`" for flag in FLAGS if flag.effect == effect and _is_asked(flag, args)])
    ]


def _is_asked(flag: DcgmFlag, args: argparse.Namespace) -> bool:
    return bool(getattr(args, flag.name)) and getattr(args, flag.name) != flag.default
