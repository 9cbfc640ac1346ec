"""What signing in at a console takes, from its flags: keys, provider, store, one-time code."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from fairlead.apps.console_server import ConsoleSettings, base_path_of
from fairlead.apps.server import is_loopback
from fairlead.cli.servers.sign_in_flags import ON
from fairlead.console.http.proxies import Proxies
from fairlead.console.http.sign_in.desk import SignInDesk
from fairlead.console.http.sign_in.tools import OneTimeCode, SignInTools
from fairlead.edge.files.own_files import make_private, state_home
from fairlead.edge.files.sign_in_key import own_key, read_keys
from fairlead.errors import OutsideError, UserError
from fairlead.ports import OidcProvider, Ports
from fairlead.run.invocation import Invocation
from fairlead.settings import STORE_PASSWORD_KEY

if TYPE_CHECKING:
    from fairlead.edge.oidc.provider import OidcSettings
    from fairlead.edge.store.address import StoreAddress

STORE_FILE: Final = "store.sqlite"


class AskedSignIn:
    """The flags, checked before anything is started. `code`: what the start prints."""

    def __init__(self, asked: Invocation, chosen: ConsoleSettings) -> None:
        args = asked.args
        self.is_on: bool = args.sign_in == ON
        self._chosen = chosen
        self._args = args
        self._messages = asked.messages
        if not self.is_on:
            _refuse_others(asked)
            self.code = None
            return
        if asked.options.snapshot:
            raise UserError(
                "a saved snapshot has no API server at which users could sign in",
                "leave out --sign-in",
            )
        self.code = OneTimeCode() if is_loopback(chosen.host) else None
        self._proxies = Proxies(each for words in args.trusted_proxy for each in _words(words))
        self._external_url = page_address(args.external_url)
        self._store = asked_store(asked)
        self._provider = _provider_settings(asked) if args.oidc_issuer else None
        self._key_secret = secret_place(args.sign_in_key_secret)
        files = args.sign_in_key_file
        if files and self._key_secret is not None:
            raise UserError(
                "--sign-in-key-file and --sign-in-key-secret exclude each other",
                "leave one of them out",
            )
        self._keys = read_keys(files) if files else ()
        if not self._keys and self._key_secret is None:
            self._keys = (own_key(asked.env),)

    @asynccontextmanager
    async def desk(self, world: Ports) -> AsyncIterator[SignInDesk | None]:
        """The desk of this console; None without sign-in."""
        if not self.is_on or world.sign_in is None:
            yield None
            return
        from fairlead.edge.store.opened import open_store  # SQL is for this alone

        async with AsyncExitStack() as clients:
            keys = self._keys
            if self._key_secret is not None:
                keys = await world.sign_in.keys(*self._key_secret)
            store = await open_store(self._store, self._messages.info)
            clients.push_async_callback(store.close)
            yield SignInDesk(
                SignInTools(
                    api=world.sign_in,
                    store=store,
                    records=store,
                    versions=store,
                    history=store,
                    store_facts=store.facts,
                    ledger=store.ledger,
                    cluster_now=world.clock.now,
                    keys=keys,
                    code=self.code,
                    provider=await self._opened(clients),
                    issuer=self._args.oidc_issuer,
                    proxies=self._proxies,
                    external_url=self._external_url,
                    base_path=base_path_of(self._chosen.base_path),
                )
            )

    async def _opened(self, clients: AsyncExitStack) -> OidcProvider | None:
        if self._provider is None:
            return None
        from fairlead.edge.oidc.provider import OpenIdProvider  # its libraries are for it alone

        provider = OpenIdProvider(self._provider)
        clients.push_async_callback(provider.close)
        return provider


def asked_store(asked: Invocation) -> StoreAddress:
    """The store of the flags, with the files of `--secrets-folder`.

    Raises UserError for a URL that names no store.
    """
    from fairlead.edge.store.address import store_address

    args = asked.args
    _add_secrets(args)
    if args.store:
        return store_address(args.store, args.store_password_file, args.store_ca_file)
    folder = state_home(asked.env)
    try:
        make_private(folder)
    except OSError as error:
        raise OutsideError(
            "disk",
            f"`{folder}` cannot be made: {(error.strerror or str(error)).lower()}",
            "name a store with --store",
        ) from error
    return store_address(f"sqlite:///{folder / STORE_FILE}")


SECRET_FILES: Final = {
    "oidc_client_secret_file": "oidc-client-secret",
    "oidc_ca_file": "oidc-ca.crt",
    "store_password_file": STORE_PASSWORD_KEY,
    "store_ca_file": "store-ca.crt",
}
"""Files of `--secrets-folder`, by the flag for which each stands."""


def _add_secrets(args: argparse.Namespace) -> None:
    """Name the files of the folder in the flags that are not given, where they have an effect."""
    for flag, name in SECRET_FILES.items():
        path = Path(args.secrets_folder) / name
        if not hasattr(args, flag):
            continue
        is_needed = args.store if flag.startswith("store") else args.oidc_issuer
        if args.secrets_folder and is_needed and not getattr(args, flag) and path.is_file():
            setattr(args, flag, str(path))


def secret_place(text: str) -> tuple[str, str] | None:
    """Namespace and name. Raises UserError for another text."""
    if not text:
        return None
    namespace, slash, name = text.partition("/")
    if not (namespace and slash and name) or "/" in name:
        raise UserError(f"`{text[:200]}` is no Secret", "write --sign-in-key-secret NAMESPACE/NAME")
    return namespace, name


def _words(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]


def _provider_settings(asked: Invocation) -> OidcSettings:
    """Raises UserError for settings with which no user could sign in."""
    from fairlead.edge.oidc.provider import OidcSettings, check_settings

    args = asked.args
    chosen = OidcSettings(
        issuer=args.oidc_issuer,
        client_id=args.oidc_client_id,
        client_secret=_secret(args.oidc_client_secret_file),
        scopes=tuple(args.oidc_scopes.split()),
        user_claim=args.oidc_user_claim,
        ca_file=args.oidc_ca_file,
    )
    check_settings(chosen)
    return chosen


def _secret(name: str) -> str:
    if not name:
        return ""
    try:
        return Path(name).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise UserError(
            f"the client secret `{name}` cannot be read: {why.lower()}",
            "check --oidc-client-secret-file",
        ) from error


def page_address(text: str) -> str:
    """Where browsers find the console. Raises UserError for what is no address of a page."""
    try:
        parts = urlsplit(text)
        is_page = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_page = False
    if text and (not is_page or parts.query or parts.fragment or parts.username is not None):
        raise UserError(
            f"`{text[:200]}` is no address of a page",
            "write --external-url https://HOST/, with the base path if there is one",
        )
    return text


def _refuse_others(asked: Invocation) -> None:
    """Flags that would have no effect."""
    args = asked.args
    named = {
        "--sign-in-key-file": args.sign_in_key_file,
        "--sign-in-key-secret": args.sign_in_key_secret,
        "--secrets-folder": args.secrets_folder,
        "--usage-recorder": args.usage_recorder,
        "--trusted-proxy": args.trusted_proxy,
        "--store": args.store,
        "--store-password-file": args.store_password_file,
        "--store-ca-file": args.store_ca_file,
        "--kubeconfig-server": args.kubeconfig_server,
        "--external-url": args.external_url,
        "--oidc-issuer": args.oidc_issuer,
        "--oidc-client-id": args.oidc_client_id,
        "--oidc-client-secret-file": args.oidc_client_secret_file,
        "--oidc-ca-file": args.oidc_ca_file,
    }
    for flag, value in named.items():
        if value:
            raise UserError(f"{flag} has no effect without sign-in", "add --sign-in on")
