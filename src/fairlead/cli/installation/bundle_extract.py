"""`fairlead bundle extract FILE DIR`: the files of a bundle, checked, in a folder."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.installation.bundle_verify import found, refuse_faults

NAME = "bundle extract"
HELP = """Check a bundle as `fairlead bundle verify` does, and write its files into DIR. If any file
is damaged, missing or additional, nothing is written. DIR/README.txt has the next steps."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="bundle to extract")
    parser.add_argument(
        "folder", metavar="DIR", help="folder to make; one that exists must be empty"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    report = context.machine.extract_bundle(args.file, args.folder)
    refuse_faults(args.file, report, context)
    context.stdout.write(f"{found(report)}, in {args.folder}\n")
    return 0
