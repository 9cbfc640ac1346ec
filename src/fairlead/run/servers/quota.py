"""The quota controller: from the command's flags to a running process."""

from __future__ import annotations

import argparse
import socket
import time
from collections.abc import Callable

from fairlead import settings
from fairlead.apps.quota_controller import QuotaController
from fairlead.apps.service import ServedApp
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.quota_api import KubeQuotaApi
from fairlead.model.installation import OwnAccounts
from fairlead.ports import QuotaApi
from fairlead.run.invocation import Invocation, lease_identity
from fairlead.run.servers.controller import run_controller


async def run_quota_controller(asked: Invocation) -> None:
    def service(api: KubeApi, sock: socket.socket) -> ServedApp:
        args = asked.args
        lease = (args.lease_namespace, settings.QUOTA_LEASE)
        quota = KubeQuotaApi(api, lease, args.kube_api_qps, args.kube_api_burst)
        return quota_controller(args, quota, api.clock.now).service(sock)

    await run_controller(asked, "quota controller", service)


def quota_controller(
    args: argparse.Namespace, api: QuotaApi, now: Callable[[], float] = time.time
) -> QuotaController:
    """The quota controller with these flags. `now`: epoch seconds of the API server."""
    own = OwnAccounts(args.namespace, args.node_namespace)
    return QuotaController(api, lease_identity(args), own=own, now=now)
