"""`vrgcn datasets`: what can be named, and what is here."""

from __future__ import annotations

import subprocess
import sys

from vrgcn.data import DATASETS, load_dataset


def test_datasets_lists_every_name_with_size_source_and_presence(vrgcn, real_data):
    code, out, _ = vrgcn("datasets", "--data-root", real_data)
    assert code == 0
    lines = {line.split()[0]: line.split()[1:] for line in reversed(out.splitlines()) if line}
    assert set(DATASETS) | {"ogbn-*"} <= set(lines)
    assert lines["cora"] == ["2,708", "10,556", "1,433", "7", "PyG", "yes"]
    assert lines["communities"][-2:] == ["built-in", "generated"]
    assert lines["reddit"] == ["232,965", "114,615,892", "602", "41", "PyG", "no"]
    assert max(map(len, out.splitlines()[:12])) <= 80
    assert str(real_data) in out
    _, out, _ = vrgcn("datasets", "--data-root", "nowhere")
    assert "PyG        yes" not in out


def test_datasets_needs_no_torch():
    script = (
        "import sys; from vrgcn.cli import main; main(['datasets']); print('torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, stdout=subprocess.PIPE, text=True
    )
    assert done.stdout.splitlines()[-1] == "False"


def test_the_sizes_in_the_table_are_those_of_the_graphs(real_data):
    for name in ("cora", "citeseer", "pubmed", "nell", "ppi-small"):
        graph = load_dataset(name, data_root=real_data)
        counts = (graph.num_nodes, graph.num_edges, graph.num_features, graph.num_classes)
        assert tuple(f"{count:,}" for count in counts) == DATASETS[name].size
