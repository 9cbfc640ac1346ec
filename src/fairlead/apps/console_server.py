"""The console's server: keeps the board state current, samples series and announces changes.

Without sign-in it listens on loopback alone, and answers only to names of this machine: otherwise a
foreign web page could reach a loopback server under a name of its own.
"""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
import socket
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final, TypeVar

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from fairlead.apps.operations.history import HistoryKeeper
from fairlead.apps.operations.runner import OperationRunner
from fairlead.apps.operations.takeover import OperationTakeover
from fairlead.apps.server import is_loopback
from fairlead.apps.service import Probes, ServedApp
from fairlead.console.boards.board_state import BoardState
from fairlead.console.boards.change_hints import ChangeHints, TopicVersions
from fairlead.console.boards.data.operation_rows import operations_at_work
from fairlead.console.boards.restricted.board import SharedBoard
from fairlead.console.charts.charts import OUTSIDE_SECONDS
from fairlead.console.charts.counters import ConsoleCounters
from fairlead.console.charts.history import History, LineSample
from fairlead.console.charts.history_samples import SAMPLED, samples_of
from fairlead.console.charts.idle import (
    SAMPLED_SECONDS,
    IdleTimes,
    idle_hours_in_history,
    idle_hours_in_series,
    idle_in_history,
    idle_in_series,
)
from fairlead.console.http.answers import Refused
from fairlead.console.http.board_states import BoardStates
from fairlead.console.http.data.claim_users import MountedClaims
from fairlead.console.http.data.operation_desk import OperationDesk
from fairlead.console.http.data.read_components import ReadComponents
from fairlead.console.http.data.read_data import ReadData
from fairlead.console.http.guard import Guard
from fairlead.console.http.health_answers import HealthAnswers
from fairlead.console.http.job_event_answers import EventAnswers
from fairlead.console.http.log_streams import LogStreams
from fairlead.console.http.past_states import PastStates
from fairlead.console.http.pictures import Pictures
from fairlead.console.http.replay_desk import ReplayDesk
from fairlead.console.http.routes.console import Console
from fairlead.console.http.routes.table import console_routes
from fairlead.console.http.serving_answers import ServingAnswers
from fairlead.console.http.sign_in.desk import SignInDesk
from fairlead.console.http.subjects import EveryClientIsAdmin, Subjects
from fairlead.console.http.writing.frame import SIGN_IN_HINT, WriteFrame
from fairlead.console.http.writing.job_forms import JobForms
from fairlead.errors import OutsideError, UserError
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.ports import Ports, Series, UsageLedger
from fairlead.settings import LOOPBACK, READ_SECONDS

Answer = TypeVar("Answer")
PastMoment = tuple[float, Callable[[], ClusterSnapshot]]

HINT_SECONDS: Final = 1.0
"""`HINT_SECONDS`: shortest time between two announcements of a topic."""
_SAMPLE_CHECK_SECONDS: Final = 1.0
_SAMPLE_CHECK_SHORTEST_SECONDS: Final = 0.1
_PAUSE_IN_PAST_SECONDS: Final = 0.02
"""`_PAUSE_IN_PAST_SECONDS`: pause between two ticks of the past.

It leaves half of a core for requests.
"""
_LINES_IN_PART: Final = 2_000
IDLE_LOOK_SECONDS: Final = 60.0
IDLE_FIRST_SECONDS: Final = 2.0
"""Seconds between queries for the time since when cards are idle.

The second value applies while the answer is still unknown.
"""
_log = logging.getLogger(__name__)


class ConsoleSettings(Struct, frozen=True):
    """How the console listens.

    `base_path`: where a proxy shows it (`/gpu/`); `allowed_hosts`: further host names that are
    accepted; `read_seconds`: how long a client may take to send a request; `sign_in_hint`: how
    users sign in at this console, where they do not; `charts`: folder in a registry, "" = none.
    """

    host: str = LOOPBACK
    base_path: str = "/"
    allowed_hosts: tuple[str, ...] = ()
    read_seconds: float = READ_SECONDS
    sign_in_hint: str = SIGN_IN_HINT
    charts: str = ""


class ConsoleServer:
    """One console for one world, whose own loops run beside it.

    `past`: gives earlier moments of the cluster, oldest first, for charts that would otherwise
    begin now: epoch seconds, and what makes the snapshot. It is called after the first sample. The
    snapshots are made after the first question for a board, slowly, in a thread. `subjects`: who
    asks; without it every client is the administrator, or the one who is signed in at `desk` (None
    = there is no sign-in). `forms`: how jobs are written that are submitted; None = they cannot be.
    `ledger`: of usage; None = that of the desk's store, if there is one.
    """

    def __init__(
        self,
        world: Ports,
        settings: ConsoleSettings | None = None,
        past: Callable[[], Sequence[PastMoment]] | None = None,
        subjects: Subjects | None = None,
        desk: SignInDesk | None = None,
        forms: JobForms | None = None,
        ledger: UsageLedger | None = None,
    ) -> None:
        self.world = world
        self.settings = settings or ConsoleSettings()
        self._desk = desk
        self._forms = forms
        self._ledger = ledger or (desk.ledger if desk is not None else None)
        check_address(self.settings.host, has_sign_in=desk is not None)
        self.counters = ConsoleCounters()
        self.hints = ChangeHints(TopicVersions())
        self.board_states = BoardStates(
            world, self.hints.versions, self.speed, self.counters.note_board_state
        )
        self.pictures = Pictures(self.board_states, world)
        users = MountedClaims(world.cluster)
        self.data = ReadData(world.data, users=users.now) if world.data is not None else None
        self.components = (
            ReadComponents(world.components, charts=self.settings.charts)
            if world.components is not None
            else None
        )
        self.operations = (
            OperationDesk(world.operations, world.clock.now, world.operated)
            if world.operations is not None
            else None
        )
        self.history = History()
        self.logs = LogStreams()
        self._replays = ReplayDesk(world.clock.now)
        self._past = past
        self.history.is_being_read = past is not None
        self._first_sample = asyncio.Event()
        self._trouble = ""
        self._subjects = subjects or desk or EveryClientIsAdmin()
        self.probes = Probes(unready=self._unready)
        self.app = self._app()

    def speed(self) -> float:
        """Seconds of the world's clock per second of the machine's.

        Simulated clocks have a speed; others run at 1.
        """
        return float(getattr(self.world.clock, "speed", 1.0))

    def service(self, sock: socket.socket) -> ServedApp:
        """Streams end first, so that a stop never waits for a browser."""
        return ServedApp(
            app=self.app,
            sock=sock,
            loops=(
                self._follow,
                self._sample,
                self._remember,
                self._look_for_idle,
                self._follow_data,
                *(self._desk.loops() if self._desk is not None else ()),
                *self._operation_loops(),
            ),
            probes=self.probes,
            stopping=self._close_streams,
            read_seconds=self.settings.read_seconds,
        )

    def _close_streams(self) -> None:
        self.hints.close()
        self.pictures.close()
        self.logs.close()
        self._replays.close()

    async def _follow(self) -> None:
        """Announce changed topics, at most once a second each, after the board state changed."""
        while True:
            await asyncio.sleep(HINT_SECONDS)
            if not self.world.cluster.is_ready:
                continue
            pending: frozenset[str] = frozenset()
            if self._streams or self.board_states.is_watched:
                self.hints.versions.update(self.world.cluster.snapshot(), self.world.gpus.latest())
                if self.world.timekeeper is not None:
                    self.hints.versions.note_time(self.world.timekeeper.version)
                if self._desk is not None:
                    self.hints.versions.note_people(*self._desk.people)
                pending = self.hints.unannounced
            is_shown = not self.board_states.is_behind
            if self.board_states.is_overdue and (pending or self.board_states.is_watched):
                is_shown = await self.newest_board_state("hint of a change") is not None
            if pending and is_shown:
                self.hints.announce(pending)
            await self.pictures.follow()

    @property
    def _streams(self) -> int:
        return self.hints.stream_count + self.pictures.stream_count

    def _operation_loops(self) -> tuple[Callable[[], Coroutine[Any, Any, None]], ...]:
        """Operations are carried out where users sign in; other consoles write nothing."""
        world, desk = self.world, self.operations
        if desk is None or self._desk is None or world.operated is None:
            return ()
        identity = f"console-{socket.gethostname()}-{secrets.token_hex(4)}"
        runner = OperationRunner(
            desk.records, world.operated, world.helm, identity, now=world.clock.now
        )
        history = HistoryKeeper(desk.records, self._desk.operation_history)
        return (OperationTakeover(desk.records, runner, desk.woken, world.clock.now, history).run,)

    async def _follow_data(self) -> None:
        """Reads data sets and operations again while pages show them, and notes what changed.

        `_follow` sends the hints.
        """
        while True:
            await asyncio.sleep(HINT_SECONDS)
            if self.operations is not None and self.operations.is_watched:
                await self._read_operations(self.operations)
            if self.data is not None and await self.data.follow():
                await self._note_data(self.data)

    async def _read_operations(self, desk: OperationDesk) -> None:
        before = desk.last
        try:
            found = await desk.read()
        except OutsideError:
            return  # the page that asks next gets the reason
        self.hints.versions.note_operations(found)
        if operations_at_work(found) == operations_at_work(before):
            return
        if self.data is not None:
            self.data.wrote()  # an operation that ended has changed data sets
        if self.components is not None:
            self.components.wrote()

    async def _note_data(self, data: ReadData) -> None:
        operations = self.operations.last if self.operations is not None else ()
        view = await data.view(None, operations_at_work(operations))
        self.hints.versions.note_data(view.content)
        await self.pictures.note_data(lambda reach: data.view(reach.namespaces, {}))

    async def _sample(self) -> None:
        """One sample of everything per tick of the cluster's clock.

        A failure is logged and becomes a gap.
        """
        while True:
            await asyncio.sleep(
                max(_SAMPLE_CHECK_SHORTEST_SECONDS, _SAMPLE_CHECK_SECONDS / max(1.0, self.speed()))
            )
            if self.world.cluster.is_ready and self.history.is_due(self.world.clock.now()):
                board_state = await self.newest_board_state(
                    "sample of the built-in series", *SAMPLED
                )
                if board_state is not None:
                    await self._write_tick(board_state)
                    self._first_sample.set()

    async def _write_tick(self, board_state: BoardState) -> None:
        """Write one tick, made in a thread and written in parts.

        A tick of a large cluster has ten thousand lines.
        """
        samples = await asyncio.to_thread(lambda: list(samples_of(board_state)))
        for at in range(0, len(samples), _LINES_IN_PART):
            self.history.add(board_state.now, samples[at : at + _LINES_IN_PART], is_last=False)
            await asyncio.sleep(0)
        self.history.add(board_state.now, ())

    async def _remember(self) -> None:
        """Put the past before the first live sample, once someone looks.

        It may take a while, and requests do not wait for it.
        """
        if self._past is None:
            return
        await self._first_sample.wait()
        try:
            moments = self._past()
            if moments:
                await self.board_states.asked.wait()
            for at, snapshot in moments:
                if self.history.has_room(at):
                    samples = await asyncio.to_thread(_samples_at, at, snapshot)
                    self.history.add_past(at, samples)
                    await asyncio.sleep(_PAUSE_IN_PAST_SECONDS)
        except Exception:  # noqa: BLE001 - logged; the charts go on from here
            _log.exception("charts begin now: the past cannot be remembered")
        finally:
            self.history.is_being_read = False

    async def _look_for_idle(self) -> None:
        """Reads from the series since when cards are idle.

        While the series do not answer, the last answer stays.
        """
        last_error, hours_at = "", -math.inf
        # nothing is new before
        pace = self.history.tick_seconds if self.world.series is None else SAMPLED_SECONDS
        while True:
            try:
                self.board_states.idle_times = await self._of_series(
                    self._idle_in_history, idle_in_series
                )
                if time.monotonic() - hours_at >= pace:
                    # a source that does not answer is not asked again at once
                    hours_at = time.monotonic()
                    self.board_states.idle_hours = await self._of_series(
                        idle_hours_in_history, idle_hours_in_series
                    )
                last_error = ""
            except (OutsideError, TimeoutError) as error:
                if str(error) != last_error:
                    _log.warning(
                        "since when cards are idle is not known from Prometheus: %s", error
                    )
                last_error = str(error)
            if self.history.is_being_read:  # nothing more is known before someone looks
                await self.board_states.asked.wait()
            knows_all = self.board_states.idle_times.since and not self.history.is_being_read
            await asyncio.sleep(IDLE_LOOK_SECONDS if knows_all else IDLE_FIRST_SECONDS)

    def _idle_in_history(self, history: History, now: float) -> IdleTimes:
        return idle_in_history(history, now, self.board_states.idle_times)

    async def _of_series(
        self,
        in_history: Callable[[History, float], Answer],
        in_prometheus: Callable[[Series, float], Awaitable[Answer]],
    ) -> Answer:
        """The answer of the series: of Prometheus, or else of the built-in history.

        Raises OutsideError or TimeoutError.
        """
        now = self.world.clock.now()
        if self.world.series is None:
            return await asyncio.to_thread(in_history, self.history, now)
        async with asyncio.timeout(OUTSIDE_SECONDS):
            return await in_prometheus(self.world.series, now)

    async def newest_board_state(self, purpose: str, *parts: str) -> SharedBoard | None:
        """The board state with these parts made.

        None if it cannot be made, with a traceback in the log, once per reason. A loop must survive
        an object that cannot be shown.
        """
        try:
            board_state = await self.board_states.prepare(await self.board_states.renew(), *parts)
        except Exception as error:  # noqa: BLE001 - logged; requests answer 500 meanwhile
            if repr(error) != self._trouble:
                _log.exception("no board state for a %s", purpose)
            self._trouble = repr(error)
            return None
        self._trouble = ""
        return board_state

    def _app(self) -> ASGIApp:
        console = Console(
            world=self.world,
            board_states=self.board_states,
            pictures=self.pictures,
            subjects=self._subjects,
            history=self.history,
            hints=self.hints,
            speed=self.speed,
            csrf=secrets.token_urlsafe(24),
            logs=self.logs,
            events=EventAnswers(),
            servings=ServingAnswers(),
            health=HealthAnswers(),
            past=PastStates(lambda: round(self.world.clock.now() * 1000)),
            replays=self._replays,
            desk=self._desk,
            forms=self._forms,
            data=self.data,
            components=self.components,
            operations=self.operations,
            ledger=self._ledger,
            sign_in_hint=self.settings.sign_in_hint,
            writes=WriteFrame(
                self._desk.write_tools() if self._desk is not None else None,
                self.settings.sign_in_hint,
            ),
            base_path=base_path_of(self.settings.base_path),
        )
        health = {**self.probes.pages(), "/readyz": self._readyz, "/metrics": self._metrics}
        app = BasePathApp(console_routes(console, health), console.base_path)
        return Guard(
            app,
            frozenset(name.lower() for name in self.settings.allowed_hosts),
            self._desk is not None,
            self.counters.note_request,
        )

    async def _readyz(self, request: Request) -> Response:
        """What is wrong, in the form of the API's error pages:
        with a hint, and when to ask again.
        """
        refused = self._refused()
        if refused is not None:
            raise refused
        return Response("ok\n", media_type="text/plain")

    def _unready(self) -> str:
        refused = self._refused()
        return refused.what if refused is not None else ""

    def _refused(self) -> Refused | None:
        """The cluster and, where users sign in, its users are read first."""
        refused = self.board_states.unready()
        if refused is None and self._desk is not None:
            return self._desk.unready()
        return refused

    async def _metrics(self, request: Request) -> Response:
        data = self.counters.page(
            self._streams, self.history.line_count, self.world.cluster.is_ready
        )
        return Response(data, media_type="text/plain; version=0.0.4; charset=utf-8")


def _samples_at(at: float, snapshot: Callable[[], ClusterSnapshot]) -> list[LineSample]:
    return list(samples_of(BoardState(snapshot(), at)))


class BasePathApp:
    """The application below a base path; health is at the root as well, where probes expect it."""

    def __init__(self, app: ASGIApp, base_path: str) -> None:
        self._app = app
        self._prefix = base_path.rstrip("/")

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        path: str = scope["path"]
        if self._prefix and path.startswith(self._prefix + "/"):
            scope["path"] = path[len(self._prefix) :]
        elif self._prefix and path not in ("/healthz", "/readyz", "/metrics"):
            raise Refused(
                404,
                f"there is nothing at `{path[:200]}`",
                f"this console is at `{self._prefix}/`",
            )
        await self._app(scope, receive, send)


def check_address(host: str, *, has_sign_in: bool) -> None:
    """Refuse an address that other machines can reach, unless users sign in.

    Without sign-in every client that reaches the page sees the whole cluster.
    """
    if has_sign_in or is_loopback(host):
        return
    raise UserError(
        f"without sign-in, every client that reaches `{host or '*'}` would see the whole cluster",
        f"add `--sign-in on`, or listen on {LOOPBACK} (`kubectl port-forward` or `ssh -L` bring it "
        "to you)",
    )


def base_path_of(text: str) -> str:
    """A base path with a slash at both ends.

    >>> base_path_of("gpu/console"), base_path_of("/")
    ('/gpu/console/', '/')
    """
    inner = text.strip("/")
    return f"/{inner}/" if inner else "/"
