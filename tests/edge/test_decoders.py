"""Threads may read message types for the first time at the same moment. In a process of its own,
because the failure is not an exception but a crash.
"""

from __future__ import annotations

import sys

from tests.programs import run_program

ROUNDS = """
import importlib, sys, threading
from fairlead.edge.connection.decoders import decoder_of
from fairlead.wire.jobs import kubeflow
from fairlead.wire.kube import objects

sys.setswitchinterval(1e-6)
for _ in range(60):
    importlib.reload(objects)
    importlib.reload(kubeflow)  # its types are new ones now
    start = threading.Barrier(3)

    def read():
        start.wait()
        spec = b'{"mpiReplicaSpecs": {"Worker": {"replicas": 1}}}'
        decoder_of(kubeflow.WireJob).decode(b'{"metadata": {}, "spec": ' + spec + b"}")

    threads = [threading.Thread(target=read) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
print("all read")
"""


def test_threads_that_read_new_types_at_once() -> None:
    done = run_program([sys.executable, "-c", ROUNDS])
    assert (done.returncode, done.stdout) == (0, "all read\n"), done.stderr
