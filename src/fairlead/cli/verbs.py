"""Which verbs exist, and in which module does each live? The only table of commands; help, parser and reference read it.

What a newcomer gets wrong: importing a verb's module here would cost every other verb its start-up time. `main` imports exactly one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

_WRITING: Final = frozenset(
    (
        *("submit", "attach", "delete", "prune", "scaleout", "scalein"),
        *("serve custom", "serve tensorflow", "serve triton", "serve kserve", "serve attach", "serve delete"),
        *("cron tfjob", "cron suspend", "cron resume", "cron delete"),
    )
)
"""Verbs, and first words of verbs, that change a cluster."""


class Verb(NamedTuple):
    """`words` as a person types them. `is_arenas`: also a command of `arena`. `summary`: one line for `--help`.

    `aliases`: other words for its last word.
    """

    words: tuple[str, ...]
    module: str
    summary: str
    is_arenas: bool = False
    aliases: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return " ".join(self.words)

    @property
    def spellings(self) -> str:
        """
        >>> Verb(("list",), "list_jobs", "", aliases=("ls",)).spellings
        'list, ls'
        """
        return ", ".join((self.name, *self.aliases))

    @property
    def is_writing(self) -> bool:
        """Whether it changes the cluster that it speaks to, or what runs there.

        >>> Verb(("submit", "mpijob"), "", "").is_writing, Verb(("serve", "list"), "", "").is_writing
        (True, False)
        """
        return self.words[0] in _WRITING or self.name in _WRITING


VERBS: Final = (
    Verb(("up",), "up", "start the laptop: a simulated GPU cluster, its exporters and the console in one process"),
    Verb(("env",), "laptop_env", "print what makes the running laptop the cluster of a shell"),
    Verb(("console",), "console", "serve the console (the boards) of a cluster"),
    Verb(("cluster-exporter",), "cluster_exporter", "serve Prometheus metrics about the nodes, GPUs, jobs and quotas of a cluster"),
    Verb(("gpu-exporter",), "gpu_exporter", "serve Prometheus metrics of GPU devices"),
    Verb(("scheduler-extender",), "scheduler_extender", "answer kube-scheduler about pods that share GPUs"),
    Verb(("api-server",), "api_server", "serve the simulated cluster as a Kubernetes API"),
    Verb(("admission-webhook",), "admission_webhook", "answer an API server's questions about pods that share GPUs (servers before 1.36)"),
    Verb(("submit", "mpijob"), "submit_mpijob", "submit an MPIJob", is_arenas=True, aliases=("mpi", "mj")),
    Verb(("submit", "tfjob"), "submit_tfjob", "submit a TFJob", is_arenas=True, aliases=("tf",)),
    Verb(("submit", "pytorchjob"), "submit_pytorchjob", "submit a PyTorchJob", is_arenas=True, aliases=("pytorch",)),
    Verb(("submit", "rayjob"), "submit_rayjob", "submit a RayJob", is_arenas=True, aliases=("rj",)),
    Verb(("submit", "etjob"), "submit_etjob", "submit an elastic training job", is_arenas=True, aliases=("et",)),
    Verb(("submit", "deepspeedjob"), "submit_deepspeedjob", "submit a DeepSpeed job", is_arenas=True, aliases=("dp", "deepspeed")),
    Verb(("submit", "volcanojob"), "submit_volcanojob", "submit a job of Volcano", is_arenas=True, aliases=("vj", "volcano")),
    Verb(("submit", "sparkjob"), "submit_sparkjob", "submit a SparkApplication", is_arenas=True, aliases=("spark",)),
    Verb(("top", "node"), "top_node", "show how the GPUs of the nodes are used", is_arenas=True),
    Verb(("list",), "list_jobs", "list training jobs", is_arenas=True, aliases=("ls",)),
    Verb(("get",), "get_job", "show one training job, its pods, GPUs and events, and why it waits", is_arenas=True),
    Verb(("top", "job"), "top_job", "show how the GPUs of training jobs are used", is_arenas=True),
    Verb(("logs",), "job_logs", "print the log of a training job", is_arenas=True, aliases=("log",)),
    Verb(("attach",), "attach", "run a command, or a shell, inside a training job", is_arenas=True),
    Verb(("delete",), "delete_jobs", "delete training jobs", is_arenas=True, aliases=("del",)),
    Verb(("prune",), "prune", "delete old training jobs that are over", is_arenas=True),
    Verb(("scaleout", "etjob"), "scaleout_etjob", "add workers to an elastic training job", is_arenas=True, aliases=("et",)),
    Verb(("scalein", "etjob"), "scalein_etjob", "remove workers from an elastic training job", is_arenas=True, aliases=("et",)),
    Verb(("logviewer",), "logviewer", "print the address of a training job in the console", is_arenas=True),
    Verb(("serve", "custom"), "serve_custom", "serve a model with an image of your own", is_arenas=True),
    Verb(("serve", "tensorflow"), "serve_tensorflow", "serve a model with TensorFlow Serving", is_arenas=True, aliases=("tf",)),
    Verb(("serve", "triton"), "serve_triton", "serve models with NVIDIA's Triton", is_arenas=True),
    Verb(("serve", "kserve"), "serve_kserve", "serve a model with KServe", is_arenas=True),
    Verb(("serve", "list"), "serve_list", "list serving jobs", is_arenas=True, aliases=("ls",)),
    Verb(("serve", "get"), "serve_get", "show one serving job and its pods", is_arenas=True),
    Verb(("serve", "logs"), "serve_logs", "print the log of a serving job", is_arenas=True, aliases=("log",)),
    Verb(("serve", "attach"), "serve_attach", "run a command, or a shell, inside a serving job", is_arenas=True),
    Verb(("serve", "delete"), "serve_delete", "delete serving jobs", is_arenas=True, aliases=("del",)),
    Verb(("cron", "tfjob"), "cron_tfjob", "make a TFJob again and again, by a schedule", is_arenas=True, aliases=("tf",)),
    Verb(("cron", "list"), "cron_list", "list crons", is_arenas=True, aliases=("ls",)),
    Verb(("cron", "get"), "cron_get", "show one cron and the jobs that it made", is_arenas=True),
    Verb(("cron", "suspend"), "cron_suspend", "let a cron make no jobs for now", is_arenas=True),
    Verb(("cron", "resume"), "cron_resume", "let a cron make jobs again", is_arenas=True),
    Verb(("cron", "delete"), "cron_delete", "delete crons with the jobs that they made", is_arenas=True, aliases=("del",)),
    Verb(("data", "list"), "data_list", "list the volume claims that jobs can mount", is_arenas=True, aliases=("ls",)),
    Verb(("inspect", "gpu"), "inspect_gpu", "show how the memory of shared GPUs is divided (`kubectl inspect cgpu`)"),
    Verb(("why",), "why", "say why a pod waits, or on which cards it sits"),
    Verb(("place",), "place", "say where pods that share a GPU would go, and what would have to go for them to fit"),
    Verb(("time",), "simulated_time", "show and move the time of the laptop's simulated cluster"),
    Verb(("snapshot", "save"), "snapshot_save", "write the whole cluster, as Fairlead sees it, to a file"),
    Verb(("snapshot", "show"), "snapshot_show", "say what a snapshot file holds"),
    Verb(("whoami",), "whoami", "print who the cluster takes you for", is_arenas=True),
    Verb(("completion",), "completion", "print a script that completes commands in bash, zsh or fish", is_arenas=True),
    Verb(("version",), "version", "print the version of this program", is_arenas=True),
)

PLUGINS: Final = ("kubectl inspect cgpu", "kubectl inspect gpushare")
"""Programs that are one verb: plug-ins of kubectl, as a person types them. Both are `inspect gpu`."""

_HOROVOD: Final = "`submit mpijob` runs Horovod: mpirun starts what --image and the command say"
_TRAFFIC: Final = "Istio's VirtualService or a Gateway's HTTPRoute splits traffic between the Services of two versions"
PLANNED: Final = {
    **dict.fromkeys(("submit horovodjob", "submit horovod", "submit hj"), _HOROVOD),
    "serve update": "`kubectl set image`, `kubectl set resources` and `kubectl scale` change the Deployment that `serve list` shows",
    **dict.fromkeys(("serve traffic-split", "serve traffic-router-split"), _TRAFFIC),
    **dict.fromkeys(("serve tensorrt", "serve trt"), "TensorRT's server became Triton: `serve triton`"),
    **dict.fromkeys(("serve kfserving", "serve kf"), "KFServing became KServe: `serve kserve`"),
    "serve distributed": "a LeaderWorkerSet serves one model on several nodes; `kubectl apply` creates it",
    "serve seldon": "`kubectl apply` creates a SeldonDeployment",
    "evaluate": "a Kubernetes Job evaluates a model: `kubectl create job`",
    "model": "the registry is MLflow's: its own web page and Python client show and change it",
    "llm": "`serve custom` runs any image that serves a language model",
}
"""Commands of the arena contract that are not built: they say so instead of "unknown command", and what does the same."""


def verbs_of(program: str) -> tuple[Verb, ...]:
    """`arena` has only arena's own verbs; `fairlead` has all."""
    return tuple(verb for verb in VERBS if verb.is_arenas or program != "arena")


def plugin_verb(program: str) -> Verb | None:
    """The one verb of a plug-in of kubectl; None for programs that have several."""
    return next(verb for verb in VERBS if verb.words == ("inspect", "gpu")) if program in PLUGINS else None


def find_verb(words: Sequence[str], program: str) -> Verb | None:
    """The longest verb that the words begin with.

    >>> find_verb(["top", "node", "n1"], "arena").module, find_verb(["up"], "arena")
    ('top_node', None)
    >>> find_verb(["ls"], "arena").name
    'list'
    """
    for count in (2, 1):
        asked = tuple(words[:count])
        for verb in verbs_of(program):
            if len(asked) == len(verb.words) and asked[:-1] == verb.words[:-1] and asked[-1] in (verb.words[-1], *verb.aliases):
                return verb
    return None
