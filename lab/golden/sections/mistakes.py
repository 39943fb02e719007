"""Mistakes on the command line: exit code and message of each.

Each is a line as one would type it, in a folder that has these:

    papers, towns, genes   graphs               run        a run that has finished
    damaged                a flipped byte       cut        a run that has not
    nofeatures             a missing file       seeds      a run of two seeds
    full                   a folder, no graph   tuned      a search
    file                   a file               parts      a graph in two parts
    gone                   a run without model  badrun     a run whose model is damaged
"""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

from lab.golden.sections import missing_extras, python_mistakes
from lab.golden.tables import graph, write_table
from lab.golden.workspace import Workspace

_OF_LAB = ("bench", "reproduce")  # these open `lab` beside the code, and here it is this tool's
_SMALL = ("--hidden", 4, "--batch-size", 64, "--checkpoint-every", 1)

LINES = """
trian
trian --help
--hlep
xyz
train
train --lr 3
train papers --epoch 3
train papers --num-layers 3
train papers --bs 3
train papers --estimatr cvd
train papers -epochs 3
train papers --no-epochs
train papers --verify=yes
train papers --epochs
train papers --epochs x
train papers --epochs 1.5
train papers --epochs 0
train papers --epochs -1
train papers --batch-size 0
train papers --hidden 0
train papers --layers 0
train papers --dropout 1
train papers --dropout x
train papers --dropout nan
train papers --learning-rate 0
train papers --learning-rate -1
train papers --learning-rate 1e30 --no-layer-norm --epochs 3 --out diverged
train papers --model gat
train papers --estimator cvv
train papers --estimator uniform/corrected
train papers --estimator uniform/corrected/sideways
train papers --estimator cvd --fanout 1 2 3
train papers --fanout -1
train papers --sample-size 0
train papers --memory swap
train papers --scaling rows
train papers --metric rmse
train papers --metric accurcy
train towns --metric accuracy
train towns --class-weights balanced
train towns --label-smoothing 0.1
train papers --label-smoothing 1
train papers --loss mse
train papers --clip 0
train papers --warmup -1
train papers --warmup 40
train papers --patience 0
train papers --evaluate-every 0
train papers --time-limit soon
train papers --time-limit 0s
train papers --checkpoint-every soon
train papers --diagnostics -1
train papers --history-cap 0
train papers --device gpu
train papers --threads 0
train papers --seed x
train papers --seeds 0
train papers --ratio 0.6 0.2
train papers --ratio 0.9 0.9 0.9
train papers --split-seed x
train papers --block 0
train papers --batches blocks --block 0
train papers --on-nan explode
train papers other
train papers --graph towns
train papers --dataset communities
train --graph nowhere
train nowhere
train file
train full
train damaged --out new
train nofeatures --out new
train --dataset coraa
train papers --out run
train papers --out cut
train papers --out full
train papers --out file
train papers --out file/run
train papers --out full --overwrite
train papers --config nowhere.toml
train papers --config full
train papers --config broken.toml
train papers --config unknown.toml
train papers --config wrong-type.toml
train papers --config wrong-value.toml
train --config two-graphs.toml
train --resume nowhere
train --resume full
train --resume run
train --resume run --epochs 1
train --resume run --epochs 3 --learning-rate 0.5
train --resume cut --estimator ns
train --resume cut --hidden 8
train --resume cut --out elsewhere
train --resume cut --config settings.toml
train --resume cut --graph towns
train --resume cut --overwrite
train --resume cut --seed 5
train --resume cosine --epochs 4
train --resume tuned
train --resume badcheckpoint --epochs 4
train parts --out new
train papers --halo exact --epochs 1 --out halo
train papers --halo-every 0
train papers --rank-timeout 0
tune
tune papers --trials 0
tune papers --search depth
tune papers --time-limit soon
tune papers --out tuned
tune papers --out run
tune --resume run
tune --resume tuned --search layers
tune --resume badstudy --trials 3
import
import --edges nowhere.csv --out new
import --edges full --out new
import --edges papers-edges.csv --nodes nowhere.csv --out new
import --edges papers-edges.csv --nodes papers-nodes.csv --out papers
import --edges papers-edges.csv --nodes papers-nodes.csv --label topic --out new
import --edges papers-edges.csv --nodes papers-nodes.csv --label kind --features g_* --out new
import --edges papers-edges.csv --nodes papers-nodes.csv --label kind --drop colour --out new
import --edges papers-edges.csv --nodes papers-nodes.csv --label kind --id name --out new
import --edges papers-edges.csv --nodes papers-nodes.csv --label kind --split fold --out new
import --edges papers-edges.csv --nodes papers-nodes.csv --label kind --ratio 0.5 0.5 --out new
import --edges papers-edges.csv --nodes papers-nodes.csv --label kind --column f0=colour --out new
import --edges papers-edges.csv --nodes papers-nodes.csv --label kind --column f0 --out new
import --edges papers-edges.csv --nodes papers-nodes.csv --label kind --fill f0=mode --out new
import --edges papers-edges.csv --nodes papers-nodes.csv --label kind --task regression --out new
import --edges papers-edges.csv --nodes papers-nodes.csv --directed --undirected --out new
import --edges papers-edges.csv --nodes papers-nodes.csv --label kind --source a --out new
import --edges papers-edges.csv --nodes papers-nodes.csv --label kind --weight w --out new
import --edges papers-edges.csv --nodes papers-nodes.csv --label kind --delimiter ab --out new
import --edges papers-edges.csv --nodes papers-nodes.csv --label kind --decimal x --out new
import --edges papers-edges.csv --nodes papers-nodes.csv --features-file short.npy --out new
import --edges papers-edges.csv --nodes papers-nodes.csv --features-file file --out new
import --edges papers-edges.csv --nodes papers-nodes.csv --like full --out new
import --edges papers-edges.csv --nodes towns-nodes.csv --like papers --out new
import --edges papers-edges.csv --nodes twice.csv --label kind --out new
import --edges papers-edges.csv --nodes ragged.csv --label kind --out new
import --edges papers-edges.csv --nodes quote.csv --label kind --out new
import --edges papers-edges.csv --nodes latin.csv --label kind --out new
import --edges papers-edges.csv --nodes empty.csv --label kind --out new
import --edges papers-edges.csv --nodes header.csv --label kind --out new
import --edges papers-edges.csv --nodes texts.csv --label kind --out new
import --edges papers-edges.csv --nodes splits.csv --label kind --out new
import --edges papers-edges.csv --nodes same-columns.csv --label kind --out new
import --edges unknown-edges.csv --nodes papers-nodes.csv --label kind --out new
import --edges bad-weights.csv --nodes papers-nodes.csv --label kind --out new
import --edges half-edges.csv --nodes papers-nodes.csv --label kind --out new
import --edges file --nodes papers-nodes.csv --out new
predict
predict run
predict run --out new.txt
predict run --out full
predict run --out there.csv
predict run --out new.csv --nodes nowhere.txt
predict run --out new.csv --nodes wrong-ids.txt
predict run --out new.csv --top 0
predict run --out new.npy --top 1
predict run --out new.csv --graph towns
predict run --out new.csv --graph genes
predict run --out new.csv --dataset coraa
predict run --out new.csv --memory tape
predict nowhere --out new.csv
predict file --out new.csv
predict full --out new.csv
predict gone --out new.csv
predict badrun --out new.csv
predict seeds --out new.csv
predict towns-run --out new.csv --top 2
embed
embed run --out new.txt
embed run --out new.csv --layer 9
embed run --out new.csv --layer x
embed nowhere --out new.csv
evaluate
evaluate nowhere
evaluate run --out new.txt
evaluate run --split dev
evaluate run --graph full
evaluate run --graph towns
evaluate seeds
report
report nowhere
report file
report full
report run --out new.pdf
report badmetrics
diagnose
diagnose nowhere
diagnose run --passes 0
diagnose run --compare cvv
diagnose run --out new.txt
diagnose run --dataset communities
info
info nowhere
info damaged --verify
info nofeatures
info badmeta
info newer
info coraa
reorder
reorder nowhere --out new
reorder papers --out full
reorder papers --out new --method kway
reorder papers --out new --block 0
partition
partition papers --parts 2
partition papers --parts 0 --out new
partition papers --parts 1000 --out new
partition papers --parts 2 --out full
generate
generate --nodes 0 --out new
generate --nodes 100 --degree -1 --out new
generate --nodes 100 --homophily 2 --out new
generate --nodes 100 --train 0.9 --val 0.9 --out new
generate --nodes 100 --out full
datasets --root data
datasets extra
demo --dataset coraa
demo --epochs 0
bench --sections speed
bench --threads 0
reproduce
reproduce table9
reproduce table1 --runs 0
""".strip().splitlines()


def record(work: Workspace) -> None:
    """Make the folder of the mistakes, and record each of them."""
    _prepare(work)
    before = _names(work.folder)
    for line in LINES:
        name, words = f"command line/vrgcn {line.replace('/', ':')}", shlex.split(line)
        if words[0] in _OF_LAB:
            work.program(name, "-m", "vrgcn", *words)
        else:
            work.command(name, *words)
    left = "\n".join(sorted(_names(work.folder) - before))
    work.write("left behind", left or "nothing")
    python_mistakes.record(work)
    missing_extras.record(work)


def _names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def _prepare(work: Workspace) -> None:
    here = work.folder
    for name in ("papers", "towns", "genes"):
        graph(work, name)
    flags = ("train", "papers", *_SMALL, "--epochs", 2)
    work.run(*flags, "--estimator", "cvd", "--out", "run")
    work.run(*flags, "--seeds", 2, "--out", "seeds")
    work.run(*flags, "--schedule", "cosine", "--out", "cosine")
    work.run("train", "towns", *_SMALL, "--epochs", 1, "--out", "towns-run")
    work.run("tune", "papers", "--trials", 2, "--epochs", 1, "--out", "tuned")
    work.run("partition", "papers", "--parts", 2, "--out", "parts")
    _runs(here)
    _graphs(here)
    _files(here)


def _runs(here: Path) -> None:
    """Make runs that lack something."""
    for name in ("cut", "gone", "badrun", "badcheckpoint", "badmetrics"):
        shutil.copytree(here / "run", here / name)
    (here / "cut" / "result.json").unlink()
    (here / "gone" / "model.safetensors").unlink()
    _flip(here / "badrun" / "model.safetensors", 12)
    for checkpoint in (here / "badcheckpoint" / "checkpoints").iterdir():
        _flip(checkpoint / "weights.safetensors", -8)
    with (here / "badmetrics" / "metrics.jsonl").open("a") as file:
        file.write("{broken\n{}\n")
    shutil.copytree(here / "tuned", here / "badstudy")
    _flip(here / "badstudy" / "study.sqlite", 5)


def _graphs(here: Path) -> None:
    """Make damaged graphs."""
    for name in ("damaged", "nofeatures", "badmeta", "newer"):
        shutil.copytree(here / "papers", here / name)
    [features] = (here / "papers").glob("features*.npy")  # called otherwise by older versions
    _flip(here / "damaged" / features.name, -4)
    (here / "nofeatures" / features.name).unlink()
    (here / "badmeta" / "meta.json").write_text("{", encoding="utf-8")
    meta = json.loads((here / "newer" / "meta.json").read_text(encoding="utf-8"))
    text = json.dumps(meta | {"version": 99})
    (here / "newer" / "meta.json").write_text(text, encoding="utf-8")


def _flip(file: Path, place: int) -> None:
    """Change one byte of a file."""
    data = bytearray(file.read_bytes())
    data[place] ^= 0x55
    file.write_bytes(data)


def _files(here: Path) -> None:
    """Make files that are no tables, settings or lists of nodes."""
    (here / "full").mkdir()
    texts = {
        "full/mine.txt": "kept",
        "file": "no table",
        "there.csv": "kept",
        "wrong-ids.txt": "n1\nn2\nnobody\n",
        "settings.toml": "epochs = 3\n",
        "broken.toml": "epochs = \n",
        "unknown.toml": "epoch = 3\n",
        "wrong-type.toml": 'epochs = "many"\n',
        "wrong-value.toml": "dropout = 2.0\n",
        "two-graphs.toml": 'graph = "papers"\ndataset = "communities"\n',
        "quote.csv": 'id,f0,kind\nn0,1.5,amber\nn1,"2.5,blue\n',
        "empty.csv": "",
        "header.csv": "id,f0,kind\n",
        "ragged.csv": "id,f0,kind\nn0,1.5,amber\nn1,2.5\nn2,3.5,blue,4\n",
    }
    for name, text in texts.items():
        (here / name).write_text(text, encoding="utf-8")
    (here / "latin.csv").write_bytes("id,f0,kind\nn0,1.5,caf\u00e9\n".encode("latin-1"))
    rows = [[f"n{node}", f"{node}.5", "amber" if node % 2 else "blue"] for node in range(300)]
    header = ["id", "f0", "kind"]
    write_table(here / "twice.csv", header, [*rows, rows[3], rows[5]])
    texts_among = [
        [row[0], "much" if place in (7, 90) else row[1], row[2]] for place, row in enumerate(rows)
    ]
    write_table(here / "texts.csv", header, texts_among)
    write_table(
        here / "same-columns.csv", ["id", "f0", "f0", "kind"], [[*r[:2], *r[1:]] for r in rows]
    )
    splits = [[*row, "trian" if place == 8 else "train"] for place, row in enumerate(rows)]
    write_table(here / "splits.csv", [*header, "split"], splits)
    ends = ["source", "target"]
    write_table(here / "unknown-edges.csv", ends, [["n0", "n1"], ["n2", "x9"], ["x8", "x9"]])
    write_table(here / "bad-weights.csv", [*ends, "weight"], [["n0", "n1", 1], ["n2", "n3", "big"]])
    write_table(here / "half-edges.csv", ends, [["n0", "n1"], ["n2", ""], ["", "n4"]])
    import numpy as np

    np.save(here / "short.npy", np.zeros((7, 2), np.float32))
