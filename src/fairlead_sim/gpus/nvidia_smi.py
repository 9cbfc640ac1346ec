"""What `nvidia-smi` prints in a container: its GPUs, in the form of the driver's version. Pure.

The table, `-L`, and `--query-gpu` with `--format=csv`. As in a container of a real node, it shows
no processes: they are in other namespaces.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from fairlead.model.devices.device import DeviceSample

USAGE, NO_SUCH_FIELD, NOT_FOUND, LOST = 1, 2, 6, 15
"""Exit codes; those of nvidia-smi for what it has a code for."""
_FORMATS: Final = frozenset(("csv", "noheader", "nounits"))
_WIDTH: Final = 89
_NAME_WIDTH: Final = 27


class SeenGpu(Struct, frozen=True):
    """A GPU as the container has it: the driver's sample, and memory in MiB.

    `instances`: profile and UUID of the container's MIG instances. `is_divisible`: the model knows
    MIG.
    """

    sample: DeviceSample
    used_mib: int
    free_mib: int
    total_mib: int
    reserved_mib: int = 0
    instances: tuple[tuple[str, str], ...] = ()
    is_divisible: bool = False

    def figure(self, name: str) -> float:
        """A field of the sample, by its name without the prefix `DCGM_FI_DEV_`."""
        return float(self.sample.fields.get(f"DCGM_FI_DEV_{name}", 0))

    @property
    def mig_mode(self) -> str:
        if not self.is_divisible:
            return "N/A"
        return "Enabled" if self.sample.instances else "Disabled"


class Printed(Struct, frozen=True):
    """Lines on stdout, and the exit code."""

    lines: tuple[str, ...]
    exit_code: int = 0


def nvidia_smi(arguments: Sequence[str], gpus: Sequence[SeenGpu], now: float) -> Printed:
    """`now`: epoch seconds; the container's clock has UTC."""
    options, unknown = _options(arguments)
    if unknown:
        return Printed((unknown,), USAGE)
    lost = next((each for each in gpus if not each.sample.up), None)
    if lost is not None:
        what = (
            f"Unable to determine the device handle for GPU {lost.sample.pci_bus_id}: GPU is lost. "
            " Reboot the system to recover this GPU"
        )
        return Printed((what,), LOST)
    numbered = [
        (index, each) for index, each in enumerate(gpus) if _is_asked(options, index, each.sample)
    ]
    if not numbered:
        return Printed(("No devices were found",), NOT_FOUND)
    if "list" in options:
        return Printed(tuple(line for index, gpu in numbered for line in _listed(index, gpu)))
    if any(gpu.instances for _, gpu in numbered):
        what = "the simulated nvidia-smi lists MIG instances, but not their memory: use -L"
        return Printed((what,), USAGE)
    if "query" in options:
        return _queried(options, numbered, now)
    return Printed(tuple(_table(numbered, now)))


def _options(arguments: Sequence[str]) -> tuple[Mapping[str, str], str]:
    """The options by meaning, and what is wrong with them."""
    found: dict[str, str] = {}
    rest = list(arguments)
    while rest:
        word, equals, value = rest.pop(0).partition("=")
        meaning = _MEANINGS.get(word, "")
        if meaning in ("id", "query", "format") and not equals:
            value = rest.pop(0) if rest else ""
        if not meaning or (meaning != "list" and not value):
            what = f"{word}{equals}{value}"
            return {}, (
                f"the simulated nvidia-smi does not know `{what}`: use no argument, -L, or "
                "--query-gpu=FIELD,... --format=csv[,noheader][,nounits], and -i ID"
            )
        found[meaning] = value
    if ("query" in found) != ("format" in found):
        return (
            {},
            "--query-gpu and --format go together: add --format=csv, or --query-gpu=FIELD,...",
        )
    formats = [word.strip() for word in found.get("format", "csv").split(",")]
    if "csv" not in formats or not _FORMATS.issuperset(formats):
        return {}, f"`{found['format']}` is no format: use csv, csv,noheader or csv,nounits"
    return found, ""


_MEANINGS: Final = {
    "-L": "list",
    "--list-gpus": "list",
    "-i": "id",
    "--id": "id",
    "--query-gpu": "query",
    "--format": "format",
}


def _is_asked(options: Mapping[str, str], index: int, sample: DeviceSample) -> bool:
    asked = options.get("id")
    return asked is None or asked in (str(index), sample.uuid, sample.pci_bus_id)


def _listed(index: int, gpu: SeenGpu) -> list[str]:
    lines = [f"GPU {index}: {gpu.sample.model} (UUID: {gpu.sample.uuid})"]
    return lines + [
        f"  MIG {profile:<12} Device {number:>2}: (UUID: {uuid})"
        for number, (profile, uuid) in enumerate(gpu.instances)
    ]


# --- the query ------------------------------------------------------------------------------------

_Value = Callable[[int, SeenGpu], str]
_FIELDS: Final[Mapping[str, tuple[str, _Value]]] = {
    "index": ("", lambda index, _: str(index)),
    "name": ("", lambda _, gpu: gpu.sample.model),
    "uuid": ("", lambda _, gpu: gpu.sample.uuid),
    "serial": ("", lambda _, gpu: gpu.sample.serial),
    "pci.bus_id": ("", lambda _, gpu: gpu.sample.pci_bus_id),
    "driver_version": ("", lambda _, gpu: gpu.sample.driver_version),
    "vbios_version": ("", lambda _, gpu: gpu.sample.vbios_version),
    "persistence_mode": ("", lambda _, gpu: "Enabled"),
    "compute_mode": ("", lambda _, gpu: "Default"),
    "pstate": ("", lambda _, gpu: f"P{gpu.figure('PSTATE'):.0f}"),
    "mig.mode.current": ("", lambda _, gpu: gpu.mig_mode.replace("N/A", "[N/A]")),
    "memory.total": ("MiB", lambda _, gpu: str(gpu.total_mib)),
    "memory.reserved": ("MiB", lambda _, gpu: str(gpu.reserved_mib)),
    "memory.used": ("MiB", lambda _, gpu: str(gpu.used_mib)),
    "memory.free": ("MiB", lambda _, gpu: str(gpu.free_mib)),
    "utilization.gpu": ("%", lambda _, gpu: f"{gpu.figure('GPU_UTIL'):.0f}"),
    "utilization.memory": ("%", lambda _, gpu: f"{gpu.figure('MEM_COPY_UTIL'):.0f}"),
    "temperature.gpu": ("", lambda _, gpu: f"{gpu.figure('GPU_TEMP'):.0f}"),
    "power.draw": ("W", lambda _, gpu: f"{gpu.figure('POWER_USAGE'):.2f}"),
    "power.limit": ("W", lambda _, gpu: f"{gpu.figure('POWER_MGMT_LIMIT'):.2f}"),
    "clocks.current.sm": ("MHz", lambda _, gpu: f"{gpu.figure('SM_CLOCK'):.0f}"),
    "clocks.current.memory": ("MHz", lambda _, gpu: f"{gpu.figure('MEM_CLOCK'):.0f}"),
}
"""By name: the unit, and the value without it. The header always has the unit."""
_ALIASES: Final = {
    "gpu_name": "name",
    "gpu_uuid": "uuid",
    "gpu_serial": "serial",
    "gpu_bus_id": "pci.bus_id",
    "clocks.sm": "clocks.current.sm",
    "clocks.mem": "clocks.current.memory",
}
_TIMESTAMP: Final = "timestamp"


def _queried(
    options: Mapping[str, str], numbered: Sequence[tuple[int, SeenGpu]], now: float
) -> Printed:
    formats = [word.strip() for word in options["format"].split(",")]
    asked = [word.strip() for word in options["query"].split(",")]
    fields = [_ALIASES.get(name, name) for name in asked]
    for name, field in zip(asked, fields, strict=True):
        if field not in _FIELDS and field != _TIMESTAMP:
            return Printed((f'Field "{name}" is not a valid field to query.', ""), NO_SUCH_FIELD)
    shows_units = "nounits" not in formats
    lines = [] if "noheader" in formats else [", ".join(_heading(field) for field in fields)]
    for index, gpu in numbered:
        cells = (_cell(field, index, gpu, now, shows_units=shows_units) for field in fields)
        lines.append(", ".join(cells))
    return Printed(tuple(lines))


def _heading(field: str) -> str:
    unit = _FIELDS[field][0] if field in _FIELDS else ""
    return f"{field} [{unit}]" if unit else field


def _cell(field: str, index: int, gpu: SeenGpu, now: float, *, shows_units: bool) -> str:
    if field == _TIMESTAMP:
        return f"{datetime.fromtimestamp(now, UTC):%Y/%m/%d %H:%M:%S.%f}"[:-3]
    unit, value = _FIELDS[field]
    return f"{value(index, gpu)} {unit}" if unit and shows_units else value(index, gpu)


# --- the table ------------------------------------------------------------------------------------


_HEAD: Final = (
    "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |",
    "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |",
    "|                                         |                        |               MIG M. |",
)
_COLUMNS: Final = (41, 24, 22)


def _table(numbered: Sequence[tuple[int, SeenGpu]], now: float) -> list[str]:
    sample = numbered[0][1].sample
    version = sample.driver_version
    end = f"+{'-' * _WIDTH}+"
    columns = "+".join("-" * width for width in _COLUMNS)
    lines = [
        f"{datetime.fromtimestamp(now, UTC):%a %b %e %H:%M:%S %Y}{'':7}",
        end,
        f"| NVIDIA-SMI {version:<22} Driver Version: {version:<14} CUDA Version: "
        f"{sample.cuda_version:<8} |",
        f"|{columns}+",
        *_HEAD,
        f"|{columns.replace('-', '=')}|",
    ]
    for index, gpu in numbered:
        lines += [*_row(index, gpu), f"+{columns}+"]
    return [
        *lines,
        " " * _WIDTH,
        end,
        f"|{' Processes:':<{_WIDTH}}|",
        f"|{'  GPU   GI   CI              PID   Type   Process name':<78}{'GPU Memory':<11}|",
        f"|{'        ID   ID':<78}{'Usage':<11}|",
        f"|{'=' * _WIDTH}|",
        f"|{'  No running processes found':<{_WIDTH}}|",
        end,
    ]


def _row(index: int, gpu: SeenGpu) -> list[str]:
    name = gpu.sample.model
    if len(name) > _NAME_WIDTH:
        name = f"{name[: _NAME_WIDTH - 3]}..."
    watts, limit = gpu.figure("POWER_USAGE"), gpu.figure("POWER_MGMT_LIMIT")
    errors = f"{gpu.figure('ECC_DBE_VOL_TOTAL'):.0f}"
    return [
        f"| {index:>3}  {name:<31}On  |   {gpu.sample.pci_bus_id} Off | {errors:>20} |",
        f"| N/A {gpu.figure('GPU_TEMP'):>4.0f}C    P{gpu.figure('PSTATE'):.0f} {watts:>14.0f}W / "
        f"{limit:>4.0f}W | {gpu.used_mib:>7}MiB / {gpu.total_mib:>6}MiB | "
        f"{gpu.figure('GPU_UTIL'):>6.0f}% {'Default':>12} |",
        f"|{'':41}|{'':24}| {gpu.mig_mode:>20} |",
    ]
