"""The table of the console API's routes.

The router, the check of query parameters and the OpenAPI file all read it.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from fairlead.console.pages.charts import Chart
from fairlead.console.pages.clock import ClockFace, ClockMoved, ClockOrder
from fairlead.console.pages.cluster import Overview
from fairlead.console.pages.gpu_map import STATES, GpuMap
from fairlead.console.pages.gpus import GpuList
from fairlead.console.pages.health import HealthPage
from fairlead.console.pages.holders import HolderGroupList, HolderList
from fairlead.console.pages.jobs import (
    InstanceList,
    JobDetail,
    JobEvents,
    JobList,
    JobManifest,
    JobWhy,
)
from fairlead.console.pages.mine import MyWork
from fairlead.console.pages.nodes import NodeDetail, NodeList
from fairlead.console.pages.quota import QuotaUsage, QuotaWaitingList
from fairlead.console.pages.quota_tree import QuotaEffects, QuotaTreePage, QuotaWhatIf
from fairlead.console.pages.search import SearchAnswer
from fairlead.console.pages.serving.jobs import ServingList
from fairlead.console.pages.session import (
    ActAs,
    KubeconfigOrder,
    Me,
    OwnKubeconfig,
    SignedIn,
    SignInMethods,
    SignInOrder,
)
from fairlead.model.people.permission import ANYONE, ConsoleResource, ConsoleVerb, Right

BASE: Final = "/api/v1"
_JOB: Final = "/jobs/{namespace}/{type}/{name}"
_SESSION: Final = Right(ConsoleVerb.GET, ConsoleResource.SESSION)
_CLUSTER: Final = Right(ConsoleVerb.GET, ConsoleResource.CLUSTER)
_NODES: Final = Right(ConsoleVerb.GET, ConsoleResource.NODES)
_JOBS: Final = Right(ConsoleVerb.GET, ConsoleResource.JOBS)
_QUOTA: Final = Right(ConsoleVerb.GET, ConsoleResource.QUOTA)


class Parameter(Struct, frozen=True):
    """A query parameter. A `repeated` one may come several times and then means "or"."""

    name: str
    text: str
    repeated: bool = False
    type: str = "string"


class Endpoint(Struct, frozen=True):
    """`name` is the function in `console/http/routes` that answers; `right`: what the client needs;
    `errors`: statuses beside 200.

    A `body` makes it a write: `method` is POST, and `console/http/writes` has looked at the request
    before. `takes_any`: another system chooses its query parameters.
    """

    name: str
    path: str
    summary: str
    answer: Any
    right: Right
    parameters: tuple[Parameter, ...] = ()
    errors: tuple[int, ...] = (400, 503)
    media_type: str = "application/json"
    example: str = ""
    body: Any = None
    is_deletion: bool = False
    takes_any: bool = False

    @property
    def method(self) -> str:
        if self.is_deletion:
            return "DELETE"
        return "GET" if self.body is None else "POST"


ERROR_TEXTS: Final = {
    400: (
        "`malformed`: an unknown or unreadable query parameter; "
        "the answer names it and the known ones."
    ),
    401: "`signed-out`: not signed in, or what was given to sign in is not accepted.",
    403: (
        "`no-user`: no user of Fairlead, or a disabled one; `csrf`: a write not from the console's "
        "own page; `forbidden`: the user may not, or the API server refuses; `foreign-host`: not "
        "by this name."
    ),
    404: "`not-found`: no such object, no such chart, or a clock that cannot be changed.",
    415: "`media-type`: the body is not JSON.",
    429: "`rate-limited`: too many event streams or logs are open, or signing in failed too often.",
    502: "`outside-failed`: the API server, Prometheus or the OIDC provider did not answer.",
    503: "`not-ready`: the caches are not filled yet; nothing partial is shown.",
    504: "`outside-timeout`: Prometheus or the OIDC provider took longer than 10 s.",
}

LIST_PARAMETERS: Final = (
    Parameter("q", "Case-insensitive substring over the text fields."),
    Parameter(
        "sort",
        (
            "Keys of a row, comma separated, `-` for descending; null and empty last both ways, "
            "`name` breaks ties."
        ),
    ),
    Parameter("page", "Page from 1.", type="integer"),
    Parameter("size", "Rows per page, 1 to 500 (default 50).", type="integer"),
    Parameter("fields", "Only these keys of each row, comma separated."),
    Parameter("format", "`json` (default) or `csv`: all matching rows, at most 100,000."),
)
NODE_FILTERS: Final = (
    Parameter("gpu_node", "Node name.", repeated=True),
    Parameter("GPU", "Card: an index, or a UUID.", repeated=True),
    Parameter("status", "Ready, NotReady or Unknown.", repeated=True),
    Parameter("mode", "exclusive, share, topology, mig or none.", repeated=True),
    Parameter("model", "GPU model.", repeated=True),
)
GPU_FILTERS: Final = (
    *NODE_FILTERS[:2],
    Parameter("status", f"{', '.join(STATES[:-1])} or {STATES[-1]}.", repeated=True),
    *NODE_FILTERS[3:],
)
HOLDER_FILTERS: Final = (
    Parameter("namespace", "Namespace.", repeated=True),
    Parameter("kind", "Kind of what made the pod, such as `Deployment`.", repeated=True),
    Parameter(
        "owner",
        (
            "Name of what made the pod, alone or as `kind/name`; "
            "`Pod/name` of one that a person made."
        ),
        repeated=True,
    ),
    Parameter("user", "User; `-` for pods without one.", repeated=True),
    Parameter("leaf", "Path of the quota leaf; `-` where there is none.", repeated=True),
    Parameter("node", "Node name.", repeated=True),
    Parameter("status", "The pod's status, such as `Running` or `Terminating`.", repeated=True),
)
JOB_FILTERS: Final = (
    Parameter("job_namespace", "Namespace.", repeated=True),
    Parameter("job_type", "Job type, such as `mpijob`.", repeated=True),
    Parameter("job_name", "Job name.", repeated=True),
    Parameter(
        "job_status",
        "Pending, Running, Succeeded, Failed, or an exact state such as QUEUING.",
        repeated=True,
    ),
    Parameter("user", "User who submitted it.", repeated=True),
    Parameter("leaf", "Path of the quota leaf.", repeated=True),
)
SERVING_FILTERS: Final = (
    Parameter("namespace", "Namespace.", repeated=True),
    Parameter("type", "Type, such as `Custom` or `custom-serving`.", repeated=True),
    Parameter("name", "Name of a serving job.", repeated=True),
    Parameter("status", "Ready or NotReady.", repeated=True),
    Parameter("user", "User who submitted it.", repeated=True),
)
QUOTA_FILTERS: Final = (
    Parameter("path", "Dotted path of a quota node; its children are included.", repeated=True),
    Parameter("name", "Name of a quota node.", repeated=True),
    Parameter("resource", "ConsoleResource, such as `nvidia.com/gpu`.", repeated=True),
)
WAITING_FILTERS: Final = (
    *QUOTA_FILTERS[:2],
    Parameter("namespace", "Namespace.", repeated=True),
    Parameter("reason", "Why it waits, such as `WaitingForIdleQuota`.", repeated=True),
    Parameter("user", "User.", repeated=True),
)
LOG_PARAMETERS: Final = (
    Parameter("pod", "Instance (default: the chief)."),
    Parameter("container", "Container (default: the instance's first)."),
    Parameter(
        "tail",
        (
            "Number of the newest lines, 1 to 10,000 (default 500); "
            "at most 2 MiB unless the log is followed."
        ),
        type="integer",
    ),
    Parameter("previous", "`true`: of the container's run before this one.", type="boolean"),
    Parameter("follow", "`true`: go on until the container ends.", type="boolean"),
)
CHART_PARAMETERS: Final = (
    Parameter(
        "from",
        "Start: epoch milliseconds or RFC 3339 with its zone (default 30 minutes before `to`).",
    ),
    Parameter("to", "End (default now)."),
    Parameter(
        "step", "Seconds between points; raised so that at most 240 points come.", type="integer"
    ),
    Parameter(
        "top", "Lines at most, 1 to 50 (default 8), the highest means first.", type="integer"
    ),
    *(
        Parameter(item.name, item.text, repeated=True)
        for item in (*NODE_FILTERS[:2], *JOB_FILTERS[:3], *QUOTA_FILTERS[::2])
    ),
    Parameter("namespace", "Namespace of the containers.", repeated=True),
    Parameter("pod", "Pod of the containers.", repeated=True),
    Parameter("holder", "Pod of the containers, as `namespace/name`.", repeated=True),
)

ENDPOINTS: Final = (
    Endpoint("me", "/me", "Who is looking, at which cluster", Me, _SESSION, errors=(400, 401, 403)),
    Endpoint(
        "act_as",
        "/me/as",
        "Look as a user of a simulated cluster, or as oneself again",
        SignedIn,
        Right(ConsoleVerb.UPDATE, ConsoleResource.SESSION),
        errors=(400, 401, 403, 404, 415),
        body=ActAs,
    ),
    Endpoint(
        "own_kubeconfig",
        "/me/kubeconfigs",
        "A new kubeconfig of the user who is signed in, with a token that is kept nowhere",
        OwnKubeconfig,
        Right(ConsoleVerb.CREATE, ConsoleResource.MY_CREDENTIALS),
        errors=(400, 401, 403, 404, 415, 502, 503),
        body=KubeconfigOrder,
    ),
    Endpoint(
        "sign_in_methods",
        "/signin/methods",
        "The ways to sign in",
        SignInMethods,
        ANYONE,
        errors=(400,),
    ),
    Endpoint(
        "begin_sign_in",
        "/signin",
        "Sign in with a Kubernetes token or a one-time code",
        SignedIn,
        ANYONE,
        errors=(400, 401, 403, 404, 415, 429, 502, 503),
        body=SignInOrder,
    ),
    Endpoint(
        "end_sign_in",
        "/signin",
        "Sign out",
        SignedIn,
        ANYONE,
        errors=(400, 403, 404, 503),
        is_deletion=True,
    ),
    Endpoint(
        "oidc_start",
        "/signin/oidc/start",
        "Leads the browser to the OpenID Connect provider",
        None,
        ANYONE,
        parameters=(Parameter("next", "Path of the console to show afterwards."),),
        errors=(400, 404, 502, 503, 504),
        media_type="text/html",
        example="/signin/oidc/start?next=/jobs",
    ),
    Endpoint(
        "oidc_callback",
        "/signin/oidc/callback",
        "Where the OpenID Connect provider sends the browser back",
        None,
        ANYONE,
        parameters=(
            Parameter("code", "What the provider gives for this sign-in."),
            Parameter("state", "What the console gave the provider."),
            Parameter("error", "Why the provider does not sign in."),
            Parameter("error_description", "The same as a sentence."),
        ),
        errors=(400, 401, 403, 404, 429, 502, 503, 504),
        media_type="text/html",
        takes_any=True,
    ),
    Endpoint(
        "clock",
        "/clock",
        "A simulated cluster's time, and whether it moves",
        ClockFace,
        Right(ConsoleVerb.GET, ConsoleResource.CLOCK),
        errors=(400, 404),
    ),
    Endpoint(
        "move_clock",
        "/clock",
        (
            "Pause, resume, step, advance, run until a time, or change the speed of a simulated "
            "cluster's time"
        ),
        ClockMoved,
        Right(ConsoleVerb.UPDATE, ConsoleResource.CLOCK),
        errors=(400, 403, 404, 415),
        body=ClockOrder,
    ),
    Endpoint("overview", "/overview", "The Cluster board", Overview, _CLUSTER),
    Endpoint(
        "mine",
        "/mine",
        "My work: what one user or namespace has, may have, could start now, and waits for",
        MyWork,
        _JOBS,
        parameters=(
            Parameter(
                "user", "User whose work is returned; without it the answer lists the users."
            ),
            Parameter("namespace", "All work of a namespace, in the place of a user's."),
        ),
        example="/mine?user=alice",
    ),
    Endpoint(
        "search",
        "/search",
        "Search for a text: nodes, GPUs, jobs and pods, by name, id or label",
        SearchAnswer,
        _CLUSTER,
        parameters=(
            Parameter(
                "q",
                (
                    "Part of a name or of `namespace/name`, of a UID or a GPU's UUID (from 4 "
                    "characters), or `key=value`, in any case."
                ),
            ),
            Parameter("size", "Hits at most, 1 to 50 (default 12).", type="integer"),
        ),
        example="/search?q=app=web",
    ),
    Endpoint(
        "gpu_map", "/gpus/map", "Every GPU of the cluster in one compact answer", GpuMap, _NODES
    ),
    Endpoint(
        "gpus",
        "/gpus",
        "One row per GPU",
        GpuList,
        _NODES,
        parameters=(*LIST_PARAMETERS, *GPU_FILTERS),
        example="/gpus?status=free&sort=model",
    ),
    Endpoint(
        "holders",
        "/holders",
        "One row per pod that holds a GPU or a part of one",
        HolderList,
        _JOBS,
        parameters=(*LIST_PARAMETERS, *HOLDER_FILTERS),
        example="/holders?namespace=team-a&sort=-idleSeconds",
    ),
    Endpoint(
        "holder_groups",
        "/holders/groups",
        "Holders of GPUs together: by owner, quota leaf, user or namespace",
        HolderGroupList,
        _JOBS,
        parameters=(
            *LIST_PARAMETERS,
            Parameter("by", "owner (default), leaf, user or namespace."),
            *HOLDER_FILTERS,
        ),
        example="/holders/groups?by=user",
    ),
    Endpoint(
        "nodes",
        "/nodes",
        "The Nodes board: one row per node",
        NodeList,
        _NODES,
        parameters=(*LIST_PARAMETERS, *NODE_FILTERS),
        example="/nodes?mode=share&sort=-gpuUtilPercent",
    ),
    Endpoint(
        "node",
        "/nodes/{name}",
        "One node: conditions, GPUs, and the pods on them",
        NodeDetail,
        _NODES,
        errors=(400, 404, 503),
        example="/nodes/gpu-1",
    ),
    Endpoint(
        "jobs",
        "/jobs",
        "The Training jobs board: one row per job",
        JobList,
        _JOBS,
        parameters=(*LIST_PARAMETERS, *JOB_FILTERS),
        example="/jobs?job_status=Pending&sort=-gpusRequested",
    ),
    Endpoint(
        "job",
        _JOB,
        "One job: its life, instances and events",
        JobDetail,
        _JOBS,
        errors=(400, 404, 503),
        example="/jobs/team-a/mpijob/bert-pretrain",
    ),
    Endpoint(
        "job_instances",
        f"{_JOB}/instances",
        "The pods of a job, and which of their containers have a log",
        InstanceList,
        _JOBS,
        errors=(400, 404, 503),
        example="/jobs/team-a/mpijob/bert-pretrain/instances",
    ),
    Endpoint(
        "job_events",
        f"{_JOB}/events",
        "Events of a job and of its pods, newest first",
        JobEvents,
        _JOBS,
        errors=(400, 404, 503),
        example="/jobs/team-a/mpijob/bert-pretrain/events",
    ),
    Endpoint(
        "job_why",
        f"{_JOB}/why",
        "Why a job waits",
        JobWhy,
        _JOBS,
        errors=(400, 404, 503),
        example="/jobs/team-a/mpijob/bert-pretrain/why",
    ),
    Endpoint(
        "job_manifest",
        f"{_JOB}/manifest",
        "The job's object as the API server has it now, without secret values",
        JobManifest,
        _JOBS,
        errors=(400, 403, 404, 502, 503),
        example="/jobs/team-a/mpijob/bert-pretrain/manifest",
    ),
    Endpoint(
        "job_logs",
        f"{_JOB}/logs",
        "The log of one container of a job, as it was written; followed, it comes as it is written",
        None,
        Right(ConsoleVerb.GET, ConsoleResource.LOGS),
        parameters=LOG_PARAMETERS,
        errors=(400, 403, 404, 429, 502, 503),
        media_type="text/plain",
        example="/jobs/team-a/mpijob/bert-pretrain/logs?pod=bert-pretrain-launcher&tail=100",
    ),
    Endpoint(
        "serving",
        "/serving",
        "The Serving page: one row per version of a serving job, with its pods",
        ServingList,
        Right(ConsoleVerb.GET, ConsoleResource.SERVING),
        parameters=(*LIST_PARAMETERS, *SERVING_FILTERS),
        errors=(400, 403, 404, 502, 503),
        example="/serving?status=NotReady",
    ),
    Endpoint(
        "quota_usage",
        "/quota/usage",
        "The Quota board: one row per quota node and resource",
        QuotaUsage,
        _QUOTA,
        parameters=(*LIST_PARAMETERS, *QUOTA_FILTERS),
        example="/quota/usage?resource=nvidia.com/gpu",
    ),
    Endpoint(
        "quota_waiting",
        "/quota/waiting",
        "Who waits for quota, in which order, and why",
        QuotaWaitingList,
        _QUOTA,
        parameters=(*LIST_PARAMETERS, *WAITING_FILTERS),
        example="/quota/waiting?path=root.a",
    ),
    Endpoint(
        "quota_tree",
        "/quota/tree",
        "The quota tree: bounds, use and faults of every node",
        QuotaTreePage,
        Right(ConsoleVerb.GET, ConsoleResource.QUOTA_TREE),
    ),
    Endpoint(
        "quota_what_if",
        "/quota/what-if",
        "Effects of other bounds in the quota tree; writes nothing",
        QuotaEffects,
        Right(ConsoleVerb.CREATE, ConsoleResource.QUOTA_PLANS),
        errors=(400, 403, 415, 503),
        body=QuotaWhatIf,
    ),
    Endpoint(
        "chart",
        "/charts/{query}",
        "Lines of one named query",
        Chart,
        _CLUSTER,
        parameters=CHART_PARAMETERS,
        errors=(400, 404, 502, 503, 504),
        example="/charts/gpu-duty-cycle?gpu_node=gpu-1&top=8",
    ),
    Endpoint(
        "health",
        "/health",
        "Dependencies of the console: state, effects, settings; also while caches are filled",
        HealthPage,
        Right(ConsoleVerb.GET, ConsoleResource.HEALTH),
        errors=(400,),
    ),
    Endpoint(
        "versions",
        "/versions",
        "The present version of each topic, for clients without the event stream",
        dict[str, str],
        _CLUSTER,
    ),
    Endpoint(
        "changes",
        "/changes",
        "Hints that a topic changed, as server-sent events; no content",
        None,
        _CLUSTER,
        errors=(400, 429),
        media_type="text/event-stream",
    ),
    Endpoint(
        "openapi", "/openapi.json", "This description", dict[str, Any], _SESSION, errors=(400,)
    ),
)
