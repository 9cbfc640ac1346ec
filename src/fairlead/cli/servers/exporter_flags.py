"""The GPU exporter's own flags, beside dcgm-exporter's: each with its variable.

See docs/spec/telemetry.md#flags-and-environment-variables.

A value is that of the flag, else of the variable, else the default; it is read the same way
whichever it comes from, and a mistake names the one in which it stands.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from fairlead.cli.frame.flags import BooleanFlag, is_true
from fairlead.errors import UserError
from fairlead.wire.text.go_duration import parse_go_duration

NVML: Final = "libnvidia-ml.so.1"
Read = Callable[[str], Any]
"""The value of a text. Raises ValueError with the end of a sentence: what the text is not."""


class OwnFlag(NamedTuple):
    """`spellings`: the long one first. `metavar` "": a boolean. `default`: as a text, "" = none."""

    spellings: tuple[str, ...]
    metavar: str
    default: str
    help: str
    read: Read = str
    is_list: bool = False
    variable: str = ""

    @property
    def name(self) -> str:
        return self.spellings[0].lstrip("-").replace("-", "_")

    @property
    def env(self) -> str:
        return self.variable or f"FAIRLEAD_EXPORTER_{self.name.upper()}"


def milliseconds(low: int, high: int) -> Read:
    """A whole number of milliseconds."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and low <= int(text) <= high):
            raise ValueError(
                f"not a whole number of milliseconds from {low} to {high}, such as 5000"
            )
        return int(text)

    return read


def span(low: float, high: float) -> Read:
    """Seconds, of `60`, `60s` or `1m`; None of "".

    >>> span(1, 100)("60"), span(1, 100)("1m30s"), span(1, 100)("")
    (60.0, 90.0, None)
    """

    def read(text: str) -> float | None:
        if not text:
            return None
        try:
            seconds = float(text) if text.isascii() and text.isdigit() else parse_go_duration(text)
        except ValueError:
            seconds = -1.0
        if not low <= seconds <= high:
            raise ValueError(
                f"not a time from {low:g} to {high:g} seconds, such as 60, 60s or 1m30s"
            )
        return seconds

    return read


def limit(low: float, high: float) -> Read:
    """Seconds as of `span`; 0 is no limit, as in Go's servers.

    >>> limit(1, 100)("1m"), limit(1, 100)("0"), limit(1, 100)("0s")
    (60.0, inf, inf)
    """
    within = span(low, high)

    def read(text: str) -> float | None:
        return math.inf if span(0, high)(text) == 0 else within(text)

    return read


def one_of(*words: str) -> Read:
    def read(text: str) -> str:
        if text not in words:
            raise ValueError(f"none of {', '.join(filter(None, words))}")
        return text

    return read


def truth(text: str) -> bool:
    """As Go reads one; "" is false."""
    found = is_true(text) if text else False
    if found is None:
        raise ValueError("neither true nor false")
    return found


def listed(text: str) -> tuple[str, ...]:
    """The words between commas.

    >>> listed("a, b,,c")
    ('a', 'b', 'c')
    """
    return tuple(word for each in text.split(",") if (word := each.strip()))


DAY: Final = 86_400
OWN_FLAGS: Final = (
    OwnFlag(
        ("--listen", "--address", "-a"),
        "ADDRESS",
        ":9400",
        "HOST:PORT, :PORT or PORT (default :9400)",
        variable="DCGM_EXPORTER_LISTEN",
    ),
    OwnFlag(
        ("--backend",),
        "NAME",
        "",
        "where devices come from: nvml or sim (default nvml)",
        one_of("", "nvml", "sim"),
    ),
    OwnFlag(
        ("--nvml-library",), "PATH", NVML, f"NVIDIA's library, by name or path (default {NVML})"
    ),
    OwnFlag(
        ("--slow-interval",),
        "TIME",
        "60s",
        "between samples of what changes slowly (default 60s)",
        span(1, DAY),
    ),
    OwnFlag(
        ("--call-timeout",),
        "TIME",
        "10s",
        "time after which a call of the driver counts as stuck (default 10s)",
        span(1, 3600),
    ),
    OwnFlag(
        ("--stale-after",),
        "TIME",
        "",
        "age at which a value is dropped (default: three intervals, at least 15 s)",
        span(1, DAY),
    ),
    OwnFlag(
        ("--kmsg",),
        "on|off",
        "on",
        "read missed XIDs from /dev/kmsg: on or off (default on)",
        one_of("on", "off"),
    ),
    OwnFlag(
        ("--mig-device-fields",),
        "once|repeat",
        "once",
        (
            "fields of a divided card: once, or for each of its instances as in dcgm-exporter "
            "(default once)"
        ),
        one_of("once", "repeat"),
    ),
    OwnFlag(
        ("--all-nodes",),
        "",
        "",
        "print the cards of all nodes of a simulated cluster on one page",
        truth,
    ),
    OwnFlag(
        ("--collectors", "-f"),
        "FILE",
        "",
        "CSV of the DCGM fields to print (default: built in)",
        variable="DCGM_EXPORTER_COLLECTORS",
    ),
    OwnFlag(
        ("--collect-interval", "-c"),
        "MS",
        "5000",
        "milliseconds between samples (default 5000)",
        milliseconds(100, 86_400_000),
        variable="DCGM_EXPORTER_INTERVAL",
    ),
    OwnFlag(
        ("--compat",),
        "FAMILIES",
        "dcgm,legacy",
        "dcgm, legacy, custom beside the native ones, or none (default dcgm,legacy); repeatable",
        is_list=True,
    ),
    OwnFlag(
        ("--hostname-label",),
        "NAME",
        "Hostname",
        "Hostname, hostname or both (default Hostname)",
        one_of("Hostname", "hostname", "both"),
    ),
    OwnFlag(
        ("--strict-csv",),
        "",
        "",
        "exit at the start if the CSV has a bad row, instead of counting it",
        truth,
    ),
    OwnFlag(
        ("--sim-gpus",),
        "GPUS",
        "",
        (
            "simulated GPUs of this node, such as 2xTesla-T4: the "
            "kubelet reports which pods have them"
        ),
    ),
    OwnFlag(
        ("--kubelet-dir",),
        "DIR",
        "/var/lib/kubelet",
        "directory of the kubelet (default /var/lib/kubelet)",
    ),
    OwnFlag(
        ("--grants-file",),
        "FILE",
        "/var/lib/fairlead/gpu/grants.json",
        "grants file of the node agent (default /var/lib/fairlead/gpu/grants.json)",
    ),
    OwnFlag(
        ("--run-dir",),
        "DIR",
        "/run/fairlead/gpu",
        "directory of the memory guard's counters (default /run/fairlead/gpu)",
    ),
    OwnFlag(
        ("--pod-map-interval",),
        "TIME",
        "5s",
        "between requests to the kubelet for the pods of cards (default 5s)",
        span(1, 3600),
    ),
    OwnFlag(
        ("--pod-map-ttl",),
        "TIME",
        "60s",
        "time without a response of the kubelet after which series lose their pods (default 60s)",
        span(1, DAY),
    ),
    OwnFlag(
        ("--process-metrics",),
        "off|container|process",
        "container",
        "series of containers, of each process too, or of neither (default container)",
        one_of("off", "container", "process"),
    ),
)


def add_own_flags(parser: argparse.ArgumentParser) -> None:
    for flag in OWN_FLAGS:
        add_flag(parser, flag.spellings, flag.name, flag.metavar, flag.help, is_list=flag.is_list)


def add_flag(
    parser: argparse.ArgumentParser,
    spellings: tuple[str, ...],
    name: str,
    metavar: str,
    help: str,
    *,
    is_list: bool,
) -> None:
    """One that is None when it was not given."""
    if not metavar:
        parser.add_argument(*spellings, dest=name, action=BooleanFlag, help=help)
    else:
        parser.add_argument(
            *spellings,
            dest=name,
            metavar=metavar,
            help=help,
            action="append" if is_list else "store",
        )
    parser.set_defaults(**{name: None})


def fill_own_flags(args: argparse.Namespace, env: Mapping[str, str]) -> None:
    """Raises UserError for what is not of its kind."""
    for flag in OWN_FLAGS:
        given = getattr(args, flag.name)
        if not isinstance(given, bool):
            setattr(
                args,
                flag.name,
                flag_value(flag.spellings[0], flag.env, given, env, flag.default, flag.read),
            )


def flag_value(
    spelling: str,
    variable: str,
    given: str | list[str] | None,
    env: Mapping[str, str],
    default: str,
    read: Read,
) -> Any:
    """The value of a flag, else of its variable, else the default. A repeated flag is one list."""
    text = ",".join(given) if isinstance(given, list) else given
    where = f"`{spelling}`" if text is not None else variable
    text = text if text is not None else env.get(variable) or default
    try:
        return read(text)
    except ValueError as error:
        raise UserError(
            f"{where} is `{text}`, which is {error}",
            f"`fairlead gpu-exporter --help` describes `{spelling}`",
        ) from error
