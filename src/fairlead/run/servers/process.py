"""One server from its name to its end: log, event loop, signals, and the message about a failure.

Each server is imported when it is needed, because none needs what the others do, and a node has
little memory to spare.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping
from typing import Final

from fairlead.cli.frame.context import GlobalOptions
from fairlead.cli.frame.messages import Messages
from fairlead.errors import FairleadError
from fairlead.run.invocation import Invocation, Process, needing_simulation
from fairlead.run.log_lines import log_to_stderr
from fairlead.run.servers.memory import give_back_large_blocks

_READERS: Final = ("console", "cluster-exporter")


def run_process(
    name: str,
    args: argparse.Namespace,
    options: GlobalOptions,
    env: Mapping[str, str],
    messages: Messages,
) -> int:
    """Run a server until SIGTERM or Ctrl-C; returns 0 if it ended because of that."""
    import uvloop

    log_to_stderr(options.loglevel)
    give_back_large_blocks()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        try:
            runner.run(_process(name)(Invocation(args, options, env, messages)))
        except BaseExceptionGroup as group:
            raise _expected(group) from group
    return 0


def _process(name: str) -> Process:
    """Raises UserError for a server that needs the simulated cluster if that is not installed."""
    if name in _READERS:
        from fairlead.run.servers.readers import READERS

        return READERS[name]
    if name == "scheduler-extender":
        from fairlead.run.servers.extender import run_scheduler_extender

        return run_scheduler_extender
    if name == "quota-controller":
        from fairlead.run.servers.quota import run_quota_controller

        return run_quota_controller
    if name == "people-controller":
        from fairlead.run.servers.people import run_people_controller

        return run_people_controller
    if name == "usage-recorder":
        from fairlead.run.servers.usage import run_usage_recorder

        return run_usage_recorder
    if name == "admission-webhook":
        from fairlead.run.servers.webhook import run_admission_webhook

        return run_admission_webhook
    if name == "device-plugin":
        from fairlead.run.node_server import run_device_plugin

        return run_device_plugin
    if name == "gpu-exporter":
        from fairlead.run.node_exporter import run_gpu_exporter

        return run_gpu_exporter
    with needing_simulation(f"`fairlead {name}`"):
        from fairlead.run.simulated_servers import PROCESSES
    return PROCESSES[name]


def _expected(group: BaseExceptionGroup) -> BaseException:
    """The expected failure in a task group's exception group, or the group, which is a bug."""
    found: BaseException | None = group.subgroup(FairleadError)
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found or group
