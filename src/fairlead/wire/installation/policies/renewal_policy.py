"""Which tokens a user may ask for (Kubernetes 1.30 and later).

`fairlead login` renews a token with the right to create tokens of the own ServiceAccount. RBAC
cannot limit what such a token is bound to. With this policy it is bound to a Secret whose uid the
client knows, and the API server refuses it when that Secret is deleted: so deleting the Secret of a
credential ends the credential, whatever was renewed before.
"""

from __future__ import annotations

from typing import Final

from fairlead.model.people.renewal import (
    BOUND_ONLY,
    NOT_LONGER,
    OWN_ONLY,
    RENEWAL_POLICY,
    RENEWED_SECONDS_MAX,
)
from fairlead.settings import USERS_NAMESPACE
from fairlead.wire.installation.policies.policy_parts import Object, cel, on, refuse, validating

_USERS: Final = f"system:serviceaccount:{USERS_NAMESPACE}:"


def renewal_policy() -> list[Object]:
    return validating(
        RENEWAL_POLICY,
        "people",
        rules=[on("CREATE", "serviceaccounts/token")],
        conditions={
            "is-a-user-of-fairlead": f'request.userInfo.username.startsWith("{_USERS}")',
            # Who may create Secrets there issues credentials.
            "is-no-administrator": cel(f"""
            !authorizer.group("").resource("secrets").namespace("{USERS_NAMESPACE}")
              .check("create").allowed()
            """),
        },
        validations=[
            refuse(
                cel(f"""
            request.namespace == "{USERS_NAMESPACE}"
              && request.userInfo.username == "{_USERS}" + request.name
            """),
                OWN_ONLY,
            ),
            refuse(
                cel("""
            object.spec.?boundObjectRef.?kind.orValue("") == "Secret"
              && object.spec.?boundObjectRef.?uid.orValue("") != ""
            """),
                BOUND_ONLY,
            ),
            refuse(
                f"object.spec.?expirationSeconds.orValue(0) <= {RENEWED_SECONDS_MAX}",
                NOT_LONGER,
            ),
        ],
    )
