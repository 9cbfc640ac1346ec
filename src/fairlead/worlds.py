"""Which world does this command speak to? The one place that knows both the real world (`edge`) and the simulated one (`sim`).

Order: `--snapshot` file, then `--kubeconfig` > KUBECONFIG > ~/.kube/config > in-cluster (all of that is `edge.kubeconfig`), then a
running laptop, then the embedded simulated cluster. Every import stands in the branch that needs it.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from fairlead.cli.context import ClusterReader, GlobalOptions
from fairlead.cli.messages import Messages


class ChosenWorld:
    """The world that the options, the environment and this machine's files mean."""

    def __init__(self, options: GlobalOptions, env: Mapping[str, str], messages: Messages) -> None:
        self._options = options
        self._env = env
        self._messages = messages

    def reader(self) -> ClusterReader:
        raise NotImplementedError

    def run_process(self, name: str, args: argparse.Namespace) -> int:
        raise NotImplementedError
