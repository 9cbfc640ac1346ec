"""Reads kubeconfig files as kubectl does, and chooses one context.

Several files are merged so that the first wins (entries and current-context alike). A relative path
in a file is relative to that file, so paths are made absolute before merging. The module imports
nothing slow, because the CLI starts with it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from fairlead.edge.connection.connection import (
    IN_CLUSTER_DIRECTORY,
    Connection,
    connect_to,
    in_cluster_connection,
)
from fairlead.edge.connection.kubeconfig_file import (
    Kubeconfig,
    KubeconfigCluster,
    KubeconfigContext,
    KubeconfigUser,
    read_kubeconfig_file,
)
from fairlead.errors import UserError

DEFAULT_PATH = "~/.kube/config"


def find_connection(
    path: str | None = None,
    context: str | None = None,
    *,
    env: Mapping[str, str] = os.environ,
    in_cluster_directory: str = IN_CLUSTER_DIRECTORY,
) -> Connection | None:
    """The connection for a user; None if there is none.

    Order: explicit path, `KUBECONFIG`, `~/.kube/config`, in-cluster.

    None means that there is no cluster, and the caller may use the embedded simulated one. A file
    that is named (by flag or variable) and cannot be read is an error; the next source is not
    tried.
    """
    kubeconfig = load_kubeconfig(path, env=env)
    if kubeconfig is not None:
        return choose_context(kubeconfig, context)
    connection = in_cluster_connection(env, in_cluster_directory)
    if context and (connection is None or context != connection.context):
        raise UserError(
            f"context `{context}` was asked for, but there is no kubeconfig", _WHERE_HINT
        )
    return connection


def load_kubeconfig(
    path: str | None = None, *, env: Mapping[str, str] = os.environ
) -> Kubeconfig | None:
    """The merged kubeconfig; None if the default file does not exist, or all files are empty."""
    if path:
        kubeconfig = read_kubeconfig_file(Path(path).expanduser())
        if kubeconfig.is_empty:
            raise UserError(
                f"kubeconfig `{path}` names no cluster, user or context",
                "pass a kubeconfig with content, or drop the flag",
            )
        return kubeconfig
    named = [
        Path(part).expanduser() for part in env.get("KUBECONFIG", "").split(os.pathsep) if part
    ]
    candidates = named or [_default_path(env)]
    merged = merge_kubeconfigs([read_kubeconfig_file(each) for each in candidates if each.exists()])
    if named and merged.sources == ():
        listed = ", ".join(f"`{each}`" for each in named)
        raise UserError(
            f"`KUBECONFIG` names no file that exists: {listed}",
            "correct the variable, unset it, or pass --kubeconfig FILE",
        )
    return None if merged.is_empty else merged


def merge_kubeconfigs(files: list[Kubeconfig]) -> Kubeconfig:
    """One kubeconfig from several: for each name and current-context, the first file wins.

    >>> from fairlead.edge.connection.kubeconfig_file import Kubeconfig, KubeconfigCluster
    >>> one, two = (KubeconfigCluster(server=f"https://{name}") for name in ("one", "two"))
    >>> first = Kubeconfig(clusters={"c": one})
    >>> second = Kubeconfig(clusters={"c": two}, current_context="dev")
    >>> merged = merge_kubeconfigs([first, second])
    >>> merged.clusters["c"].server, merged.current_context
    ('https://one', 'dev')
    """
    merged = Kubeconfig()
    for file in files:
        merged = Kubeconfig(
            clusters={**file.clusters, **merged.clusters},
            users={**file.users, **merged.users},
            contexts={**file.contexts, **merged.contexts},
            current_context=merged.current_context or file.current_context,
            sources=merged.sources + file.sources,
        )
    return merged


def choose_context(kubeconfig: Kubeconfig, name: str | None = None) -> Connection:
    """The connection of the context with this name, else of current-context."""
    chosen = name or kubeconfig.current_context
    where = " and ".join(f"`{source}`" for source in kubeconfig.sources)
    if not chosen:
        raise UserError(
            f"kubeconfig {where} sets no current-context",
            f"pass --context NAME; it has {_names(kubeconfig.contexts)}",
        )
    context = kubeconfig.contexts.get(chosen)
    if context is None:
        raise UserError(
            f"context `{chosen}` is not in kubeconfig {where}",
            f"it has {_names(kubeconfig.contexts)}",
        )
    cluster = _cluster_of(kubeconfig, chosen, context, where)
    user = _user_of(kubeconfig, chosen, context, where)
    return connect_to(
        cluster,
        user,
        context_name=chosen,
        namespace=context.namespace or "default",
        user_name=context.user or "",
        origin=where,
    )


def _cluster_of(
    kubeconfig: Kubeconfig, chosen: str, context: KubeconfigContext, where: str
) -> KubeconfigCluster:
    cluster = kubeconfig.clusters.get(context.cluster or "")
    if cluster is None:
        raise UserError(
            (
                f"context `{chosen}` names cluster `{context.cluster or ''}`, which is not in "
                f"kubeconfig {where}"
            ),
            f"it has {_names(kubeconfig.clusters)}",
        )
    if not cluster.server:
        raise UserError(
            f"cluster `{context.cluster}` in kubeconfig {where} has no `server`",
            "add its address, such as https://10.0.0.1:6443",
        )
    if cluster.insecure_skip_tls_verify and (
        cluster.certificate_authority or cluster.certificate_authority_data
    ):
        raise UserError(
            (
                f"cluster `{context.cluster}` sets both `insecure-skip-tls-verify` and a "
                "certificate authority"
            ),
            "drop one of the two; kubectl refuses the pair as well",
        )
    return cluster


def _user_of(
    kubeconfig: Kubeconfig, chosen: str, context: KubeconfigContext, where: str
) -> KubeconfigUser:
    if not context.user:
        return KubeconfigUser()
    user = kubeconfig.users.get(context.user)
    if user is None:
        raise UserError(
            f"context `{chosen}` names user `{context.user}`, which is not in kubeconfig {where}",
            f"it has {_names(kubeconfig.users)}",
        )
    return user


def _names(entries: Mapping[str, msgspec.Struct]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(entries)) or "none"


def _default_path(env: Mapping[str, str]) -> Path:
    home = env.get("HOME")
    return Path(home, ".kube", "config") if home else Path(DEFAULT_PATH).expanduser()


_WHERE_HINT = "pass --kubeconfig FILE, or set KUBECONFIG"
