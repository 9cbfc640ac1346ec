"""Makes a new pair of ssh keys for a job whose launcher reaches its workers by ssh.

They go into a Secret and are never on disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.kinds.parts.elastic_training import SshKeys

_BITS = 2048


def new_ssh_keys() -> SshKeys:
    from cryptography.hazmat.primitives import serialization as forms
    from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key

    from fairlead.kinds.parts.elastic_training import SshKeys

    key = generate_private_key(public_exponent=65537, key_size=_BITS)
    private = key.private_bytes(
        forms.Encoding.PEM, forms.PrivateFormat.TraditionalOpenSSL, forms.NoEncryption()
    )
    public = key.public_key().public_bytes(forms.Encoding.OpenSSH, forms.PublicFormat.OpenSSH)
    return SshKeys(private.decode(), public.decode() + "\n")
