"""`arena logviewer JOB` prints the address of a job's logs in the console.

See docs/spec/arena-cli.md#log-viewer.
"""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.jobs.job_search import add_type, find_job

NAME = "logviewer"
HELP = """Print the address of a job's logs in the console.

The console is the laptop's, or that of `console_address` in arena's config file."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB", help="the job's name")
    add_type(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    from urllib.parse import quote

    [job] = find_job(context.world.jobs(), args.job, context.world.namespace(), args.type).jobs
    console = context.world.console()
    if not console:
        context.stdout.write("No LogViewer Installed\n")
        return 0
    place = "/".join(quote(part, safe="") for part in (job.namespace, job.type, job.name))
    context.stdout.write(
        f"Your LogViewer will be available on:\n{console.rstrip('/')}/jobs/{place}?tab=logs\n"
    )
    return 0
