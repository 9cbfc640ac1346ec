"""`fairlead bundle verify FILE`: whether a bundle is complete and undamaged."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fairlead.cli.frame.context import Context
from fairlead.errors import UserError

if TYPE_CHECKING:
    from fairlead.wire.files.offline_bundle import BundleReport

NAME = "bundle verify"
HELP = """Compare every file of a bundle with its SHA256SUMS. Each file that is damaged, missing or
additional is named, and the exit status is 1.

A bundle has what a cluster without internet needs to install Fairlead; `make bundle` builds it.
The sums find damage. They do not show who built the bundle: compare the SHA-256 of FILE, which is
printed, with that of the builder.

Bundles of `fairlead doctor` are something else."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="bundle to check")


def run(args: argparse.Namespace, context: Context) -> int:
    report = context.machine.check_bundle(args.file)
    refuse_faults(args.file, report, context)
    context.stdout.write(f"{found(report)}, all as listed\nSHA-256 {report.digest}\n")
    return 0


def found(report: BundleReport) -> str:
    return f"{report.folder}: {report.files} files, {report.size / 2**20:.1f} MiB"


def refuse_faults(name: str, report: BundleReport, context: Context) -> None:
    """Print each fault; raises UserError if there is one."""
    from fairlead.wire.files.offline_bundle import BUNDLE_HINT

    for fault in report.faults:
        context.stdout.write(f"{fault.path}: {fault.what}\n")
    if report.faults:
        count = len(report.faults)
        listed = "file is" if count == 1 else "files are"
        what = f"bundle `{name}`: {count} {listed} not as the bundle's SHA256SUMS lists"
        raise UserError(what, BUNDLE_HINT)
