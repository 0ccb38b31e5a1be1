"""Which of our cells may be put beside the paper's: the same data and the same algorithms."""

from __future__ import annotations

from imcc.datasets import dataset_info, list_datasets
from imcc.metrics import METRICS
from imcc.published import PublishedComparison, compare_with_published
from imcc.published import datasets as published_datasets
from imcc.published import table as published_table
from imcc.report._gather import Results


def is_known(results: Results, dataset: str) -> bool:
    """Say whether a data set is the one that this library knows by that name."""
    if dataset not in list_datasets():
        return False
    known = dataset_info(dataset).fingerprint
    found = {run.data_fingerprint for run in results.runs if run.key[1] == dataset}
    return found == {known}


def beside_the_paper(results: Results, selection: str) -> PublishedComparison | None:
    """Put our numbers beside the paper's; None if nothing can be.

    Names are not enough: the data must be those that the paper used, and a method must be ours of
    that name with its own parameters.

    Parameters
    ----------
    results : Results
    selection : {"own", "each"}
        How settings were chosen.
    """
    paper = published_table("average_precision")
    datasets = [
        spec.name
        for spec in results.experiment.datasets
        if spec.name in paper.datasets and is_known(results, spec.name)
    ]
    methods = [
        method.name
        for method in results.experiment.methods
        if method.name in paper.methods and method.is_named
    ]
    tables = {}
    for metric in METRICS:
        panel = results.panel(metric, selection)
        if panel is not None and datasets and methods:
            tables[metric] = panel.compared.scores.select(datasets, methods)
    if not tables:
        return None
    result = compare_with_published(tables, alpha=results.alpha)
    return result if any(cell.mean is not None for cell in result.cells) else None


def cardinality(dataset: str) -> tuple[float, int] | None:
    """Return labels a row and number of different label sets, as the paper's Table 2 has them."""
    for line in published_datasets():
        if line.dataset == dataset:
            return line.cardinality, line.n_label_sets
    return None
