"""The flags of the console's sign-in."""

from __future__ import annotations

import argparse
from typing import Final

OFF: Final = "none"
ON: Final = "on"


def add_sign_in(parser: argparse.ArgumentParser) -> None:
    """How users sign in (docs/how-to/sign-in.md)."""
    parser.add_argument(
        "--sign-in",
        choices=(OFF, ON),
        metavar="none|on",
        default=OFF,
        help="whether users sign in; on is required to listen beyond this machine (default none)",
    )
    parser.add_argument(
        "--sign-in-key-file",
        metavar="FILE",
        action="append",
        default=[],
        help=(
            "file with the key that signs cookies, equal in all replicas; a second one is of the "
            "time before (default: a key of this user, made at the first start)"
        ),
    )
    parser.add_argument(
        "--sign-in-key-secret",
        metavar="NAMESPACE/NAME",
        default="",
        help="Secret with this key, for all replicas; the console makes it where it is missing",
    )
    add_store(parser, "where sign-ins and the audit are kept")
    parser.add_argument(
        "--trusted-proxy",
        metavar="ADDRESS",
        action="append",
        default=[],
        help=(
            "address or CIDR block of a proxy whose X-Forwarded- headers count; repeatable, or "
            "separated by commas"
        ),
    )
    parser.add_argument(
        "--external-url",
        metavar="URL",
        default="",
        help=(
            "where browsers find the console, for the OpenID Connect provider; its host is allowed"
        ),
    )
    parser.add_argument(
        "--kubeconfig-server",
        metavar="URL",
        default="",
        help=(
            "the API server as users reach it, for kubeconfigs that pages issue "
            "(default: as the console reaches it; in a pod as the cluster publishes it)"
        ),
    )
    parser.add_argument(
        "--oidc-issuer",
        metavar="URL",
        default="",
        help="OpenID Connect provider at which users may sign in",
    )
    parser.add_argument(
        "--oidc-client-id", metavar="ID", default="", help="the console's id at the provider"
    )
    parser.add_argument(
        "--oidc-client-secret-file",
        metavar="FILE",
        default="",
        help="file with the console's secret at the provider (default: a public client)",
    )
    parser.add_argument(
        "--oidc-scopes",
        metavar="SCOPES",
        default="openid profile email",
        help="what the provider is asked for (default `openid profile email`)",
    )
    parser.add_argument(
        "--oidc-user-claim",
        metavar="CLAIM",
        default="sub",
        help="claim with the user's `externalUser.uid`: sub or email (default sub)",
    )
    parser.add_argument(
        "--oidc-ca-file",
        metavar="FILE",
        default="",
        help="certificate authorities of the provider, PEM (default: those of this machine)",
    )


def add_store(parser: argparse.ArgumentParser, what: str) -> None:
    """Where the store is, and its secrets. `what`: is kept there."""
    parser.add_argument(
        "--secrets-folder",
        metavar="DIR",
        default="",
        help=(
            "folder of files for flags that are not given, each of which may be absent: "
            "oidc-client-secret, oidc-ca.crt, store-password, store-ca.crt"
        ),
    )
    parser.add_argument(
        "--store",
        metavar="URL",
        default="",
        help=(
            f"{what}: sqlite:///FILE, postgresql://… or mysql://… "
            "(default: a file of this user); several replicas need a server"
        ),
    )
    parser.add_argument(
        "--store-password-file", metavar="FILE", default="", help="file with its password"
    )
    parser.add_argument(
        "--store-ca-file",
        metavar="FILE",
        default="",
        help="authority of its certificate, PEM; it also encrypts the connection",
    )
