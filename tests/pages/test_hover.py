"""Texts that a picture shows under the pointer."""

from __future__ import annotations

import pytest

from vrgcn.pages.page import MOST, Page, spots
from vrgcn.pages.panels import spread_widely

pytest.importorskip("matplotlib")
from matplotlib.figure import Figure


def test_points_and_bars_say_their_values_where_they_are() -> None:
    figure = Figure(figsize=(4, 3))
    axes = figure.subplots()
    axes.plot([1, 2], [0.25, 0.75], label="cvd")
    axes.set(xlabel="epoch", ylabel="accuracy")
    first, second = spots(figure)
    assert first.text == "cvd, epoch 1: accuracy 0.25"
    assert first.left < second.left
    assert first.top > second.top  # from above
    bars = Figure()
    axes = bars.subplots()
    axes.bar([0, 1], [3, 4], label="noise")
    axes.set_xticks([0, 1], ["ns", "cv"])
    assert [spot.text for spot in spots(bars)] == ["noise, ns: 3", "noise, cv: 4"]


def test_many_points_are_thinned_and_the_page_escapes_them() -> None:
    figure = Figure()
    figure.subplots().plot(range(5000), range(5000), label="<b>")
    assert len(spots(figure)) <= MOST
    page = Page("t")
    page.figure(figure, "c")
    assert 'title="&lt;b&gt;, 0: 0"' in page.html()


@pytest.mark.parametrize(("values", "scale"), [([0.1, 1.9, 0], "linear"), ([0.1, 2.1], "log")])
def test_an_axis_is_logarithmic_where_values_differ_by_more_than_20_times(values, scale) -> None:
    axes = Figure().subplots()
    axes.bar(range(len(values)), values)
    spread_widely(values, axes)
    assert axes.get_yscale() == scale


def test_a_matrix_says_shares_of_the_true_class() -> None:
    page = Page("t")
    page.matrix(["a", "<b>"], [[3, 1], [0, 2]], [4, 8], "c")
    assert 'title="a, predicted &lt;b&gt;: 1 (25.0%)">1</td>' in page.html()
    assert 'title="&lt;b&gt;, predicted &lt;b&gt;: 2 (25.0%)">2</td>' in page.html()
