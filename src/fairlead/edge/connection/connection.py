"""The address of an API server and the user, from which both Kubernetes clients are made.

A connection has sources of credentials, not credentials: tokens and certificates may change while a
process runs, so call `credentials` before every request. Private keys reach OpenSSL through memory,
never through a file on disk.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote, urlsplit

from msgspec import Struct, ValidationError, convert, structs

from fairlead.edge.connection.credentials import ClientCertificate, Credentials, token_file_source
from fairlead.edge.connection.kubeconfig_file import KubeconfigCluster, KubeconfigUser
from fairlead.edge.connection.pem import in_memory_file, read_pem
from fairlead.edge.connection.user_credentials import credentials_of
from fairlead.errors import UserError
from fairlead.settings import CONSOLE_EXTENSION, LAPTOP_EXTENSION
from fairlead.wire.text.printable_address import printable_address

if TYPE_CHECKING:
    import ssl

SIGN_HINT: Final = "write `/` of a password as `%2F`, and `@` as `%40`"
IN_CLUSTER_ORIGIN: Final = "the pod's service account"
IN_CLUSTER_DIRECTORY = "/var/run/secrets/kubernetes.io/serviceaccount"


class LaptopPages(Struct, frozen=True, rename="camel"):
    """Addresses of a laptop's own pages: the time of its simulated cluster, and its GPU values."""

    console: str
    gpu_exporter: str


class Connection(Struct, frozen=True):
    """`server`: has a scheme, no user or password, and no trailing slash.

    `proxy_url`: from the kubeconfig; clients look up proxies of the environment themselves.
    `impersonation`: the Impersonate-* headers. `origin`: the source of the settings, for messages.
    `laptop`: set for a laptop's simulated cluster. `console`: the address of the cluster's console,
    "" = unknown.
    """

    server: str
    credentials: Credentials
    namespace: str = "default"
    context: str = ""
    user: str = ""
    origin: str = ""
    ca_pem: bytes | None = None
    tls_server_name: str | None = None
    is_insecure: bool = False
    proxy_url: str | None = None
    impersonation: tuple[tuple[str, str], ...] = ()
    may_compress: bool = True
    laptop: LaptopPages | None = None
    console: str = ""

    @property
    def is_tls(self) -> bool:
        return self.server.startswith("https://")

    def headers(self) -> list[tuple[str, str]]:
        """Headers for authorization and impersonation of the next request.

        May block, because it may read a token file or run a plugin.
        """
        authorization = self.credentials.current().authorization
        own = [("Authorization", authorization)] if authorization else []
        return own + list(self.impersonation)


def connect_to(
    cluster: KubeconfigCluster,
    user: KubeconfigUser,
    *,
    context_name: str,
    namespace: str,
    user_name: str,
    origin: str,
) -> Connection:
    """The connection for a kubeconfig's cluster and user.

    Reads certificate files; runs no plugin yet.
    """
    has_tls = bool(
        cluster.certificate_authority
        or cluster.certificate_authority_data
        or cluster.insecure_skip_tls_verify
    )
    ca_pem = read_pem(
        "certificate-authority", cluster.certificate_authority_data, cluster.certificate_authority
    )
    server, login = split_login(normal_server(cluster.server or "", has_tls=has_tls))
    return Connection(
        server=server,
        credentials=credentials_of(_with_login(user, login), cluster, ca_pem, user_name),
        namespace=namespace,
        context=context_name,
        user=user_name,
        origin=origin,
        ca_pem=ca_pem,
        tls_server_name=cluster.tls_server_name or None,
        is_insecure=bool(cluster.insecure_skip_tls_verify),
        proxy_url=checked_proxy(cluster.proxy_url),
        impersonation=impersonation_headers(user),
        may_compress=not cluster.disable_compression,
        laptop=laptop_pages(cluster),
        console=console_address(cluster),
    )


def laptop_pages(cluster: KubeconfigCluster) -> LaptopPages | None:
    """The pages that a laptop wrote into its kubeconfig; None for any other cluster.

    Malformed values are None, too.
    """
    for extension in cluster.extensions or ():
        if extension.name == LAPTOP_EXTENSION:
            try:
                return convert(extension.extension, LaptopPages)
            except ValidationError:
                return None
    return None


def console_address(cluster: KubeconfigCluster) -> str:
    """The address of the cluster's console, as it is in kubeconfigs that a console issues; "" if
    there is none, or it is malformed.
    """
    for extension in cluster.extensions or ():
        if extension.name == CONSOLE_EXTENSION and isinstance(extension.extension, dict):
            address = extension.extension.get("address")
            if isinstance(address, str) and address.startswith(("https://", "http://")):
                return address
    return ""


def in_cluster_connection(
    env: Mapping[str, str], directory: str = IN_CLUSTER_DIRECTORY
) -> Connection | None:
    """The connection of a pod's ServiceAccount; None outside a cluster.

    The token file is read again when the kubelet replaces it.
    """
    host, port = env.get("KUBERNETES_SERVICE_HOST"), env.get("KUBERNETES_SERVICE_PORT")
    token_path = Path(directory, "token")
    if not host or not port or not token_path.exists():
        return None
    namespace_path = Path(directory, "namespace")
    namespace = namespace_path.read_text().strip() if namespace_path.exists() else ""
    return Connection(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        credentials=Credentials(token_file_source(str(token_path)), is_renewable=True),
        namespace=namespace or "default",
        context="in-cluster",
        origin=IN_CLUSTER_ORIGIN,
        ca_pem=read_pem("certificate-authority", None, str(Path(directory, "ca.crt"))),
    )


def normal_server(server: str, *, has_tls: bool) -> str:
    """The address with a scheme and without a trailing slash; the default scheme is https if TLS
    settings exist, as in kubectl.

    >>> normal_server("https://api.example:6443/k8s/", has_tls=True)
    'https://api.example:6443/k8s'
    >>> normal_server("localhost:8080", has_tls=False)
    'http://localhost:8080'
    """
    if "://" not in server:
        server = f"{'https' if has_tls else 'http'}://{server}"
    if not server.startswith(("https://", "http://")):
        raise UserError(
            f"server `{printable_address(server)}` is neither http nor https",
            "write it as https://host:port",
        )
    if not has_usable_host(server):
        raise UserError(
            f"server `{printable_address(server)}` has no usable host and port",
            "write it as https://host:port",
        )
    if has_sign_after_host(server):
        raise UserError(
            f"server `{printable_address(server)}` has an `@` after its host", SIGN_HINT
        )
    return server.rstrip("/")


def has_sign_after_host(server: str) -> bool:
    """Whether the address has an `@` after its host: a password may contain an unencoded `/`.

    >>> has_sign_after_host("http://ann:12/34@host"), has_sign_after_host("http://ann:12@host/x")
    (True, False)
    """
    return "@" in server.partition("://")[2].partition(urlsplit(server).netloc)[2]


def split_login(server: str) -> tuple[str, tuple[str, str] | None]:
    """The address without its userinfo, and (user, password); None = it has no userinfo.

    >>> split_login("https://ann:s%40x@api.example:6443/k8s")
    ('https://api.example:6443/k8s', ('ann', 's@x'))
    """
    parts = urlsplit(server)
    userinfo, at, host = parts.netloc.rpartition("@")
    if not at:
        return server, None
    user, _, password = userinfo.partition(":")
    return parts._replace(netloc=host).geturl(), (unquote(user), unquote(password))


def _with_login(user: KubeconfigUser, login: tuple[str, str] | None) -> KubeconfigUser:
    """The user; user and password in the server's address take precedence over the kubeconfig's.

    client-go does the same, where Go's HTTP client sets them first. A client certificate is kept.
    """
    if login is None:
        return user
    return structs.replace(
        user, token=None, token_file=None, exec=None, username=login[0], password=login[1]
    )


def has_usable_host(server: str) -> bool:
    """Whether a URL has a host and, if it has a port, a numeric one."""
    try:
        parts = urlsplit(server)
        return (
            bool(parts.hostname) and parts.port != 0 and server.isprintable() and " " not in server
        )
    except ValueError:  # a port that is no number, brackets that do not close
        return False


def checked_proxy(proxy_url: str | None) -> str | None:
    if not proxy_url:
        return None
    if not proxy_url.startswith(("http://", "https://")):
        raise UserError(
            f"proxy-url `{printable_address(proxy_url)}` is not an http or https proxy",
            "SOCKS proxies are not supported; use an http proxy",
        )
    return proxy_url


def impersonation_headers(user: KubeconfigUser) -> tuple[tuple[str, str], ...]:
    """Impersonate-* headers of a kubeconfig user.

    Keys of extra fields are percent-encoded for header names.
    """
    if not user.impersonate:
        if user.impersonate_uid or user.impersonate_groups or user.impersonate_extra:
            raise UserError(
                "`as-uid`, `as-groups` or `as-user-extra` is set without `as`",
                "name the user to impersonate with `as`",
            )
        return ()
    headers = [("Impersonate-User", user.impersonate)]
    if user.impersonate_uid:
        headers.append(("Impersonate-Uid", user.impersonate_uid))
    headers += [("Impersonate-Group", group) for group in user.impersonate_groups or ()]
    for key, values in (user.impersonate_extra or {}).items():
        headers += [
            (f"Impersonate-Extra-{quote(key.lower(), safe='')}", value) for value in values or ()
        ]
    return tuple(headers)


def make_ssl_context(
    connection: Connection, certificate: ClientCertificate | None
) -> ssl.SSLContext:
    """The TLS settings of the connection.

    Call it again when `credentials` return another client certificate.
    """
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if connection.is_insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif connection.ca_pem is not None:
        trust(context, connection.ca_pem, f"`{printable_address(connection.server)}`", _CA_HINT)
    else:
        context.load_default_certs()
    if certificate is not None:
        load_client_certificate(context, certificate)
    return context


def trust(context: ssl.SSLContext, ca_pem: bytes, owner: str, hint: str) -> None:
    """Makes the context trust only these authorities.

    Raises UserError when they are no certificates.
    """
    import ssl

    try:
        context.load_verify_locations(cadata=ca_pem.decode("ascii", "replace"))
    except ssl.SSLError as error:
        raise UserError(
            f"the certificate authority of {owner} is not a certificate: {error.reason}", hint
        ) from error


def load_client_certificate(context: ssl.SSLContext, certificate: ClientCertificate) -> None:
    import ssl

    def refuse_password() -> str:  # without it OpenSSL would ask on the terminal
        raise UserError(
            "the client key is encrypted with a pass phrase",
            "kubectl cannot use it either: store the key without one",
        )

    try:
        with (
            in_memory_file(certificate.certificate_pem) as cert_path,
            in_memory_file(certificate.key_pem) as key_path,
        ):
            context.load_cert_chain(cert_path, key_path, password=refuse_password)
    except ssl.SSLError as error:
        raise UserError(
            f"the client certificate or its key cannot be used: {error.reason or error}",
            "check that they belong together and are PEM",
        ) from error


_CA_HINT = "check `certificate-authority` or `certificate-authority-data` in the kubeconfig"
