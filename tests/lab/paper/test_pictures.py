"""Panels as one picture in a file, with one legend for all."""

import pytest
from matplotlib.figure import Figure

from lab.paper.pictures import save_panels
from tests.pages.test_panels import panels


@pytest.mark.parametrize(("count", "across", "down"), [(1, 6, 3.9), (2, 8.4, 3.9), (4, 12.6, 7.2)])
def test_a_file_has_all_panels_in_one_picture(tmp_path, monkeypatch, count, across, down):
    made = []
    save = Figure.savefig
    monkeypatch.setattr(
        Figure, "savefig", lambda self, *a, **k: (made.append(self), save(self, *a, **k))[1]
    )
    save_panels(panels(count), tmp_path / "new", "figure")
    assert {path.name for path in (tmp_path / "new").iterdir()} == {"figure.png", "figure.svg"}
    assert made[0].get_size_inches().tolist() == pytest.approx([across, down])
    shown = [axes.get_title() for axes in made[0].axes if axes.get_visible()]
    assert shown == [f"panel {number}" for number in range(count)]
    (legend,) = made[0].legends
    names = {text.get_text() for text in legend.get_texts()}
    assert names == {"a <line>", "bars of error", "bars"}
