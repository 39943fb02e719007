"""A diagnosis as rows, pictures and a page."""

from __future__ import annotations

from tests.diagnostics.made_up import NOTHING, diagnosis, measured, table, unseen
from vrgcn.diagnostics.advice import Advice
from vrgcn.pages.diagnosis import (
    GRADIENT_TITLE,
    bias_text,
    conditions,
    gradient_columns,
    gradient_rows,
    page,
    quantities,
    rows,
    staleness_rows,
)


def test_the_page_shows_every_number_and_marks_biases_that_were_not_seen():
    tables = [table(0.25, 0.2), table(0.5, kind="g")]
    found = diagnosis(cv=measured((0.2, 0.1), (0.004, 0.00005)), tables=tables)
    shown = quantities(found)
    assert list(shown) == ["layer 2: P h", "outputs", "gradient"]
    by_name = {row[0]: row[1:] for row in rows(shown["layer 2: P h"])}
    assert by_name["exact"] == ("reference", "0", "0")
    assert by_name["ns"] == ("< 1.0%", "50.0%", "50.0%")
    assert by_name["cv"] == ("20.0%", "10.0%", "22.4%")
    assert bias_text(NOTHING) == "0"
    assert staleness_rows(found) == [
        ("cv, layer 2: activations", "100", "20.0%", "3.0 steps", "25.0%", "0"),
        ("cv, layer 2: gradients", "100", "0", "3.0 steps", "50.0%", "0"),
    ]
    assert gradient_columns(found) == ("estimator", "layers.0")
    assert gradient_rows(found)[0] == ("exact", "0")
    assert gradient_rows(found)[1] == ("ns", "< 1.0%, 50.0%")
    assert "after 30 epochs (30 steps) of training by cv, learning rate 0.02" in conditions(found)
    html = page(found, [Advice("lower <the> rate", "1 : 2 is stale")], "Diagnosis").html()
    # Bias and noise of the layer, the outputs and the gradient; of each table ages, and two kinds
    # of distance.
    assert html.count("<figure>") == 3 + 2 * 3
    assert html.count("<li>") == 3  # bias, noise and floor in the legend
    assert "Lower &lt;the&gt; rate." in html
    assert "Why: 1 : 2 is stale." in html
    assert html.index("What to do") < html.index("On what it was measured")
    assert "22.4%" in html


def test_gradients_without_anything_to_compare_with_are_left_out():
    names = ("exact", "ns", "cv")
    found = diagnosis(**{name: unseen(measured((0, 0.2)), trained=0) for name in names})
    assert list(quantities(found)) == ["layer 2: P h", "outputs"]
    html = page(found, [], "Diagnosis").html()
    assert GRADIENT_TITLE not in html
    assert "inf" not in html
