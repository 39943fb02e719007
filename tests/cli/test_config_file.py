"""Files of options beside the words of a command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.messages import refused
from vrgcn.cli.diagnose import DiagnoseOptions
from vrgcn.cli.parsing import UsageError, parse_with_files
from vrgcn.cli.train import TrainOptions
from vrgcn.cli.tune import TuneOptions
from vrgcn.files.setting_names import flags_in_messages


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "c.toml"


def parsed(kind, *words):
    return parse_with_files(kind, [str(word) for word in words])


def test_a_list_at_the_end_of_a_file_does_not_take_the_graph(file):
    file.write_text('trials = 3\nsearch = ["hidden", "layers"]\n')
    for words in (("g", "--config", file), ("--config", file, "g"), (f"--config={file}", "g")):
        options = parsed(TuneOptions, *words)
        assert (options.graph_or_dataset, options.search) == ("g", ("hidden", "layers"))
    file.write_text('compare = ["ns", "cv"]\n')
    for words in (("g", "--config", file), ("--config", file, "g")):
        options = parsed(DiagnoseOptions, *words)
        assert (options.target, options.compare) == ("g", ("ns", "cv"))


def test_a_list_at_the_end_of_a_run_does_not_take_a_word_too_many(tmp_path, file):
    (tmp_path / "config.toml").write_text("fanout = [1, 2]\n")
    file.write_text('compare = ["ns", "cv"]\n')
    for words in ((tmp_path, "--config", file), ("--config", file, tmp_path)):
        options = parsed(DiagnoseOptions, *words)
        assert (options.target, options.compare) == (str(tmp_path), ("ns", "cv"))
        assert options.train.fanout == (1, 2)


@pytest.mark.parametrize("text", ['dataset = "communities"', 'graph = "other"'])
def test_a_graph_of_ones_own_wins_over_that_of_the_file(file, text):
    file.write_text(f"{text}\nepochs = 7\n")
    config = ("--config", file)
    for words in (("--graph", "g", *config), (*config, "--graph=g")):
        options = parsed(TrainOptions, *words)
        assert (options.dataset, options.graph, options.train.epochs) == (None, Path("g"), 7)
    options = parsed(TrainOptions, "--dataset", "cora", *config)
    assert (options.dataset, options.graph) == ("cora", None)
    for words in (("g", *config), (*config, "g"), (*config, "--ratio", 0.6, 0.2, 0.2, "g")):
        options = parsed(TrainOptions, *words)
        assert (options.dataset, options.graph, options.graph_or_dataset) == (None, None, "g")


@pytest.mark.parametrize("kind", [TrainOptions, TuneOptions, DiagnoseOptions])
def test_what_the_target_does_not_have_is_refused_from_words_and_from_a_file(kind, file):
    file.write_text("negatives = 5\n")
    with flags_in_messages():
        for words in (("g", "--negatives", 5), ("g", "--config", file)):
            with refused(UsageError):
                parsed(kind, *words)
    assert parsed(kind, "g", "--config", file, "--predict", "edges").train.negatives == 5
    assert parsed(kind, "g", "--negatives", 1).train.negatives == 1  # as without it


def test_the_graph_of_a_file_counts_where_none_is_named(file):
    file.write_text('dataset = "communities"\n')
    assert parsed(TrainOptions, "--config", file).dataset == "communities"
    assert parsed(TrainOptions, "--config", file, "--dataset", "None").dataset is None


def test_another_command_goes_on_with_a_folder_of_another_kind(tmp_path):
    config = tmp_path / "config.toml"
    config.write_text('trials = 3\nsearch = ["hidden"]\n')
    with refused():
        parsed(TrainOptions, "--resume", tmp_path)
    assert parsed(TuneOptions, "--resume", tmp_path).trials == 3
    config.write_text("epochs = 3\n")
    with flags_in_messages(), refused():
        parsed(TuneOptions, "--resume", tmp_path)
    assert parsed(TrainOptions, "--resume", tmp_path).train.epochs == 3
