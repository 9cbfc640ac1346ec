"""`fairlead snapshot save FILE`: the whole cluster as one value in one file, what a bug report attaches."""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

from fairlead.cli.context import Context
from fairlead.errors import OutsideError, UserError

NAME = "snapshot save"
HELP = """Read the whole cluster and write it, as Fairlead sees it, to FILE (gzip of JSON).

Every reading command answers from such a file with --snapshot FILE, and `fairlead up --from-snapshot FILE` plays the
cluster on from it. It holds no Secret, no ConfigMap, and of containers neither environment nor command, but names of
namespaces, nodes, pods, images and users: look at it before you pass it on."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="where to write it; an existing file is replaced")


def run(args: argparse.Namespace, context: Context) -> int:
    from fairlead import __version__
    from fairlead.wire.snapshot_file import SavedSnapshot, render_snapshot

    path = Path(args.file)
    _check_place(path)
    reader = context.world.reader()
    snapshot = reader.read_all()
    objects = reader.read_objects()
    kept = None if objects is None else tuple(objects)
    data = render_snapshot(SavedSnapshot(snapshot, context.now(), reader.describe(), __version__, objects=kept))
    _write(path, data)
    context.stdout.write(
        f"saved {len(snapshot.nodes)} nodes, {len(snapshot.pods)} pods and {len(snapshot.jobs)} jobs"
        f" of {reader.describe()} to {path} ({len(data)} bytes)\n"
    )
    return 0


def _check_place(path: Path) -> None:
    """Before the cluster is read: the path must be free or a file, because it is replaced as a whole (`/dev/null`, too, for root)."""
    if path.is_dir():
        raise UserError(
            f"snapshot `{path}` cannot be written: it is a directory", f"name a file in it, for example `{path / 'cluster.snapshot'}`"
        )
    if path.exists() and not path.is_file():
        raise UserError(f"snapshot `{path}` cannot be written: it is no regular file", "name a file; a snapshot is written in one step")


def _write(path: Path, data: bytes) -> None:
    """In one step: whoever reads the path sees the old file or the whole new one."""
    try:
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise UserError(f"snapshot `{path}` cannot be written: {error.strerror}", "give a path in a directory you may write to") from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        Path(temporary).replace(path)
    except OSError as error:
        Path(temporary).unlink(missing_ok=True)
        raise OutsideError(
            "disk", f"snapshot `{path}` cannot be written: {error.strerror}", "free some space, or save elsewhere"
        ) from error
