"""The scheduler extender: from the command's flags to a running process."""

from __future__ import annotations

from fairlead import settings
from fairlead.apps.extender import Extender
from fairlead.apps.scheduler_extender import PREFIX, SchedulerExtender
from fairlead.apps.server import bind_socket, parse_address
from fairlead.apps.service import Probes, ServedApp, run
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.sharing_api import KubeSharingApi
from fairlead.model.resources import MemoryUnit
from fairlead.model.sharing import Placement
from fairlead.rules.sharing.placement import SharePolicies
from fairlead.run.invocation import Invocation, lease_identity, required_connection, url_of
from fairlead.run.servers.certificate import serving_certificate


async def run_scheduler_extender(asked: Invocation) -> None:
    args = asked.args
    address = parse_address(
        args.listen or asked.env.get("PORT") or str(settings.SCHEDULER_EXTENDER_PORT)
    )
    certificate = serving_certificate(args)
    connection = required_connection(asked)
    sock = bind_socket(*address)
    async with KubeApi(connection) as api:
        sharing = KubeSharingApi(
            api,
            (args.lease_namespace, settings.SHARE_LEASE),
            args.kube_api_qps,
            args.kube_api_burst,
        )
        lease = f"{args.lease_namespace}/{settings.SHARE_LEASE}"
        policies = SharePolicies(
            Placement(args.node_policy), Placement(args.gpu_policy), MemoryUnit(args.memory_unit)
        )
        extender = Extender(sharing, lease_identity(args), lease_name=lease, policies=policies)
        service = ServedApp(
            app=SchedulerExtender(extender),
            sock=sock,
            loops=(extender.run,),
            probes=Probes(unready=lambda: extender.unready),
            tls=certificate,
        )
        listening = (
            f"scheduler extender of {connection.server} on "
            f"{url_of(sock, 'https' if certificate else 'http')}{PREFIX}"
        )
        await run(service, on_ready=lambda: asked.messages.info(listening))
