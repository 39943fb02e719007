"""Panels: a figure for each on a page, one legend for all."""

import pytest
from matplotlib.figure import Figure

from vrgcn.pages.page import Page
from vrgcn.pages.panels import Panel, plain_ticks, show_panels, swatch


def panels(count):
    def draw(axes):
        axes.plot([1, 2], [1, 2], color="tab:red", label="a <line>")
        axes.errorbar([1, 2], [2, 1], yerr=[0.1, 0.1], color="tab:blue", label="bars of error")
        axes.bar([1, 2], [1, 1], color="tab:green", label="bars")

    return [Panel(f"panel {number}", draw) for number in range(count)]


def test_a_page_has_a_figure_for_each_panel_and_one_legend():
    page = Page("A test")
    show_panels(page, panels(3))
    text = page.html()
    assert text.count("<figure>") == 3
    assert text.count('<ul class="legend">') == 1
    assert text.count("<li>") == 3
    for words in ("a &lt;line&gt;</span>", "bars of error</span>", "bars</span>"):
        assert words in text
    assert text.index('class="legend"') < text.index("<figcaption>panel 0<")


def test_an_entry_of_the_legend_looks_like_what_it_stands_for():
    axes = Figure().subplots()
    (line,) = axes.plot([0, 1], [0, 1], "--", color="tab:red", marker="s")
    bars = axes.bar([0], [1], color="tab:green")
    (drawn,) = swatch(line).axes[0].lines
    assert (drawn.get_color(), drawn.get_linestyle(), drawn.get_marker()) == ("tab:red", "--", "s")
    assert swatch(bars).axes[0].patches[0].get_facecolor() == bars.patches[0].get_facecolor()


@pytest.mark.parametrize(
    ("high", "ticks"), [(8, [1, 1.5, 2, 3, 5, 7]), (90, [1, 2, 5, 10, 20, 50]), (1e4, None)]
)
def test_ticks_of_a_logarithmic_axis_are_plain_and_few(high, ticks):
    axes = Figure().subplots()
    axes.set(yscale="log", ylim=(1, high))
    plain_ticks(axes.yaxis)
    found = [tick for tick in axes.get_yticks() if 1 <= tick <= high]
    assert found == pytest.approx(ticks or [1, 10, 100, 1000, 10000])
    assert axes.yaxis.get_major_formatter()(0.5) == "0.5"
