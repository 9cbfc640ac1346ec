"""Lists: strict parameters, search, filters, sorting with null last, pages, and files for
spreadsheets.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from tests.console.clusters import EPOCH, cluster, gpu_node, living_cluster, reading
from tests.console.quota_demo import crowded, demo

from fairlead.console.boards.board_state import BoardState
from fairlead.console.boards.rows import (
    Entry,
    RowSet,
    by_count,
    keys_of,
    matching,
    page_of,
    sortable_keys,
    sorted_rows,
)
from fairlead.console.pages.csv_table import render_csv
from fairlead.console.pages.endpoints import ENDPOINTS
from fairlead.console.pages.envelope import Json, Sentence
from fairlead.console.pages.list_query import ListQuery, SortKey, parse_list_query
from fairlead.errors import UserError

NODES = next(endpoint for endpoint in ENDPOINTS if endpoint.name == "nodes")


class Part(Json, frozen=True):
    running: int


class Sample(Json, frozen=True):
    name: str
    team: str = "a"
    load_percent: float | None = None
    part: Part | None = None
    tags: list[str] = []


def row_set(*rows: Sample) -> RowSet[Sample]:
    return RowSet(
        Sample,
        [
            Entry(row, f"{row.name}\n{row.team}".lower(), {"team": (row.team.lower(),)})
            for row in rows
        ],
    )


def names(rows: Sequence[Sample]) -> list[str]:
    return [row.name for row in rows]


def query(text: str) -> ListQuery:
    return parse_list_query([tuple(part.split("=", 1)) for part in text.split("&") if part], NODES)  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("colour=red", "unknown query parameter `colour`"),
        ("page=0", "`page` is `0`"),
        ("page=-1", "`page` is `-1`"),
        ("page=²", "`page` is `²`"),
        ("size=501", "`size` is `501`"),
        ("size=99999999999999999999", "`size` is `99999999999999999999`"),
        ("format=xml", "`format` is `xml`"),
        ("q=a&q=b", "`q` is given twice"),
    ],
)
def test_a_bad_parameter_is_refused_by_name_and_value(text: str, words: str) -> None:
    with pytest.raises(UserError, match=words) as refused:
        query(text)
    assert refused.value.hint


def test_the_refusal_of_an_unknown_parameter_names_the_known_ones() -> None:
    with pytest.raises(UserError) as refused:
        query("colour=red")
    assert "`gpu_node`" in refused.value.hint and "`sort`" in refused.value.hint


def test_repeated_filters_mean_or_and_empty_ones_mean_all() -> None:
    asked = query("mode=share&mode=MIG&status=")
    assert asked.filters == {"mode": frozenset({"share", "mig"})}


class Counted(list[Entry[Sample]]):
    """Entries that count how often they are looked through."""

    looks = 0

    def __iter__(self) -> Iterator[Entry[Sample]]:
        self.looks += 1
        return super().__iter__()


def counted(*rows: Sample) -> tuple[RowSet[Sample], Counted]:
    whole = row_set(*rows)
    entries = Counted(whole.entries)
    return RowSet(whole.row_type, entries), entries


FILTERED = ListQuery(filters={"team": frozenset({"a"})})
SORTED = ListQuery(sort=(SortKey("loadPercent", descending=True),))
SAMPLES = [Sample("x", "a", 1.0), Sample("y", "b", 3.0), Sample("z", "a", 2.0)]


@pytest.mark.parametrize(
    ("asked", "expected"), [(FILTERED, ["x", "z"]), (SORTED, ["y", "z", "x"])], ids=str
)
def test_the_same_rows_are_sought_once_for_all_browsers(
    asked: ListQuery, expected: list[str]
) -> None:
    rows, entries = counted(*SAMPLES)
    assert not rows.has_found(asked)
    for page in (1, 2, 3):
        found = matching(rows, structs.replace(asked, page=page, size=1))
        assert [row.name for row in found] == expected
    assert rows.has_found(asked)
    assert entries.looks == 1


def test_other_filters_and_another_order_are_another_query() -> None:
    rows, _ = counted(*SAMPLES)
    matching(rows, FILTERED)
    matching(rows, SORTED)
    both = ListQuery(filters={"team": frozenset({"b"})}, sort=(SortKey("loadPercent"),))
    assert [row.name for row in matching(rows, both)] == ["y"]
    assert [row.name for row in matching(rows, FILTERED)] == ["x", "z"]


def test_what_q_finds_is_not_kept_and_few_queries_are() -> None:
    rows, entries = counted(*SAMPLES)
    assert len(matching(rows, ListQuery())) == 3
    entries.looks = 0
    for _ in range(2):
        assert [row.name for row in matching(rows, ListQuery(q="y"))] == ["y"]
    assert entries.looks == 2
    for number in range(100):
        matching(rows, ListQuery(filters={"team": frozenset({f"team-{number}"})}))
    assert (
        sum(
            rows.has_found(ListQuery(filters={"team": frozenset({f"team-{number}"})}))
            for number in range(100)
        )
        <= 16
    )
    assert rows.has_found(ListQuery(filters={"team": frozenset({"team-99"})}))


@pytest.mark.parametrize("key", ["colour", "part", "tags"])
def test_sorting_by_a_key_without_an_order_is_refused(key: str) -> None:
    with pytest.raises(UserError, match=f"`sort` names `{key}`"):
        matching(row_set(), ListQuery(sort=(SortKey(key),)))


def test_unknown_fields_are_refused() -> None:
    with pytest.raises(UserError, match="`fields` names `colour`"):
        matching(row_set(), ListQuery(fields=("name", "colour")))


def test_only_plain_keys_are_sortable() -> None:
    assert sortable_keys(Sample) == ["name", "team", "loadPercent"]


@pytest.mark.parametrize(
    ("descending", "expected"),
    [(False, ["c", "a", "b", "n", "z"]), (True, ["a", "b", "c", "n", "z"])],
)
def test_null_comes_last_both_ways_and_name_breaks_ties(
    descending: bool, expected: list[str]
) -> None:
    rows = [
        Sample("z"),
        Sample("b", load_percent=5.0),
        Sample("n"),
        Sample("a", load_percent=5.0),
        Sample("c", load_percent=1.0),
    ]
    assert (
        names(matching(row_set(*rows), ListQuery(sort=(SortKey("loadPercent", descending),))))
        == expected
    )


@pytest.mark.parametrize("descending", [False, True])
def test_an_unknown_word_comes_last_both_ways_as_null_does(descending: bool) -> None:
    rows = [Sample("a", ""), Sample("b", "x"), Sample("c", "x"), Sample("d", "")]
    assert names(matching(row_set(*rows), ListQuery(sort=(SortKey("team", descending),)))) == [
        "b",
        "c",
        "a",
        "d",
    ]


def test_the_second_sort_key_orders_within_the_first() -> None:
    rows = [Sample("a", "x", 1.0), Sample("b", "y", 3.0), Sample("c", "x", 2.0)]
    assert names(
        sorted_rows(rows, [SortKey("team", True), SortKey("loadPercent", True)], keys_of(Sample))
    ) == ["b", "c", "a"]


def test_search_ignores_case_and_looks_into_every_text_field() -> None:
    rows = row_set(Sample("gpu-1", "Vision"), Sample("gpu-2", "speech"))
    assert names(matching(rows, ListQuery(q="VISI"))) == ["gpu-1"]


ROWS = st.lists(
    st.builds(
        Sample,
        name=st.text("abz", max_size=3),
        team=st.sampled_from("xyz"),
        load_percent=st.none() | st.floats(0, 100, allow_nan=False),
    ),
    max_size=40,
)


@given(
    ROWS,
    st.lists(
        st.sampled_from([SortKey("loadPercent", True), SortKey("team"), SortKey("name", True)])
    ),
    st.integers(1, 7),
)
def test_sorting_and_paging_lose_and_double_no_row(
    rows: list[Sample], sort: list[SortKey], size: int
) -> None:
    found = matching(row_set(*rows), ListQuery(sort=tuple(sort)))
    pages = [
        page_of(found, ListQuery(page=page, size=size)).rows
        for page in range(1, len(rows) // size + 3)
    ]
    assert sorted(id(row) for page in pages for row in page) == sorted(id(row) for row in rows)


@given(ROWS, st.sets(st.sampled_from("xyz")))
def test_a_filter_keeps_exactly_the_rows_that_answer_to_it(
    rows: list[Sample], teams: set[str]
) -> None:
    found = matching(row_set(*rows), ListQuery(filters={"team": frozenset(teams)} if teams else {}))
    assert [id(row) for row in found] == [id(row) for row in rows if not teams or row.team in teams]


def read_csv(data: bytes) -> list[list[str]]:
    assert data.startswith(b"\xef\xbb\xbf")
    return list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))


def test_a_file_has_all_columns_nested_ones_flattened_and_null_empty() -> None:
    data = render_csv(
        [Sample("gpu-1", load_percent=0.0, part=Part(3), tags=["a", "b"]), Sample("gpu-2")], Sample
    )
    assert read_csv(data) == [
        ["name", "team", "loadPercent", "part.running", "tags"],
        ["gpu-1", "a", "0.0", "3", "a; b"],
        ["gpu-2", "a", "", "", ""],
    ]


@pytest.mark.parametrize("text", ["=cmd()", "+1", "-1", "@a", "\t=1", "\r=1", "\n=1", "＝1", "＠a"])
def test_a_file_has_no_formula_and_keeps_every_text(text: str) -> None:
    names = [text, f'"{text}",x', f"a{text}", f" {text}"]
    found = read_csv(render_csv([Sample(name) for name in names], Sample, ["name"]))
    assert found == [["name"], [f"'{text}"], *([name] for name in names[1:])]


class UserPart(Json, frozen=True):
    user: str | None
    used: float


class Blocked(Json, frozen=True):
    node: str
    asks: float
    max: float | None


class Described(Json, frozen=True):
    reason: str
    reported: list[Sentence]
    sentence: Sentence | None


class Waiter(Json, frozen=True):
    name: str
    by_user: list[UserPart]
    blocked: list[Blocked]
    reported: list[Sentence]
    waiting: Described | None


def test_a_file_has_no_sentences_for_other_languages_and_nothing_of_python() -> None:
    printed = Sentence("clause-x", {"n": None}, "x")
    row = Waiter(
        "a",
        [UserPart("ann", 4), UserPart(None, 7)],
        [Blocked("root", 8, None)],
        [printed],
        Described("Full", [printed], printed),
    )
    assert read_csv(render_csv([row], Waiter)) == [
        ["name", "byUser", "blocked", "waiting.reason"],
        ["a", "ann=4;=7", "node=root asks=8 max=", "Full"],
    ]


def test_no_cell_of_any_table_shows_a_value_of_python() -> None:
    for seen in (BoardState(living_cluster(), EPOCH), BoardState(crowded(demo()), EPOCH)):
        for rows in (seen.nodes, seen.gpus, seen.jobs, seen.holders, seen.quota, seen.waiting):
            text = render_csv([entry.row for entry in rows.entries], rows.row_type).decode(
                "utf-8-sig"
            )
            assert not [
                word for word in ("None", "True", "False", "{", "[", "told") if word in text
            ], rows.row_type


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_a_cell_that_a_spreadsheet_would_run_gets_an_apostrophe(start: str) -> None:
    data = render_csv([Sample(f"{start}1+1", load_percent=-5.0)], Sample, ["name", "loadPercent"])
    assert read_csv(data)[1] == [f"'{start}1+1", "-5.0"]


def test_names_are_in_the_order_in_which_people_count() -> None:
    """In every list, its choices, and the map; in reverse where that is requested."""
    names = ["gpu-2", "gpu-10", "gpu-1", "gpu-9"]
    seen = BoardState(
        cluster([gpu_node(name, 1) for name in names], gpus=[reading(name) for name in names]),
        EPOCH,
    )
    counted = ["gpu-1", "gpu-2", "gpu-9", "gpu-10"]
    assert [entry.row.name for entry in seen.nodes.entries] == counted
    assert [node.name for node in seen.gpu_map.nodes] == counted
    assert [entry.row.node for entry in seen.gpus.entries] == counted
    assert seen.nodes.facets["gpu_node"] == counted
    for text, expected in (("name", counted), ("-name", counted[::-1])):
        asked = parse_list_query([("sort", text)], NODES)
        assert [row.name for row in matching(seen.nodes, asked)] == expected


@given(
    st.lists(
        st.text(max_size=8) | st.from_regex(r"[a-z]{0,2}[0-9]{0,3}-?[0-9]{0,2}", fullmatch=True),
        max_size=12,
    )
)
def test_any_names_have_an_order_which_does_not_depend_on_how_they_came(names: list[str]) -> None:
    turned = [*names[1:], *names[:1]]
    assert sorted(names, key=by_count) == sorted(turned, key=by_count)
