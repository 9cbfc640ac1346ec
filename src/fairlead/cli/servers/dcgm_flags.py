"""The flags and variables of dcgm-exporter, and which of them have an effect here.

See docs/spec/telemetry.md#flags-and-environment-variables.

None may be refused, or swapping the image would break a DaemonSet's start; but the help and a
warning name those without effect.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Final, NamedTuple

from fairlead.cli.servers.exporter_flags import (
    DAY,
    Read,
    add_flag,
    flag_value,
    limit,
    listed,
    milliseconds,
    one_of,
    truth,
)

WORKS, NEVER = "works", "no effect: there is no DCGM here"
NO_RUNTIME: Final = "no effect: the kubelet names containers, their runtime is not asked"
SHARED_PAGE: Final = "no effect: a scrape starts no work here"
ALWAYS: Final = "no effect: they are always on the page"
_WINDOW: Final = milliseconds(1, DAY * 1000)


class DcgmFlag(NamedTuple):
    """`spellings`: the long one first.

    `metavar` "": a boolean. `default`: what dcgm-exporter takes for "not asked". Of `is_list`
    several mentions count, and each may name several by commas.
    """

    spellings: tuple[str, ...]
    effect: str
    help: str
    metavar: str = ""
    default: str = ""
    variable: str = ""
    read: Read = str
    is_list: bool = False

    @property
    def name(self) -> str:
        return self.spellings[0].lstrip("-").replace("-", "_")

    @property
    def env(self) -> str:
        return self.variable or f"DCGM_EXPORTER_{self.name.upper()}"


FLAGS: Final = (
    DcgmFlag(
        ("--kubernetes", "-k"),
        WORKS,
        "name the pod that has a GPU for itself on its DCGM samples",
    ),
    DcgmFlag(("--kubernetes-enable-pod-uid",), WORKS, "and the pod's UID (label pod_uid)"),
    DcgmFlag(("--no-hostname", "-n"), WORKS, "leave the host's name out of DCGM samples"),
    DcgmFlag(
        ("--use-old-namespace", "-o"),
        WORKS,
        "labels uuid, pod_name, pod_namespace, container_name",
    ),
    DcgmFlag(
        ("--replace-blanks-in-model-name", "--rbmn", "-rbmn"),
        WORKS,
        "blanks of model names become -",
    ),
    DcgmFlag(
        ("--fake-gpus",),
        WORKS,
        "the same as --backend sim",
        variable="DCGM_EXPORTER_USE_FAKE_GPUS",
    ),
    DcgmFlag(("--debug",), WORKS, "log more (--loglevel debug)"),
    DcgmFlag(
        ("--devices", "-d"),
        WORKS,
        (
            "which GPUs of a node to print: f (all), g, g:0,2-4; MIG instances, counted over all "
            "cards: i, i:0,2, g:1+i:0"
        ),
        "f|g[:…]|i[:…]",
        "f",
        "DCGM_EXPORTER_DEVICES_STR",
    ),
    DcgmFlag(
        ("--configmap-data", "-m"),
        WORKS,
        "read the CSV from `metrics` of a ConfigMap, again when it changes",
        "NS:NAME",
        "none",
    ),
    DcgmFlag(
        ("--kubernetes-enable-pod-labels",), WORKS, "and the pod's labels, from the API server"
    ),
    DcgmFlag(
        ("--kubernetes-pod-label-allowlist-regex",),
        WORKS,
        "which pod labels (default all); repeatable",
        "REGEX",
        read=listed,
        is_list=True,
    ),
    DcgmFlag(
        ("--kubernetes-gpu-id-type",),
        WORKS,
        "how the kubelet names GPUs: both are understood",
        "uid|device-name",
        "uid",
        "",
        one_of("uid", "device-name"),
    ),
    DcgmFlag(
        ("--kubernetes-virtual-gpus",),
        WORKS,
        "every DCGM series of a shared GPU again per container (label vgpu)",
        variable="KUBERNETES_VIRTUAL_GPUS",
    ),
    DcgmFlag(
        ("--kubernetes-enable-dra",),
        WORKS,
        "cards of resource claims have their pods, and labels dra_*",
        variable="KUBERNETES_ENABLE_DRA",
    ),
    DcgmFlag(
        ("--pod-resources-kubelet-socket",),
        WORKS,
        "the kubelet's socket (default: pod-resources/kubelet.sock of --kubelet-dir)",
        "PATH",
        variable="DCGM_POD_RESOURCES_KUBELET_SOCKET",
    ),
    DcgmFlag(
        ("--nvidia-resource-names",),
        WORKS,
        "more resources that are GPUs; repeatable",
        "NAMES",
        "",
        "NVIDIA_RESOURCE_NAMES",
        listed,
        is_list=True,
    ),
    DcgmFlag(("--container-labels",), NO_RUNTIME, "labels of the container runtime"),
    DcgmFlag(
        ("--container-runtime-socket",),
        NO_RUNTIME,
        "the runtime's socket",
        "PATH",
        variable="DCGM_CONTAINER_RUNTIME_SOCKET",
    ),
    DcgmFlag(
        ("--xid-count-window-size", "-x"),
        WORKS,
        "window of DCGM_EXP_XID_ERRORS_COUNT",
        "MS",
        "300000",
        "",
        _WINDOW,
    ),
    DcgmFlag(
        ("--clock-events-count-window-size",),
        WORKS,
        "window of DCGM_EXP_CLOCK_EVENTS_COUNT",
        "MS",
        "300000",
        "",
        _WINDOW,
    ),
    DcgmFlag(
        ("--hpc-job-mapping-dir",),
        WORKS,
        "files that name the jobs of GPUs (label hpc_job)",
        "DIR",
        variable="DCGM_HPC_JOB_MAPPING_DIR",
    ),
    DcgmFlag(
        ("--config-file",),
        WORKS,
        "counters and interval as YAML; flags and variables come first",
        "FILE",
    ),
    DcgmFlag(
        ("--web-config-file",),
        WORKS,
        "TLS and passwords, as Prometheus' exporters have them in a file",
        "FILE",
    ),
    DcgmFlag(
        ("--web-systemd-socket",),
        WORKS,
        "listen on the socket that systemd hands over",
        variable="DCGM_EXPORTER_SYSTEMD_SOCKET",
    ),
    DcgmFlag(
        ("--web-read-timeout",),
        WORKS,
        "longest request (default 10s; 0 = no limit)",
        "DURATION",
        "10s",
        "",
        limit(0.1, 3600),
    ),
    DcgmFlag(
        ("--web-write-timeout",),
        WORKS,
        "longest answer (default 10s; 0 = no limit)",
        "DURATION",
        "10s",
        "",
        limit(0.1, 3600),
    ),
    DcgmFlag(
        ("--log-format",),
        WORKS,
        "lines of the log as text or JSON (default text)",
        "text|json",
        "text",
        "",
        one_of("text", "json"),
    ),
    DcgmFlag(
        ("--remote-hostengine-info", "-r"),
        NEVER,
        "address of a DCGM",
        "HOST:PORT",
        "localhost:5555",
        "DCGM_REMOTE_HOSTENGINE_INFO",
    ),
    DcgmFlag(
        ("--switch-devices", "-s"),
        NEVER,
        "which switches",
        "f|g[:…]|i[:…]",
        "f",
        "DCGM_EXPORTER_OTHER_DEVICES_STR",
    ),
    DcgmFlag(
        ("--cpu-devices", "-p"),
        NEVER,
        "which CPUs",
        "f|g[:…]|i[:…]",
        "f",
        "DCGM_EXPORTER_CPU_DEVICES_STR",
    ),
    DcgmFlag(("--enable-dcgm-log",), NEVER, "DCGM's own log"),
    DcgmFlag(("--dcgm-log-level",), NEVER, "its level", "LEVEL", "NONE"),
    DcgmFlag(("--dump-enabled",), NEVER, "debugging dumps"),
    DcgmFlag(("--dump-directory",), NEVER, "where to", "DIR", "/tmp/dcgm-exporter-debug"),
    DcgmFlag(("--dump-retention",), NEVER, "for how many hours", "HOURS", "24"),
    DcgmFlag(("--dump-compression",), NEVER, "gzip them", default="true"),
    DcgmFlag(("--watch-max-keep-age",), NEVER, "how long DCGM keeps samples", "DURATION", "10m"),
    DcgmFlag(("--watch-max-keep-samples",), NEVER, "how many samples DCGM keeps", "N", "0"),
    DcgmFlag(("--max-concurrent-scrapes",), SHARED_PAGE, "how many may scrape at once", "N"),
    DcgmFlag(("--enable-exporter-metrics",), ALWAYS, "metrics of the exporter itself"),
    DcgmFlag(("--health-require-gpus",), WORKS, "/health is 503 while no GPU is seen"),
    DcgmFlag(("--enable-pprof",), NEVER, "profiles of the Go program"),
    DcgmFlag(
        ("--disable-startup-validate",),
        NEVER,
        "no checks at the start",
        variable="DISABLE_STARTUP_VALIDATE",
    ),
    DcgmFlag(("--enable-gpu-bind-unbind-watch",), NEVER, "follow GPUs that come and go"),
    DcgmFlag(("--gpu-bind-unbind-poll-interval",), NEVER, "how often", "DURATION", "1s"),
)


def add_dcgm_flags(parser: argparse.ArgumentParser) -> None:
    """Adds all of them; the help of those without effect states that."""
    for flag in FLAGS:
        words = flag.help if flag.effect == WORKS else f"{flag.help} ({flag.effect})"
        add_flag(parser, flag.spellings, flag.name, flag.metavar, words, is_list=flag.is_list)


def fill_dcgm_flags(args: argparse.Namespace, env: Mapping[str, str]) -> None:
    """Flag, else variable, else dcgm-exporter's default. Raises UserError for another kind."""
    for flag in FLAGS:
        given = getattr(args, flag.name)
        if not isinstance(given, bool):
            default, read = (flag.default, flag.read) if flag.metavar else ("", truth)
            setattr(
                args, flag.name, flag_value(flag.spellings[0], flag.env, given, env, default, read)
            )


def warnings_of(args: argparse.Namespace) -> list[str]:
    """At most one sentence per kind: which of the given flags and variables have no effect."""
    return [
        f"{', '.join(given)}: {effect}"
        for effect in dict.fromkeys(flag.effect for flag in FLAGS if flag.effect != WORKS)
        if (
            given := [
                f"`{flag.spellings[0]}`"
                for flag in FLAGS
                if flag.effect == effect and _is_asked(flag, args)
            ]
        )
    ]


def _is_asked(flag: DcgmFlag, args: argparse.Namespace) -> bool:
    value = getattr(args, flag.name)
    return bool(value) and str(value) not in (flag.default, flag.default.capitalize())
