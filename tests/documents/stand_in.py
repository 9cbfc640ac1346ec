"""A stand-in for Fluid's controllers."""

from __future__ import annotations

from tests.kube.laptop import Laptop
from tests.waiting import wait_until

from fairlead.wire.data.stand_in import stand_in_objects


def install_stand_in(one: Laptop) -> None:
    one.kubectl.apply(stand_in_objects())
    one.kubectl.run(
        *("rollout", "status", "deployment/dataset-controller", "--namespace=fluid-system"),
        *("--timeout=60s",),
    )
    wait_until(
        "the nodes have the driver",
        lambda: "fuse.csi.fluid.io" in one.kubectl.run("get", "csinodes", "--output=yaml"),
    )
