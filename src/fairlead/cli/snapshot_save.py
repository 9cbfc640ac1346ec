"""`fairlead snapshot save FILE`: the whole cluster as one value in one file, what a bug report attaches."""

from __future__ import annotations

import argparse
from pathlib import Path

from fairlead.cli.context import Context
from fairlead.cli.own_files import FileKind, OwnFile

NAME = "snapshot save"
HELP = """Read the whole cluster and write it, as Fairlead sees it, to FILE (gzip of JSON).

Every reading command answers from such a file with --snapshot FILE, and `fairlead up --from-snapshot FILE` plays the
cluster on from it. It holds no Secret, no ConfigMap, and of containers neither environment nor command, but names of
namespaces, nodes, pods, images and users: look at it before you pass it on."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="where to write it; an older snapshot there is replaced")


def run(args: argparse.Namespace, context: Context) -> int:
    from fairlead import __version__
    from fairlead.wire.snapshot_file import SavedSnapshot, begins_as_snapshot, render_snapshot

    file = OwnFile(Path(args.file), FileKind("snapshot", "cluster.snapshot", begins_as_snapshot))
    file.check()
    reader = context.world.reader()
    snapshot = reader.read_all()
    objects = reader.read_objects()
    kept = None if objects is None else tuple(objects)
    data = render_snapshot(SavedSnapshot(snapshot, context.now(), reader.describe(), __version__, objects=kept))
    file.write(data)
    context.stdout.write(
        f"saved {len(snapshot.nodes)} nodes, {len(snapshot.pods)} pods and {len(snapshot.jobs)} jobs"
        f" of {reader.describe()} to {file.path} ({len(data)} bytes)\n"
    )
    return 0
