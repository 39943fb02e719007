"""`vrgcn audit`: looks for leaks in a graph and its split, before anyone trusts a score."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import ClassVar, Self

from vrgcn.cli.command import Options
from vrgcn.cli.shared_flags import DataRoot, Dataset, GraphFolder, GraphOrDataset, with_graph
from vrgcn.data.tables.spec import check_split_seed
from vrgcn.files.wording import counted, print_note, printable
from vrgcn.files.writing import check_suffix, check_writable
from vrgcn.targets.spec import TargetSpec


@dataclass(frozen=True)
class AuditOptions(Options):
    """Flags of `vrgcn audit`."""

    loads_torch: ClassVar[bool] = True

    graph_or_dataset: GraphOrDataset = None
    dataset: Dataset = None
    graph: GraphFolder = None
    data_root: DataRoot = None
    spec: TargetSpec = field(default_factory=TargetSpec)
    strict: bool = False
    """Exit with 1 if anything is found, for scripts."""
    json: Path | None = None
    """File for the findings, as JSON."""

    def checked(self) -> Self:
        """Resolve the graph; raise if the file could not be written."""
        check_split_seed(self.spec.split_seed, self.spec.ratio)
        if self.json is not None:
            check_suffix(self.json, (".json",))
            check_writable(self.json.parent)
        return with_graph(self)


def run(options: AuditOptions) -> None:
    """Print what looks like a leak, the severe first."""
    import sys

    from vrgcn.runs.audit import audit

    done = audit(
        options.graph,
        dataset=options.dataset,
        data_root=options.data_root,
        **asdict(options.spec),
    )
    print_note(done.note)
    print(done.graph)
    for finding in done.findings:
        print(f"{finding.severity}: {printable(finding.text)}\n  {printable(finding.advice)}")
    count, high = len(done.findings), sum(each.severity == "high" for each in done.findings)
    print(f"{counted(count, 'finding')}, {high} severe" if count else "no leak was found")
    if options.json is not None:
        done.write(options.json)
        print(f"written to {printable(options.json)}")
    if options.strict and done.findings:
        sys.exit(1)
