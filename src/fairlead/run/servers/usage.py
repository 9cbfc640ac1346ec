"""The usage recorder: from the command's flags to a running process, or a part of the console."""

from __future__ import annotations

import argparse
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from fairlead import settings
from fairlead.apps.server import bind_socket, parse_address
from fairlead.apps.service import run
from fairlead.apps.usage_recorder import STILL_SECONDS, UsageRecorderProcess, record_in_turn
from fairlead.console.http.sign_in.desk import SignInDesk
from fairlead.edge.kube.follow.follower import Follower
from fairlead.edge.kube.follow.usage_kinds import JOB_KINDS, USAGE_KINDS, WORKLOAD_NAMES
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.lease import KubeLease
from fairlead.errors import FairleadError
from fairlead.kinds.job_marks import AllJobMarks
from fairlead.ports import GpuReadings, LedgerReading, Ports, UsageLedger
from fairlead.rules.usage.days import day_bounds, time_zone
from fairlead.rules.usage.recording.recorder import UsageRecorder
from fairlead.run.invocation import Invocation, lease_identity, required_connection, url_of
from fairlead.run.servers.sign_in import asked_store
from fairlead.run.wiring import gpu_readings, named_prometheus
from fairlead.wire.usage.states import state_body

_log = logging.getLogger(__name__)


def new_recorder(zone: str) -> UsageRecorder:
    """A decider whose billing days are of this time zone. Raises UserError for an unknown one."""
    days = partial(day_bounds, zone=time_zone(zone))
    return UsageRecorder(JOB_KINDS, WORKLOAD_NAMES, state_body, AllJobMarks(), days)


def usage_recorder(
    args: argparse.Namespace, api: KubeApi, ledger: UsageLedger, gpus: GpuReadings
) -> UsageRecorderProcess:
    """The usage recorder with these flags."""
    return UsageRecorderProcess(
        new_recorder(args.billing_time_zone),
        ledger,
        lambda observe: Follower(api, observe).run(USAGE_KINDS),
        KubeLease(api, args.lease_namespace, settings.USAGE_RECORDER_LEASE),
        lease_identity(args),
        gpus,
        zone=args.billing_time_zone,
        now=api.clock.now,
    )


async def run_usage_recorder(asked: Invocation) -> None:
    from fairlead.edge.store.opened import open_store  # SQL is for few servers

    args = asked.args
    time_zone(args.billing_time_zone)
    address, host = asked_store(asked), parse_address(args.listen)
    connection = required_connection(asked)
    sock = bind_socket(*host)
    store = await open_store(address, asked.messages.info)
    try:
        async with KubeApi(connection) as api:
            prometheus = named_prometheus(args, asked.env)
            gpus = gpu_readings(args, prometheus, api.clock, api)
            served = usage_recorder(args, api, store.ledger, gpus).service(sock)
            listening = f"usage recorder of {connection.server}, its figures on {url_of(sock)}"
            await run(served, on_ready=lambda: asked.messages.info(f"{listening}/metrics"))
    finally:
        await store.close()


@asynccontextmanager
async def console_recorder(
    asked: Invocation, world: Ports, desk: SignInDesk | None
) -> AsyncIterator[tuple[Callable[[], Coroutine[Any, Any, None]], ...]]:
    """The loops of a console's own recorder (`--usage-recorder`); none without the flag."""
    args = asked.args
    if not args.usage_recorder or desk is None or desk.ledger is None:
        yield ()
        return
    # Its own connection, so that long lists delay no page.
    async with KubeApi(required_connection(asked)) as api:
        ledger, gpus = desk.ledger, world.gpus
        made = partial(usage_recorder, args, api, ledger, gpus)
        yield (partial(recorded, made, ledger),)


async def recorded(
    make: Callable[[], UsageRecorderProcess],
    ledger: LedgerReading,
    still_seconds: float = STILL_SECONDS,
) -> None:
    """The console does not end with its recorder. While another one records, it stands by."""
    try:
        await record_in_turn(make, ledger, still_seconds)
    except FairleadError as error:
        _log.error("usage is not recorded any more: %s", error.log_line)
