"""The certificate of the admission webhook, made and renewed by the webhook itself.

It is kept in a Secret that all replicas share: the first replica makes it. The bundle is written to
the webhook configurations before the certificate is shown, so that the API server never sees one
that it does not trust.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
import os
import ssl
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import structs

from fairlead.apps.issued_certificate import IssuedCertificate, is_due, issue
from fairlead.errors import OutsideError
from fairlead.model.actions import CreateObject, Manifest, ObjectRef, PatchObject, Result
from fairlead.model.installation import SYSTEM_NAMESPACE
from fairlead.ports import AdmissionApi

NAME: Final = "fairlead-admission-webhook"
"""Name of the Service, of the Secret, and of the account."""
_REGISTRATION: Final = "admissionregistration.k8s.io/v1"
CONFIGURATIONS: Final = (
    *(
        ObjectRef(
            _REGISTRATION,
            "MutatingWebhookConfiguration",
            name,
            plural="mutatingwebhookconfigurations",
        )
        for name in ("fairlead-gpu-scheduler", "fairlead-quota-gate")
    ),
    *(
        ObjectRef(
            _REGISTRATION,
            "ValidatingWebhookConfiguration",
            name,
            plural="validatingwebhookconfigurations",
        )
        for name in (
            *("fairlead-gpu-grants", "fairlead-quota-guard", "fairlead-quota-tree"),
            "fairlead-people",
        )
    ),
)
LOOK_SECONDS: Final = 10.0
TRUSTED_SECONDS: Final = 60.0
"""How long a configuration that has the bundle is not read again. One that does not exist yet is
asked for at each look.
"""
_RETRY_SECONDS: Final = 1.0
_FIELDS: Final = {
    "ca.crt": "bundle",
    "ca.key": "authority_key",
    "tls.crt": "certificate",
    "tls.key": "key",
}
_log = logging.getLogger(__name__)


class WebhookCertificate:
    """`context` shows the newest certificate; `is_ready` is set once there is one and the API
    server has its bundle. `now`: epoch seconds. `namespace`: of the Service and of the Secret.
    """

    def __init__(
        self,
        api: AdmissionApi,
        now: Callable[[], float],
        look_seconds: float = LOOK_SECONDS,
        namespace: str = SYSTEM_NAMESPACE,
    ) -> None:
        self._namespace = namespace
        self._host = f"{NAME}.{namespace}.svc"
        self._secret = ObjectRef("v1", "Secret", NAME, namespace, plural="secrets")
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.is_ready = asyncio.Event()
        self._api = api
        self._now = now
        self._look_seconds = look_seconds
        self._shown: IssuedCertificate | None = None
        self._trusting: dict[ObjectRef, tuple[bytes, float]] = {}
        self._asked = asyncio.Event()

    def look_now(self) -> None:
        """Do not wait for the next check."""
        self._asked.set()

    async def run(self) -> None:
        """Check at intervals; failures are logged and tried again."""
        while True:
            pause = self._look_seconds
            try:
                await self.look()
            except OutsideError as error:
                _log.warning("certificate: %s", error.log_line)
                pause = min(pause, _RETRY_SECONDS)
            try:
                await asyncio.wait_for(self._asked.wait(), pause)
                self._asked.clear()
            except TimeoutError:
                pass

    async def look(self) -> None:
        """Read the Secret, renew certificates, write the bundle, load them.

        Raises OutsideError.
        """
        secret = await self._api.get(self._secret)
        kept = parse_secret(secret)
        if kept is None or is_due(kept, self._host, self._now()):
            kept = await self._renew(secret, kept or self._forgotten())
        if kept is None:
            self.look_now()  # another replica was faster: read its certificate
            return
        for target in CONFIGURATIONS:
            await self._write_bundle(target, kept.bundle)
        if kept != self._shown:
            show(self.context, kept)
            self._shown = kept
            _log.info("certificate: another one is shown")
        self.is_ready.set()

    def _forgotten(self) -> IssuedCertificate | None:
        """The certificate that is shown although its Secret is gone or damaged.

        Its authority signs nothing more, and is trusted until every replica has read the next one.
        """
        return structs.replace(self._shown, authority_key=b"") if self._shown is not None else None

    async def _renew(
        self, secret: Manifest | None, before: IssuedCertificate | None
    ) -> IssuedCertificate | None:
        """None: another replica has written the Secret in the meantime."""
        issued = await asyncio.to_thread(issue, self._host, self._now(), before)
        data = render_data(issued)
        if secret is None:
            metadata = {
                "name": NAME,
                "namespace": self._namespace,
                "labels": {"app.kubernetes.io/part-of": "fairlead"},
            }
            made = CreateObject(
                {
                    "apiVersion": "v1",
                    "kind": "Secret",
                    "metadata": metadata,
                    "type": "kubernetes.io/tls",
                    "data": data,
                }
            )
            outcome = await self._api.apply(made)
            return None if outcome.expect(Result.THERE).result == Result.THERE else issued
        version = {"resourceVersion": secret["metadata"]["resourceVersion"]}
        outcome = await self._api.apply(
            PatchObject(self._secret, {"metadata": version, "data": data})
        )
        if outcome.result == Result.GONE or _is_stale(outcome.reason):
            return None
        outcome.expect()
        return issued

    async def _write_bundle(self, target: ObjectRef, bundle: bytes) -> None:
        """Write the bundle into the webhooks of the configuration `target`, if it exists.

        A configuration that had it lately is not read.
        """
        had, until = self._trusting.get(target, (b"", 0.0))
        if had == bundle and self._now() < until:
            return
        self._trusting.pop(target, None)
        found = await self._api.get(target)
        if found is None:
            return
        text = base64.b64encode(bundle).decode()
        hooks = [self._with_bundle(each, text) for each in found.get("webhooks") or ()]
        if hooks == (found.get("webhooks") or []):
            self._trusting[target] = (bundle, self._now() + TRUSTED_SECONDS)
            return
        version = {"resourceVersion": found["metadata"]["resourceVersion"]}
        (
            await self._api.apply(PatchObject(target, {"metadata": version, "webhooks": hooks}))
        ).expect(Result.GONE)
        _log.info("certificate: %s %s trusts it", target.kind, target.name)

    def _with_bundle(self, hook: Mapping[str, Any], bundle: str) -> Mapping[str, Any]:
        client = hook["clientConfig"]
        service = client.get("service") or {}
        if (service.get("namespace"), service.get("name")) != (self._namespace, NAME):
            return hook
        return {**hook, "clientConfig": {**client, "caBundle": bundle}}


def parse_secret(secret: Manifest | None) -> IssuedCertificate | None:
    """None for an incomplete one."""
    data = (secret or {}).get("data") or {}
    try:
        return IssuedCertificate(
            **{field: base64.b64decode(data[key], validate=True) for key, field in _FIELDS.items()}
        )
    except (KeyError, binascii.Error):
        return None


def render_data(issued: IssuedCertificate) -> Mapping[str, str]:
    return {
        key: base64.b64encode(getattr(issued, field)).decode() for key, field in _FIELDS.items()
    }


def show(context: ssl.SSLContext, issued: IssuedCertificate) -> None:
    """New connections get it from now on.

    The TLS library only reads files: this one is in memory.
    """
    file = os.memfd_create("certificate")
    try:
        os.write(file, issued.certificate + issued.key)
        context.load_cert_chain(f"/proc/self/fd/{file}", password="")
    finally:
        os.close(file)


def _is_stale(reason: str) -> bool:
    return "the object has been modified" in reason
