"""Runs by the command line: the output and every file of each, and commands that use them."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

from lab.golden.tables import graph
from lab.golden.workspace import Workspace

# Runs of `vrgcn train`, by name. Each has few epochs and small layers, and comes to --out NAME.
SMALL = "--hidden 8 --batch-size 40 --epochs 4 "
TRAIN = {
    "default": "papers --epochs 4",
    "default, dense graph": f"crowd {SMALL}",
    "regression": f"towns {SMALL}",
    "regression, mae": f"towns {SMALL} --loss mae --metric mae",
    "regression, r2": f"towns {SMALL} --metric r2 --estimator two-way",
    "several classes": f"genes {SMALL}",
    "several classes, balanced": f"genes {SMALL} --class-weights balanced --metric macro-f1",
    "several classes, two-way": f"genes {SMALL} --estimator two-way --label-smoothing 0.1",
    "inductive": f"crowd {SMALL} --inductive --estimator cvd",
    "class weights": f"papers {SMALL} --class-weights balanced --metric macro-f1",
    "label smoothing": f"papers {SMALL} --label-smoothing 0.2 --metric roc-auc",
    "gcn": f"crowd {SMALL} --model gcn --no-layer-norm --bias",
    "gcn, dropout before": f"crowd {SMALL} --model gcn --order before --estimator cvd",
    "mlp": f"crowd {SMALL} --model mlp",
    "deep": f"crowd {SMALL} --layers 3 --dense 2 --estimator two-way",
    "deep, cvd": f"crowd {SMALL} --layers 3 --estimator cvd --fanout 2 1 1",
    "one layer": f"crowd {SMALL} --layers 1",
    "no preprocessing": f"crowd {SMALL} --no-preprocess --estimator cv",
    "gcn propagation": f"crowd {SMALL} --propagation gcn --estimator two-way",
    "fan-out": f"crowd {SMALL} --estimator ns --fanout 2 3",
    "two-way, fan-out 0": f"crowd {SMALL} --estimator two-way --fanout 0",
    "sample size": f"crowd {SMALL} --estimator is --sample-size 30",
    "composition": f"crowd {SMALL} --estimator uniform/history/corrected",
    "visit all": f"crowd {SMALL} --estimator cvd --visit all",
    "visit train": f"crowd {SMALL} --estimator two-way --visit train",
    "float16": f"crowd {SMALL} --estimator two-way --history-dtype float16",
    "bfloat16": f"crowd {SMALL} --estimator cvd --history-dtype bfloat16",
    "history cap": f"crowd {SMALL} --estimator history --history-cap 5",
    "warm start": f"crowd {SMALL} --estimator cv --warm-start --refresh always",
    "no refresh": f"crowd {SMALL} --estimator history --refresh never",
    "blocks": f"crowd {SMALL} --batches blocks --block 8 --estimator two-way",
    "sgd": f"crowd {SMALL} --optimizer sgd --weight-decay 0.01 --decay all --learning-rate 0.1",
    "weight decay": f"crowd {SMALL} --weight-decay 0.01",
    "cosine": f"crowd {SMALL} --schedule cosine --warmup 1 --clip 0.5",
    "plateau": f"crowd {SMALL} --schedule plateau --epochs 12 --learning-rate 0.2",
    "patience": f"papers {SMALL} --patience 2 --epochs 20 --learning-rate 0.3",
    "evaluate every": f"papers {SMALL} --evaluate-every 3",
    "select last": f"papers {SMALL} --select last",
    "diagnostics": f"crowd {SMALL} --estimator two-way --diagnostics 1",
    "no diagnostics": f"crowd {SMALL} --estimator cvd --diagnostics 0",
    "ratio": f"papers {SMALL} --ratio 0.5 0.2 0.3 --split-seed 3",
    "scaling none": f"papers {SMALL} --scaling none",
    "scaling row": f"papers {SMALL} --scaling row --seed 7",
    "no verify": f"--graph papers {SMALL} --no-verify",
    "time limit": f"papers {SMALL} --time-limit 2h",
    "rollback": f"crowd {SMALL} --on-nan rollback --checkpoint-every 1",
    "tensorboard": f"papers {SMALL} --log tensorboard",
    "checkpoints": f"crowd {SMALL} --estimator cvd --checkpoint-every 1",
    "on disk": f"crowd {SMALL} --memory disk --checkpoint-every 2",
    "one thread": f"papers {SMALL} --threads 1 --name mine",
    "config file": "--config settings.toml --seed 5",
    "config file, another graph": "crowd --config settings.toml",
    "config of a run": "--config runs/cosine/config.toml",
    "built-in graph": "communities --epochs 1 --hidden 16",
}

SETTINGS = """
graph = "papers"
hidden = 8
epochs = 3
batch_size = 64
estimator = "cvd"
fanout = [2]
schedule = "cosine"
warmup = 1
clip = 1.0
label_smoothing = 0.1
class_weights = "balanced"
time_limit = "10m"
"""

# Commands that use the runs above, by name; {out} is a folder of its own for each.
COMMANDS = {
    "predict csv": "predict runs/default --out {out}/p.csv",
    "predict parquet": "predict runs/default --out {out}/p.parquet",
    "predict npy": "predict runs/default --out {out}/p.npy",
    "predict some": "predict runs/default --nodes some.txt --out {out}/p.csv",
    "predict top": "predict runs/default --top 2 --out {out}/p.csv",
    "predict on disk": "predict runs/default --memory disk --out {out}/p.csv",
    "predict another graph": "predict runs/default --graph crowd --out {out}/p.csv",
    "predict numbers": "predict runs/regression --out {out}/p.csv",
    "predict several": "predict 'runs/several classes' --out {out}/p.csv",
    "predict several parquet": "predict 'runs/several classes' --out {out}/p.parquet",
    "predict gcn": "predict runs/gcn --out {out}/p.npy",
    "predict deep": "predict runs/deep --out {out}/p.npy",
    "predict mlp": "predict runs/mlp --out {out}/p.npy",
    "predict ratio": "predict runs/ratio --out {out}/p.csv",
    "predict seed": "predict runs/seeds/seed-1 --out {out}/p.csv",
    "predict tuned": "predict runs/tuned/best --out {out}/p.csv",
    "predict built-in": "predict 'runs/built-in graph' --out {out}/p.npy",
    "embed csv": "embed runs/default --out {out}/e.csv",
    "embed parquet": "embed runs/regression --out {out}/e.parquet",
    "embed first": "embed runs/deep --layer 0 --out {out}/e.npy",
    "embed second": "embed runs/deep --layer 1 --out {out}/e.npy",
    "embed outputs": "embed runs/deep --layer -1 --out {out}/e.npy",
    "embed some": "embed runs/default --nodes some.txt --memory disk --out {out}/e.csv",
    "evaluate": "evaluate runs/default --out {out}/c.png",
    "evaluate val": "evaluate runs/default --split val --out {out}/c.svg",
    "evaluate numbers": "evaluate runs/regression --out {out}/c.png",
    "evaluate several": "evaluate 'runs/several classes' --out {out}/c.png",
    "evaluate ratio": "evaluate runs/ratio --out {out}/c.png",
    "evaluate another graph": "evaluate runs/default --graph crowd --memory disk --out {out}/c.png",
    "report one": "report timed/default --out {out}/r.html",
    "report three": "report timed/default timed/deep timed/regression --out {out}/r.html",
    "report seeds": "report timed/seeds --out {out}/r.html",
    "report search": "report timed/tuned --no-scores --out {out}/r.html",
    "report unfinished": "report timed/unfinished --out {out}/r.html",
    "diagnose run": "diagnose runs/deep --passes 8 --out {out}/d.html",
    "diagnose compare": "diagnose runs/default --compare ns cvd --passes 8 --out {out}/d.html",
    "diagnose numbers": "diagnose runs/regression --passes 8 --out {out}/d.html",
    "diagnose graph": "diagnose crowd --hidden 8 --epochs 2 --passes 8 --out {out}/d.html",
    "info papers": "info papers --verify",
    "info towns": "info towns",
    "info genes": "info --graph genes",
    "info built-in": "info sparse-communities",
    "datasets": "datasets --data-root nowhere",
    "reorder": "reorder crowd --out {out}/g --block 32",
    "reorder ldg": "reorder towns --out {out}/g --method ldg --block 16",
    "partition": "partition crowd --parts 3 --out {out}/p",
    "partition ldg": "partition towns --parts 2 --method ldg --out {out}/p",
    "generate": "generate --nodes 500 --degree 6 --features 5 --classes 3 --community 50 "
    "--out {out}/g",
    "generate float16": "generate --nodes 400 --feature-dtype float16 --order communities --seed 3 "
    "--features 4 --classes 4 --community 40 --homophily 0.6 --train 0.3 --out {out}/g",
    "import like": "import --like papers --nodes crowd-nodes.csv --edges crowd-edges.csv "
    "--out {out}/g",
    "demo": "demo --epochs 1 --out {out}/d",
}
# Pictures of seconds, which differ each time.
_TIMED = ("demo",)

_PARTS = "--hidden 8 --batch-size 40 --estimator two-way --fanout 0 --checkpoint-every 1"


def record(work: Workspace) -> None:
    """Record the runs of `train`, those of several seeds, a search and parts, and the commands."""
    for name in ("papers", "crowd", "towns", "genes"):
        graph(work, name)
    (work.folder / "settings.toml").write_text(SETTINGS, encoding="utf-8")
    (work.folder / "some.txt").write_text("n7\nn0\nn299\nn7\n", encoding="utf-8")
    for name, line in TRAIN.items():
        _train(work, name, "train", *shlex.split(line), "--out", f"runs/{name}")
    _default_folder(work)
    _several(work)
    _resumed(work)
    _timed(work)
    for name, line in COMMANDS.items():
        _command(work, name, line)
    _parts(work)


def _train(work: Workspace, name: str, *arguments: object) -> None:
    work.command(f"train/{name}/output", *arguments)
    work.files(f"train/{name}/files", f"runs/{name}")


def _default_folder(work: Workspace) -> None:
    """Record the default folder of a run, without --out."""
    place = work.folder / "default-folder"
    place.mkdir()
    flags = ("--hidden", 4, "--epochs", 1)
    work.command("no out/output", "train", "../papers", *flags, folder=place)
    work.command("no out/again", "train", "../papers", *flags, folder=place)
    work.command("no out/named", "train", "../papers", *flags, "--name", "mine", folder=place)
    names = sorted(str(path.relative_to(place)) for path in place.rglob("*"))
    work.write("no out/FILES", "\n".join(names))


def _several(work: Workspace) -> None:
    """Record several seeds, more of them, and a search that is extended."""
    flags = shlex.split(SMALL)
    _train(work, "seeds", "train", "crowd", *flags, "--seeds", 2, "--out", "runs/seeds")
    shutil.copytree(work.folder / "runs/seeds", work.folder / "runs/more seeds")
    _train(work, "more seeds", "train", "--resume", "runs/more seeds", "--seeds", 3)
    search = ("--epochs", 3, "--batch-size", 40, "--trials", 3)
    _train(work, "tuned", "tune", "crowd", *search, "--out", "runs/tuned")
    shutil.copytree(work.folder / "runs/tuned", work.folder / "runs/tuned longer")
    _train(work, "tuned longer", "tune", "--resume", "runs/tuned longer", "--trials", 10)
    vary = ("--search", "layers", "dropout", "--model", "gcn", "--metric", "macro-f1")
    _train(work, "tuned few", "tune", "papers", *search, *vary, "--out", "runs/tuned few")
    _train(work, "tuned numbers", "tune", "towns", *search, "--out", "runs/tuned numbers")


def _resumed(work: Workspace) -> None:
    """Record runs that are extended, started over, or moved to another graph's folder."""
    runs = work.folder / "runs"
    for name in ("longer", "overwritten", "moved"):
        shutil.copytree(runs / "checkpoints", runs / name)
    _train(work, "longer", "train", "--resume", "runs/longer", "--epochs", 6)
    shutil.copytree(work.folder / "crowd", work.folder / "elsewhere")
    place = ("--graph", "elsewhere", "--memory", "disk")
    _train(work, "moved", "train", "--resume", "runs/moved", "--epochs", 5, *place)
    (runs / "overwritten" / "notes.txt").write_text("mine", encoding="utf-8")
    anew = ("--overwrite", "--out", "runs/overwritten")
    _train(work, "overwritten", "train", "papers", *shlex.split(SMALL), *anew)


def _timed(work: Workspace) -> None:
    """Make copies of runs with made-up seconds, because a page draws curves by them."""
    home = work.folder / "timed"
    for name in ("default", "deep", "regression", "seeds", "tuned"):
        shutil.copytree(work.folder / "runs" / name, home / name)
    shutil.copytree(home / "default", home / "unfinished")
    (home / "unfinished" / "result.json").unlink()
    for path in home.rglob("metrics.jsonl"):
        points = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for point in points:
            point["seconds"] = point["epoch"] / 2
        path.write_text("".join(json.dumps(point) + "\n" for point in points), encoding="utf-8")
    for path in (*home.rglob("result.json"), *home.rglob("leaderboard.json")):
        text = json.dumps(_made_up(json.loads(path.read_text(encoding="utf-8"))), indent=2)
        path.write_text(text, encoding="utf-8")


def _made_up(value: object) -> object:
    if isinstance(value, dict):
        return {
            key: 2.5 if key.endswith("seconds") else _made_up(item) for key, item in value.items()
        }
    return [_made_up(item) for item in value] if isinstance(value, list) else value


def _command(work: Workspace, name: str, line: str) -> None:
    out = Path("made") / name.replace(" ", "-")
    (work.folder / out).mkdir(parents=True)
    work.command(f"commands/{name}/output", *shlex.split(line.format(out=out)))
    if name not in _TIMED:
        work.files(f"commands/{name}/files", out)


def _parts(work: Workspace) -> None:
    """Record a graph in two parts, trained, resumed, predicted and scored by two processes."""
    work.run("partition", "crowd", "--parts", 2, "--out", "parts")
    launch = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 2, "-m", "vrgcn")
    flags = (*shlex.split(_PARTS), "--epochs", 2, "--out", "runs/parts")
    work.program("parts/train", *launch, "train", "--graph", "parts", *flags)
    work.files("parts/files", "runs/parts")
    work.program("parts/resume", *launch, "train", "--resume", "runs/parts", "--epochs", 3)
    work.files("parts/files resumed", "runs/parts")
    work.program("parts/predict", *launch, "predict", "runs/parts", "--out", "parts.csv")
    work.file("parts/predictions", "parts.csv")
    work.program("parts/evaluate", *launch, "evaluate", "runs/parts", "--out", "parts.png")
    work.file("parts/evaluation", "evaluation-parts.json")
    alone = ("runs/parts", "--graph", "crowd", "--out", "alone.csv")
    work.command("parts/predict alone", "predict", *alone)
    work.file("parts/predictions alone", "alone.csv")
