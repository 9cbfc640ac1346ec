"""Flags that several servers share."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any, Final

from fairlead import settings
from fairlead.model.installation import NODE_NAMESPACE, SYSTEM_NAMESPACE

MAX_PORT = 65535


TWO_ADDRESSES: Final = "`--listen` and `--port` name two addresses: omit one"


def add_listen(parser: argparse.ArgumentParser, default: str, shown: str = "") -> None:
    """`--listen`, and `--port` for only a port on the default host; both set `args.listen`.

    `args.has_address`: whether the user gave one. `shown`: the default in the help text.
    """
    host = default.rpartition(":")[0] if default else settings.LOOPBACK
    listen = f"HOST:PORT, :PORT or PORT (default {shown or default})"
    parser.add_argument("--listen", metavar="ADDRESS", default=default, action=_Listen, help=listen)
    parser.add_argument(
        "--port",
        metavar="P",
        type=port,
        action=_Listen,
        host=host,
        help="only the port, 0 for a free one",
    )
    parser.set_defaults(has_address=False)


class _Listen(argparse.Action):
    def __init__(
        self, option_strings: Sequence[str], dest: str, host: str = "", **settings: Any
    ) -> None:
        super().__init__(option_strings, dest, **settings)
        self._host = host

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        _: str | None = None,
    ) -> None:
        if getattr(namespace, "address_flag", self.dest) != self.dest:
            raise argparse.ArgumentError(None, TWO_ADDRESSES)
        namespace.address_flag, namespace.has_address = self.dest, True
        namespace.listen = values if self.dest == "listen" else f"{self._host}:{values}"


def add_lease(parser: argparse.ArgumentParser) -> None:
    """Flags of the Lease that selects the active one of several processes."""
    add = parser.add_argument
    add(
        "--identity",
        metavar="NAME",
        default="",
        help=(
            "name of this process in the Lease; a restart with the same name acquires it at once "
            "(default: new)"
        ),
    )
    add(
        "--lease-namespace",
        metavar="NS",
        default=SYSTEM_NAMESPACE,
        help=f"namespace of the Lease (default {SYSTEM_NAMESPACE})",
    )


def add_rate(
    parser: argparse.ArgumentParser, per_second: int, burst: int, what: str = "writes"
) -> None:
    """Flags of how much a server asks of the API server; `what`: that is limited."""
    add = parser.add_argument
    add(
        "--kube-api-qps",
        metavar="N",
        type=whole(1, 10_000),
        default=per_second,
        help=f"{what} a second to the API server (default {per_second})",
    )
    add(
        "--kube-api-burst",
        metavar="N",
        type=whole(1, 100_000),
        default=burst,
        help=f"number of {what} at once (default {burst})",
    )


def add_namespaces(parser: argparse.ArgumentParser, what: str) -> None:
    """Flags of the namespaces of an installation; `what`: is in `--namespace`."""
    for flag, default, used in (
        ("--namespace", SYSTEM_NAMESPACE, what),
        ("--node-namespace", NODE_NAMESPACE, "Fairlead's pods that use their node"),
    ):
        text = f"namespace of {used} (default {default})"
        parser.add_argument(flag, metavar="NS", default=default, help=text)


def add_scenario(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--scenario",
        metavar="NAME|FILE",
        default="default",
        help="a built-in scenario, or a TOML file (default: default)",
    )
    parser.add_argument(
        "--seed",
        metavar="N",
        type=whole(0, 2**63 - 1),
        default=0,
        help="seed of the simulated history (default 0)",
    )
    parser.add_argument(
        "--speed",
        metavar="X",
        type=speed,
        default=1.0,
        help="simulated seconds per second, 0.01 to 100000 (default 1)",
    )


def add_gpu_source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--gpu-source",
        metavar="SOURCE",
        choices=("exporters", "prometheus", "none"),
        default="exporters",
        help="where GPU values come from: exporters, prometheus or none (default exporters)",
    )
    parser.add_argument(
        "--gpu-exporter",
        metavar="URL",
        action="append",
        default=[],
        help=(
            "page of a GPU exporter, e.g. http://gpu-1:9400/metrics; repeatable (default: found "
            "by their pods)"
        ),
    )
    parser.add_argument(
        "--gpu-exporter-ca-file",
        metavar="FILE",
        default="",
        help="certificate authority of exporters' https pages",
    )
    parser.add_argument(
        "--gpu-exporter-pods",
        metavar="LABELS",
        type=not_empty,
        help=(
            "find exporters by labels of their pods, where no page is named or beside those "
            f"(default {settings.GPU_EXPORTER_LABELS})"
        ),
    )
    parser.add_argument(
        "--gpu-exporter-namespace",
        metavar="NAME",
        help=(
            'namespace of those pods, "" for all (default: that of the installation, by its '
            f"label, else {NODE_NAMESPACE})"
        ),
    )
    parser.add_argument(
        "--gpu-exporter-port",
        metavar="PORT",
        type=port_or_name,
        default=settings.GPU_EXPORTER_PORT_NAME,
        help=f"port of those pods, by name or number (default {settings.GPU_EXPORTER_PORT_NAME})",
    )


def add_prometheus(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--prometheus",
        metavar="URL",
        default="",
        help="address of a Prometheus (else PROMETHEUS_ADDRESS)",
    )
    parser.add_argument(
        "--prometheus-token-file",
        metavar="FILE",
        default="",
        help="bearer token for it (else PROMETHEUS_TOKEN)",
    )
    parser.add_argument(
        "--prometheus-ca-file",
        metavar="FILE",
        default="",
        help="certificate authority of its address",
    )


def not_empty(text: str) -> str:
    """A word; an empty one is a variable that was not set."""
    if not text.strip():
        raise argparse.ArgumentTypeError(
            "it is empty; omit the flag, or check whether a variable is set"
        )
    return text


def path_name(text: str) -> str:
    """The name of a file or a directory.

    An empty one is a variable that was not set, and not the same as no flag.
    """
    if not text:
        raise argparse.ArgumentTypeError(
            "the name is empty; omit the flag, or check whether a variable is set"
        )
    return text


def whole(low: int, high: int) -> Callable[[str], int]:
    """A whole number between `low` and `high`, as an argparse type."""

    def parse(text: str) -> int:
        if not (text.isascii() and text.removeprefix("-").isdigit() and low <= int(text) <= high):
            raise argparse.ArgumentTypeError(f"`{text}` is not a whole number from {low} to {high}")
        return int(text)

    return parse


def port(text: str) -> int:
    """A TCP port; 0 = a free one."""
    if not (text.isascii() and text.isdigit() and int(text) <= MAX_PORT):
        raise argparse.ArgumentTypeError(f"`{text}` is not a port from 0 to {MAX_PORT}")
    return int(text)


def port_or_name(text: str) -> str:
    """A port by its number, or by the name that a pod gives it
    (at most 15 letters, as Kubernetes has it).
    """
    if (
        not text
        or len(text) > 15
        or (text.isascii() and text.isdigit() and not 0 < int(text) <= MAX_PORT)
    ):
        raise argparse.ArgumentTypeError(
            f"`{text}` is neither a port from 1 to {MAX_PORT} nor the name of one"
        )
    return text


def speed(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.01 <= value <= 100_000:
        raise argparse.ArgumentTypeError(f"`{text}` is not a speed from 0.01 to 100000")
    return value
