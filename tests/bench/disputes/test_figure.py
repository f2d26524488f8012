"""The figure of the docs is what the code draws."""

from tests.bench.disputes import figure


def test_dsp_20__the_figure_shows_what_the_bounds_say() -> None:
    drawn = figure.svg(figure.panels())
    assert figure.FIGURE.read_text() == drawn, "run python -m tests.bench.disputes.figure"


def test_dsp_20__what_is_drawn_grows_slowly() -> None:
    short, long = figure.cost(1, 100), figure.cost(1_000_000, 1_000_000)
    assert long[0] <= short[0] + 4
    assert long[1] <= 4 * short[1]
