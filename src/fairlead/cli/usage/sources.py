"""Where verbs about usage find the ledger: a console, or the store itself. Both answer alike."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

from fairlead.cli.frame.context import ConsolePages, Context, UsageStore
from fairlead.errors import UserError

if TYPE_CHECKING:
    from fairlead.console.pages.usage.prices import PriceList, PriceOrder, PriceWritten
    from fairlead.console.pages.usage.replay import QuotaReplay, QuotaReplayState
    from fairlead.console.pages.usage.tables import IdleList, JobCost, UsageList
    from fairlead.model.quota.tree import QuotaTree
    from fairlead.model.snapshot import ClusterSnapshot
    from fairlead.ports import UsageLedger

_PAGE: Final = 500
_REPLAY: Final = "/quota/replay"
_LOOK_SECONDS: Final = 1.0
Form = TypeVar("Form")


class ReplayQuestion(NamedTuple):
    """`tree`: the object of an ElasticQuotaTree, and the tree in it; None = those that were in
    force. `nodes`: MODEL=+N. `progress`: what is being done, and which part of it is done.
    """

    period: str
    tree: tuple[dict[str, Any], QuotaTree] | None
    nodes: Sequence[str]
    progress: Callable[[str, float], None]


class UsageSource(Protocol):
    """Blocking. `words`: query parameters of the route (docs/reference/openapi.json). Each raises
    UserError for bad input, OutsideError if the console or the store does not answer.
    """

    def usage(self, words: Mapping[str, str]) -> UsageList: ...

    def idle(self, words: Mapping[str, str]) -> IdleList: ...

    def job_cost(self, namespace: str, job_type: str, name: str, uid: str) -> JobCost:
        """`job_type`: "" = any."""
        ...

    def prices(self) -> PriceList: ...

    def add_price(self, order: PriceOrder) -> PriceWritten: ...

    def report(self, month: str, as_of: str, form: str) -> bytes: ...

    def past(self, moment: str) -> tuple[ClusterSnapshot, str]:
        """The cluster as it was, and the sentence about a gap at the moment; "" = there is none."""
        ...

    def replay(self, question: ReplayQuestion) -> QuotaReplay:
        """Takes up to minutes."""
        ...


def add_source(parser: argparse.ArgumentParser, when: str = "") -> None:
    """The flags that name the console or the store. `when`: the condition, before their help."""
    add = parser.add_argument
    add(
        "--console",
        metavar="URL",
        default="",
        help=f"{when}address of the console (default: that in the kubeconfig)",
    )
    add(
        "--console-ca-file",
        metavar="FILE",
        default="",
        help="PEM file of the authority of the console's certificate",
    )
    add(
        "--store",
        metavar="URL",
        default="",
        help=f"{when}read the store itself: `sqlite:///FILE`, `postgresql://…` or `mysql://…`",
    )
    add(
        "--store-password-file",
        metavar="FILE",
        default="",
        help="file that contains the password of the store's user",
    )
    add(
        "--store-ca-file",
        metavar="FILE",
        default="",
        help="PEM file of the authority of the database's certificate; implies TLS",
    )


def usage_source(args: argparse.Namespace, context: Context) -> UsageSource:
    """Raises UserError if both are named, or neither is known."""
    if args.store and args.console:
        raise UserError("--store and --console are given", "give one of them")
    if args.store:
        store = context.machine.usage_store(
            args.store, args.store_password_file, args.store_ca_file
        )
        return _StoreSource(store, context)
    pages = context.world.console_pages(args.console, args.console_ca_file)
    return _ConsoleSource(pages, context.sleep)


class _StoreSource:
    def __init__(self, store: UsageStore, context: Context) -> None:
        self._store = store
        self._now = round(context.now() * 1000)
        self._user = context.env.get("USER", "")

    def usage(self, words: Mapping[str, str]) -> UsageList:
        from fairlead.console.boards.usage.usage_rows import usage_table
        from fairlead.console.pages.usage.tables import UsageList

        table = self._store.ask(lambda ledger: usage_table(ledger, words, self._now))
        return table.as_list(UsageList)

    def idle(self, words: Mapping[str, str]) -> IdleList:
        from fairlead.console.boards.usage.idle_rows import idle_table
        from fairlead.console.pages.usage.tables import IdleList

        table = self._store.ask(lambda ledger: idle_table(ledger, words, self._now))
        return table.as_list(IdleList)

    def job_cost(self, namespace: str, job_type: str, name: str, uid: str) -> JobCost:
        from fairlead.console.boards.usage.job_cost import job_cost

        return self._store.ask(
            lambda ledger: job_cost(ledger, self._now, namespace, name, job_type, uid)
        )

    def prices(self) -> PriceList:
        from fairlead.console.boards.usage.price_rows import price_table
        from fairlead.console.pages.usage.prices import PriceList

        table = self._store.ask(lambda ledger: price_table(ledger, self._now))
        return table.as_list(PriceList)

    def add_price(self, order: PriceOrder) -> PriceWritten:
        from fairlead.console.boards.usage.price_rows import stored_price

        return self._store.ask(lambda ledger: stored_price(ledger, order, self._now, self._user))

    def report(self, month: str, as_of: str, form: str) -> bytes:
        from fairlead.console.boards.usage.report import month_report
        from fairlead.console.boards.usage.report_texts import render_report

        found = self._store.ask(lambda ledger: month_report(ledger, month, as_of))
        return render_report(found, form)

    def past(self, moment: str) -> tuple[ClusterSnapshot, str]:
        from fairlead.console.boards.usage.past import PastCluster, find_moment, read_past

        async def read(ledger: UsageLedger) -> PastCluster:
            return await read_past(ledger, *await find_moment(ledger, moment, self._now))

        found = self._store.ask(read)
        return found.snapshot, found.gap

    def replay(self, question: ReplayQuestion) -> QuotaReplay:
        from fairlead.console.boards.usage.replay import quota_replay
        from fairlead.rules.usage.replay.changes import parse_model_change

        nodes = [parse_model_change(text) for text in question.nodes]
        tree = question.tree[1] if question.tree is not None else None
        words = {"period": question.period}
        return self._store.ask(
            lambda ledger: quota_replay(ledger, tree, words, self._now, nodes, question.progress)
        )


class _ConsoleSource:
    def __init__(self, pages: ConsolePages, sleep: Callable[[float], None]) -> None:
        self._pages = pages
        self._sleep = sleep

    def usage(self, words: Mapping[str, str]) -> UsageList:
        from fairlead.console.pages.usage.tables import UsageList

        return self._whole("/usage", words, UsageList)

    def idle(self, words: Mapping[str, str]) -> IdleList:
        from fairlead.console.pages.usage.tables import IdleList

        return self._whole("/idle", words, IdleList)

    def job_cost(self, namespace: str, job_type: str, name: str, uid: str) -> JobCost:
        from fairlead.console.pages.usage.tables import JobCost

        path = f"/jobs/{_part(namespace)}/{_part(job_type or 'any')}/{_part(name)}/cost"
        return self._one(path, {"uid": uid}, JobCost)

    def prices(self) -> PriceList:
        from fairlead.console.pages.usage.prices import PriceList

        return self._whole("/prices", {}, PriceList)

    def add_price(self, order: PriceOrder) -> PriceWritten:
        import msgspec

        from fairlead.console.pages.usage.prices import PriceWritten

        data = self._pages.post("/prices", msgspec.json.encode(order))
        return self._decoded(data, PriceWritten)

    def report(self, month: str, as_of: str, form: str) -> bytes:
        return self._pages.get(f"/reports/{_part(month)}", {"asOf": as_of, "format": form})

    def past(self, moment: str) -> tuple[ClusterSnapshot, str]:
        from fairlead.rules.usage.past import PAST
        from fairlead.wire.files.snapshot_file import parse_snapshot

        data = self._pages.get("/past/snapshot", {"at": moment})
        snapshot = parse_snapshot(data, "the answer of the console").snapshot
        gap = snapshot.sources.get(PAST)
        return snapshot, gap.message if gap is not None else ""

    def replay(self, question: ReplayQuestion) -> QuotaReplay:
        import msgspec

        from fairlead.console.pages.usage.replay import QuotaReplayState, ReplayOrder

        tree = msgspec.json.encode(question.tree[0]).decode() if question.tree else ""
        order = ReplayOrder(question.period, list(question.nodes), tree=tree)
        begun = self._pages.post(_REPLAY, msgspec.json.encode(order))
        state = self._decoded(begun, QuotaReplayState)
        try:
            return self._replayed(state, question.progress)
        except KeyboardInterrupt:
            self._pages.delete(_REPLAY)
            raise

    def _replayed(
        self, begun: QuotaReplayState, progress: Callable[[str, float], None]
    ) -> QuotaReplay:
        from fairlead.console.boards.usage.replay import DOING

        words, state = {code: word for word, code in DOING.items()}, begun
        while state.state == "running" and state.id == begun.id:
            progress(words.get(state.doing, state.doing), state.part)
            self._sleep(_LOOK_SECONDS)
            state = self._one(_REPLAY, {}, type(begun))
        if state.id != begun.id:
            raise UserError(
                "the console has begun another replay, or was started anew",
                "ask again when no other replay is running",
            )
        if state.result is None:
            raise UserError(state.error or f"the replay was {state.state}", state.hint)
        return state.result

    def _one(self, path: str, words: Mapping[str, str], form: type[Form]) -> Form:
        return self._decoded(self._pages.get(path, words), form)

    def _decoded(self, data: bytes, form: type[Form]) -> Form:
        import msgspec

        try:
            return msgspec.json.decode(data, type=form)
        except msgspec.DecodeError as error:
            raise UserError(
                f"the console answers in another form: {error}",
                "use the `fairlead` of the console's version",
            ) from error

    def _whole(self, path: str, words: Mapping[str, str], form: type[Form]) -> Form:
        """All pages of a list in one."""
        from msgspec.structs import replace

        whole: Any = self._one(path, {**words, "size": str(_PAGE)}, form)
        items = list(whole.items)
        while len(items) < whole.total:
            query = {**words, "size": str(_PAGE), "page": str(len(items) // _PAGE + 1)}
            page: Any = self._one(path, query, form)
            if not page.items:
                break
            items += page.items
        found: Form = replace(whole, items=items, page=1, size=max(1, len(items)))
        return found


def _part(text: str) -> str:
    """A part of a path."""
    from urllib.parse import quote

    return quote(text, safe="")
