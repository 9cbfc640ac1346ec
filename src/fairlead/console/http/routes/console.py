"""What the answers of the routes share: the console, and what a request may see of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from fairlead.console.boards.change_hints import ADMIN_TOPICS, ChangeHints
from fairlead.console.charts.history import History
from fairlead.console.http.answers import Refused
from fairlead.console.http.board_states import BoardStates
from fairlead.console.http.data.operation_desk import OperationDesk
from fairlead.console.http.data.read_components import ReadComponents
from fairlead.console.http.data.read_data import ReadData
from fairlead.console.http.health_answers import HealthAnswers
from fairlead.console.http.job_event_answers import EventAnswers
from fairlead.console.http.log_streams import LogStreams
from fairlead.console.http.past_states import PastStates
from fairlead.console.http.pictures import Pictures, States
from fairlead.console.http.replay_desk import ReplayDesk
from fairlead.console.http.serving_answers import ServingAnswers
from fairlead.console.http.sign_in.answers import SignInAnswers
from fairlead.console.http.sign_in.desk import SignInDesk
from fairlead.console.http.subjects import (
    EveryClientIsAdmin,
    Subjects,
    WhileAllowed,
    subject_of,
    until_denied,
)
from fairlead.console.http.writing.credentials import CredentialPlans
from fairlead.console.http.writing.frame import SIGN_IN_HINT, PlannedWrite, WriteFrame, read_only
from fairlead.console.http.writing.job_forms import JobForms
from fairlead.console.http.writing.people import PeoplePlans
from fairlead.console.pages.endpoints import Endpoint
from fairlead.model.people.reach import reach_of
from fairlead.ports import ClusterWrites, LedgerReading, Ports, UsageLedger

Part = TypeVar("Part")


class Console(msgspec.Struct):
    """What the routes speak from.

    `desk`: None = there is no sign-in. `forms`: None = jobs cannot be submitted. `data`,
    `components`, `operations`: None = there is no API server. `ledger`: None = there is no store.

    `csrf`: what writes send back where there is no sign-in.
    """

    world: Ports
    board_states: BoardStates
    pictures: Pictures
    history: History
    hints: ChangeHints
    speed: Callable[[], float]
    csrf: str
    logs: LogStreams
    events: EventAnswers
    servings: ServingAnswers
    health: HealthAnswers
    past: PastStates
    replays: ReplayDesk
    subjects: Subjects = msgspec.field(default_factory=EveryClientIsAdmin)
    base_path: str = "/"
    desk: SignInDesk | None = None
    forms: JobForms | None = None
    data: ReadData | None = None
    components: ReadComponents | None = None
    operations: OperationDesk | None = None
    ledger: UsageLedger | None = None
    sign_in_hint: str = SIGN_IN_HINT
    writes: WriteFrame = msgspec.field(default_factory=lambda: WriteFrame(None))

    @property
    def roster_desk(self) -> SignInDesk:
        """Raises Refused, 404, where users do not sign in, and so are not followed."""
        if self.desk is None:
            raise Refused(
                404,
                "this console does not read users, because they do not sign in",
                self.sign_in_hint,
            )
        return self.desk

    @property
    def plans(self) -> PeoplePlans:
        snapshot = self.world.cluster.snapshot
        return PeoplePlans(self.world.people, lambda: snapshot().namespace_names)

    @property
    def credential_plans(self) -> CredentialPlans:
        records = self.desk.credential_records if self.desk is not None else None
        address = self.desk.external_url if self.desk is not None else ""
        return CredentialPlans(self.plans, records, self.world.clock.now, address)

    def now_ms(self) -> int:
        return round(self.world.clock.now() * 1000)

    def people_versions(self) -> dict[str, str]:
        """Of the topics of administrators alone, now."""
        if self.operations is not None:
            self.hints.versions.note_operations(self.operations.last)
        if self.desk is not None:
            self.hints.versions.note_people(*self.desk.people)
        now = self.hints.versions.as_text()
        return {topic: now[topic] for topic in ADMIN_TOPICS}

    @property
    def sign_in(self) -> SignInAnswers:
        return SignInAnswers(self.desk, self.base_path, self.sign_in_hint)


Answer = Callable[[Request], Awaitable[Response]]
Answering = Callable[[Console, Request, Endpoint], Awaitable[Response]]
Planning = Callable[[Console, Request, Any], Awaitable[PlannedWrite]]
"""Plans a write with its body (`http/writing/frame`)."""


def states_of(console: Console, request: Request) -> States:
    """The board states that this subject may see: of the present, or of the moment in `at`."""
    subject = subject_of(request)
    if at := request.query_params.get("at"):
        return console.past.of(usage_ledger(console), at, reach_of(subject))
    return console.pictures.of(subject)


def csrf_token(console: Console, request: Request) -> str | None:
    """What a write of this client sends back; None = its token is proof enough."""
    return console.csrf if console.desk is None else request.state.csrf


def while_allowed(
    console: Console,
    request: Request,
    endpoint: Endpoint,
    stream: Response,
    may_go_on: Callable[[], Awaitable[bool]] | None = None,
) -> Response:
    """The stream until the subject loses the right. `may_go_on`: what else is asked each time."""
    return WhileAllowed(
        stream, lambda: until_denied(console.subjects, request, endpoint.right, may_go_on)
    )


def from_api_server(console: Console, part: Part | None, without: str) -> Part:
    """The part of the world. Raises Refused (404) with what is absent where no API server is."""
    if part is None:
        what = f"{console.world.name} has no API server: {without}"
        raise Refused(404, what, "look at the cluster itself")
    return part


def cluster_writes(console: Console) -> ClusterWrites:
    return from_api_server(console, console.world.writes, "nothing can be written")


def job_forms(console: Console) -> JobForms:
    if console.forms is None:
        raise Refused(
            404,
            f"jobs cannot be submitted to {console.world.name}",
            "use `arena submit` with a kubeconfig of the cluster",
        )
    return console.forms


def sign_in_desk(console: Console) -> SignInDesk:
    if console.desk is None:
        raise read_only(console.sign_in_hint)
    return console.desk


def usage_ledger(console: Console) -> LedgerReading:
    """Raises Refused, 404, for a console without a store."""
    if console.ledger is None:
        raise Refused(
            404,
            "this console has no store, and so no usage ledger, because users do not sign in",
            console.sign_in_hint,
        )
    return console.ledger
