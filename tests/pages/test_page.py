"""Pages of results: self-contained, escaped, written whole."""

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from tests.messages import refused
from vrgcn.pages.page import Page


def _page() -> Page:
    page = Page("A <run>")
    page.heading("Scores & times")
    page.text("1 < 2")
    page.code("vrgcn report runs/a")
    page.verdict(True, "it is so")
    page.verdict(False, "it is not")
    page.verdict(None, "who knows")
    page.table(["", "test"], [["<b>", "0.5"], ["c", "0.6"]], caption="Runs", marked=[(1, 1)])
    figure = Figure()
    figure.subplots().plot([0, 1], [1, 0])
    page.figure(figure, 'a "curve"')
    return page


def test_page_is_escaped_and_fetches_nothing() -> None:
    text = _page().html()
    assert "A &lt;run&gt;" in text
    assert "<td>&lt;b&gt;</td>" in text
    assert 'alt="a &quot;curve&quot;"' in text
    assert "http" not in text
    assert text.count('class="mark"') == 1
    for kind in ("holds", "fails", "open"):
        assert f'class="verdict {kind}"' in text


def test_what_cannot_be_seen_is_written_out_and_long_names_are_shortened() -> None:
    page, long = Page("\x1b[2J"), "x" * 10**6
    page.text("two\nlines")
    page.table([long, "\x00"], [["\u202egpj.exe", long]], caption=long)
    page.matrix([long, "b"], [[1, 0], [0, 2]], [1, 2], "c")
    text = page.html()
    assert text.isprintable() or not {c for c in text if not c.isprintable()} - {"\n"}
    assert r"\x1b[2J" in text
    assert "two\nlines" in text
    assert r"\u202egpj.exe" in text
    assert "predicted b: 0 (0.0%)" in text
    assert len(text) < 30_000


def test_contents_lead_to_the_headings() -> None:
    page = Page("Long", contents=True)
    page.heading("A & B")
    page.heading("smaller", level=3)
    page.heading("A & B")
    text = page.html()
    assert '<nav><a href="#part-1">A &amp; B</a><a href="#part-2">A &amp; B</a></nav>' in text
    assert '<h2 id="part-1">A &amp; B</h2>' in text
    assert "<h3>smaller</h3>" in text
    assert "<nav>" not in _page().html()


def test_figures_stand_together_below_their_legend() -> None:
    page = Page("Curves")
    page.legend([("<run>", Figure((0.5, 0.1)))])
    page.figures([(Figure(), "one"), (Figure(), "two")])
    with page.fold("more & more"):
        page.note("<inside>")
    text = page.html()
    assert "<span>&lt;run&gt;</span></li></ul>" in text
    assert text.count("<figure>") == 2
    assert text.index('class="figures"') < text.index("<figure>") < text.index("<details>")
    assert "<summary>more &amp; more</summary>" in text
    assert text.index("&lt;inside&gt;") < text.index("</details>")


def test_page_is_the_same_each_time() -> None:
    assert _page().html() == _page().html()


def test_a_failed_write_keeps_the_old_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.html"
    _page().write(path)
    before = path.read_text()

    def broken(self: Page) -> str:
        raise OSError("no space left")

    monkeypatch.setattr(Page, "html", broken)
    with refused(OSError):
        Page("other").write(path)
    assert path.read_text() == before
    assert list(tmp_path.iterdir()) == [path]


def test_contents_lead_to_the_headings_of_an_appended_page_too() -> None:
    page, other = Page("Long", contents=True), Page("")
    page.heading("First")
    other.heading("Second")
    page.append(other)
    text = page.html()
    assert '<nav><a href="#part-1">First</a><a href="#part-2">Second</a></nav>' in text
    assert text.index('<h2 id="part-1">First') < text.index('<h2 id="part-2">Second')


def test_a_tables_caption_does_not_scroll_away_with_it() -> None:
    text = _page().html()
    assert text.index("<figcaption>Runs</figcaption>") < text.index('<div class="scroll"><table>')
