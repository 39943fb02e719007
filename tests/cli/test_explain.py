"""`vrgcn explain`, on a run that `vrgcn train` wrote."""

from __future__ import annotations

import json

import vrgcn as library


def test_explanations_are_printed_and_written(vrgcn, run, tmp_path):
    code, out, err = vrgcn("explain", "run", "--nodes", "n-7", "n-3", "--out", "why.json")
    assert code == 0, err
    first, second = json.loads((tmp_path / "why.json").read_text())
    assert (first["id"], second["id"]) == ("n-7", "n-3")
    live = library.load_run(tmp_path / "run").live()
    wanted = live.explain("n-7")
    assert first == json.loads(json.dumps(wanted.to_dict()))
    assert wanted.title in out
    effects = wanted.edges
    assert f"{effects.looked_at} edges left out one by one" in out
    assert f"all of them at once: {effects.together:+.4g}" in out


def test_mistakes_are_named(vrgcn, run):
    assert "--nodes: name the nodes" in vrgcn("explain", "run")[2]
    assert "--nodes: there is no node 'zz'" in vrgcn("explain", "run", "--nodes", "zz")[2]
    flags = ("--nodes", "n-7", "--out", "why.txt")
    assert "must end in one of .html" in vrgcn("explain", "run", *flags)[2]
    assert "has no kinds of nodes" in vrgcn("explain", "run", "--nodes", "n-7", "--of", "user")[2]
