"""Parses one kubeconfig file: typed entries, absolute paths, every mistake reported with its place.

Every field is optional and may be null, as in kubectl; unknown fields are ignored.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Struct, field

from fairlead.errors import UserError
from fairlead.wire.files.plain_yaml import parse_plain_yaml

if TYPE_CHECKING:
    from yaml import MarkedYAMLError


class Extension(Struct, frozen=True):
    name: str | None = None
    extension: Any = None


class KubeconfigCluster(Struct, frozen=True, rename="kebab"):
    server: str | None = None
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    insecure_skip_tls_verify: bool | None = None
    tls_server_name: str | None = None
    proxy_url: str | None = None
    disable_compression: bool | None = None
    extensions: list[Extension] | None = None


class ExecVariable(Struct, frozen=True):
    name: str
    value: str


class Exec(Struct, frozen=True, rename="camel"):
    """A credential plugin: a program that prints a token or a client certificate."""

    command: str | None = None
    api_version: str | None = None
    args: list[str] | None = None
    env: list[ExecVariable] | None = None
    install_hint: str | None = None
    interactive_mode: str | None = None
    provide_cluster_info: bool | None = None


class AuthProvider(Struct, frozen=True):
    name: str | None = None


class KubeconfigUser(Struct, frozen=True, rename="kebab"):
    token: str | None = None
    token_file: str | None = field(default=None, name="tokenFile")
    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: str | None = None
    username: str | None = None
    password: str | None = None
    exec: Exec | None = None
    auth_provider: AuthProvider | None = None
    impersonate: str | None = field(default=None, name="as")
    impersonate_uid: str | None = field(default=None, name="as-uid")
    impersonate_groups: list[str] | None = field(default=None, name="as-groups")
    impersonate_extra: dict[str, list[str] | None] | None = field(
        default=None, name="as-user-extra"
    )


class KubeconfigContext(Struct, frozen=True):
    cluster: str | None = None
    user: str | None = None
    namespace: str | None = None
    extensions: list[Extension] | None = None


class Kubeconfig(Struct, frozen=True):
    """Entries by name. `sources`: the files that were read, by precedence."""

    clusters: dict[str, KubeconfigCluster] = {}
    users: dict[str, KubeconfigUser] = {}
    contexts: dict[str, KubeconfigContext] = {}
    current_context: str = ""
    sources: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.clusters or self.users or self.contexts or self.current_context)


class _NamedCluster(Struct, frozen=True):
    name: str
    cluster: KubeconfigCluster | None = None


class _NamedUser(Struct, frozen=True):
    name: str
    user: KubeconfigUser | None = None


class _NamedContext(Struct, frozen=True):
    name: str
    context: KubeconfigContext | None = None


class _File(Struct, frozen=True):
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None
    current_context: str | None = field(default=None, name="current-context")


def read_kubeconfig_file(path: Path) -> Kubeconfig:
    """The entries of one file.

    Raises UserError with the file, and the line or field with the mistake.
    """
    return parse_kubeconfig(path, _read_text(path))


def parse_kubeconfig(path: Path, text: str) -> Kubeconfig:
    """The entries of the text of `path`. Raises as `read_kubeconfig_file`."""
    file = _convert(path, _parse_yaml(path, text))
    _refuse_twins(path, "cluster", [entry.name for entry in file.clusters or ()])
    _refuse_twins(path, "user", [entry.name for entry in file.users or ()])
    _refuse_twins(path, "context", [entry.name for entry in file.contexts or ()])
    base = path.absolute().parent
    return Kubeconfig(
        clusters={
            entry.name: _resolve_cluster(base, entry.cluster or KubeconfigCluster())
            for entry in file.clusters or ()
        },
        users={
            entry.name: _resolve_user(base, entry.user or KubeconfigUser())
            for entry in file.users or ()
        },
        contexts={
            entry.name: entry.context or KubeconfigContext() for entry in file.contexts or ()
        },
        current_context=file.current_context or "",
        sources=(str(path),),
    )


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise UserError(
            f"kubeconfig `{path}` does not exist",
            "check the path, or leave it out: then KUBECONFIG or ~/.kube/config is used",
        ) from error
    except UnicodeDecodeError as error:
        raise UserError(
            f"kubeconfig `{path}` is not UTF-8 text (byte {error.start})",
            "pass a kubeconfig file",
        ) from error
    except OSError as error:
        raise UserError(
            f"kubeconfig `{path}` cannot be read: {error.strerror}",
            "check the file's permissions",
        ) from error


def _parse_yaml(path: Path, text: str) -> Any:
    # JSON needs no YAML parser, whose import takes longer than the rest
    if text.lstrip().startswith("{"):
        try:
            return msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            # YAML's flow style begins the same way; the YAML parser reports text that is too deep
            pass
    if (plain := parse_plain_yaml(text)) is not None:
        return plain
    import yaml

    from fairlead.wire.files.bounded import load_yaml

    try:
        return load_yaml(text)
    except yaml.MarkedYAMLError as error:
        raise UserError(
            f"kubeconfig `{path}`, {_yaml_fault(error)}",
            "mend that line; `kubectl config view` may help to find the fault",
        ) from error
    except yaml.YAMLError as error:
        raise UserError(
            f"kubeconfig `{path}`: not YAML: {error}", "pass a kubeconfig file"
        ) from error


def _yaml_fault(error: MarkedYAMLError) -> str:
    """The line with the mistake, and the line where the unfinished element began if it differs."""
    mark, start = error.problem_mark or error.context_mark, error.context_mark
    what = (
        f"line {mark.line + 1}: not YAML: {error.problem or error.context}"
        if mark
        else f"not YAML: {error.problem}"
    )
    return (
        f"{what} (in what begins at line {start.line + 1})"
        if start and mark and start.line != mark.line
        else what
    )


def _convert(path: Path, document: Any) -> _File:
    if document is None:
        return _File()
    if not isinstance(document, dict):
        raise UserError(
            (
                f"kubeconfig `{path}` is a {type(document).__name__}, not a mapping with "
                "clusters, users and contexts"
            ),
            "pass a kubeconfig file",
        )
    try:
        return msgspec.convert(document, _File, strict=True)
    except msgspec.ValidationError as error:
        raise UserError(
            f"kubeconfig `{path}`: {_place(str(error))}",
            "mend that field; quote a value that must be text",
        ) from error


def _place(message: str) -> str:
    """msgspec's message with its JSON path, without the `$.`, which has no meaning for users.

    >>> _place("Expected `str`, got `int` - at `$.users[0].user.token`")
    'expected `str`, got `int` at `users[0].user.token`'
    """
    return (message[:1].lower() + message[1:]).replace(" - at `$.", " at `")


def _refuse_twins(path: Path, what: str, names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise UserError(
                f"kubeconfig `{path}` has two {what}s named `{name}`",
                "rename or remove one of them",
            )
        seen.add(name)


_Entry = TypeVar("_Entry", bound=Struct)


def _resolve(base: Path, entry: _Entry, *fields: str) -> _Entry:
    absolute = {name: str(base / value) for name in fields if (value := getattr(entry, name))}
    return msgspec.structs.replace(entry, **absolute) if absolute else entry


def _resolve_cluster(base: Path, cluster: KubeconfigCluster) -> KubeconfigCluster:
    return _resolve(base, cluster, "certificate_authority")


def _resolve_user(base: Path, user: KubeconfigUser) -> KubeconfigUser:
    plugin = user.exec
    # a bare name is looked up on PATH
    if plugin is not None and plugin.command and os.sep in plugin.command:
        user = msgspec.structs.replace(user, exec=_resolve(base, plugin, "command"))
    return _resolve(base, user, "token_file", "client_certificate", "client_key")
