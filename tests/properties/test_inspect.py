"""For any content of nodes and pods, each pod that holds shared memory is counted once, and the
tables add up to their totals.
"""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.cli.api_objects import Object, node, pod, snapshot_of
from tests.cli.command import run_command

from fairlead.rules.sharing.inspect import inspect_shares
from fairlead.rules.sharing.ledger import ledger_of
from fairlead.wire.sharing.inspect import render_inspection

NODES = ("n1", "n2")
WORDS = st.sampled_from(["", "{", "null", "[]", '{"main":7}', '{"0":{"x":1}}', "-1", "1e9"])


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Object:
    sizes = draw(st.lists(st.integers(0, 20), min_size=1, max_size=3))
    capacity = {"aliyun.com/gpu-mem": str(sum(sizes)), "aliyun.com/gpu-count": str(len(sizes))}
    slots = [
        {
            "index": draw(st.integers(0, 3)),
            "uuid": draw(st.sampled_from(["", f"GPU-{name}-{place}", "GPU-twin"])),
            "units": units,
        }
        | {
            "mode": draw(st.sampled_from(["shared", "draining", "exclusive"])),
            "health": draw(st.sampled_from(["Healthy", "Unhealthy"])),
        }
        for place, units in enumerate(sizes)
    ]
    notes: dict[str, str] = {"fairlead.io/gpus": json.dumps(slots)} if draw(st.booleans()) else {}
    if unit := draw(st.sampled_from(["", "GiB", "MiB", "bytes"])):
        notes["fairlead.io/gpu-mem-unit"] = unit
    return node(
        name,
        "10.0.0.1",
        capacity,
        labels={"cgpu": draw(st.sampled_from(["true", "false", "x"]))},
        annotations=notes,
    )


@st.composite
def pods(draw: st.DrawFn, number: int) -> Object:
    on, units = draw(st.sampled_from(NODES)), draw(st.integers(0, 12))
    grant: dict[str, Any] = {
        "uuid": draw(st.sampled_from(["", f"GPU-{on}-0", "GPU-twin", "GPU-x"])),
        "index": draw(st.integers(0, 4)),
    }
    first = draw(st.integers(0, units))
    parts = (
        [{**grant, "units": units}]
        if draw(st.booleans())
        else [{**grant, "units": first}, {"index": 1, "units": units - first}]
    )
    annotation = {"fairlead.io/gpu-allocation": json.dumps({"main": parts})}
    notes = draw(
        st.sampled_from(
            [
                annotation,
                {"ALIYUN_COM_GPU_MEM_IDX": "1"},
                {"fairlead.io/gpu-allocation": draw(WORDS)},
                {},
            ]
        )
    )
    made = pod(
        f"p{number}",
        on,
        {"aliyun.com/gpu-mem": str(units)},
        annotations=notes,
        deleted=draw(st.booleans()),
    )
    made["metadata"]["uid"] = f"uid-{number}"
    return made


@given(
    st.tuples(*(nodes(name) for name in NODES)),
    st.integers(0, 6).flatmap(lambda count: st.tuples(*(pods(n) for n in range(count)))),
)
def test_each_pod_counts_once_and_tables_add_up(
    described: tuple[Object, ...], held: tuple[Object, ...]
) -> None:
    snapshot = snapshot_of(described, held)
    found = inspect_shares(ledger_of(snapshot))
    for each in found:
        asked = sum(one.limits.get("aliyun.com/gpu-mem", 0) for one in snapshot.pods_on(each.name))
        assert each.used == asked == sum(card.used for card in each.cards) + each.pending_units
        assert all(card.used == sum(one.used for one in card.pods) for card in each.cards)
    json.dumps(render_inspection(found))
    shown = run_command("inspect gpu", snapshot, "fairlead").out.splitlines()
    rows = [line.split()[-1].split("/") for line in shown[1 : 1 + len(found)]]
    assert shown[-1].startswith(
        f"{sum(int(used) for used, _ in rows)}/{sum(int(total) for _, total in rows)} ("
    )
    details = run_command("inspect gpu -d", snapshot, "fairlead").out
    assert [
        int(used)
        for used in re.findall(
            (
                r"^Allocated : "
                r"+(\d+) "
            ),
            details,
            re.MULTILINE,
        )
    ] == [int(used) for used, _ in rows]
    for flags in ("-s", "-s -d", "--legacy", "--legacy -d", "-d"):
        run_command(f"top node {flags}", snapshot)
