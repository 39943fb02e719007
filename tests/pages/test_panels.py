"""Panels: one picture in a file, a figure for each on a page, one legend for all."""

import pytest
from matplotlib.figure import Figure

from vrgcn.pages.page import Page
from vrgcn.pages.panels import Panel, plain_ticks, save_panels, show_panels, swatch


def _panels(count):
    def draw(axes):
        axes.plot([1, 2], [1, 2], color="tab:red", label="a <line>")
        axes.errorbar([1, 2], [2, 1], yerr=[0.1, 0.1], color="tab:blue", label="bars of error")
        axes.bar([1, 2], [1, 1], color="tab:green", label="bars")

    return [Panel(f"panel {number}", draw) for number in range(count)]


def test_a_page_has_a_figure_for_each_panel_and_one_legend():
    page = Page("A test")
    show_panels(page, _panels(3))
    text = page.html()
    assert text.count("<figure>") == 3
    assert text.count('<ul class="legend">') == 1
    assert text.count("<li>") == 3
    for words in ("a &lt;line&gt;</span>", "bars of error</span>", "bars</span>"):
        assert words in text
    assert text.index('class="legend"') < text.index("<figcaption>panel 0<")


@pytest.mark.parametrize(("count", "across", "down"), [(1, 6, 3.9), (2, 8.4, 3.9), (4, 12.6, 7.2)])
def test_a_file_has_all_panels_in_one_picture(tmp_path, monkeypatch, count, across, down):
    made = []
    save = Figure.savefig
    monkeypatch.setattr(
        Figure, "savefig", lambda self, *a, **k: (made.append(self), save(self, *a, **k))[1]
    )
    save_panels(_panels(count), tmp_path / "new", "figure")
    assert {path.name for path in (tmp_path / "new").iterdir()} == {"figure.png", "figure.svg"}
    assert made[0].get_size_inches().tolist() == pytest.approx([across, down])
    shown = [axes.get_title() for axes in made[0].axes if axes.get_visible()]
    assert shown == [f"panel {number}" for number in range(count)]
    (legend,) = made[0].legends
    names = {text.get_text() for text in legend.get_texts()}
    assert names == {"a <line>", "bars of error", "bars"}


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
