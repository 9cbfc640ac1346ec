"""Writes to the simulated API server's store, as strategies."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from tests.sim.objects import config_map, owner

from fairlead_sim.objects.resources import CONFIG_MAPS
from fairlead_sim.schema.status import ApiStatus
from fairlead_sim.store.cluster import StoredCluster

NAMES = st.sampled_from(["a", "b", "c", "d"])
WRITES = st.one_of(
    st.tuples(st.just("create"), NAMES, st.sampled_from([None, "a", "b"])),
    st.tuples(st.just("label"), NAMES, st.sampled_from(["x", "y"])),
    st.tuples(st.just("hold"), NAMES, st.booleans()),
    st.tuples(st.just("delete"), NAMES, st.sampled_from(["Background", "Foreground", "Orphan"])),
)


def write(cluster: StoredCluster, verb: str, name: str, how: Any) -> None:
    """One write, which may be refused."""
    try:
        if verb == "create":
            found = cluster.get(CONFIG_MAPS, "default", how) if how else None
            cluster.create(
                config_map(name, **({"ownerReferences": [owner(found)]} if found else {}))
            )
        elif verb == "label":
            cluster.merge_patch(
                CONFIG_MAPS, "default", name, {"metadata": {"labels": {"app": how}}}
            )
        elif verb == "hold":
            cluster.merge_patch(
                CONFIG_MAPS,
                "default",
                name,
                {"metadata": {"finalizers": ["x.io/hold"] if how else None}},
            )
        else:
            cluster.delete(CONFIG_MAPS, "default", name, propagation=how)
    except ApiStatus as refused:
        assert refused.code in (404, 409)
