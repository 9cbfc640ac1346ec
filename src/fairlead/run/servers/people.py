"""The people controller: from the command's flags to a running process."""

from __future__ import annotations

import socket

from fairlead import settings
from fairlead.apps.people.people_controller import PeopleController
from fairlead.apps.service import ServedApp
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.people.people_api import KubePeopleApi
from fairlead.model.installation import OwnAccounts
from fairlead.run.invocation import Invocation, lease_identity
from fairlead.run.servers.controller import run_controller


async def run_people_controller(asked: Invocation) -> None:
    def service(api: KubeApi, sock: socket.socket) -> ServedApp:
        args = asked.args
        lease = (args.lease_namespace, settings.PEOPLE_LEASE)
        people = KubePeopleApi(api, lease, args.kube_api_qps, args.kube_api_burst)
        own = OwnAccounts(args.namespace, args.node_namespace)
        controller = PeopleController(people, lease_identity(args), own=own, now=api.clock.now)
        return controller.service(sock)

    await run_controller(asked, "people controller", service)
