"""`fairlead snapshot save FILE`: the whole cluster in one file, to attach to a bug report."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.frame.flags import BooleanFlag
from fairlead.cli.frame.whole_cluster import read_whole, unread_sources
from fairlead.errors import OutsideError

NAME = "snapshot save"
HELP = """Read the cluster and save its state to FILE (gzip of JSON).

Every reading command accepts such a file with --snapshot FILE, and
`fairlead up --from-snapshot FILE` simulates the cluster from there on. The file contains no
Secrets, no ConfigMaps, and no environment or command of containers, but names of namespaces, nodes,
pods, images and users: check it before you share it.

If anything cannot be read, nothing is saved, unless --partial is given: then the file
records what is missing."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="file to write; an older snapshot is replaced")
    parser.add_argument(
        "--partial",
        action=BooleanFlag,
        help="save what can be read if not everything can (default: save nothing)",
    )


def run(args: argparse.Namespace, context: Context) -> int:
    from fairlead import __version__
    from fairlead.wire.files.snapshot_file import SavedSnapshot, begins_as_snapshot, render_snapshot

    file = context.machine.new_file(args.file, "snapshot", "cluster.snapshot", begins_as_snapshot)
    file.check()
    reader = context.world.reader()
    snapshot, objects = read_whole(reader)
    unread = unread_sources(snapshot)
    for source in unread:
        context.messages.warn(f"{source.name} cannot be read: {source.message or source.state}")
    names = ", ".join(source.name for source in unread)
    if unread and not args.partial:
        hint = (
            "get the right to list them in all namespaces, or save what can be read with --partial"
        )
        raise OutsideError(
            "kubernetes", f"snapshot `{args.file}` is not saved: {names} cannot be read", hint
        )
    data = render_snapshot(
        SavedSnapshot(snapshot, context.now(), reader.describe(), __version__, objects=objects)
    )
    file.write(data)
    context.stdout.write(
        f"saved {len(snapshot.nodes)} nodes, {len(snapshot.pods)} pods and "
        f"{len(snapshot.jobs)} jobs of {reader.describe()} to "
        f"{args.file} ({len(data)} bytes){f', without {names}' if unread else ''}\n"
    )
    return 0
