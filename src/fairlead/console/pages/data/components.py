"""The forms of the page Components: rows, one component, a plan, and the check of a store."""

from __future__ import annotations

from fairlead.console.pages.data.operations import ListedOperation
from fairlead.console.pages.envelope import Envelope, FieldFault, Json, ListAnswer, Timestamp
from fairlead.console.pages.writing.preview import Effect


class ComponentField(Json, frozen=True):
    """A value of a chart that administrators change most. `type`: `text`, `number`, `boolean`,
    `list` or `mapping` (both in YAML).
    """

    name: str
    type: str
    title: str
    title_zh: str


class ComponentListRow(Json, frozen=True):
    """One component of the catalogue (docs/spec/components.md#states). `state`: null = it could not
    be read, `message` has the reason. `source`: what a deployment needs: `chart`, `manifests`,
    `none` (a stand-in of a simulated cluster), `part` (of the installation), `command` (a part
    where there is no installation that Fairlead may change: a command writes it) or "" (Fairlead
    never writes it). `operation`: the one that runs, "" = none. `fields`: values of its chart.
    `chart`: its address where the console has a folder of charts, "" = none.
    """

    id: str
    group: str
    title: str
    title_zh: str
    state: str | None
    version: str
    available: str
    can_upgrade: bool
    managed_by: str
    namespace: str
    release: str
    message: str
    source: str
    chart: str
    is_required: bool
    operation: str
    fields: list[ComponentField]


class ComponentList(ListAnswer, frozen=True):
    items: list[ComponentListRow]


class ComponentObject(Json, frozen=True):
    kind: str
    namespace: str
    name: str


class ComponentDetail(Envelope, frozen=True):
    """`values`: YAML of the last deployment, "" = none. `objects`: what the inventory lists, or the
    workloads of a part or of a Helm release. `history`: its operations, the newest first. `links`:
    addresses of its pages (Grafana), as its Ingresses name them.
    """

    row: ComponentListRow
    values: str
    objects: list[ComponentObject]
    history: list[ListedOperation]
    links: list[str]


class ComponentOrder(Json, frozen=True):
    """What is planned. `do`: `deploy`, `upgrade` or `remove`. `chart`: `oci://…` or `https://…`,
    and `version` of it; or `manifests`: YAML. `values`: of the chart, or of the installation whose
    part it is; YAML without secrets. `settings`: texts for `fields` of the chart, by name, stronger
    than `values`. `namespace`: "" = the usual one. `delete_definitions`: with `remove`, its CRDs
    are deleted, too.
    """

    component: str
    do: str = "deploy"
    chart: str = ""
    version: str = ""
    manifests: str = ""
    values: str = ""
    namespace: str = ""
    delete_definitions: bool = False
    settings: dict[str, str] = {}


class ComponentCheck(Json, frozen=True):
    """One check before a write. `state`: ok, warn, fail, or unknown (it may not be read). `mend`:
    what to do, "" = nothing.
    """

    check: str
    state: str
    sentence: str
    mend: str


class ChangedField(Json, frozen=True):
    """`old`, `new`: JSON; "" = the field is absent."""

    path: str
    old: str
    new: str


class ChangedObject(Json, frozen=True):
    """`do`: `create`, `change` (with its `fields`), `delete` or `keep`."""

    do: str
    kind: str
    namespace: str
    name: str
    fields: list[ChangedField]


class ComponentPlanned(Json, frozen=True):
    """A plan. `valid`: no check fails, and `fields` is empty; only then there is a `plan_id`, which
    a preview never has. `checks`: all. `same`: how many objects do not change. `steps`: titles.
    `line`: the equal command. `valid_until`: after this time the plan must be made again.
    """

    valid: bool
    fields: list[FieldFault]
    effects: list[Effect]
    checks: list[ComponentCheck]
    changes: list[ChangedObject]
    same: int
    steps: list[str]
    line: str
    plan_id: str = ""
    valid_until: Timestamp | None = None


class ComponentsOrder(Json, frozen=True):
    """Components that are deployed by one click; each is as if it were asked for alone."""

    components: list[ComponentOrder]


class PlannedComponent(Json, frozen=True):
    """One of several, as in `ComponentPlanned`. `components`: its id, or those of all parts
    of the installation, which are written together.
    """

    components: list[str]
    checks: list[ComponentCheck]
    changes: list[ChangedObject]
    same: int
    steps: list[str]


class ComponentsPlanned(Json, frozen=True):
    """One plan of several, in the order in which they are deployed. The `path` of a field begins
    with the id of its component. See `ComponentPlanned`.
    """

    valid: bool
    fields: list[FieldFault]
    effects: list[Effect]
    items: list[PlannedComponent]
    line: str
    plan_id: str = ""
    valid_until: Timestamp | None = None


class StoreOrder(Json, frozen=True):
    """A database: `url` without a password, such as `postgresql://USER@HOST:5432/DATABASE`."""

    url: str
    password: str = ""


class StoreChecked(Json, frozen=True):
    """Whether the console could use a database. `sentence`: the answer of the engine, `hint`: what
    to do. `settings`: the values of the installation that name it. The password is in none.
    """

    ok: bool
    sentence: str
    hint: str
    settings: list[str]
