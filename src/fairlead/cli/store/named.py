"""Which store a verb works on."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context, StoreAdministration


def add_store(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--store",
        metavar="URL",
        required=True,
        help=(
            "`sqlite:///FILE`, `postgresql://USER@HOST/DATABASE` or `mysql://USER@HOST/DATABASE`, "
            "with `?tls=verify` for TLS"
        ),
    )
    add(
        "--store-password-file",
        metavar="FILE",
        default="",
        help="file that contains the password of the user",
    )
    add(
        "--store-ca-file",
        metavar="FILE",
        default="",
        help="PEM file of the authority of the server's certificate; implies TLS",
    )


def named_store(args: argparse.Namespace, context: Context) -> StoreAdministration:
    return context.machine.store(args.store, args.store_password_file, args.store_ca_file)
