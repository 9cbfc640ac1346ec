"""Whether an exporter measured what a load generator generated: field, range, verdict.

An exporter samples every few seconds, so its value may belong to an earlier load. A value is right
if it is near any load of the last `LAG_SECONDS`; earlier in a test nothing is compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from fairlead.model.devices.gpu_chip import LoadCard
from fairlead.model.metric import Sample

LAG_SECONDS: Final = 10.0
FIELD_NAMES: Final[Mapping[int, str]] = {
    1001: "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    1002: "DCGM_FI_PROF_SM_ACTIVE",
    1003: "DCGM_FI_PROF_SM_OCCUPANCY",
    1004: "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
    1005: "DCGM_FI_PROF_DRAM_ACTIVE",
    1006: "DCGM_FI_PROF_PIPE_FP64_ACTIVE",
    1007: "DCGM_FI_PROF_PIPE_FP32_ACTIVE",
    1008: "DCGM_FI_PROF_PIPE_FP16_ACTIVE",
    1009: "DCGM_FI_PROF_PCIE_TX_BYTES",
    1010: "DCGM_FI_PROF_PCIE_RX_BYTES",
    1011: "DCGM_FI_PROF_NVLINK_TX_BYTES",
    1012: "DCGM_FI_PROF_NVLINK_RX_BYTES",
}
_EXPECTED: Final = (0.5, 1.0)
"""Range for a field whose generated value is unknown (`generated ???`)."""


class Tolerance(Struct, frozen=True, gc=False):
    """How far a value may be off: a share of the generated value, or with `is_absolute` an amount.

    `low` and `high`: a range from the command line; None = none.
    """

    amount: float = 0.1
    is_absolute: bool = False
    low: float | None = None
    high: float | None = None

    def around(self, low: float, high: float) -> tuple[float, float]:
        """
        >>> Tolerance(0.5).around(1.0, 2.0), Tolerance(0.25, is_absolute=True).around(1.0, 2.0)
        ((0.5, 3.0), (0.75, 2.25))
        """
        if self.is_absolute:
            return low - self.amount, high + self.amount
        return low * (1 - self.amount), high * (1 + self.amount)


class LoadReport(Struct, frozen=True, gc=False):
    """One report of one card, `at` seconds after the start of its test. None = unknown."""

    at: float
    generated: float | None
    measured: float | None


class CheckResult(Struct, frozen=True, gc=False):
    """`reason`: why the check failed; "" = it passed."""

    compared: int
    reason: str = ""

    @property
    def is_good(self) -> bool:
        return not self.reason


def measured_value(samples: Iterable[Sample], card: LoadCard, field: int) -> float | None:
    """The page's value of the field for the card, found by uuid, or by index if it is unknown."""
    wanted = FIELD_NAMES.get(field)
    for sample in samples:
        if sample.name != wanted:
            continue
        labels = sample.labels
        uuid = labels.get("UUID") or labels.get("uuid", "")
        if uuid == card.uuid if card.uuid else labels.get("gpu") == str(card.index):
            return sample.value
    return None


def check(
    field: int, reports: Sequence[LoadReport], tolerance: Tolerance, skipped_seconds: float
) -> CheckResult:
    """Check one card in one test.

    Nothing is compared in the first `skipped_seconds`, or `LAG_SECONDS`.

    A test without any comparison has failed.
    """
    later = [report for report in reports if report.at >= max(skipped_seconds, LAG_SECONDS)]
    if not later:
        return CheckResult(
            0,
            (
                "nothing was compared: the exporter is asked from second "
                f"{max(skipped_seconds, LAG_SECONDS):g} on"
            ),
        )
    if all(report.measured is None for report in later):
        return CheckResult(0, f"the exporter has no {FIELD_NAMES[field]} of this card")
    for report in later:
        low, high = _range(report, reports, tolerance)
        if report.measured is not None and not low <= report.measured <= high:
            return CheckResult(
                len(later),
                (
                    f"{report.measured:.3f} at second {report.at:g} is not from {low:.3f} to "
                    f"{high:.3f}"
                ),
            )
    return CheckResult(sum(report.measured is not None for report in later))


def _range(
    report: LoadReport, reports: Sequence[LoadReport], tolerance: Tolerance
) -> tuple[float, float]:
    if tolerance.low is not None or tolerance.high is not None:
        return (
            -float("inf") if tolerance.low is None else tolerance.low,
            float("inf") if tolerance.high is None else tolerance.high,
        )
    made = [each.generated for each in reports if report.at - LAG_SECONDS <= each.at <= report.at]
    known = [each for each in made if each is not None]
    return tolerance.around(min(known), max(known)) if known else _EXPECTED
