"""The user's name according to the API server.

This is a separate module because `submit` needs it too, and starts faster without the readers of
jobs.
"""

from __future__ import annotations

from typing import Final

from fairlead.edge.kube.api_failure import ForbiddenByServer, NotServed
from fairlead.edge.kube.kube_blocking import KubeBlocking
from fairlead.edge.kube.resource import Resource
from fairlead.errors import OutsideError

REVIEWS: Final = Resource(
    "authentication.k8s.io",
    "v1",
    "selfsubjectreviews",
    is_namespaced=False,
    kind="SelfSubjectReview",
)


def user_name(api: KubeBlocking) -> str:
    """The name in a SelfSubjectReview; for a server that does not serve it (before 1.28) or
    refuses it, the name in the client certificate.
    """
    try:
        review = api.create(
            REVIEWS, {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        )
        return str(review["status"]["userInfo"]["username"])
    except (LookupError, TypeError) as error:
        raise OutsideError(
            "kubernetes", "the API server's SelfSubjectReview names no user"
        ) from error
    except (NotServed, ForbiddenByServer) as error:
        from fairlead.edge.connection.certificate import common_name

        certificate = api.connection.credentials.current().certificate
        name = common_name(certificate.certificate_pem) if certificate else None
        if not name:
            raise error
        return name
