"""Sets another number of replicas."""

from __future__ import annotations

from fairlead.wire.data.fluid import FLUID_NAMESPACE
from fairlead_sim.objects.resources import DEPLOYMENTS
from fairlead_sim.world.world import World


def scale(world: World, deployment: str, replicas: int) -> None:
    spec = {"spec": {"replicas": replicas}}
    world.cluster.merge_patch(DEPLOYMENTS, FLUID_NAMESPACE, deployment, spec)
