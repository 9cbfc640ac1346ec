"""Calls that return one or a few values of a card, and the DCGM fields of these values.

Specification: docs/spec/telemetry.md#dcgm-fields-from-nvml.

The module is a table: NVML's name of each call, and how it is called. `wire/devices/nvml_values`
converts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from ctypes import byref
from typing import Any, Final

import pynvml
from msgspec import Struct

from fairlead.wire.devices.nvml_values import (
    MIB,
    brand,
    compute_capability,
    fabric_fields,
    performance_state,
    watts,
    whole_watts,
)

_PREFIX: Final = "DCGM_FI_DEV_"
FieldValues = Mapping[str, int | float | None]


class CardCall(Struct, frozen=True, gc=False):
    """`name`: NVML's. `ask` returns values by field without the prefix, None = no value.

    `only_for`: fields for which a slow or seldom needed call is made. `unless`: a field whose value
    makes the call unnecessary.
    """

    name: str
    ask: Callable[[Any], FieldValues]
    only_for: tuple[str, ...] = ()
    unless: str = ""


class TextCall(Struct, frozen=True, gc=False):
    """A text of a card or of its driver, under DCGM's name."""

    name: str
    field: str
    ask: Callable[[Any], str]


def _one(
    name: str,
    field: str,
    *arguments: Any,
    convert: Callable[[int], int | float | None] = int,
    unless: str = "",
) -> CardCall:
    ask = getattr(pynvml, name)
    key = f"{name}({field})" if arguments else name
    return CardCall(key, lambda handle: {field: convert(ask(handle, *arguments))}, unless=unless)


def _wanted(
    name: str, field: str, *arguments: Any, convert: Callable[[Any], int | float | None] = int
) -> CardCall:
    """One value that is read only when a counters file asks for it."""
    call = _one(name, field, *arguments, convert=convert)
    return CardCall(f"{name}({field})", call.ask, (field,))


def _utilization(handle: Any) -> FieldValues:
    answer = pynvml.nvmlDeviceGetUtilizationRates(handle)
    return {"GPU_UTIL": answer.gpu, "MEM_COPY_UTIL": answer.memory}


def _limits(handle: Any) -> FieldValues:
    least, most = pynvml.nvmlDeviceGetPowerManagementLimitConstraints(handle)
    return {"POWER_MGMT_LIMIT_MIN": whole_watts(least), "POWER_MGMT_LIMIT_MAX": whole_watts(most)}


def _bar1(handle: Any) -> FieldValues:
    answer = pynvml.nvmlDeviceGetBAR1MemoryInfo(handle)
    return {
        "BAR1_TOTAL": answer.bar1Total // MIB,
        "BAR1_USED": answer.bar1Used // MIB,
        "BAR1_FREE": answer.bar1Free // MIB,
    }


def _ecc(handle: Any) -> FieldValues:
    now, pending = pynvml.nvmlDeviceGetEccMode(handle)
    return {"ECC_CURRENT": now, "ECC_PENDING": pending}


def _license(handle: Any) -> FieldValues:
    answer = pynvml.nvmlDeviceGetGridLicensableFeatures(handle)
    features = answer.gridLicensableFeatures[
        : min(answer.licensableFeaturesCount, len(answer.gridLicensableFeatures))
    ]
    return {"VGPU_LICENSE_STATUS": int(any(each.featureState for each in features))}


def _inforom(name: str, number: int) -> TextCall:
    return TextCall(
        f"nvmlDeviceGetInforomVersion({name})",
        f"{_PREFIX}{name}_INFOROM_VER",
        lambda handle: str(pynvml.nvmlDeviceGetInforomVersion(handle, number)),
    )


def _pci_ids(handle: Any) -> FieldValues:
    answer = pynvml.nvmlDeviceGetPciInfo(handle)
    return {"PCI_COMBINED_ID": answer.pciDeviceId, "PCI_SUBSYS_ID": answer.pciSubSystemId}


_BANKS: Final = {
    f"BANKS_REMAP_ROWS_AVAIL_{name.upper()}": name
    for name in ("max", "high", "partial", "low", "none")
}


def _banks(handle: Any) -> FieldValues:
    answer = pynvml.nvmlDeviceGetRowRemapperHistogram(handle)
    return {field: int(getattr(answer, name)) for field, name in _BANKS.items()}


def _sram(handle: Any) -> FieldValues:
    answer = pynvml.c_nvmlEccSramErrorStatus_v1_t()
    pynvml.nvmlDeviceGetSramEccErrorStatus(handle, byref(answer))
    return {"THRESHOLD_SRM": int(answer.bThresholdExceeded)}


_FABRIC: Final = tuple(
    f"FABRIC_{name}"
    for name in (
        "MANAGER_STATUS",
        "MANAGER_ERROR_CODE",
        "CLIQUE_ID",
        "HEALTH_MASK",
        "HEALTH_SUMMARY",
    )
)


def _fabric(handle: Any) -> FieldValues:
    answer = pynvml.c_nvmlGpuFabricInfo_v3_t()
    pynvml.nvmlDeviceGetGpuFabricInfoV(handle, byref(answer))
    return fabric_fields(
        int(answer.state),
        int(answer.status),
        int(answer.cliqueId),
        int(answer.healthMask),
        int(answer.healthSummary),
    )


_PLACES: Final = (
    ("SHM", pynvml.NVML_MEMORY_LOCATION_TEXTURE_SHM),
    ("CBU", pynvml.NVML_MEMORY_LOCATION_CBU),
    ("SRM", pynvml.NVML_MEMORY_LOCATION_SRAM),
)
"""Locations whose ECC errors have no field value; the CBU's double-bit errors have one."""


FAST_CALLS: Final = (
    CardCall("nvmlDeviceGetUtilizationRates", _utilization),
    CardCall(
        "nvmlDeviceGetEncoderUtilization",
        lambda handle: {"ENC_UTIL": pynvml.nvmlDeviceGetEncoderUtilization(handle)[0]},
    ),
    CardCall(
        "nvmlDeviceGetDecoderUtilization",
        lambda handle: {"DEC_UTIL": pynvml.nvmlDeviceGetDecoderUtilization(handle)[0]},
    ),
    _one("nvmlDeviceGetClockInfo", "SM_CLOCK", pynvml.NVML_CLOCK_SM),
    _one("nvmlDeviceGetClockInfo", "MEM_CLOCK", pynvml.NVML_CLOCK_MEM),
    _one("nvmlDeviceGetCurrentClocksEventReasons", "CLOCKS_EVENT_REASONS"),
    _one(
        "nvmlDeviceGetCurrentClocksThrottleReasons",
        "CLOCKS_EVENT_REASONS",
        unless="CLOCKS_EVENT_REASONS",
    ),
    _one("nvmlDeviceGetTemperature", "GPU_TEMP", pynvml.NVML_TEMPERATURE_GPU),
    _one("nvmlDeviceGetPowerUsage", "POWER_USAGE", convert=watts),
    _one("nvmlDeviceGetPerformanceState", "PSTATE", convert=performance_state),
    _one("nvmlDeviceGetFanSpeed", "FAN_SPEED"),
    _one(
        "nvmlDeviceGetTotalEnergyConsumption",
        "TOTAL_ENERGY_CONSUMPTION",
        unless="TOTAL_ENERGY_CONSUMPTION",
    ),
    *(
        _wanted("nvmlDeviceGetPcieThroughput", field, counter)
        for field, counter in (
            ("PCIE_TX_THROUGHPUT", pynvml.NVML_PCIE_UTIL_TX_BYTES),
            ("PCIE_RX_THROUGHPUT", pynvml.NVML_PCIE_UTIL_RX_BYTES),
        )
    ),
    _wanted("nvmlDeviceGetClockInfo", "VIDEO_CLOCK", pynvml.NVML_CLOCK_VIDEO),
    _wanted("nvmlDeviceGetMarginTemperature", "GPU_TEMP_LIMIT"),
)
SLOW_CALLS: Final = (
    _one("nvmlDeviceGetMaxClockInfo", "MAX_SM_CLOCK", pynvml.NVML_CLOCK_SM),
    _one("nvmlDeviceGetMaxClockInfo", "MAX_MEM_CLOCK", pynvml.NVML_CLOCK_MEM),
    _one(
        "nvmlDeviceGetTemperatureThreshold",
        "SLOWDOWN_TEMP",
        pynvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN,
    ),
    _one(
        "nvmlDeviceGetTemperatureThreshold",
        "SHUTDOWN_TEMP",
        pynvml.NVML_TEMPERATURE_THRESHOLD_SHUTDOWN,
    ),
    _one("nvmlDeviceGetPowerManagementLimit", "POWER_MGMT_LIMIT", convert=whole_watts),
    CardCall("nvmlDeviceGetPowerManagementLimitConstraints", _limits),
    _one("nvmlDeviceGetPowerManagementDefaultLimit", "POWER_MGMT_LIMIT_DEF", convert=whole_watts),
    _one("nvmlDeviceGetEnforcedPowerLimit", "ENFORCED_POWER_LIMIT", convert=whole_watts),
    _one("nvmlDeviceGetPcieReplayCounter", "PCIE_REPLAY_COUNTER"),
    _one("nvmlDeviceGetCurrPcieLinkGeneration", "PCIE_LINK_GEN"),
    _one("nvmlDeviceGetCurrPcieLinkWidth", "PCIE_LINK_WIDTH"),
    _one("nvmlDeviceGetMaxPcieLinkGeneration", "PCIE_MAX_LINK_GEN"),
    _one("nvmlDeviceGetMaxPcieLinkWidth", "PCIE_MAX_LINK_WIDTH"),
    CardCall("nvmlDeviceGetBAR1MemoryInfo", _bar1),
    CardCall("nvmlDeviceGetEccMode", _ecc, unless="ECC_CURRENT"),
    CardCall("nvmlDeviceGetGridLicensableFeatures_v4", _license),
    _wanted("nvmlDeviceGetApplicationsClock", "APP_SM_CLOCK", pynvml.NVML_CLOCK_SM),
    _wanted("nvmlDeviceGetApplicationsClock", "APP_MEM_CLOCK", pynvml.NVML_CLOCK_MEM),
    _wanted("nvmlDeviceGetMaxClockInfo", "MAX_VIDEO_CLOCK", pynvml.NVML_CLOCK_VIDEO),
    _wanted(
        "nvmlDeviceGetTemperatureThreshold",
        "MEM_MAX_OP_TEMP",
        pynvml.NVML_TEMPERATURE_THRESHOLD_MEM_MAX,
    ),
    _wanted(
        "nvmlDeviceGetTemperatureThreshold",
        "GPU_MAX_OP_TEMP",
        pynvml.NVML_TEMPERATURE_THRESHOLD_GPU_MAX,
    ),
    _wanted("nvmlDeviceGetPersistenceMode", "PERSISTENCE_MODE"),
    _wanted("nvmlDeviceGetComputeMode", "COMPUTE_MODE"),
    _wanted("nvmlDeviceGetVirtualizationMode", "VIRTUAL_MODE"),
    _wanted("nvmlDeviceGetMaxMigDeviceCount", "MIG_MAX_SLICES"),
    _wanted("nvmlDeviceGetInforomConfigurationChecksum", "INFOROM_CONFIG_CHECK"),
    _wanted(
        "nvmlDeviceGetAutoBoostedClocksEnabled", "AUTOBOOST", convert=lambda answer: int(answer[0])
    ),
    _wanted(
        "nvmlDeviceGetCudaComputeCapability",
        "CUDA_COMPUTE_CAPABILITY",
        convert=lambda answer: compute_capability(*answer),
    ),
    _wanted(
        "nvmlGpmQueryDeviceSupport",
        "GPM_SUPPORT",
        convert=lambda answer: int(answer.isSupportedDevice),
    ),
    CardCall("nvmlDeviceGetRowRemapperHistogram", _banks, tuple(_BANKS)),
    CardCall("nvmlDeviceGetSramEccErrorStatus", _sram, ("THRESHOLD_SRM",)),
    CardCall("nvmlDeviceGetGpuFabricInfoV", _fabric, _FABRIC),
    *(
        _wanted(
            "nvmlDeviceGetMemoryErrorCounter",
            f"ECC_{bits}_{scope}_{place}",
            error,
            counter,
            location,
        )
        for bits, error in (
            ("SBE", pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED),
            ("DBE", pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED),
        )
        for scope, counter in (
            ("VOL", pynvml.NVML_VOLATILE_ECC),
            ("AGG", pynvml.NVML_AGGREGATE_ECC),
        )
        for place, location in _PLACES
        if (bits, place) != ("DBE", "CBU")
    ),
)
BAR1_CALL: Final = next(call for call in SLOW_CALLS if call.name == "nvmlDeviceGetBAR1MemoryInfo")
"""The only one of these calls that a MIG instance answers too."""
STATIC_CALLS: Final = (
    _one("nvmlDeviceGetMinorNumber", "MINOR_NUMBER"),
    _one("nvmlDeviceGetIndex", "NVML_INDEX"),
    CardCall(
        "nvmlDeviceGetMigMode", lambda handle: {"MIG_MODE": pynvml.nvmlDeviceGetMigMode(handle)[0]}
    ),
    CardCall("nvmlDeviceGetPciInfo_v3", _pci_ids),
    CardCall(
        "nvmlSystemGetCudaDriverVersion_v2",
        lambda _: {"DCGM_FI_CUDA_DRIVER_VERSION": pynvml.nvmlSystemGetCudaDriverVersion_v2()},
    ),
)
TEXT_CALLS: Final = (
    TextCall(
        "nvmlSystemGetDriverVersion",
        "DCGM_FI_DRIVER_VERSION",
        lambda _: pynvml.nvmlSystemGetDriverVersion(),
    ),
    TextCall(
        "nvmlSystemGetNVMLVersion",
        "DCGM_FI_NVML_VERSION",
        lambda _: pynvml.nvmlSystemGetNVMLVersion(),
    ),
    TextCall("nvmlDeviceGetName", f"{_PREFIX}NAME", pynvml.nvmlDeviceGetName),
    TextCall("nvmlDeviceGetUUID", f"{_PREFIX}UUID", pynvml.nvmlDeviceGetUUID),
    TextCall(
        "nvmlDeviceGetPciInfo_v3",
        f"{_PREFIX}PCI_BUSID",
        lambda handle: pynvml.nvmlDeviceGetPciInfo(handle).busId,
    ),
    TextCall(
        "nvmlDeviceGetBrand",
        f"{_PREFIX}BRAND",
        lambda handle: brand(pynvml.nvmlDeviceGetBrand(handle)),
    ),
    TextCall("nvmlDeviceGetSerial", f"{_PREFIX}SERIAL", pynvml.nvmlDeviceGetSerial),
    TextCall(
        "nvmlDeviceGetVbiosVersion", f"{_PREFIX}VBIOS_VERSION", pynvml.nvmlDeviceGetVbiosVersion
    ),
    TextCall(
        "nvmlDeviceGetInforomImageVersion",
        f"{_PREFIX}INFOROM_IMAGE_VER",
        pynvml.nvmlDeviceGetInforomImageVersion,
    ),
    _inforom("OEM", pynvml.NVML_INFOROM_OEM),
    _inforom("ECC", pynvml.NVML_INFOROM_ECC),
    _inforom("POWER", pynvml.NVML_INFOROM_POWER),
)


def call_values(call: CardCall, handle: Any) -> dict[str, int | float]:
    """The values of a call by DCGM's names. Raises NVMLError."""
    return {_whole(field): value for field, value in call.ask(handle).items() if value is not None}


def _whole(field: str) -> str:
    return field if field.startswith("DCGM_") else _PREFIX + field


def is_needed(call: CardCall, known: Mapping[str, object], wanted: frozenset[str]) -> bool:
    if call.only_for and wanted.isdisjoint(map(_whole, call.only_for)):
        return False
    return not call.unless or _whole(call.unless) not in known
