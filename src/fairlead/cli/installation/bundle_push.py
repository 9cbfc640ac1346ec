"""`fairlead bundle push FILE REGISTRY`: the images of a bundle, in a registry of the cluster."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.installation.bundle_verify import found, refuse_faults

NAME = "bundle push"
HELP = """Check a bundle as `fairlead bundle verify` does, and push its images, for amd64 and arm64,
to a registry. If any file is damaged, missing or additional, nothing is pushed.

A name appears in the registry when all of its image is there. If the command is interrupted, run it
again: what the registry has is not sent again.

Proxies are those of HTTPS_PROXY, HTTP_PROXY and NO_PROXY. The image of kube-scheduler is not in a
bundle."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("file", metavar="FILE", help="bundle whose images are pushed")
    add(
        "registry",
        metavar="REGISTRY",
        help=(
            "where to: HOST[:PORT][/PATH], with TLS; http://HOST… for a registry without; the "
            "images are PATH/fairlead and PATH/fairlead-dcgm-exporter"
        ),
    )
    add("--username", metavar="NAME", default="", help="user of the registry")
    add("--password-file", metavar="FILE", default="", help="file with its password or token")
    add(
        "--ca-file",
        metavar="FILE",
        default="",
        help="authorities that the registry is checked against (default: those of this machine)",
    )


def run(args: argparse.Namespace, context: Context) -> int:
    machine, out = context.machine, context.stdout
    registry = machine.registry(args.registry, args.username, args.password_file, args.ca_file)
    report = machine.check_bundle(args.file)
    refuse_faults(args.file, report, context)
    out.write(f"{found(report)}, all as listed\n")

    def note(digest: str, size: int, ending: str) -> None:
        out.write(f"{digest[:19]}  {size / 2**20:5.1f} MiB  {ending}\n")
        out.flush()

    names = registry.push(args.file, note)
    out.write("".join(f"pushed {name}\n" for name in names))
    (image, *_) = names
    out.write(f"install it by `fairlead install --set image={image}`\n")
    return 0
