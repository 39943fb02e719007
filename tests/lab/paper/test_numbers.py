"""Every number that the paper prints has its line, with ours beside it where there is one."""

from __future__ import annotations

from lab.paper.numbers import COLUMNS, NONE, numbers


def line(rows: list[list[str]], where: str, what: str) -> list[str]:
    (row,) = [row for row in rows if row[:2] == [where, what]]
    return row[2:]


def test_without_records_every_number_of_the_paper_stands_there_alone():
    rows = numbers({})
    assert all(len(row) == len(COLUMNS) for row in rows)
    assert {(row[3], row[4]) for row in rows} == {(NONE, NONE)}
    # Table 1: 6 x 4 and a share; Table 3: 17; Table 4: 6 x 2 and a factor; 5 x 2; two scores of NS.
    assert len(rows) == 25 + 17 + 13 + 10 + 2
    assert line(rows, "Table 1", "NELL, 2-hop") == ["1,597", NONE, NONE]
    assert line(rows, "Table 3", "NELL, M1+PP, test score") == ["64.2 ± 4.6", NONE, NONE]
    assert line(rows, "Table 4", "IS+PP, epochs")[0] == "never in 52 (best 95.8%)"
    assert line(rows, "appendix, 3 layers", "CVD+PP, seconds")[0] == "36 (Titan X)"
    assert line(rows, "Figure 3", "PPI, where NS's validation score converges")[0] == "0.6"


def test_ours_stand_beside_the_papers_with_the_data_that_they_are_of():
    raced = {
        "MLP": {"val": [0.5, 0.6], "seconds": [1.0, 1.0], "diverged": None},
        "Exact+PP": {"val": [0.9, 0.97], "seconds": [20.0, 22.0], "diverged": None},
        "CVD+PP": {"val": [0.97], "seconds": [6.0], "diverged": None},
        **{
            name: {"val": [0.5], "seconds": [2.0], "diverged": None}
            for name in ("NS", "NS+PP", "IS+PP", "CV+PP")
        },
    }
    label = "Reddit-like (generated)"
    race = {"dataset": "reddit-like", "label": label, "layers": 2, "target": 0.96, "parts": 2}
    race |= {"algorithms": raced}
    rows = numbers(
        {
            "table1": [
                {
                    "dataset": "nell-paper",
                    "nodes": 65_755,
                    "edges": 318_135,
                    "degree": 4.838187,
                    "two_hop": 1596.504,
                }
            ],
            "table3": [
                {
                    "dataset": "cora",
                    "label": "Cora",
                    "algorithm": "M1",
                    "test": test,
                    "seed": seed,
                    "epochs": 20,
                }
                for seed, test in enumerate((0.81, 0.83, None))
            ],
            "table4": [race],
            "fig-accuracy": [
                {
                    "dataset": "reddit-like",
                    "label": label,
                    "algorithm": "NS",
                    "seed": 0,
                    "val": [0.1, 0.4],
                    "planned": 60,
                    "diverged": None,
                }
            ],
        }
    )
    assert line(rows, "Table 1", "NELL, E") == ["318,135", "318,135", "nell-paper"]
    share = line(rows, "Section 2", "share of NELL's nodes within two hops")
    assert share == ["2.4%", "2.4%", "nell-paper"]
    scores = line(rows, "Table 3", "Cora, M1, test score")
    assert scores == ["82.0 ± 0.8", "82.0 ± 1.4", "Cora, 2 runs, 20 of 200 epochs"]
    assert line(rows, "Table 4", "Exact+PP, epochs") == ["4.8", "1", f"{label}, 1 run"]
    assert line(rows, "Table 4", "Exact+PP, seconds")[1] == "42.0"
    assert line(rows, "Table 4", "NS, epochs")[1] == "never in 0.5 (best 50.0%)"
    assert line(rows, "Table 4", "CVD+PP faster than exact")[1] == "7.0 times"
    assert line(rows, "appendix, 3 layers", "Exact+PP, epochs")[1] == NONE
    # If Reddit itself is available, its replacement is not mixed into it.
    real = {"dataset": "reddit2", "label": "Reddit", "layers": 2, "target": 0.96, "parts": 2}
    both = [race, real | {"algorithms": raced | {"Exact+PP": raced["CVD+PP"]}}]
    assert line(numbers({"table4": both}), "Table 4", "Exact+PP, seconds")[1:] == [
        "6.0",
        "Reddit, 1 run",
    ]
    ns = line(rows, "Figure 3", "Reddit, where NS's validation score converges")
    assert ns == ["0.94", "0.40", f"{label}, 1 run, 60 of 100 epochs"]
