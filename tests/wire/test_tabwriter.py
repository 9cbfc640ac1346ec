"""Tables are aligned as Go's text/tabwriter aligns them (docs/spec/arena-cli.md#tables)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairlead.wire.text.tabwriter import align

CELL = st.text(
    st.characters(exclude_characters="\t\n\v\f\r", exclude_categories=["Cs"]), max_size=6
)
TEXT = st.lists(st.lists(CELL, min_size=1, max_size=5).map("\t".join), max_size=8).map("\n".join)


def test_a_column_is_as_wide_as_its_longest_cell_and_two_blanks() -> None:
    assert align("a\tb\tc\nlonger\tx\ty\n") == "a       b  c\nlonger  x  y\n"


def test_a_line_without_a_tab_ends_all_columns() -> None:
    assert align("a\tb\n-----\nlonger\tc\n") == "a  b\n-----\nlonger  c\n"


def test_a_column_is_a_run_inside_the_run_of_the_column_to_its_left() -> None:
    # In lines 1 and 3 the second column is interrupted by line 2, which has no terminated second
    # cell.
    assert align("a\tlong cell\tx\nb\ty\nc\td\tz\n") == "a  long cell  x\nb  y\nc  d  z\n"


def test_the_text_after_the_last_tab_is_neither_padded_nor_measured() -> None:
    assert align("a\tvery very long\nb\tc\td\n") == "a  very very long\nb  c  d\n"


def test_a_cell_that_ends_with_a_tab_is_padded() -> None:
    assert align("a\tb\t\nlonger\tc\t\n") == "a       b  \nlonger  c  \n"


def test_an_all_empty_column_is_as_wide_as_the_padding() -> None:
    assert align("a\t\tb\nc\t\td\n") == "a    b\nc    d\n"


def test_widths_count_code_points() -> None:
    assert align("名字\tx\nab\ty\n") == "名字  x\nab  y\n"


@given(TEXT)
def test_only_blanks_are_added(text: str) -> None:
    for before, after in zip(text.split("\n"), align(text).split("\n"), strict=True):
        assert after.replace(" ", "") == before.replace("\t", "").replace(" ", "")
        assert after.endswith(before.split("\t")[-1])


@given(TEXT)
def test_it_agrees_with_a_transcription_of_gos_algorithm(text: str) -> None:
    assert align(text) == go_align(text)


def go_align(text: str, padding: int = 2) -> str:
    """text/tabwriter's `format` and `writeLines`, line by line, as an independent oracle."""
    lines = [line.split("\t") for line in text.split("\n")]
    out: list[str] = []

    def write(start: int, end: int, widths: list[int]) -> None:
        for cells in lines[start:end]:
            out.append(
                "".join(
                    cell.ljust(widths[j]) if j < len(widths) and j < len(cells) - 1 else cell
                    for j, cell in enumerate(cells)
                )
            )

    def form(line0: int, line1: int, widths: list[int]) -> None:
        column = len(widths)
        this = line0
        while this < line1:
            if column >= len(lines[this]) - 1:
                this += 1
                continue
            write(line0, this, widths)
            line0 = this
            width = 0
            while this < line1 and column < len(lines[this]) - 1:
                width = max(width, len(lines[this][column]) + padding)
                this += 1
            form(line0, this, [*widths, width])
            line0 = this
            this += 1
        write(line0, line1, widths)

    form(0, len(lines), [])
    return "\n".join(out)
