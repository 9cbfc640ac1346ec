"""Builds the library of `stub.c` and writes what it shows: a directory of files."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.waiting import HANG_SECONDS

SONAME = "libnvidia-ml.so.1"
MIB = 1 << 20
SOURCE = Path(__file__).with_name("stub.c")


def build_stub(folder: Path, *, is_old: bool = False, is_checked: bool = False) -> Path:
    """The path of the built library. `is_old`: without what drivers before 510 do not have.
    `is_checked`: with the sanitizers.
    """
    built = folder / SONAME
    options = [
        "-shared",
        "-fPIC",
        "-O1",
        "-Wall",
        "-Wextra",
        "-Werror",
        f"-Wl,-soname,{SONAME}",
        "-pthread",
        *(["-DOLD"] if is_old else []),
    ]
    if is_checked:
        options += ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    subprocess.run(
        ["cc", *options, "-o", str(built), str(SOURCE)], check=True, timeout=HANG_SECONDS
    )
    return built


def uuid(card: int) -> str:
    return f"GPU-{card:08x}-0000-0000-0000-000000000000"


def mig_uuid(card: int, slot: int) -> str:
    return f"MIG-{card:08x}-0000-0000-0000-{slot:012x}"


ALL_LINKS = 0xFFFFFFFF
H200: Mapping[str, object] = {
    "name": "NVIDIA H200",
    "bus": "00000000:3B:00.0",
    "total": 143771 * MIB,
    "used": 40000 * MIB,
    "reserved": 621 * MIB,
    "gpu": 37,
    "memory": 12,
    "encoder": 3,
    "decoder": 4,
    "clock.1": 1980,
    "clock.2": 3201,
    "max-clock.1": 1985,
    "max-clock.2": 3202,
    "reasons": 0x24,
    "temperature": 51,
    "threshold.0": 92,
    "threshold.1": 87,
    "power": 350123,
    "limit": 700999,
    "limit-min": 200000,
    "limit-max": 700001,
    "limit-default": 700002,
    "limit-enforced": 600999,
    "pstate": 0,
    "fan": 33,
    "energy": 5,
    "pcie-throughput.0": 1001,
    "pcie-throughput.1": 1002,
    "replays": 17,
    "link-gen": 5,
    "link-width": 16,
    "max-link-gen": 6,
    "max-link-width": 8,
    "bar1": 262144 * MIB,
    "bar1-used": 7 * MIB,
    "ecc": 1,
    "ecc-pending": 0,
    "brand": 14,
    "serial": "1650123",
    "vbios": "96.00.AA.00.01",
    "inforom-image": "G520.0200.00.05",
    "inforom.0": "2.1",
    "inforom.1": "7.16",
    "inforom.2": "N/A",
    "gpm": 1,
    "samples": "",
    "fv.1": "1:1",
    "fv.2": "1:0",
    **{
        f"fv.{number}": f"3:{number}" for number in (3, 4, 5, 6, 29, 30, 31, 38, 45, 52, 59, 83, 94)
    },
    **{f"fv.{number}": f"3:{number}000000001" for number in range(74, 82)},
    "fv.82": "0:58",
    "fv.142": "1:2",
    "fv.143": "1:3",
    "fv.144": "1:1",
    "fv.145": "1:0",
    "fv.186": "1:351250",
    "fv.197": "3:19700000000",
    "fv.198": "3:19800000000",
    "fv.230": "1:0",
    f"fv.138.{ALL_LINKS}": "3:1000",
    f"fv.139.{ALL_LINKS}": "3:2000",
    **{
        f"fv.{number}.{link}": f"3:{number + link}"
        for number in (138, 139)
        for link in range(1, 18)
    },
    **{f"gpm.{metric}": metric + 0.5 for metric in range(1, 104)},
}


def bus(card: int) -> str:
    return f"00000000:{7 + card:02X}:00.0"


class StubState:
    """What the library shows, until it is changed. The library reads the files at every call."""

    def __init__(self, folder: Path, cards: int = 2) -> None:
        self.folder = folder
        self._rows: dict[str, object] = {}
        self.show_cards(cards)

    def show_cards(self, count: int) -> None:
        rows: dict[str, object] = {"count": count}
        for card in range(count):
            rows |= {
                f"{card}.uuid": uuid(card),
                f"{card}.bus": bus(card),
                f"{card}.minor": card,
                f"{card}.total": 15360 * MIB,
                f"{card}.reserved": 281 * MIB,
            }
        self.say(rows)

    def say(self, rows: Mapping[str, object]) -> None:
        """Change these rows; None removes a row."""
        self._rows = {
            key: value for key, value in (self._rows | dict(rows)).items() if value is not None
        }
        written = self.folder / "state.new"
        rows = "".join(f"{key} {value}\n" for key, value in self._rows.items())
        written.write_text(f"{rows}end\n", encoding="utf-8")
        written.replace(self.folder / "state")

    def show_h200(self, card: int = 0) -> None:
        """Show a card of the newest kind, with another value in every figure."""
        self.say({f"{card}.{key}": value for key, value in H200.items()})

    def divide(self, card: int = 0) -> None:
        """Divide the card into two GPU instances, the second with two compute instances."""
        rows: dict[str, object] = {"mig": 1}
        for slot, (gi, ci, profile) in enumerate(
            ((1, 0, "3g.71gb"), (2, 0, "1c.2g.35gb"), (2, 1, "1c.2g.35gb"))
        ):
            rows |= {
                f"mig.{slot}": f"{gi}:{ci}:{mig_uuid(card, slot)}:{profile}",
                **{f"gi{gi}.gpm.{metric}": gi * 10 for metric in (1, 2, 20, 30)},
            }
            for key, value in {"total": 70000, "used": 1000 + slot, "reserved": 100}.items():
                self.say({f"{card}m{slot}.{key}": value * MIB})
            self.say({f"{card}m{slot}.bar1": 131072 * MIB, f"{card}m{slot}.bar1-used": slot * MIB})
            self.say({f"{card}m{slot}.compute": f"{100 + slot}:{(500 + slot) * MIB}"})
        self.say({f"{card}.{key}": value for key, value in rows.items()})

    def fail(self, call: str, code: int | None, card: int | None = None) -> None:
        """From now on the call returns this code, for one card or for all; None = it succeeds
        again.
        """
        self.say({f"error.{call}" if card is None else f"error.{call}.{card}": code})

    def report_xid(self, xid: int, card: int = -1, gpu_instance: int | None = None) -> None:
        part = "" if gpu_instance is None else f" {0x8} {gpu_instance}"
        with (self.folder / "events").open("a", encoding="utf-8") as events:
            events.write(f"{card} {xid}{part}\n")

    def report_change(self, card: int) -> None:
        """Report a change of the card's MIG instances."""
        with (self.folder / "events").open("a", encoding="utf-8") as events:
            events.write(f"{card} 0 {0x100}\n")

    def calls(self) -> list[str]:
        """The calls that were begun and ended, in order."""
        path = self.folder / "calls"
        return path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
