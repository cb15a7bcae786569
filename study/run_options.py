"""Where a study runs and where things lie."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from study.node_check import NodeNeeds
from study.provenance import library_versions
from study.spec import ResourcesSpec


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Where a study runs and where things lie; nothing in it changes a number.

    Attributes:
        results: the results folder. data: folder of the prepared datasets.
        address: of a running Ray cluster; None starts a local one.
        mlflow: tracking URI; None for a database in the results folder.
        name: of the study in the place of the file's own; None keeps that.
        allow_version_differences: whether nodes may have other libraries than the driver.
        on_cpu: whether no GPU is used, also where trials are given one.
    """

    results: Path
    data: Path
    address: str | None
    mlflow: str | None
    name: str | None = None
    allow_version_differences: bool = False
    on_cpu: bool = False

    def needs(self, resources: ResourcesSpec) -> NodeNeeds:
        """What every node must have, of a study whose trials ask for ``resources``."""
        compared = self.address is not None and not self.allow_version_differences
        return NodeNeeds(
            versions=library_versions() if compared else {},
            cuda=resources.gpus > 0 and not self.on_cpu,
        )
