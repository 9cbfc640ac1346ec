"""The only table of commands: each verb, its module and its summary.

Help, parser and reference read it.

Importing a verb's module here would cost every other verb its start-up time. `main` imports exactly
one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

_WRITING: Final = frozenset(
    (
        *("submit", "attach", "delete", "prune", "scaleout", "scalein"),
        *(
            "serve custom",
            "serve tensorflow",
            "serve triton",
            "serve kserve",
            "serve attach",
            "serve delete",
        ),
        *("cron tfjob", "cron suspend", "cron resume", "cron delete"),
        *("dataset accelerate", "dataset add", "dataset preheat"),
        *("dataset scale", "dataset unaccelerate"),
        *("operation resume", "operation cancel"),
        *("component deploy", "component upgrade", "component remove"),
        *("install", "upgrade", "uninstall"),
        *("user create", "user update", "user delete", "user import"),
        *("group create", "group update", "group delete"),
        *("kubeconfig create", "kubeconfig delete"),
        *("prices add", "prices end"),
    )
)
"""Verbs, and first words of verbs, that change a cluster."""


class Verb(NamedTuple):
    """`words` as a user types them.

    `is_arenas`: also a command of `arena`. `summary`: one line for `--help`.

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
        >>> Verb(("list",), "jobs.list_jobs", "", aliases=("ls",)).spellings
        'list, ls'
        """
        return ", ".join((self.name, *self.aliases))

    @property
    def is_writing(self) -> bool:
        """Whether it changes the cluster that it speaks to, or what runs there.

        >>> Verb(("submit", "mpijob"), "", "").is_writing
        True
        >>> Verb(("serve", "list"), "", "").is_writing
        False
        """
        return self.words[0] in _WRITING or self.name in _WRITING


VERBS: Final = (
    Verb(
        ("up",),
        "servers.up",
        "start the laptop: a simulated GPU cluster, its exporters and the console in one process",
    ),
    Verb(
        ("env",),
        "servers.laptop_env",
        "print the variables that make the running laptop the cluster of a shell",
    ),
    Verb(("console",), "servers.console", "serve the console (the boards) of a cluster"),
    Verb(
        ("cluster-exporter",),
        "servers.cluster_exporter",
        "serve Prometheus metrics about the nodes, GPUs, jobs and quotas of a cluster",
    ),
    Verb(("gpu-exporter",), "servers.gpu_exporter", "serve Prometheus metrics of GPU devices"),
    Verb(
        ("gpu-load",),
        "servers.gpu_load",
        "generate a defined GPU load (a drop-in for dcgmproftester)",
    ),
    Verb(
        ("scheduler-extender",),
        "servers.scheduler_extender",
        "extend kube-scheduler for pods that share GPUs",
    ),
    Verb(
        ("device-plugin",),
        "servers.device_plugin",
        "serve the GPUs of this node to its kubelet, whole or shared",
    ),
    Verb(
        ("quota-controller",),
        "servers.quota_controller",
        "enforce the quota tree of a cluster: admit pods, and reclaim borrowed resources",
    ),
    Verb(
        ("people-controller",),
        "servers.people_controller",
        "give users their ServiceAccounts and rights, from User and UserGroup objects",
    ),
    Verb(
        ("usage-recorder",),
        "servers.usage_recorder",
        "record which pods hold what, for usage, cost and the cluster as it was",
    ),
    Verb(("api-server",), "servers.api_server", "serve the simulated cluster as a Kubernetes API"),
    Verb(
        ("admission-webhook",),
        "servers.admission_webhook",
        "validate quota trees for an API server, and pods for API servers before 1.36",
    ),
    Verb(
        ("submit", "mpijob"),
        "submit.mpijob",
        "submit an MPIJob",
        is_arenas=True,
        aliases=("mpi", "mj"),
    ),
    Verb(("submit", "tfjob"), "submit.tfjob", "submit a TFJob", is_arenas=True, aliases=("tf",)),
    Verb(
        ("submit", "pytorchjob"),
        "submit.pytorchjob",
        "submit a PyTorchJob",
        is_arenas=True,
        aliases=("pytorch",),
    ),
    Verb(("submit", "rayjob"), "submit.rayjob", "submit a RayJob", is_arenas=True, aliases=("rj",)),
    Verb(
        ("submit", "etjob"),
        "submit.etjob",
        "submit an elastic training job",
        is_arenas=True,
        aliases=("et",),
    ),
    Verb(
        ("submit", "deepspeedjob"),
        "submit.deepspeedjob",
        "submit a DeepSpeed job",
        is_arenas=True,
        aliases=("dp", "deepspeed"),
    ),
    Verb(
        ("submit", "volcanojob"),
        "submit.volcanojob",
        "submit a Volcano job",
        is_arenas=True,
        aliases=("vj", "volcano"),
    ),
    Verb(
        ("submit", "sparkjob"),
        "submit.sparkjob",
        "submit a SparkApplication",
        is_arenas=True,
        aliases=("spark",),
    ),
    Verb(("top", "node"), "nodes.top_node", "show the GPU usage of nodes", is_arenas=True),
    Verb(("list",), "jobs.list_jobs", "list training jobs", is_arenas=True, aliases=("ls",)),
    Verb(
        ("get",),
        "jobs.get_job",
        "show a training job: its pods, GPUs, events, and why it waits",
        is_arenas=True,
    ),
    Verb(("top", "job"), "jobs.top_job", "show the GPU usage of training jobs", is_arenas=True),
    Verb(
        ("logs",),
        "jobs.job_logs",
        "print the log of a training job",
        is_arenas=True,
        aliases=("log",),
    ),
    Verb(("attach",), "jobs.attach", "run a command or a shell in a training job", is_arenas=True),
    Verb(("delete",), "jobs.delete_jobs", "delete training jobs", is_arenas=True, aliases=("del",)),
    Verb(("prune",), "jobs.prune", "delete old finished training jobs", is_arenas=True),
    Verb(
        ("scaleout", "etjob"),
        "jobs.scaleout_etjob",
        "add workers to an elastic training job",
        is_arenas=True,
        aliases=("et",),
    ),
    Verb(
        ("scalein", "etjob"),
        "jobs.scalein_etjob",
        "remove workers from an elastic training job",
        is_arenas=True,
        aliases=("et",),
    ),
    Verb(
        ("logviewer",),
        "jobs.logviewer",
        "print the address of a training job in the console",
        is_arenas=True,
    ),
    Verb(
        ("serve", "custom"),
        "serving.custom",
        "serve a model with an image of your own",
        is_arenas=True,
    ),
    Verb(
        ("serve", "tensorflow"),
        "serving.tensorflow",
        "serve a model with TensorFlow Serving",
        is_arenas=True,
        aliases=("tf",),
    ),
    Verb(
        ("serve", "triton"), "serving.triton", "serve models with NVIDIA's Triton", is_arenas=True
    ),
    Verb(("serve", "kserve"), "serving.kserve", "serve a model with KServe", is_arenas=True),
    Verb(("serve", "list"), "serving.list", "list serving jobs", is_arenas=True, aliases=("ls",)),
    Verb(("serve", "get"), "serving.get", "show a serving job and its pods", is_arenas=True),
    Verb(
        ("serve", "logs"),
        "serving.logs",
        "print the log of a serving job",
        is_arenas=True,
        aliases=("log",),
    ),
    Verb(
        ("serve", "attach"),
        "serving.attach",
        "run a command or a shell in a serving job",
        is_arenas=True,
    ),
    Verb(
        ("serve", "delete"),
        "serving.delete",
        "delete serving jobs",
        is_arenas=True,
        aliases=("del",),
    ),
    Verb(
        ("cron", "tfjob"),
        "cron.tfjob",
        "create TFJobs on a schedule",
        is_arenas=True,
        aliases=("tf",),
    ),
    Verb(("cron", "list"), "cron.list", "list crons", is_arenas=True, aliases=("ls",)),
    Verb(("cron", "get"), "cron.get", "show a cron and its jobs", is_arenas=True),
    Verb(("cron", "suspend"), "cron.suspend", "suspend a cron", is_arenas=True),
    Verb(("cron", "resume"), "cron.resume", "resume a suspended cron", is_arenas=True),
    Verb(
        ("cron", "delete"),
        "cron.delete",
        "delete crons with their jobs",
        is_arenas=True,
        aliases=("del",),
    ),
    Verb(
        ("data", "list"),
        "jobs.data_list",
        "list the volume claims that jobs can mount",
        is_arenas=True,
        aliases=("ls",),
    ),
    Verb(
        ("inspect", "gpu"),
        "nodes.inspect_gpu",
        "show how the memory of shared GPUs is divided (`kubectl inspect cgpu`)",
    ),
    Verb(("why",), "nodes.why", "print why a pod waits, or which GPUs it has"),
    Verb(
        ("place",),
        "nodes.place",
        (
            "print where pods that share a GPU would be placed, "
            "and which pods would have to be evicted"
        ),
    ),
    Verb(
        ("quota", "plan"),
        "quota.plan",
        "print what the quota controller would do now, or with another tree or other pods",
    ),
    Verb(
        ("quota", "why"), "quota.why", "print why a pod or a job waits for quota, or what it uses"
    ),
    Verb(("quota", "doctor"), "quota.doctor", "check the installation of quota, and print fixes"),
    Verb(("install",), "installation.install", "install Fairlead in a cluster, without Helm"),
    Verb(("upgrade",), "installation.upgrade", "upgrade an installation, or change its values"),
    Verb(("uninstall",), "installation.uninstall", "remove an installation from a cluster"),
    Verb(
        ("doctor",), "installation.doctor", "check a cluster and the installation, and print fixes"
    ),
    Verb(
        ("bundle", "verify"),
        "installation.bundle_verify",
        "check a bundle for a cluster without internet",
    ),
    Verb(
        ("bundle", "extract"),
        "installation.bundle_extract",
        "check such a bundle and write its files into a folder",
    ),
    Verb(
        ("bundle", "push"),
        "installation.bundle_push",
        "check such a bundle and push its images to a registry",
    ),
    Verb(
        ("time",),
        "servers.simulated_time",
        "show and change the time of the laptop's simulated cluster",
    ),
    Verb(
        ("at",),
        "usage.at",
        "print what `top node`, `list` or `why` would have printed at a moment of the past",
    ),
    Verb(("snapshot", "save"), "snapshot.save", "save the state of the cluster to a file"),
    Verb(("snapshot", "show"), "snapshot.show", "show the contents of a snapshot file"),
    Verb(
        ("quota", "tree"),
        "quota.tree",
        "show the guarantee, usage, borrowed amount and limit of each quota node",
    ),
    Verb(
        ("quota", "demo"),
        "quota.demo",
        "run the demo of elastic quota: four teams share 40 cores",
    ),
    Verb(("quota", "validate"), "quota.validate", "check a quota tree in a file"),
    Verb(("user", "create"), "people.user_create", "create a user of the cluster"),
    Verb(("user", "list"), "people.user_list", "list the users", aliases=("ls",)),
    Verb(("user", "show"), "people.user_show", "show a user: groups, namespaces, bindings, state"),
    Verb(
        ("user", "update"),
        "people.user_update",
        "change a user's groups or roles, or disable or enable the user",
    ),
    Verb(("user", "delete"), "people.user_delete", "delete users", aliases=("del",)),
    Verb(
        ("user", "import"),
        "people.user_import",
        "create the users and groups of files, or of ACK's console",
    ),
    Verb(("group", "create"), "people.group_create", "create a group of users on a quota leaf"),
    Verb(("group", "list"), "people.group_list", "list the groups of users", aliases=("ls",)),
    Verb(("group", "show"), "people.group_show", "show a group: leaf, users, roles, state"),
    Verb(("group", "update"), "people.group_update", "change a group's name, users, roles or caps"),
    Verb(("group", "delete"), "people.group_delete", "delete groups of users", aliases=("del",)),
    Verb(
        ("kubeconfig", "create"),
        "people.kubeconfig_create",
        "issue a token to a user, as a kubeconfig",
    ),
    Verb(
        ("kubeconfig", "list"),
        "people.kubeconfig_list",
        "list the credentials that were issued",
        aliases=("ls",),
    ),
    Verb(("kubeconfig", "show"), "people.kubeconfig_show", "show what is known of a credential"),
    Verb(
        ("kubeconfig", "delete"),
        "people.kubeconfig_delete",
        "revoke one credential, or all of a user",
        aliases=("del",),
    ),
    Verb(
        ("dataset", "list"),
        "data.dataset_list",
        "list data sets and volume claims, and which are accelerated",
        aliases=("ls",),
    ),
    Verb(
        ("dataset", "show"), "data.dataset_show", "show a data set: runtime, cache, faults, users"
    ),
    Verb(
        ("dataset", "accelerate"),
        "data.dataset_accelerate",
        "cache a volume claim with Fluid",
    ),
    Verb(
        ("dataset", "preheat"),
        "data.dataset_preheat",
        "read files of a data set into its cache before jobs need them",
    ),
    Verb(
        ("dataset", "add"),
        "data.dataset_add",
        "cache an object store, a web site, a claim or another source with Fluid",
    ),
    Verb(("dataset", "scale"), "data.dataset_scale", "give a cache more workers, or fewer"),
    Verb(
        ("dataset", "unaccelerate"),
        "data.dataset_unaccelerate",
        "remove a cache of Fluid; the claim and its data stay",
    ),
    Verb(
        ("component", "list"),
        "components.component_list",
        "list the components of the platform and how each is",
        aliases=("ls",),
    ),
    Verb(
        ("component", "plan"),
        "components.component_plan",
        "print what deploying, upgrading or removing a component would do",
    ),
    Verb(("component", "deploy"), "components.component_deploy", "deploy a component"),
    Verb(("component", "upgrade"), "components.component_upgrade", "upgrade a component"),
    Verb(("component", "remove"), "components.component_remove", "remove a component"),
    Verb(
        ("component", "history"),
        "components.component_history",
        "list the operations of a component",
    ),
    Verb(
        ("operation", "list"),
        "operations.operation_list",
        "list operations on data sets and components",
        aliases=("ls",),
    ),
    Verb(("operation", "show"), "operations.operation_show", "show an operation and its steps"),
    Verb(
        ("operation", "follow"),
        "operations.operation_follow",
        "print the steps of an operation as they go on",
    ),
    Verb(
        ("operation", "resume"),
        "operations.operation_resume",
        "go on with an operation that was left or has failed",
    ),
    Verb(
        ("operation", "cancel"),
        "operations.operation_cancel",
        "end an operation before its next step",
    ),
    Verb(("usage",), "usage.usage", "print what was used in a time, and what it cost"),
    Verb(("cost",), "usage.cost", "print what a job and its pods cost"),
    Verb(("idle",), "usage.idle", "print which GPUs cost money while nothing runs on them"),
    Verb(("prices", "list"), "usage.price_list", "list the prices of nodes"),
    Verb(("prices", "add"), "usage.price_add", "enter a price of nodes"),
    Verb(("prices", "end"), "usage.price_end", "end the prices of nodes"),
    Verb(("report",), "usage.report", "print the usage and cost of a month"),
    Verb(("store", "check"), "store.check", "check the store of a console"),
    Verb(("store", "migrate"), "store.migrate", "bring a store to the schema of this version"),
    Verb(("store", "export"), "store.export", "print all rows of a store as JSON lines"),
    Verb(("store", "import"), "store.import_rows", "store the rows of such lines"),
    Verb(("login",), "people.login", "print and renew a user's token, for kubectl"),
    Verb(("whoami",), "people.whoami", "print your name in the cluster", is_arenas=True),
    Verb(
        ("completion",),
        "frame.completion",
        "print a script that completes commands in bash, zsh or fish",
        is_arenas=True,
    ),
    Verb(("version",), "frame.version", "print the version of this program", is_arenas=True),
)

PLUGINS: Final = {
    **dict.fromkeys(("kubectl inspect cgpu", "kubectl inspect gpushare"), ("inspect", "gpu")),
    "dcgm-exporter": ("gpu-exporter",),
    **dict.fromkeys(("dcgmproftester11", "dcgmproftester12", "dcgmproftester13"), ("gpu-load",)),
}
"""Programs that are one verb: plug-ins of kubectl, as a user types them, and programs of NVIDIA."""

_HOROVOD: Final = "`submit mpijob` runs Horovod: mpirun starts the command in --image"
_TRAFFIC: Final = (
    "Istio's VirtualService or a Gateway's HTTPRoute splits traffic "
    "between the Services of two versions"
)
PAST_VERBS: Final = ("top node", "list", "why")
"""Verbs that `fairlead at MOMENT` prints."""
PLANNED: Final = {
    **dict.fromkeys(("submit horovodjob", "submit horovod", "submit hj"), _HOROVOD),
    "serve update": (
        "`kubectl set image`, `kubectl set resources` and `kubectl scale` change the Deployment "
        "that `serve list` shows"
    ),
    **dict.fromkeys(("serve traffic-split", "serve traffic-router-split"), _TRAFFIC),
    **dict.fromkeys(
        ("serve tensorrt", "serve trt"), "TensorRT's server became Triton: `serve triton`"
    ),
    **dict.fromkeys(("serve kfserving", "serve kf"), "KFServing became KServe: `serve kserve`"),
    "serve distributed": (
        "a LeaderWorkerSet serves one model on several nodes; `kubectl apply` creates it"
    ),
    "serve seldon": "`kubectl apply` creates a SeldonDeployment",
    "evaluate": "a Kubernetes Job evaluates a model: `kubectl create job`",
    "model": "the registry is MLflow's: its own web page and Python client show and change it",
    "llm": "`serve custom` runs any image that serves a language model",
}
"""Commands of docs/spec/arena-cli.md#commands that are not implemented:
their error names an alternative.
"""


def verbs_of(program: str) -> tuple[Verb, ...]:
    """`arena` has only arena's own verbs; `fairlead` has all."""
    return tuple(verb for verb in VERBS if verb.is_arenas or program != "arena")


def plugin_verb(program: str) -> Verb | None:
    """The one verb of such a program; None for programs that have several."""
    return (
        next(verb for verb in VERBS if verb.words == PLUGINS[program])
        if program in PLUGINS
        else None
    )


def find_verb(words: Sequence[str], program: str) -> Verb | None:
    """The longest verb that the words begin with.

    >>> find_verb(["top", "node", "n1"], "arena").module, find_verb(["up"], "arena")
    ('nodes.top_node', None)
    >>> find_verb(["ls"], "arena").name
    'list'
    """
    for count in (2, 1):
        asked = tuple(words[:count])
        for verb in verbs_of(program):
            if (
                len(asked) == len(verb.words)
                and asked[:-1] == verb.words[:-1]
                and asked[-1] in (verb.words[-1], *verb.aliases)
            ):
                return verb
    return None


def suggest_verb(words: Sequence[str], program: str) -> str:
    """A hint for words that are no verb: the one that was probably meant, else where all are
    listed.

    >>> suggest_verb(["submti", "mpi"], "arena"), suggest_verb(["top", "nodes"], "arena")
    ('did you mean `arena submit`?', 'did you mean `arena top node`?')
    >>> suggest_verb(["top", "bogus"], "arena"), suggest_verb(["bogus"], "arena")
    ('`arena top` has node, job', '`arena --help` lists the commands')
    """
    import difflib

    verbs = verbs_of(program)
    group = [verb for verb in verbs if len(verb.words) > 1 and verb.words[0] == words[0]]
    if group and len(words) > 1:
        known = {spelling: verb for verb in group for spelling in (*verb.aliases, verb.words[1])}
        near = difflib.get_close_matches(words[1], known, n=1, cutoff=0.7)
        if near:
            return f"did you mean `{program} {known[near[0]].name}`?"
        return f"`{program} {words[0]}` has {', '.join(verb.words[1] for verb in group)}"
    firsts = {
        spelling: verb.words[0]
        for verb in verbs
        for spelling in (verb.words[0], *(verb.aliases if len(verb.words) == 1 else ()))
    }
    near = difflib.get_close_matches(words[0], firsts, n=1, cutoff=0.7)
    return (
        f"did you mean `{program} {firsts[near[0]]}`?"
        if near
        else f"`{program} --help` lists the commands"
    )
