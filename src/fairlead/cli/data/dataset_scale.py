"""`fairlead dataset scale` (docs/spec/datasets.md#workers)."""

from __future__ import annotations

import argparse

from fairlead.cli.data.named import named_data_set
from fairlead.cli.data.waiting import add_wait, data_of, wait_for
from fairlead.cli.frame.context import ClusterData, Context
from fairlead.cli.frame.object_names import NO_API_SERVER_HINT
from fairlead.errors import UserError

NAME = "dataset scale"
HELP = """Give the cache of a data set more workers, or fewer.

New workers are empty. Files that only removed workers have are read from the source again."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="of the data set, in the chosen namespace")
    parser.add_argument(
        "--workers", metavar="N", type=int, required=True, help="caches, one on a node"
    )
    add_wait(parser, "until the workers are ready")


def run(args: argparse.Namespace, context: Context) -> int:
    if args.workers < 1:
        hint = "at least 1; `fairlead dataset unaccelerate` removes a cache"
        raise UserError(f"--workers is `{args.workers}`", hint)
    cluster, objects = data_of(context), context.world.objects()
    if objects is None:
        raise UserError("there is no API server to write to", NO_API_SERVER_HINT)
    from fairlead.model.actions import PatchObject
    from fairlead.model.installed.finding import State
    from fairlead.model.operations.data_parts import fluid_ref
    from fairlead.rules.data.scale import check_scale

    namespace = context.world.namespace()
    data_set = named_data_set(cluster.read(namespace), namespace, args.name)
    facts = cluster.facts(namespace, "", args.name)
    runtimes = [each for each in facts.runtimes if each.name == args.name]
    found = check_scale(data_set, runtimes, facts.claims, facts.nodes, args.workers)
    bad = [each for each in found if each.state == State.FAIL]
    if bad:
        what = "; ".join(f"{each.check}: {each.sentence}" for each in bad)
        raise UserError(f"`{args.name}` is not scaled: {what}", bad[0].mend)
    title = f"data set {namespace}/{args.name}"
    (runtime,) = runtimes
    if runtime.replicas != args.workers:
        for each in found:
            if each.state != State.OK:
                context.messages.warn(f"{each.check}: {each.sentence}")
        target = fluid_ref(runtime.kind, namespace, args.name, runtime.uid)
        objects.apply(PatchObject(target, {"spec": {"replicas": args.workers}})).expect()
        context.stdout.write(f"{title}: {runtime.replicas} -> {args.workers} workers\n")
    if args.wait > 0:
        _wait_ready(cluster, namespace, args.name, args.workers, args.wait, context)
    return 0


def _wait_ready(
    cluster: ClusterData, namespace: str, name: str, workers: int, seconds: float, context: Context
) -> None:
    def missing() -> str:
        found = cluster.read(namespace)
        if found.failures:
            return found.failures
        its = [each for each in found.runtimes if (each.namespace, each.name) == (namespace, name)]
        if not its:
            return "its runtime is gone"
        if its[0].replicas != workers:
            return f"another program has asked for {its[0].replicas} workers"
        if (its[0].wanted, its[0].ready) == (workers, workers):
            return ""
        return f"{its[0].ready} of {workers} workers are ready"

    wait_for(f"data set {namespace}/{name}", missing, seconds, context)
