"""Checks of the console's sign-in: its key, its store, its Secrets, and what leads to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlead.model.installed.facts import InstallationFacts, InventoryFact, SecretFact, Unread
from fairlead.model.installed.finding import Finding, State
from fairlead.rules.installation.finding_lists import NO_PROGRAM, unread
from fairlead.settings import CONSOLE_POD, SIGN_IN_KEY_SECRET

_CHECK: Final = "sign-in"
_TLS: Final = "kubernetes.io/tls"


def check_console(facts: InstallationFacts) -> Iterator[Finding]:
    """Nothing without a console. Whether the store's server and a provider answer is known to the
    console alone: it is not ready without its store.
    """
    chosen = facts.chosen
    if not chosen.parts.console:
        return
    if not chosen.sign_in.enabled:
        sentence = "users do not sign in: the console answers in its pod alone, and writes nothing"
        yield Finding(_CHECK, State.OK, sentence)
        return
    found = {each.name: each for each in facts.console_secrets}
    if isinstance(facts.inventory, InventoryFact):
        yield from _key(facts, found.get(SIGN_IN_KEY_SECRET))
    yield _store(facts, found.get(chosen.sign_in.secret))
    if chosen.sign_in.oidc.issuer:
        yield from _provider(facts, found.get(chosen.sign_in.secret))
    if chosen.ingress.host:
        yield from _ingress(facts, found.get(chosen.ingress.tls_secret))


def _key(facts: InstallationFacts, found: SecretFact | None) -> Iterator[Finding]:
    if found is None:
        return
    if isinstance(found.type, Unread):
        yield unread(_CHECK, found.type)
    elif found.type is None and facts.server.is_simulated:
        yield Finding(_CHECK, State.OK, f"{NO_PROGRAM}: none makes the key of cookies")
    elif found.type is None:
        yield Finding(
            _CHECK,
            State.FAIL,
            f"Secret `{found.name}` with the key of cookies does not exist: the console has not "
            "made it",
            f"`kubectl -n {facts.chosen.namespace} logs deploy/{CONSOLE_POD}` shows the reason",
        )
    else:
        yield Finding(_CHECK, State.OK, f"Secret `{found.name}` has the key of cookies")


def _store(facts: InstallationFacts, secrets: SecretFact | None) -> Finding:
    store = facts.chosen.store
    if store.url:
        sentence = "a database server has sign-ins, audit and usage"
        if secrets is not None and secrets.type is None:
            sentence = f"the store's server is asked without a password: {_missing(secrets)}"
            return Finding("store", State.WARN, sentence, _made(secrets, "store-password"))
        return Finding("store", State.OK, sentence)
    if store.size:
        return Finding("store", State.OK, "a volume has sign-ins, audit and usage")
    sentence = "sign-ins, audit and usage end with the console's pod"
    return Finding("store", State.WARN, sentence, "`--set store.size=1Gi`, or name `store.url`")


def _provider(facts: InstallationFacts, secrets: SecretFact | None) -> Iterator[Finding]:
    oidc = facts.chosen.sign_in.oidc
    if not oidc.client_id:
        yield Finding(
            _CHECK,
            State.FAIL,
            f"the OpenID Connect provider `{oidc.issuer}` is named without `signIn.oidc.clientId`",
            "name the console's id at the provider",
        )
    elif secrets is not None and secrets.type is None:
        yield Finding(
            _CHECK,
            State.WARN,
            f"the console is a public client of `{oidc.issuer}`: {_missing(secrets)}",
            _made(secrets, "oidc-client-secret"),
        )


def _ingress(facts: InstallationFacts, certificate: SecretFact | None) -> Iterator[Finding]:
    chosen = facts.chosen
    if certificate is not None and isinstance(certificate.type, Unread):
        yield unread("ingress", certificate.type)
    elif certificate is not None and certificate.type != _TLS:
        what = (
            _missing(certificate)
            if certificate.type is None
            else f"Secret `{certificate.name}` is of type `{certificate.type}`"
        )
        yield Finding(
            "ingress",
            State.FAIL,
            f"`{chosen.ingress.host}` has no certificate: {what}",
            f"`kubectl create secret tls {certificate.name} -n {certificate.namespace} "
            "--cert=… --key=…`",
        )
    if not chosen.sign_in.trusted_proxies:
        yield Finding(
            "ingress",
            State.WARN,
            "no proxy is trusted: cookies are not marked as secure, and all users share the limit "
            "of failed attempts",
            "name the addresses of the Ingress controller in `signIn.trustedProxies`",
        )


def _missing(secret: SecretFact) -> str:
    return f"Secret `{secret.name}` of namespace `{secret.namespace}` does not exist"


def _made(secret: SecretFact, key: str) -> str:
    return (
        f"`kubectl create secret generic {secret.name} -n {secret.namespace} --from-file={key}`, "
        "then restart the console"
    )
