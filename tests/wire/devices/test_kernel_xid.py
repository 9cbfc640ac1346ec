"""XIDs in the kernel's log, and when two reports are about one event
(docs/spec/telemetry.md#xid-errors).
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.model.devices.xid import XidReport
from fairlead.rules.devices.xid_reports import joined_reports
from fairlead.wire.devices.kernel_xid import parse_kernel_xid, pci_bus


@pytest.mark.parametrize(
    ("record", "reported"),
    [
        (
            (
                "4,1039,61234567,-;NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', "
                "name=<unknown>, "
                "GPU has fallen off the bus."
            ),
            (79, 61.234567),
        ),
        (
            (
                "3,7,1,-;NVRM: Xid (PCI:0000:3B:00): 13, Graphics Exception\n SUBSYSTEM=pci\n "
                "DEVICE=+pci:0000:3b:00.0\n"
            ),
            (13, 1e-06),
        ),
        ("4,7,2000000,c;NVRM: Xid (PCI:0000:3b:00): 48", (48, 2.0)),
        (
            (
                "4,7,2000000,-,caller=T1;NVRM: Xid (PCI:0000:3b:00): 154, "
                "GPU recovery action changed"
            ),
            (154, 2.0),
        ),
        ("4,7,2000000,-;NVRM: Xid (0000:3b:00): 31, Ch 00000010", (31, 2.0)),
        ("4,7,2000000,-;NVRM: Xid (PCI:00000000:3b:00.0): 31, Ch 00000010", (31, 2.0)),
    ],
)
def test_a_record_with_an_xid(record: str, reported: tuple[int, float]) -> None:
    found = parse_kernel_xid(record)
    assert found is not None and (found.bus, found.xid, found.since_boot, found.gpu_instance) == (
        "0000:3b:00",
        *reported,
        None,
    )


@pytest.mark.parametrize(
    "record",
    [
        "",
        "NVRM: Xid (PCI:0000:3b:00): 79, without a head",
        "4,7,2000000,-;NVRM: GPU at PCI:0000:3b:00: GPU-0b1e",
        "4,7,2000000,-;a program prints NVRM: Xid (PCI:0000:3b:00): 79, x",
        "12,7,2000000,-;NVRM: Xid (PCI:0000:3b:00): 79, written by a program",
        "4,7,2000000,-;NVRM: Xid (PCI:nowhere): 79, x",
        "4,7,2000000,-;NVRM: Xid (PCI:::::): 79, x",
        "4,7,2000000,-;NVRM: Xid (PCI:0000:3b:00): many, x",
        "4,7,2000000,-;NVRM: Xid (PCI:0000:3b:00): 99999999999999999999, x",
        "4,7,2000000,-;usb 1-1: new device\n NVRM: Xid (PCI:0000:3b:00): 79, x",
    ],
)
def test_a_record_without_one(record: str) -> None:
    assert parse_kernel_xid(record) is None


@given(st.text())
def test_any_record_is_read(text: str) -> None:
    for record in (
        text,
        f"4,1,2,-;NVRM: Xid (PCI:{text}): 79,",
        f"4,1,2,-;NVRM: Xid (PCI:0000:3b:00): {text},",
    ):
        parse_kernel_xid(record)


def test_kernel_and_nvml_spell_one_card_alike() -> None:
    assert (
        pci_bus("00000000:3B:00.0")
        == pci_bus("PCI:0000:3b:00".removeprefix("PCI:"))
        == "0000:3b:00"
    )
    assert pci_bus("00010000:3B:00.0") == "10000:3b:00"
    assert pci_bus("0000:3b") == pci_bus("") == ""


@pytest.mark.parametrize(
    ("apart", "count"), [(0.0, 1), (2.0, 1), (2.001, 2), (-2.0, 1), (-2.001, 2)]
)
def test_two_reports_of_two_sources_within_two_seconds_are_one(apart: float, count: int) -> None:
    first = XidReport("0000:3b:00", 79, 1000.0)
    second = XidReport("0000:3b:00", 79, 1000.0 + apart, source="nvml")
    assert len(fresh_reports([first, second])) == count
    assert len(fresh_reports([second], known=[first])) == count - 1


@pytest.mark.parametrize("source", ["nvml", "kernel"])
def test_what_one_source_reports_twice_happened_twice(source: str) -> None:
    reported = [XidReport("0000:3b:00", 79, at, source=source) for at in (1000.0, 1000.0, 1001.5)]
    assert fresh_reports(reported) == tuple(reported)
    assert fresh_reports(reported[1:], known=reported[:1]) == tuple(reported[1:])


def test_two_of_each_source_are_two() -> None:
    reported = [
        XidReport("0000:3b:00", 79, at, source=source)
        for source in ("nvml", "kernel")
        for at in (1000.0, 1001.0)
    ]
    assert len(fresh_reports(reported)) == 2


def test_a_report_is_the_pair_of_one_other() -> None:
    """One event of NVML and two records of the kernel: NVML missed one of the two."""
    received = XidReport("0000:3b:00", 79, 1000.0, source="nvml")
    records = [XidReport("0000:3b:00", 79, at) for at in (1000.1, 1000.2)]
    assert len(fresh_reports([received, *records])) == 2
    first = joined_reports([received])
    second = joined_reports(records[:1], first.alone)
    assert (second.fresh, second.alone) == ((), ()), (
        "reported by both: neither is the pair of another"
    )
    assert joined_reports(records[1:], second.alone).fresh == tuple(records[1:])


def test_other_cards_and_other_xids_are_others() -> None:
    reports = [
        XidReport("a", 79, 1.0),
        XidReport("b", 79, 1.0),
        XidReport("a", 48, 1.0),
        XidReport("", 79, 1.0),
    ]
    assert len(fresh_reports(reports)) == 4


def fresh_reports(
    reported: Iterable[XidReport], known: Iterable[XidReport] = ()
) -> tuple[XidReport, ...]:
    return joined_reports(reported, known).fresh


def most_pairs(ones: tuple[int, ...], others: tuple[int, ...]) -> int:
    """The largest number of pairs, by trying all."""
    if not ones:
        return 0
    tried = [most_pairs(ones[1:], others)]
    for place, other in enumerate(others):
        if abs(ones[0] - other) <= 2:
            tried.append(1 + most_pairs(ones[1:], others[:place] + others[place + 1 :]))
    return max(tried)


@given(*(st.lists(st.integers(0, 9), max_size=5).map(tuple) for _ in range(2)))
def test_no_more_are_counted_than_must_have_happened(
    received: tuple[int, ...], logged: tuple[int, ...]
) -> None:
    reported = [XidReport("a", 79, float(at), source="nvml") for at in received] + [
        XidReport("a", 79, float(at)) for at in logged
    ]
    assert len(fresh_reports(reported)) == len(reported) - most_pairs(received, logged)


@given(
    st.lists(
        st.tuples(
            st.sampled_from("ab"),
            st.sampled_from([48, 79]),
            st.integers(0, 20),
            st.sampled_from(["nvml", "kernel"]),
        ),
        max_size=20,
    )
)
def test_nothing_that_is_left_out_stands_alone(rows: list[tuple[str, int, int, str]]) -> None:
    reported = [XidReport(bus, xid, float(at), source=source) for bus, xid, at, source in rows]
    fresh = fresh_reports(reported)
    assert [each.at for each in fresh] == sorted(each.at for each in fresh)
    for report in reported:
        assert any(
            (each.bus, each.xid) == (report.bus, report.xid) and abs(each.at - report.at) <= 2
            for each in fresh
        )
    for source in ("nvml", "kernel"):
        of_one = [report for report in reported if report.source == source]
        assert fresh_reports(of_one) == tuple(sorted(of_one, key=lambda each: each.at))
