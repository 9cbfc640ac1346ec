"""Random lives of a ledger: batches, folded days, claims, and what is forgotten."""

from __future__ import annotations

from typing import Final

from hypothesis import strategies as st
from msgspec import Struct

from fairlead.model.usage.ledger import (
    HOUR,
    OPEN,
    Amount,
    ClosedBy,
    End,
    JobRecord,
    KeptState,
    LedgerBatch,
    LedgerCard,
    LedgerJob,
    NodeHour,
    NodeInterval,
    PodHour,
    PodInterval,
    PriceClass,
    StateEnd,
    StateKind,
    UsedBy,
)
from fairlead.model.usage.prices import Price

DAY: Final = 24 * HOUR
BASE: Final = 20_700 * DAY
"""A midnight in UTC."""
UNIT: Final = 65_536

NEAR = (0, 1, UNIT - 1, UNIT, HOUR - 1, HOUR, HOUR + 1, 2 * HOUR + UNIT, 5 * HOUR)
FAR = (DAY - 1, DAY, 3 * DAY + 5, 20 * DAY, 60 * DAY)
times = st.sampled_from(NEAR + FAR).map(lambda offset: BASE + offset) | st.integers(
    BASE - DAY, BASE + 90 * DAY
)
ends = st.just(OPEN) | times
few = st.integers(0, 3)
amounts = st.builds(
    Amount,
    st.sampled_from((0, 1, 250_000, 8_000_000, 1 << 40)),
    st.integers(0, 640_000),
    st.integers(-1, 128_000),
    st.sampled_from((0, 7, 1 << 20, 1 << 62)),
)
classes = st.sampled_from(
    (
        PriceClass(),
        PriceClass((("zone", "a"),), "A100", 8_000_000, 96_000, 1_000_000),
        PriceClass((("zone", "b"),), "A100", 8_000_000, 96_000, 1_000_000),
    )
)
owners = st.builds(
    UsedBy, st.sampled_from(("ml", "ML", "ops")), st.sampled_from(("", "bob")), st.just("root.a")
)
jobs_of = st.sampled_from((LedgerJob(), LedgerJob("j1", "bert", "PYTORCHJOB")))
reasons = st.sampled_from(ClosedBy)
integrals = st.sampled_from((0, 5, 8_000_000 * HOUR, 1 << 62))
pods = st.builds(
    PodInterval,
    few.map("p{}".format),
    times,
    owners,
    st.just("worker-0"),
    st.just("node-0"),
    classes,
    amounts,
    jobs_of,
    st.sampled_from(((), (LedgerCard("GPU-1", 0), LedgerCard("GPU-2", 1, 512)))),
    ends,
    reasons,
)
nodes = st.builds(
    NodeInterval, few.map("n{}".format), times, st.just("node-0"), classes, ends, reasons
)
states = st.builds(
    KeptState,
    st.sampled_from(StateKind),
    few.map("s{}".format),
    times,
    st.sampled_from(("", "ml", "ops")),
    st.sampled_from(("a", "b", "é", "z")),
    st.sampled_from((b"{}", '{"名": "\\u001f🚀"}'.encode())),
    ends,
)
job_rows = st.builds(
    JobRecord,
    few.map("j{}".format),
    owners,
    st.sampled_from(("bert", "t5")),
    st.just("PYTORCHJOB"),
    created_at=st.just(0) | times,
    deleted_at=st.just(0) | times,
    manifest=st.sampled_from(("", '{"spec":"3f"}', '{"spec":"名"}')),
)


class Fold(Struct, frozen=True):
    day: int
    end: int


class Forget(Struct, frozen=True):
    records_before: int
    days_before: int


class Claim(Struct, frozen=True):
    now: int


@st.composite
def batches(draw: st.DrawFn) -> LedgerBatch:
    new_pods = draw(st.lists(pods, max_size=4))
    new_nodes = draw(st.lists(nodes, max_size=3))
    new_states = draw(st.lists(states, max_size=4))
    keys = [(each.pod_uid, each.started_at) for each in new_pods] or [("p0", BASE)]
    node_keys = [(each.node_uid, each.started_at) for each in new_nodes] or [("n0", BASE)]
    state_keys = [(each.kind, (each.uid, each.started_at)) for each in new_states]

    def hour(time: int) -> int:
        return time - time % HOUR

    hours = st.builds(
        lambda key, at, busy, idle: PodHour(*key, hour(at), busy, idle, 1),
        st.sampled_from(keys),
        times,
        integrals,
        integrals,
    )
    of_nodes = st.builds(
        lambda key, at, free: NodeHour(*key, hour(at), 1, free, 2, 3, "cpu", (("ml", "worker-0"),)),
        st.sampled_from(node_keys),
        times,
        integrals,
    )
    state_ends = [
        StateEnd(kind, key, draw(times)) for kind, key in state_keys if draw(st.booleans())
    ]
    pod_ends = st.lists(st.builds(End, st.sampled_from(keys), times, reasons), max_size=3)
    node_ends = st.lists(st.builds(End, st.sampled_from(node_keys), times, reasons), max_size=2)
    return LedgerBatch(
        draw(times),
        tuple(new_pods),
        tuple(draw(pod_ends)),
        tuple(new_nodes),
        tuple(draw(node_ends)),
        tuple(draw(st.lists(hours, max_size=4))),
        tuple(draw(st.lists(of_nodes, max_size=3))),
        tuple(new_states),
        tuple(state_ends),
        tuple(draw(st.lists(job_rows, max_size=2))),
    )


folds = st.builds(lambda day: Fold(BASE + day * DAY, BASE + (day + 1) * DAY), st.integers(0, 2))
forgets = st.builds(Forget, times, times)
claims = st.builds(Claim, times)
prices = st.builds(
    Price,
    st.sampled_from(((), (("zone", "a"),))),
    st.just("CNY"),
    st.integers(0, 1 << 40),
    times,
    times,
    st.none() | st.integers(0, 5),
    st.none() | st.integers(0, 1000),
    st.just("anna"),
    st.just("备注"),
    st.booleans(),
)
lives = st.lists(batches() | batches() | folds | forgets | claims | prices, min_size=1, max_size=8)
windows = st.tuples(times, times).map(lambda pair: (min(pair), max(pair)))
