"""`fairlead doctor --bundle FILE`: what a remote helper needs, without secrets."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from fairlead import __version__
from fairlead.cli.frame.context import ClusterJobs, Context, NewFile
from fairlead.cli.frame.documents import render_json
from fairlead.cli.frame.whole_cluster import read_whole, unread_sources
from fairlead.errors import OutsideError

if TYPE_CHECKING:
    from fairlead.model.installed.facts import InstallationFacts
    from fairlead.model.installed.finding import Finding
    from fairlead.model.snapshot import ClusterSnapshot
    from fairlead.rules.installation.logged_pods import LogWish

LOG_LINES: Final = 500
LOG_BYTES: Final = 1 << 20
"""What is asked of a kubelet for one container; of it the last 64 KiB are kept."""


def new_bundle(name: str, context: Context) -> NewFile:
    """The file to write, checked before the work. Raises UserError."""
    from fairlead.wire.files.bundle_file import begins_as_bundle

    file = context.machine.new_file(name, "bundle", "fairlead-bundle.zip", begins_as_bundle)
    file.check()
    return file


def write_bundle(
    file: NewFile, facts: InstallationFacts, findings: Sequence[Finding], context: Context
) -> int:
    """Read the cluster and the logs, and write all; returns the number of bytes.

    What cannot be read is noted in the bundle, and does not prevent writing it.
    """
    from fairlead.cli.frame.findings import findings_document
    from fairlead.wire.files.bundle_file import SNAPSHOT, bundled_snapshot, render_bundle
    from fairlead.wire.files.snapshot_file import SavedSnapshot
    from fairlead.wire.installation.values import render_values
    from fairlead.wire.text.log_secrets import document_without_secrets, log_without_secrets

    reader = context.world.reader()
    unread: list[str] = []
    texts = {
        "doctor.json": render_json(document_without_secrets(findings_document(findings))) + "\n",
        "versions.json": render_json(_versions(facts, reader.describe())) + "\n",
        "values.yaml": log_without_secrets(render_values(facts.chosen)),
    }
    snapshots: dict[str, bytes] = {}
    try:
        snapshot, objects = read_whole(reader)
    except OutsideError as error:
        unread.append(f"{SNAPSHOT}: {error.what}")
    else:
        unread += [
            f"{each.name}: {each.message or each.state}" for each in unread_sources(snapshot)
        ]
        saved = SavedSnapshot(
            snapshot, context.now(), reader.describe(), __version__, objects=objects
        )
        snapshots[SNAPSHOT] = bundled_snapshot(saved)
        texts |= _logs(facts, snapshot, context.world.jobs(), unread)
    if unread:
        texts["unread.txt"] = log_without_secrets("".join(f"{each}\n" for each in unread))
    packed = {name: text.encode() for name, text in texts.items()}
    data = render_bundle({**packed, **snapshots})
    file.write(data)
    return len(data)


def _logs(
    facts: InstallationFacts, snapshot: ClusterSnapshot, jobs: ClusterJobs, unread: list[str]
) -> dict[str, str]:
    from fairlead.model.installed.facts import Unread
    from fairlead.rules.installation.logged_pods import wanted_logs
    from fairlead.wire.text.log_secrets import log_without_secrets

    if isinstance(facts.pods, Unread):
        unread.append(f"logs: {facts.pods.why}")
        return {}
    texts: dict[str, str] = {}
    for wish in wanted_logs(facts.pods, snapshot.pods):
        ending = ".previous.log" if wish.is_previous else ".log"
        name = f"logs/{wish.namespace}/{wish.pod}/{wish.container}{ending}"
        try:
            texts[name] = log_without_secrets(_log(jobs, wish))
        except OutsideError as error:
            unread.append(f"{name}: {error.what}")
    return texts


def _log(jobs: ClusterJobs, wish: LogWish) -> str:
    options: dict[str, str | int] = {
        "container": wish.container,
        "tailLines": LOG_LINES,
        "limitBytes": LOG_BYTES,
        "timestamps": "true",
    }
    if wish.is_previous:
        options["previous"] = "true"
    return b"".join(jobs.log(wish.namespace, wish.pod, options)).decode("utf-8", "replace")


def _versions(facts: InstallationFacts, cluster: str) -> dict[str, Any]:
    from fairlead.model.installed.facts import Unread
    from fairlead.wire.text.printable_address import without_userinfo

    installed = facts.inventory
    return {
        "fairlead": __version__,
        "installed": None
        if installed is None or isinstance(installed, Unread)
        else installed.version,
        "kubernetes": facts.server.version,
        "cluster": without_userinfo(cluster),
        "python": platform.python_version(),
        "platform": platform.platform(),
    }
