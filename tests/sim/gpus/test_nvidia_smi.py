"""What the simulated `nvidia-smi` prints. The table's form is that of driver 570, copied from
output that its users publish.
"""

from __future__ import annotations

import pytest
from tests.sim.small_world import EPOCH

from fairlead_sim.gpus.card import Card
from fairlead_sim.gpus.cards import CARD_MODELS, CardModel, card_model
from fairlead_sim.gpus.nvidia_smi import LOST, NO_SUCH_FIELD, NOT_FOUND, USAGE, SeenGpu, nvidia_smi
from fairlead_sim.gpus.readings import read_card

V100 = CARD_MODELS["Tesla V100-SXM2-16GB"]
H200 = CARD_MODELS["NVIDIA H200"]
TABLE = """\
Mon Jan  5 08:00:00 2026
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 570.172.08             Driver Version: 570.172.08     CUDA Version: 12.8     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  Tesla V100-SXM2-16GB           On  |   00000000:07:00.0 Off |                    0 |
| N/A   37C    P0             42W /  300W |    3193MiB /   4301MiB |      0%      Default |
|                                         |                        |                  N/A |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA H200                    On  |   00000000:14:00.0 Off |                    0 |
| N/A   35C    P0             76W /  700W |       4MiB / 143771MiB |      0%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+

+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|
|  No running processes found                                                             |
+-----------------------------------------------------------------------------------------+
"""


def card(model: CardModel = V100, index: int = 0) -> Card:
    bus = f"00000000:{7 + 13 * index:02X}:00.0"
    return Card("n", index, index, f"GPU-{index}", bus, "132", model, True, EPOCH)


def seen(model: CardModel = V100, index: int = 0, used: int = 4, total: int = 0) -> SeenGpu:
    total = total or model.total_mib
    sample = read_card(card(model, index), EPOCH)
    return SeenGpu(sample, used, total - used, total, is_divisible=bool(model.slice_gigabytes))


SHARE = seen(used=3193, total=4301)


def answer(*words: str, gpus: tuple[SeenGpu, ...] = (SHARE,)) -> tuple[str, int]:
    printed = nvidia_smi(words, gpus, EPOCH)
    return "".join(f"{line}\n" for line in printed.lines), printed.exit_code


def test_the_table() -> None:
    shown, exit_code = answer(gpus=(SHARE, seen(H200, 1)))
    date, *lines = shown.splitlines()
    assert "\n".join([date.rstrip(), *(line.rstrip() for line in lines), ""]) == TABLE
    assert (len(date), {len(line) for line in lines}, exit_code) == (31, {89, 91}, 0)


def test_a_long_name_is_cut_as_nvidia_cuts_it() -> None:
    model = card_model("NVIDIA RTX 6000 Ada Generation", 49140)
    shown = answer(gpus=(seen(model),))[0]
    assert "|   0  NVIDIA RTX 6000 Ada Gene...    On  |" in shown
    assert {len(line) for line in shown.splitlines()[1:]} == {89, 91}


def test_the_list() -> None:
    assert answer("-L") == ("GPU 0: Tesla V100-SXM2-16GB (UUID: GPU-0)\n", 0)


@pytest.mark.parametrize(
    ("fields", "formats", "lines"),
    [
        (
            "memory.used,memory.total",
            "csv",
            "memory.used [MiB], memory.total [MiB]\n3193 MiB, 4301 MiB\n",
        ),
        ("memory.used,memory.total", "csv,noheader", "3193 MiB, 4301 MiB\n"),
        ("memory.used,memory.total", "csv,noheader,nounits", "3193, 4301\n"),
        ("memory.free", "csv,nounits", "memory.free [MiB]\n1108\n"),
        (
            "timestamp,gpu_name,gpu_bus_id,power.draw",
            "csv",
            "timestamp, name, pci.bus_id, power.draw [W]\n"
            "2026/01/05 08:00:00.000, Tesla V100-SXM2-16GB, 00000000:07:00.0, 42.00 W\n",
        ),
        ("mig.mode.current,pstate,index", "csv,noheader", "[N/A], P0, 0\n"),
    ],
)
def test_a_query(fields: str, formats: str, lines: str) -> None:
    assert answer(f"--query-gpu={fields}", f"--format={formats}") == (lines, 0)
    assert answer("--format", formats, "--query-gpu", fields) == (lines, 0)


def test_one_gpu_by_index_or_uuid() -> None:
    both = (SHARE, seen(H200, 1))
    for name in ("1", "GPU-1", "00000000:14:00.0"):
        assert answer("-i", name, "-L", gpus=both) == ("GPU 1: NVIDIA H200 (UUID: GPU-1)\n", 0)
    assert answer("-i", "2", gpus=both) == ("No devices were found\n", NOT_FOUND)


@pytest.mark.parametrize(
    ("words", "what", "code"),
    [
        (("-q",), "the simulated nvidia-smi does not know `-q`: use no argument, -L, or", USAGE),
        (("--query-gpu=name",), "--query-gpu and --format go together", USAGE),
        (("--query-gpu=name", "--format=json"), "`json` is no format", USAGE),
        (("--query-gpu=name", "--format=noheader"), "`noheader` is no format", USAGE),
        (("--query-gpu",), "the simulated nvidia-smi does not know `--query-gpu`", USAGE),
        (
            ("--query-gpu=nme", "--format=csv"),
            'Field "nme" is not a valid field to query.\n',
            NO_SUCH_FIELD,
        ),
    ],
)
def test_bad_arguments(words: tuple[str, ...], what: str, code: int) -> None:
    shown, exit_code = answer(*words)
    assert shown.startswith(what)
    assert exit_code == code


def test_a_card_that_fell_off_the_bus() -> None:
    lost = card()
    lost.report_xid(79, EPOCH)
    gone = SeenGpu(read_card(lost, EPOCH + 1), 0, 0, 16384)
    shown, exit_code = answer(gpus=(gone,))
    assert shown.startswith(
        "Unable to determine the device handle for GPU 00000000:07:00.0: GPU is"
    )
    assert exit_code == LOST
