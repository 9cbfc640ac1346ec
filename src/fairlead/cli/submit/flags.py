"""Which flags does `submit` take? The common ones and those of each kind (arena contract §3), as text: `submit_spec` reads the values.

What a newcomer gets wrong: arena kept the old spelling of many flags (`--workingDir`); such a twin writes into the flag that replaced it
and is told on stderr once per use, and it is in no help text.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from fairlead.cli.frame.flags import BooleanFlag


class Twin(argparse.Action):
    """The deprecated spelling of another flag."""

    def __init__(self, option_strings: Sequence[str], dest: str, replaced_by: argparse.Action) -> None:
        super().__init__(option_strings, dest, default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        self._replaced_by = replaced_by

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None) -> None:
        old, new = self.option_strings[0].lstrip("-"), next(each for each in self._replaced_by.option_strings if each.startswith("--"))
        notes = getattr(namespace, "deprecations", ())
        namespace.deprecations = (*notes, f"Flag --{old} has been deprecated, please use {new} instead")
        self._replaced_by(parser, namespace, values, option)


def add_common_flags(parser: argparse.ArgumentParser) -> None:
    """What every kind of workers takes."""
    add_shared_flags(parser, "what to run in each training container, joined by blanks, by --shell")
    text_flag(parser, "--gpus", default="0", metavar="N", help="whole GPUs of each worker")
    text_flag(parser, "--workers", default="1", metavar="N", help="how many workers")
    text_flag(
        parser, "--clean-task-policy", twin="cleanTaskPolicy", metavar="POLICY", help="pods to delete after the end: None, Running or All"
    )


def add_shared_flags(parser: argparse.ArgumentParser, command: str) -> None:
    """What kinds take that count their pods by flags of their own. The parser itself goes along: a command line without a command is
    answered with its help.
    """
    parser.set_defaults(parser=parser)
    parser.add_argument("command", nargs="*", metavar="COMMAND", help=command)
    text_flag(parser, "--name", help="name of the job (required)")
    text_flag(parser, "--image", help="image of the training containers")
    text_flag(parser, "--image-pull-policy", default="Always", metavar="POLICY", help="Always, IfNotPresent or Never")
    many_flag(parser, "--image-pull-secret", metavar="SECRET", help="a secret to pull images with")
    text_flag(parser, "--gpumemory", default="0", metavar="N", help="units of shared GPU memory (`aliyun.com/gpu-mem`) of each GPU pod")
    text_flag(parser, "--gpucore", default="0", metavar="PERCENT", help="percent of a GPU's cores of each GPU pod")
    many_flag(parser, "--device", metavar="RESOURCE=N", help="another chip, e.g. `amd.com/gpu=1`")
    text_flag(parser, "--retry", default="0", metavar="N", help="how often a failed job is tried again")
    many_flag(parser, "--env", "-e", metavar="NAME=VALUE", help="an environment variable of the training containers")
    many_flag(
        parser, "--env-from-secret", metavar="NAME=SECRET[:KEY]", help="an environment variable out of a secret (key: the variable's name)"
    )
    many_flag(parser, "--annotation", "-a", metavar="KEY=VALUE", help="an annotation of the job and its pods")
    many_flag(parser, "--label", "-l", metavar="KEY=VALUE", help="a label of the job and its pods")
    many_flag(parser, "--selector", metavar="KEY=VALUE", help="only nodes with this label")
    many_flag(parser, "--toleration", metavar="TAINT", help="KEY=VALUE:EFFECT,OPERATOR or KEY:EFFECT or KEY, or `all`")
    text_flag(parser, "--priority", "-p", metavar="CLASS", help="priority class of the pods")
    text_flag(parser, "--scheduler", metavar="NAME", help="scheduler of the pods")
    text_flag(parser, "--service-account", metavar="NAME", help="service account of the pods")
    text_flag(parser, "--restart-policy", metavar="POLICY", help="Never or OnFailure, for every role (each has its own by default)")
    truth_flag(parser, "--queue", help="wait for the quota's queue before pods are made")
    truth_flag(parser, "--gang", help="start all pods or none")
    truth_flag(parser, "--rdma", help="ask for an RDMA device")
    truth_flag(parser, "--hostNetwork", help="use the node's network")
    truth_flag(parser, "--hostIPC", help="use the node's IPC namespace")
    truth_flag(parser, "--hostPID", help="use the node's PID namespace")
    text_flag(parser, "--share-memory", default="2Gi", metavar="SIZE", help="size of /dev/shm")
    text_flag(parser, "--shell", default="sh", help="what runs the command")
    text_flag(parser, "--working-dir", twin="workingDir", default="/root", metavar="DIR", help="working directory of the command")
    many_flag(parser, "--data", "-d", metavar="CLAIM:PATH", help="mount a persistent volume claim")
    many_flag(parser, "--data-dir", twin="dataDir", metavar="HOST[:PATH]", help="mount a folder of the node")
    many_flag(parser, "--config-file", metavar="FILE[:PATH]", help="mount a file of this machine")
    text_flag(parser, "--sync-mode", twin="syncMode", metavar="MODE", help="copy code first: git or rsync")
    text_flag(parser, "--sync-source", twin="syncSource", metavar="SOURCE", help="the repository, or what rsync copies")
    text_flag(parser, "--sync-image", twin="syncImage", metavar="IMAGE", help="image of the copying container")
    truth_flag(parser, "--tensorboard", help="run TensorBoard beside the job")
    text_flag(parser, "--tensorboard-image", twin="tensorboardImage", metavar="IMAGE", help="image of TensorBoard")
    text_flag(parser, "--logdir", default="/training_logs", metavar="DIR", help="where the job writes TensorBoard's logs")
    text_flag(parser, "--model-name", metavar="NAME", help="name of the model that is trained")
    text_flag(parser, "--model-source", metavar="URI", help="where the model comes from")
    add_way_flags(parser)


def add_time_flags(parser: argparse.ArgumentParser) -> None:
    """Where the operator ends jobs, and removes those that have ended."""
    text_flag(parser, "--running-timeout", metavar="TIME", help="end the job after so long, e.g. `1h30m`")
    text_flag(parser, "--ttl-after-finished", metavar="TIME", help="delete the job so long after its end")


def add_way_flags(parser: argparse.ArgumentParser) -> None:
    """How the objects come into being, whatever they are."""
    truth_flag(parser, "--dry-run", help="print the objects as YAML and create nothing")
    text_flag(parser, "--file", "-f", metavar="FILE", help="create the objects of a YAML file (`-`: stdin); flags come after it")


def add_one_size_flags(parser: argparse.ArgumentParser) -> None:
    """Where every role has the same cpu and memory."""
    text_flag(parser, "--cpu", metavar="CPU", help="cpu of each pod")
    text_flag(parser, "--memory", metavar="SIZE", help="memory of each pod")


def add_mpi_flags(parser: argparse.ArgumentParser) -> None:
    add_time_flags(parser)
    add_one_size_flags(parser)
    truth_flag(parser, "--mounts-on-launcher", help="mount --data and --data-dir on the launcher, too")
    truth_flag(parser, "--gputopology", help="let the scheduler choose GPUs by their links")


def add_pytorch_flags(parser: argparse.ArgumentParser) -> None:
    add_time_flags(parser)
    add_one_size_flags(parser)
    text_flag(parser, "--nproc-per-node", metavar="N", help="processes of each pod: auto, cpu, gpu or a number")


def add_tf_flags(parser: argparse.ArgumentParser) -> None:
    add_time_flags(parser)
    for role, old in (("worker", "worker"), ("ps", "ps"), ("chief", "Chief"), ("evaluator", "evaluator")):
        for part, title in (("cpu", "Cpu"), ("memory", "Memory")):
            text_flag(parser, f"--{role}-{part}", twin=f"{old}{title}", metavar=part.upper(), help=f"{part} of each {role}")
            text_flag(
                parser, f"--{role}-{part}-limit", metavar=part.upper(), help=f"the most {part} of each {role} (else what it asks for)"
            )
        many_flag(parser, f"--{role}-selector", metavar="KEY=VALUE", help=f"only nodes with this label, for the {role}")
    for role in ("worker", "ps"):
        text_flag(parser, f"--{role}-image", twin=f"{role}Image", metavar="IMAGE", help=f"image of the {role}, instead of --image")
        text_flag(parser, f"--{role}-affinity-policy", default="none", metavar="POLICY", help="none, spread or binpack")
        text_flag(parser, f"--{role}-affinity-constraint", default="preferred", metavar="HOW", help="preferred or required")
    for role in ("worker", "ps", "chief"):
        text_flag(parser, f"--{role}-port", twin=f"{role}Port", default="0", metavar="PORT", help=f"port of the {role} (2222)")
    text_flag(parser, "--ps", default="0", metavar="N", help="how many parameter servers")
    text_flag(parser, "--ps-gpus", default="0", metavar="N", help="whole GPUs of each parameter server")
    truth_flag(parser, "--chief", help="have a chief")
    truth_flag(parser, "--evaluator", help="have an evaluator")
    text_flag(parser, "--success-policy", metavar="POLICY", help="ChiefWorker or AllWorkers")
    text_flag(parser, "--role-sequence", metavar="ROLES", help="order in which roles start, e.g. `w,p,c,e`")
    text_flag(parser, "--starting-timeout", metavar="TIME", help="give up when it has not started after so long")


def text_flag(parser: argparse.ArgumentParser, *spellings: str, help: str, default: str = "", metavar: str = "", twin: str = "") -> None:
    """Its help ends with its default, if that says more than nothing or none and the help does not tell it already."""
    is_told = default in ("", "0") or "(default" in help
    action = parser.add_argument(
        *spellings, default=default, metavar=metavar or "TEXT", help=help if is_told else f"{help} (default {default})"
    )
    _add_twin(parser, action, twin)


def many_flag(parser: argparse.ArgumentParser, *spellings: str, help: str, metavar: str, twin: str = "") -> None:
    """Repeatable; the values collect."""
    action = parser.add_argument(*spellings, action="append", default=[], metavar=metavar, help=help)
    _add_twin(parser, action, twin)


def truth_flag(parser: argparse.ArgumentParser, *spellings: str, help: str, default: bool = False) -> None:
    parser.add_argument(*spellings, action=BooleanFlag, default=default, help=help)


def _add_twin(parser: argparse.ArgumentParser, action: argparse.Action, twin: str) -> None:
    if twin:
        parser.add_argument(f"--{twin}", action=Twin, dest=action.dest, replaced_by=action)
