"""The text format: what is written can be read back, one bad line costs one line, and numbers are
written as readers expect them.
"""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from fairlead.model.metric import Family, MetricName, Sample
from fairlead.wire.metrics.prom_text import parse_page, render_go_number, render_number, render_page

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
VALUES = st.one_of(st.integers(-(10**20), 10**20), st.floats(allow_nan=False))


def page(*families: Family) -> str:
    return b"".join(render_page(families)).decode()


def family(
    labels: tuple[str, ...],
    rows: list[tuple[tuple[str, ...], float | None]],
    *,
    omits_empty: bool = False,
    help: str = "Help.",
) -> Family:
    return Family(
        MetricName("x_total", "counter", labels, help),
        [key for key, _ in rows],
        [value for _, value in rows],
        omits_empty,
    )


@given(rows=st.dictionaries(st.tuples(TEXT, TEXT), VALUES, max_size=8), help=TEXT)
def test_what_is_rendered_is_parsed_back(rows: dict[tuple[str, str], float], help: str) -> None:
    parsed = parse_page(page(family(("a", "b"), list(rows.items()), help=help)))
    assert parsed.bad_lines == 0
    assert {(s.labels["a"], s.labels["b"]): s.value for s in parsed.samples} == {
        key: float(value) for key, value in rows.items()
    }


@given(rows=st.dictionaries(st.tuples(TEXT), VALUES, min_size=1, max_size=8))
def test_the_official_parser_reads_the_same(rows: dict[tuple[str], float]) -> None:
    theirs = {
        s.labels["a"]: float(s.value)
        for f in text_string_to_metric_families(page(family(("a",), list(rows.items()))))
        for s in f.samples
    }
    assert theirs == {key[0]: float(value) for key, value in rows.items()}


@given(st.text(alphabet='ab{}="\\,# 1.e\n\t', max_size=60))
def test_no_text_makes_the_reader_fail(text: str) -> None:
    parse_page(text)


def test_unknown_values_and_empty_families_print_nothing() -> None:
    assert page(family(("a",), [(("1",), None), (("2",), 5)])) == (
        '# HELP x_total Help.\n# TYPE x_total counter\nx_total{a="2"} 5\n'
    )
    assert page(family(("a",), [(("1",), None)])) == ""
    assert page(family((), [])) == ""


def test_an_empty_label_is_printed_or_left_out_as_the_family_defines() -> None:
    rows: list[tuple[tuple[str, ...], float | None]] = [(("1", ""), 2)]
    assert 'x_total{a="1",b=""} 2\n' in page(family(("a", "b"), rows))
    assert 'x_total{a="1"} 2\n' in page(family(("a", "b"), rows, omits_empty=True))


def test_families_that_share_keys_print_the_same_labels() -> None:
    keys = [("n1",), ("n2",)]
    one = Family(MetricName("one", "gauge", ("node",), "One."), keys, [1, None])
    two = Family(MetricName("two", "gauge", ("host",), "Two."), keys, [0.5, 2])
    text = page(one, two)
    assert 'one{node="n1"} 1\n' in text
    assert 'two{host="n1"} 0.5\ntwo{host="n2"} 2\n' in text


@pytest.mark.parametrize(
    "line",
    [
        'x{a="1" 5',
        ('x{a="1"} five'),
        "x",
        "x{a=1} 5",
        '{a="1"} 5',
        'x{a="1",,b="2"} 3',
        "9x 1",
        "x 1 2 3",
        'x{a="b\\"} 1',
    ],
)
def test_one_bad_line_costs_one_line(line: str) -> None:
    parsed = parse_page(f"before 1\n{line}\nafter 2 1767600000000\n")
    assert parsed.samples == [Sample("before", {}, 1.0), Sample("after", {}, 2.0)]
    assert parsed.bad_lines == 1


def test_only_the_families_asked_for_are_read() -> None:
    parsed = parse_page('a_1{x="}"} 1\r\nb_1{ x = "\\n" , } +Inf\nb_2 NaN\n', ("b_",))
    assert parsed.samples[0] == Sample("b_1", {"x": "\n"}, math.inf)
    assert math.isnan(parsed.samples[1].value)
    assert len(parsed.samples) == 2


@given(VALUES)
def test_every_spelling_of_a_number_is_exact(value: float) -> None:
    assert float(render_number(value)) == float(value)
    assert float(render_go_number(value)) == float(value)


@given(st.text(alphabet='ab="\\, 1_', max_size=24))
@example('node="n,1",gpu="",uuid="GPU=1"')
def test_labels_mean_the_same_with_a_space_before_them(block: str) -> None:
    """Labels without a space take the fast path where possible, all others the general one."""
    assert parse_page(f"x{{{block}}} 1") == parse_page(f"x{{ {block}}} 1")


def test_labels_as_exporters_print_them() -> None:
    parsed = parse_page('x{node="n,1",gpu="",uuid="GPU=1"} 1')
    assert [each.labels for each in parsed.samples] == [{"node": "n,1", "gpu": "", "uuid": "GPU=1"}]
