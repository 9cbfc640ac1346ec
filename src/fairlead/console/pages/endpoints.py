"""The table of the console API's routes.

The router, the check of query parameters and the OpenAPI file all read it.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from fairlead.console.pages.charts import Chart
from fairlead.console.pages.clock import ClockFace, ClockMoved, ClockOrder
from fairlead.console.pages.cluster import Overview
from fairlead.console.pages.data.components import (
    ComponentDetail,
    ComponentList,
    ComponentOrder,
    ComponentPlanned,
    ComponentsOrder,
    ComponentsPlanned,
    StoreChecked,
    StoreOrder,
)
from fairlead.console.pages.data.datasets import (
    AccelerationOrder,
    AccelerationPreview,
    DataSetBlockers,
    DataSetDetail,
    DataSetList,
    DataSetOrder,
    DataSetScaled,
    PreheatOrder,
    ScaleOrder,
    ScalePreview,
)
from fairlead.console.pages.data.operations import (
    Begun,
    EndedOperationPage,
    OperationDetail,
    OperationList,
    PlanOrder,
)
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
from fairlead.console.pages.quota_tree import (
    QuotaEffects,
    QuotaTreeOrder,
    QuotaTreePage,
    QuotaTreePreview,
    QuotaTreeVersions,
    QuotaTreeWritten,
    QuotaWhatIf,
)
from fairlead.console.pages.search import SearchAnswer
from fairlead.console.pages.serving.jobs import ServingList
from fairlead.console.pages.session import (
    ActAs,
    Me,
    OwnRights,
    SignedIn,
    SignInMethods,
    SignInOrder,
)
from fairlead.console.pages.usage.days import UsageDays
from fairlead.console.pages.usage.past import PastTimes
from fairlead.console.pages.usage.prices import PriceList, PriceOrder, PricePreview, PriceWritten
from fairlead.console.pages.usage.replay import QuotaReplayState, ReplayOrder
from fairlead.console.pages.usage.report import MonthReport
from fairlead.console.pages.usage.tables import IdleList, JobCost, UsageList
from fairlead.console.pages.writing.audit import AuditPage
from fairlead.console.pages.writing.cluster_actions import (
    JobOrder,
    JobWritten,
    NodeOrder,
    NodeWritten,
)
from fairlead.console.pages.writing.jobs import (
    JobClone,
    JobFormList,
    JobSubmission,
    JobSubmitted,
    SubmitPreview,
)
from fairlead.console.pages.writing.people import (
    CredentialList,
    CredentialOrder,
    GroupChange,
    GroupList,
    GroupOrder,
    GroupRow,
    IssuedKubeconfig,
    IssuedToken,
    OwnUserOrder,
    UserChange,
    UserKubeconfigOrder,
    UserList,
    UserOrder,
    UserRow,
)
from fairlead.console.pages.writing.preview import Deleted, NoBody, Preview
from fairlead.model.people.permission import ANYONE, ConsoleResource, ConsoleVerb, Right

BASE: Final = "/api/v1"
_JOB: Final = "/jobs/{namespace}/{type}/{name}"
_REPLAY: Final = "/quota/replay"
_SESSION: Final = Right(ConsoleVerb.GET, ConsoleResource.SESSION)
_CLUSTER: Final = Right(ConsoleVerb.GET, ConsoleResource.CLUSTER)
_NODES: Final = Right(ConsoleVerb.GET, ConsoleResource.NODES)
_JOBS: Final = Right(ConsoleVerb.GET, ConsoleResource.JOBS)
_QUOTA: Final = Right(ConsoleVerb.GET, ConsoleResource.QUOTA)
_DATASETS: Final = Right(ConsoleVerb.GET, ConsoleResource.DATASETS)
_OPERATIONS: Final = Right(ConsoleVerb.GET, ConsoleResource.OPERATIONS)
_COMPONENTS: Final = Right(ConsoleVerb.GET, ConsoleResource.COMPONENTS)
_USAGE: Final = Right(ConsoleVerb.GET, ConsoleResource.USAGE)
_DATASET: Final = "/datasets/{namespace}/{name}"


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

    An `action`, its name in the audit, makes it a write of the cluster: it is carried out in the
    frame of `console/http/writing`, and `name` is the function that plans it. `verb`: its method.
    `needs_version`: its `If-Match` must name the version on which it is based. `preview`: what
    `dryRun=true` answers. `status`: of a good answer; 202 of an operation that was only accepted.
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
    action: str = ""
    verb: str = ""
    needs_version: bool = False
    preview: Any = Preview
    status: int = 200

    @property
    def method(self) -> str:
        if self.verb:
            return self.verb
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
        "own page; `forbidden`: the user may not, or the API server refuses; `read-only`: without "
        "sign-in a console writes nothing; `foreign-host`: not by this name."
    ),
    404: "`not-found`: no such object, no such chart, or a clock that cannot be changed.",
    409: (
        "`conflict`: another client changed the object, which `current` has; `exists`: the name is "
        "taken; `blocked`: not now, `fields` has what blocks it."
    ),
    413: "`too-large`: the body is larger than 1 MiB.",
    415: "`media-type`: the body is not JSON.",
    422: "`invalid`: `fields` has all that is wrong with the body.",
    429: "`rate-limited`: too many event streams or logs are open, or signing in failed too often.",
    502: "`outside-failed`: the API server, Prometheus or the OIDC provider did not answer.",
    503: (
        "`not-ready`: the caches are not filled yet; nothing partial is shown. `store-down`: the "
        "store does not answer; routes that need none go on."
    ),
    504: "`outside-timeout`: Prometheus, the API server or another one took longer than 10 s.",
}

DRY_RUN: Final = Parameter(
    "dryRun", "`true`: change nothing, and answer what would change.", type="boolean"
)
PAST_ERRORS: Final = (400, 404, 502, 503)
"""Of a read with `at`: without a ledger 404, 502 for a damaged state, 503 while the store is down.
"""
WRITE_ERRORS: Final = (400, 401, 403, 404, 409, 413, 415, 422, 502, 503)
AT: Final = Parameter(
    "at",
    (
        "The cluster as it was: RFC 3339, `2026-11-20T02:00` in the time zone of billing days, "
        "`-2h`, or `yesterday 02:00`."
    ),
)
JOB_UID: Final = Parameter("uid", "Of an earlier job of this name (default: the newest job).")
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
    Parameter(
        "deleted", "`yes`: deleted jobs of the last 400 days, from the ledger (default `no`)."
    ),
)
SERVING_FILTERS: Final = (
    Parameter("namespace", "Namespace.", repeated=True),
    Parameter("type", "Type, such as `Custom` or `custom-serving`.", repeated=True),
    Parameter("name", "Name of a serving job.", repeated=True),
    Parameter("status", "Ready or NotReady.", repeated=True),
    Parameter("user", "User who submitted it.", repeated=True),
)
IDLE_FILTERS: Final = (
    Parameter("reason", "idle, stranded, broken, free or unknown.", repeated=True),
    Parameter("namespace", "Namespace of the pod; `-` for nodes.", repeated=True),
    Parameter("user", "User; `-` where there is none.", repeated=True),
    Parameter("model", "GPU model.", repeated=True),
)
DATASET_FILTERS: Final = (
    Parameter("namespace", "Namespace.", repeated=True),
    Parameter("accelerated", "`yes` or `no`.", repeated=True),
    Parameter("status", "Ready, NotReady, or a phase such as `Pending`.", repeated=True),
)
OPERATION_FILTERS: Final = (
    Parameter("kind", "What it does, such as `accelerate`.", repeated=True),
    Parameter("state", "Planned, Running, Succeeded, Failed or Cancelled.", repeated=True),
    Parameter("subject", "`dataset/NAMESPACE/NAME` or `component/ID`.", repeated=True),
    Parameter("user", "Who started it.", repeated=True),
)
HISTORY_PARAMETERS: Final = (
    Parameter("size", "Rows per page, 1 to 500 (default 50).", type="integer"),
    Parameter("before", "Older operations: `before` of the page before."),
)
COMPONENT_FILTERS: Final = (
    Parameter("group", "Group, such as `Monitoring`.", repeated=True),
    Parameter("state", "State, such as `Ready`; `unknown`: it could not be read.", repeated=True),
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

USER_FILTERS: Final = (
    Parameter("group", "A group that the user lists.", repeated=True),
    Parameter("role", "admin or researcher.", repeated=True),
    Parameter("state", "State of the user, such as `Bound` or `Disabled`.", repeated=True),
    Parameter("namespace", "A namespace of the user.", repeated=True),
)
GROUP_FILTERS: Final = (
    Parameter("leaf", "The leaf of the group.", repeated=True),
    Parameter("user", "A user who lists the group.", repeated=True),
    Parameter("state", "State of the group, such as `Bound` or `NoSuchLeaf`.", repeated=True),
)
AUDIT_PARAMETERS: Final = (
    Parameter("q", "Part of actor, action, name or summary, in any case."),
    Parameter("actor", "Id of a user.", repeated=True),
    Parameter("action", "Action, such as `users.create`.", repeated=True),
    Parameter("result", "ok, refused, failed or begun.", repeated=True),
    Parameter("kind", "Kind of the object."),
    Parameter("namespace", "Namespace of the object."),
    Parameter("name", "Name of the object."),
    Parameter("request", "Id of the request."),
    Parameter("since", "From this time on: epoch milliseconds or RFC 3339 with its zone."),
    Parameter("until", "Before this time."),
    Parameter("size", "Rows per page, 1 to 500 (default 50).", type="integer"),
    Parameter("before", "Rows with smaller ids: `before` of the page before.", type="integer"),
    Parameter("format", "`json` (default), `csv` or `jsonl`: all matching rows, at most 100,000."),
)

PERIOD_PARAMETERS: Final = (
    Parameter("period", "`24h` (default), `7d`, `30d`, or another number of hours or days."),
    Parameter("month", "A month, such as `2026-11`."),
    Parameter("from", "From this time on, RFC 3339 with its zone."),
    Parameter("to", "Before this time (default now)."),
)
USAGE_ERRORS: Final = (400, 403, 404, 503)

ENDPOINTS: Final = (
    Endpoint("me", "/me", "Who is looking, at which cluster", Me, _SESSION, errors=(400, 401, 403)),
    Endpoint(
        "my_rights",
        "/me/rights",
        "What the user may do in the console and with kubectl",
        OwnRights,
        _SESSION,
        errors=(400, 401, 403),
    ),
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
        "create_own_user",
        "/me/user",
        "Make a user of an administrator who has none, and go on as that user",
        UserRow,
        Right(ConsoleVerb.CREATE, ConsoleResource.USERS),
        parameters=(DRY_RUN,),
        errors=WRITE_ERRORS,
        body=OwnUserOrder,
        action="users.create",
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
    Endpoint(
        "overview",
        "/overview",
        "The Cluster board",
        Overview,
        _CLUSTER,
        parameters=(AT,),
        errors=PAST_ERRORS,
    ),
    Endpoint(
        "past",
        "/past",
        "Which moments of the past can be shown",
        PastTimes,
        _CLUSTER,
        errors=PAST_ERRORS,
    ),
    Endpoint(
        "past_snapshot",
        "/past/snapshot",
        "The cluster as it was, as a file for `--snapshot`",
        None,
        Right(ConsoleVerb.GET, ConsoleResource.SNAPSHOTS),
        parameters=(AT,),
        errors=(400, 401, 403, 404, 502, 503),
        media_type="application/gzip",
        example="/past/snapshot?at=-2h",
    ),
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
        "gpu_map",
        "/gpus/map",
        "Every GPU of the cluster in one compact answer",
        GpuMap,
        _NODES,
        parameters=(AT,),
        errors=PAST_ERRORS,
    ),
    Endpoint(
        "gpus",
        "/gpus",
        "One row per GPU",
        GpuList,
        _NODES,
        parameters=(*LIST_PARAMETERS, *GPU_FILTERS, AT),
        errors=PAST_ERRORS,
        example="/gpus?status=free&sort=model",
    ),
    Endpoint(
        "holders",
        "/holders",
        "One row per pod that holds a GPU or a part of one",
        HolderList,
        _JOBS,
        parameters=(*LIST_PARAMETERS, *HOLDER_FILTERS, AT),
        errors=PAST_ERRORS,
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
            AT,
        ),
        errors=PAST_ERRORS,
        example="/holders/groups?by=user",
    ),
    Endpoint(
        "nodes",
        "/nodes",
        "The Nodes board: one row per node",
        NodeList,
        _NODES,
        parameters=(*LIST_PARAMETERS, *NODE_FILTERS, AT),
        errors=PAST_ERRORS,
        example="/nodes?mode=share&sort=-gpuUtilPercent",
    ),
    Endpoint(
        "node",
        "/nodes/{name}",
        "One node: conditions, GPUs, and the pods on them",
        NodeDetail,
        _NODES,
        parameters=(AT,),
        errors=PAST_ERRORS,
        example="/nodes/gpu-1",
    ),
    Endpoint(
        "change_node",
        "/nodes/{name}",
        "Cordon a node, or uncordon it",
        NodeWritten,
        Right(ConsoleVerb.UPDATE, ConsoleResource.NODES),
        parameters=(DRY_RUN,),
        errors=WRITE_ERRORS,
        body=NodeOrder,
        action="nodes.update",
        example="/nodes/gpu-1",
        verb="PATCH",
    ),
    Endpoint(
        "jobs",
        "/jobs",
        "The Training jobs board: one row per job",
        JobList,
        _JOBS,
        parameters=(*LIST_PARAMETERS, *JOB_FILTERS, AT),
        errors=PAST_ERRORS,
        example="/jobs?job_status=Pending&sort=-gpusRequested",
    ),
    Endpoint(
        "create_job",
        "/jobs",
        "Submit a job, as `arena submit` does",
        JobSubmitted,
        Right(ConsoleVerb.CREATE, ConsoleResource.JOBS, in_body=True),
        parameters=(DRY_RUN,),
        errors=WRITE_ERRORS,
        body=JobSubmission,
        action="jobs.create",
        preview=SubmitPreview,
    ),
    Endpoint(
        "job_types",
        "/job-types",
        "The kinds of jobs that can be submitted, with the fields of their forms",
        JobFormList,
        _JOBS,
        errors=(400, 401, 403, 404, 503),
    ),
    Endpoint(
        "job",
        _JOB,
        "One job: its life, instances and events",
        JobDetail,
        _JOBS,
        parameters=(AT, JOB_UID),
        errors=PAST_ERRORS,
        example="/jobs/team-a/mpijob/bert-pretrain",
    ),
    Endpoint(
        "change_job",
        _JOB,
        "Suspend a job, or resume it",
        JobWritten,
        Right(ConsoleVerb.UPDATE, ConsoleResource.JOBS),
        parameters=(DRY_RUN,),
        errors=WRITE_ERRORS,
        body=JobOrder,
        action="jobs.update",
        example="/jobs/team-a/mpijob/bert-pretrain",
        verb="PATCH",
    ),
    Endpoint(
        "job_clone",
        f"{_JOB}/clone",
        "The body that submits a job like this one, and what it does not carry over",
        JobClone,
        _JOBS,
        errors=(400, 401, 403, 404, 502, 503),
        example="/jobs/team-a/mpijob/bert-pretrain/clone",
    ),
    Endpoint(
        "delete_job",
        _JOB,
        "Delete a job with its pods",
        Deleted,
        Right(ConsoleVerb.DELETE, ConsoleResource.JOBS),
        parameters=(DRY_RUN,),
        errors=WRITE_ERRORS,
        body=NoBody,
        action="jobs.delete",
        example="/jobs/team-a/mpijob/bert-pretrain",
        verb="DELETE",
    ),
    Endpoint(
        "job_instances",
        f"{_JOB}/instances",
        "The pods of a job, and which of their containers have a log",
        InstanceList,
        _JOBS,
        parameters=(JOB_UID,),
        errors=(400, 404, 503),
        example="/jobs/team-a/mpijob/bert-pretrain/instances",
    ),
    Endpoint(
        "job_events",
        f"{_JOB}/events",
        "Events of a job and of its pods, newest first",
        JobEvents,
        _JOBS,
        parameters=(JOB_UID,),
        errors=(400, 404, 503),
        example="/jobs/team-a/mpijob/bert-pretrain/events",
    ),
    Endpoint(
        "job_why",
        f"{_JOB}/why",
        "Why a job waits",
        JobWhy,
        _JOBS,
        parameters=(JOB_UID,),
        errors=(400, 404, 503),
        example="/jobs/team-a/mpijob/bert-pretrain/why",
    ),
    Endpoint(
        "job_manifest",
        f"{_JOB}/manifest",
        "The job's object, without secret values; of a deleted job as the ledger keeps it",
        JobManifest,
        _JOBS,
        parameters=(JOB_UID,),
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
        "datasets",
        "/datasets",
        "The page Datasets: one row per data set of Fluid and per claim that is not Fluid's own",
        DataSetList,
        _DATASETS,
        parameters=(*LIST_PARAMETERS, *DATASET_FILTERS),
        errors=(400, 403, 404, 502, 503),
        example="/datasets?accelerated=no&sort=-sizeBytes",
    ),
    Endpoint(
        "add_dataset",
        "/datasets",
        "Make a data set over an object store, a claim or another source, as an operation; a "
        "preview makes all checks",
        Begun,
        Right(ConsoleVerb.CREATE, ConsoleResource.DATASETS),
        parameters=(DRY_RUN,),
        errors=(*WRITE_ERRORS, 504),
        body=DataSetOrder,
        action="datasets.create",
        preview=AccelerationPreview,
        status=202,
    ),
    Endpoint(
        "dataset",
        _DATASET,
        "One data set, or the claim where there is no data set of the name, with the pods that "
        "mount it",
        DataSetDetail,
        _DATASETS,
        errors=(400, 403, 404, 502, 503, 504),
        example="/datasets/team-a/raw-acc",
    ),
    Endpoint(
        "unaccelerate",
        _DATASET,
        "Remove a data set with its caches, as an operation; the claim and its files stay",
        Begun,
        Right(ConsoleVerb.DELETE, ConsoleResource.DATASETS),
        parameters=(DRY_RUN,),
        errors=(*WRITE_ERRORS, 504),
        is_deletion=True,
        action="datasets.delete",
        example="/datasets/team-a/raw-acc",
        status=202,
    ),
    Endpoint(
        "scale_dataset",
        _DATASET,
        "Give the cache of a data set more workers, or fewer; a preview makes all checks",
        DataSetScaled,
        Right(ConsoleVerb.UPDATE, ConsoleResource.DATASETS),
        parameters=(DRY_RUN,),
        errors=(*WRITE_ERRORS, 504),
        body=ScaleOrder,
        action="datasets.update",
        example="/datasets/team-a/raw-acc",
        preview=ScalePreview,
        verb="PATCH",
    ),
    Endpoint(
        "dataset_blockers",
        f"{_DATASET}/blockers",
        "Why a data set may not be removed now",
        DataSetBlockers,
        _DATASETS,
        errors=(400, 403, 404, 502, 503, 504),
        example="/datasets/team-a/raw-acc/blockers",
    ),
    Endpoint(
        "preheat",
        f"{_DATASET}/preheats",
        "Read a data set into its cache, as an operation",
        Begun,
        Right(ConsoleVerb.CREATE, ConsoleResource.DATASETS),
        parameters=(DRY_RUN,),
        errors=(*WRITE_ERRORS, 504),
        body=PreheatOrder,
        action="datasets.preheat",
        example="/datasets/team-a/raw-acc/preheats",
        status=202,
    ),
    Endpoint(
        "accelerate",
        "/volumes/{namespace}/{claim}/acceleration",
        "Accelerate a claim, as an operation; a preview makes all checks",
        Begun,
        Right(ConsoleVerb.CREATE, ConsoleResource.DATASETS),
        parameters=(DRY_RUN,),
        errors=(*WRITE_ERRORS, 504),
        body=AccelerationOrder,
        action="datasets.create",
        example="/volumes/team-a/raw/acceleration",
        preview=AccelerationPreview,
        status=202,
    ),
    Endpoint(
        "operations",
        "/operations",
        "The page Operations: what runs, and how earlier operations ended, newest first",
        OperationList,
        _OPERATIONS,
        parameters=(*LIST_PARAMETERS, *OPERATION_FILTERS),
        errors=(400, 403, 404, 502),
        example="/operations?state=Running",
    ),
    Endpoint(
        "operation_history",
        "/operation-history",
        "Ended operations whose records are gone, from the store of the console; newest first",
        EndedOperationPage,
        _OPERATIONS,
        parameters=HISTORY_PARAMETERS,
        errors=(400, 401, 403, 404, 502, 503),
        example="/operation-history?size=20",
    ),
    Endpoint(
        "start_operation",
        "/operations",
        "Start an operation that the same person planned",
        Begun,
        Right(ConsoleVerb.CREATE, ConsoleResource.OPERATIONS),
        parameters=(DRY_RUN,),
        errors=WRITE_ERRORS,
        body=PlanOrder,
        action="operations.create",
        status=202,
    ),
    Endpoint(
        "operation",
        "/operations/{id}",
        "One operation with its steps",
        OperationDetail,
        _OPERATIONS,
        errors=(400, 403, 404, 502),
        example="/operations/k3v9x0q2m7ab",
    ),
    Endpoint(
        "cancel_operation",
        "/operations/{id}",
        "Cancel an operation: it ends before its next step",
        Begun,
        Right(ConsoleVerb.DELETE, ConsoleResource.OPERATIONS),
        parameters=(DRY_RUN,),
        errors=WRITE_ERRORS,
        is_deletion=True,
        action="operations.delete",
        example="/operations/k3v9x0q2m7ab",
        status=202,
    ),
    Endpoint(
        "retry_operation",
        "/operations/{id}/retry",
        "Carry out an operation again that failed or was cancelled",
        Begun,
        Right(ConsoleVerb.UPDATE, ConsoleResource.OPERATIONS),
        parameters=(DRY_RUN,),
        errors=WRITE_ERRORS,
        body=NoBody,
        action="operations.update",
        example="/operations/k3v9x0q2m7ab/retry",
        status=202,
    ),
    Endpoint(
        "components",
        "/components",
        "The page Components: one row per program of the platform, in the order of the groups",
        ComponentList,
        _COMPONENTS,
        parameters=(*LIST_PARAMETERS, *COMPONENT_FILTERS),
        errors=(400, 403, 404, 502),
        example="/components?state=Ready",
    ),
    Endpoint(
        "component",
        "/components/{id}",
        "One component with its values, objects and operations",
        ComponentDetail,
        _COMPONENTS,
        errors=(400, 403, 404, 502),
        example="/components/fluid",
    ),
    Endpoint(
        "store_check",
        "/components/console/store-check",
        "Whether the console could use a database; the password is kept nowhere",
        StoreChecked,
        Right(ConsoleVerb.CREATE, ConsoleResource.COMPONENTS),
        errors=(400, 403, 404, 413, 415, 422),
        body=StoreOrder,
    ),
    Endpoint(
        "plan_component",
        "/plans",
        "Plan a component's deployment, upgrade or removal: checks, changes, steps. A plan is kept "
        "for 15 minutes, and only if no check fails",
        ComponentPlanned,
        Right(ConsoleVerb.CREATE, ConsoleResource.COMPONENTS),
        parameters=(DRY_RUN,),
        errors=WRITE_ERRORS,
        body=ComponentOrder,
        action="plans.create",
        preview=ComponentPlanned,
        status=201,
    ),
    Endpoint(
        "plan_components",
        "/plans/together",
        "Plan the deployment of several components by one click: one preflight over all, in the "
        "order of what they need. A plan is kept for 15 minutes, and only if no check fails",
        ComponentsPlanned,
        Right(ConsoleVerb.CREATE, ConsoleResource.COMPONENTS),
        parameters=(DRY_RUN,),
        errors=WRITE_ERRORS,
        body=ComponentsOrder,
        action="plans.create",
        preview=ComponentsPlanned,
        status=201,
    ),
    Endpoint(
        "write_store_password",
        "/components/console/store-password",
        "Check a database and write its password into the Secret of the installation's console; "
        "the password is in no record and in no answer",
        StoreChecked,
        Right(ConsoleVerb.CREATE, ConsoleResource.COMPONENTS),
        parameters=(DRY_RUN,),
        errors=WRITE_ERRORS,
        body=StoreOrder,
        action="components.store",
    ),
    Endpoint(
        "quota_usage",
        "/quota/usage",
        "The Quota board: one row per quota node and resource",
        QuotaUsage,
        _QUOTA,
        parameters=(*LIST_PARAMETERS, *QUOTA_FILTERS, AT),
        errors=PAST_ERRORS,
        example="/quota/usage?resource=nvidia.com/gpu",
    ),
    Endpoint(
        "quota_waiting",
        "/quota/waiting",
        "Who waits for quota, in which order, and why",
        QuotaWaitingList,
        _QUOTA,
        parameters=(*LIST_PARAMETERS, *WAITING_FILTERS, AT),
        errors=PAST_ERRORS,
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
        "write_quota_tree",
        "/quota/tree",
        "Write the quota tree",
        QuotaTreeWritten,
        Right(ConsoleVerb.UPDATE, ConsoleResource.QUOTA_TREE),
        parameters=(DRY_RUN,),
        errors=WRITE_ERRORS,
        body=QuotaTreeOrder,
        action="quota.tree.update",
        preview=QuotaTreePreview,
        verb="PUT",
        needs_version=True,
    ),
    Endpoint(
        "quota_tree_versions",
        "/quota/tree/versions",
        "The last 20 versions of the quota tree",
        QuotaTreeVersions,
        Right(ConsoleVerb.UPDATE, ConsoleResource.QUOTA_TREE),
        errors=(400, 401, 403, 404, 503),
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
        "replay",
        _REPLAY,
        "The last replay of the past: how far it is, or what it has found",
        QuotaReplayState,
        Right(ConsoleVerb.GET, ConsoleResource.QUOTA_PLANS),
        errors=(400, 401, 403, 404),
    ),
    Endpoint(
        "begin_replay",
        _REPLAY,
        "Play the pods of the past with another quota tree or other nodes, one replay at a time; "
        "writes nothing",
        QuotaReplayState,
        Right(ConsoleVerb.CREATE, ConsoleResource.QUOTA_PLANS),
        errors=(400, 401, 403, 404, 409, 413, 415, 503),
        body=ReplayOrder,
    ),
    Endpoint(
        "cancel_replay",
        _REPLAY,
        "Cancel the replay that is running",
        QuotaReplayState,
        Right(ConsoleVerb.DELETE, ConsoleResource.QUOTA_PLANS),
        errors=(400, 401, 403, 404),
        is_deletion=True,
    ),
    Endpoint(
        "usage",
        "/usage",
        "Usage and cost of a period: one row for each user, namespace, leaf, job or model",
        UsageList,
        _USAGE,
        parameters=(
            *LIST_PARAMETERS,
            Parameter("by", "user (default), namespace, leaf, job or model."),
            *PERIOD_PARAMETERS,
        ),
        errors=USAGE_ERRORS,
        example="/usage?by=leaf&period=7d",
    ),
    Endpoint(
        "usage_days",
        "/usage/days",
        "GPU-hours of each billing day of a period: of the rows with most, and of their use",
        UsageDays,
        _USAGE,
        parameters=(
            Parameter("by", "user (default), namespace, leaf, job or model."),
            *PERIOD_PARAMETERS,
        ),
        errors=USAGE_ERRORS,
        example="/usage/days?by=leaf&period=7d",
    ),
    Endpoint(
        "idle",
        "/idle",
        "GPUs that cost money while nothing runs on them, and how the GPU money is split by node",
        IdleList,
        _USAGE,
        parameters=(*LIST_PARAMETERS, *IDLE_FILTERS, *PERIOD_PARAMETERS),
        errors=USAGE_ERRORS,
        example="/idle?period=24h",
    ),
    Endpoint(
        "job_cost",
        f"{_JOB}/cost",
        "The cost of one job and its pods, also of a deleted job",
        JobCost,
        _JOBS,
        parameters=(JOB_UID,),
        errors=USAGE_ERRORS,
        example="/jobs/team-a/mpijob/bert-pretrain/cost",
    ),
    Endpoint(
        "prices",
        "/prices",
        "Prices of nodes, the newest entry first, and the classes of nodes that they match",
        PriceList,
        Right(ConsoleVerb.GET, ConsoleResource.PRICES),
        parameters=LIST_PARAMETERS,
        errors=USAGE_ERRORS,
        example="/prices",
    ),
    Endpoint(
        "add_price",
        "/prices",
        "Enter a price, or end the prices of a matcher; no price is ever changed",
        PriceWritten,
        Right(ConsoleVerb.CREATE, ConsoleResource.PRICES),
        parameters=(DRY_RUN,),
        errors=WRITE_ERRORS,
        body=PriceOrder,
        action="prices.create",
        preview=PricePreview,
        status=201,
    ),
    Endpoint(
        "report",
        "/reports/{month}",
        "The report of a month, from its folded days",
        MonthReport,
        _USAGE,
        parameters=(
            Parameter("asOf", "Prices that were entered later do not count; RFC 3339."),
            Parameter("format", "`json` (default), `markdown` or `csv`."),
        ),
        errors=USAGE_ERRORS,
        example="/reports/2026-11?format=markdown",
    ),
    Endpoint(
        "users",
        "/users",
        "The page Users: one row per user",
        UserList,
        Right(ConsoleVerb.GET, ConsoleResource.USERS),
        parameters=(*LIST_PARAMETERS, *USER_FILTERS),
        errors=(400, 401, 403, 404, 503),
        example="/users?group=team-a",
    ),
    Endpoint(
        "create_user",
        "/users",
        "Create a user",
        UserRow,
        Right(ConsoleVerb.CREATE, ConsoleResource.USERS),
        parameters=(DRY_RUN,),
        errors=WRITE_ERRORS,
        body=UserOrder,
        action="users.create",
    ),
    Endpoint(
        "user",
        "/users/{id}",
        "One user",
        UserRow,
        Right(ConsoleVerb.GET, ConsoleResource.USERS),
        errors=(400, 401, 403, 404, 503),
        example="/users/bob",
    ),
    Endpoint(
        "change_user",
        "/users/{id}",
        "Change a user, or disable it",
        UserRow,
        Right(ConsoleVerb.UPDATE, ConsoleResource.USERS),
        parameters=(DRY_RUN,),
        errors=WRITE_ERRORS,
        body=UserChange,
        action="users.update",
        verb="PUT",
        needs_version=True,
        example="/users/bob",
    ),
    Endpoint(
        "delete_user",
        "/users/{id}",
        "Delete a user, with all bindings and tokens",
        Deleted,
        Right(ConsoleVerb.DELETE, ConsoleResource.USERS),
        parameters=(
            DRY_RUN,
            Parameter("force", "`true`: although the user has unfinished work.", type="boolean"),
        ),
        errors=WRITE_ERRORS,
        is_deletion=True,
        action="users.delete",
        example="/users/bob",
    ),
    Endpoint(
        "user_tokens",
        "/users/{id}/tokens",
        "The credentials of a user that were not revoked, without their tokens",
        CredentialList,
        Right(ConsoleVerb.GET, ConsoleResource.CREDENTIALS),
        errors=(400, 401, 403, 404, 502),
        example="/users/bob/tokens",
    ),
    Endpoint(
        "issue_token",
        "/users/{id}/tokens",
        "Issue a token to a user; it is shown once",
        IssuedToken,
        Right(ConsoleVerb.CREATE, ConsoleResource.CREDENTIALS),
        parameters=(DRY_RUN,),
        errors=WRITE_ERRORS,
        body=CredentialOrder,
        action="credentials.create",
        example="/users/bob/tokens",
    ),
    Endpoint(
        "revoke_tokens",
        "/users/{id}/tokens",
        "Revoke all tokens of a user",
        Deleted,
        Right(ConsoleVerb.DELETE, ConsoleResource.CREDENTIALS),
        parameters=(DRY_RUN,),
        errors=WRITE_ERRORS,
        is_deletion=True,
        action="credentials.delete",
        example="/users/bob/tokens",
    ),
    Endpoint(
        "revoke_token",
        "/users/{id}/tokens/{token}",
        "Revoke one token of a user",
        Deleted,
        Right(ConsoleVerb.DELETE, ConsoleResource.CREDENTIALS),
        parameters=(DRY_RUN,),
        errors=WRITE_ERRORS,
        is_deletion=True,
        action="credentials.delete",
        example="/users/bob/tokens/bob-0123456789",
    ),
    Endpoint(
        "issue_kubeconfig",
        "/users/{id}/kubeconfigs",
        "Issue a token to a user, in a kubeconfig; it is shown once",
        IssuedKubeconfig,
        Right(ConsoleVerb.CREATE, ConsoleResource.CREDENTIALS),
        parameters=(DRY_RUN,),
        errors=WRITE_ERRORS,
        body=UserKubeconfigOrder,
        action="credentials.create",
        example="/users/bob/kubeconfigs",
    ),
    Endpoint(
        "my_tokens",
        "/me/tokens",
        "One's own credentials that were not revoked, without their tokens",
        CredentialList,
        Right(ConsoleVerb.GET, ConsoleResource.MY_CREDENTIALS),
        errors=(400, 401, 403, 404, 409, 502),
    ),
    Endpoint(
        "issue_my_token",
        "/me/tokens",
        "Issue a token to oneself; it is shown once",
        IssuedToken,
        Right(ConsoleVerb.CREATE, ConsoleResource.MY_CREDENTIALS),
        parameters=(DRY_RUN,),
        errors=WRITE_ERRORS,
        body=CredentialOrder,
        action="credentials.create",
    ),
    Endpoint(
        "issue_my_kubeconfig",
        "/me/kubeconfigs",
        "Issue a token to oneself, in a kubeconfig; it is shown once",
        IssuedKubeconfig,
        Right(ConsoleVerb.CREATE, ConsoleResource.MY_CREDENTIALS),
        parameters=(DRY_RUN,),
        errors=WRITE_ERRORS,
        body=UserKubeconfigOrder,
        action="credentials.create",
    ),
    Endpoint(
        "revoke_my_token",
        "/me/tokens/{token}",
        "Revoke one of one's own tokens",
        Deleted,
        Right(ConsoleVerb.DELETE, ConsoleResource.MY_CREDENTIALS),
        parameters=(DRY_RUN,),
        errors=WRITE_ERRORS,
        is_deletion=True,
        action="credentials.delete",
        example="/me/tokens/bob-0123456789",
    ),
    Endpoint(
        "groups",
        "/groups",
        "The page Groups: one row per group",
        GroupList,
        Right(ConsoleVerb.GET, ConsoleResource.GROUPS),
        parameters=(*LIST_PARAMETERS, *GROUP_FILTERS),
        errors=(400, 401, 403, 404, 503),
        example="/groups?leaf=root.a.1",
    ),
    Endpoint(
        "create_group",
        "/groups",
        "Create a group on a leaf of the quota tree",
        GroupRow,
        Right(ConsoleVerb.CREATE, ConsoleResource.GROUPS),
        parameters=(DRY_RUN,),
        errors=WRITE_ERRORS,
        body=GroupOrder,
        action="groups.create",
    ),
    Endpoint(
        "group",
        "/groups/{name}",
        "One group",
        GroupRow,
        Right(ConsoleVerb.GET, ConsoleResource.GROUPS),
        errors=(400, 401, 403, 404, 503),
        example="/groups/team-a",
    ),
    Endpoint(
        "change_group",
        "/groups/{name}",
        "Change a group, and which users list it",
        GroupRow,
        Right(ConsoleVerb.UPDATE, ConsoleResource.GROUPS),
        parameters=(DRY_RUN,),
        errors=WRITE_ERRORS,
        body=GroupChange,
        action="groups.update",
        verb="PUT",
        needs_version=True,
        example="/groups/team-a",
    ),
    Endpoint(
        "delete_group",
        "/groups/{name}",
        "Delete a group that no user lists",
        Deleted,
        Right(ConsoleVerb.DELETE, ConsoleResource.GROUPS),
        parameters=(DRY_RUN,),
        errors=WRITE_ERRORS,
        is_deletion=True,
        action="groups.delete",
        example="/groups/team-a",
    ),
    Endpoint(
        "audit",
        "/audit",
        "The audit: who did what, when, and how it ended; newest first",
        AuditPage,
        Right(ConsoleVerb.GET, ConsoleResource.AUDIT),
        parameters=AUDIT_PARAMETERS,
        errors=(400, 401, 403, 404, 503),
        example="/audit?action=users.create&size=20",
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
