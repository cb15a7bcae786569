"""What a record says of a trial, and the columns that hold it.

Other packages know it by way of ``study.records``; it imports neither torch nor Ray.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Literal

import pyarrow as pa

SCHEMA_VERSION = 3

Status = Literal["running", "finished", "pruned", "diverged", "failed", "superseded"]
"""``running`` until the driver seals the record; only ``finished`` confirm records enter a table. ``superseded`` is a
confirm record that lost its place: its search, extended or with failed trials tried again, chose another configuration,
or the data is other."""

BEGUN_AGAIN: tuple[Status, ...] = ("failed", "superseded")
"""On record, and yet no end: the study may begin such a trial again."""


@dataclass(frozen=True, kw_only=True)
class EpochRecord:
    """One epoch. ``epoch`` counts completed epochs: 1 after the first pass over the training split.

    Losses are means over graphs of the supervised loss; ``*_unsupervised_loss`` is the mean min-cut and
    orthogonality loss before its weight. ``gate_*`` describe deg * beta_hat over the edges of the gated layers
    on the validation split (1 everywhere: a uniform gate). Values that do not exist are null.
    """

    epoch: int
    learning_rate: float
    train_loss: float
    train_unsupervised_loss: float | None
    train_metric: float
    val_loss: float
    val_unsupervised_loss: float | None
    val_metric: float
    gate_min: float | None
    gate_max: float | None
    gate_std: float | None
    seconds: float
    ended_at: float


@dataclass(frozen=True, kw_only=True)
class TrialRecord:
    """Everything that is known of one trial.

    Attributes:
        key: the trial's identity (a hash of its cell and ``bimp.config.trial_key``) and the name of its file.
        study, cell: names; ``cell`` is the id of a cell in ``plan.json``.
        phase: ``search`` or ``confirm``; only confirm trials read the test split.
        status, reason: how it ended (``finished``: ``max_epochs``, ``min_lr`` or ``time_limit``; ``pruned``: the
            epoch of the rung; ``diverged``, ``failed``: the cause).
        number: of a search trial, its place in its cell's search, from 0; null for confirm.
        chosen_from: of a confirm trial, the key of the search trial whose configuration it repeats.
        hidden_dim: width of a layer, for gat of one head. params: counted from the built model.
        budget: parameters asked for; null where ``hidden_dim`` was given.
        placement: as in the study file; explicit layers as ``2,4``. gated_layers: positions from 1.
        train_metric, val_metric, test_metric: of the last epoch's model in evaluation mode, as fractions;
            null where not measured (search trials have no test metric).
        seconds: training and evaluation, summed over interruptions. started_at, ended_at: Unix seconds.
        semantics: the preset of the settings; departures: JSON of those whose value is not the preset's; null: none.
        pos_enc_dim, out_dim and the settings after ``versions_json``: as in ``bimp.config``; null where they mean
            nothing for the model.
        config_json: the complete ``TrialConfig``. versions_json: of the libraries that matter.
        epochs: one :class:`EpochRecord` an epoch.
    """

    key: str
    study: str
    cell: str
    phase: str
    status: Status
    reason: str | None
    number: int | None
    chosen_from: str | None
    dataset: str
    dataset_title: str
    task: str
    metric: str
    direction: str
    backbone: str
    layers: int
    hidden_dim: int
    heads: int
    budget: int | None
    params: int
    placement: str
    gated_layers: tuple[int, ...]
    gate: str | None
    num_clusters: int | None
    sigma_m: float | None
    unsupervised_weight: float | None
    readout: str
    head: str
    semantics: str
    batch_size: int
    learning_rate: float
    lr_factor: float
    lr_patience: int
    min_lr: float
    max_epochs: int
    time_limit_s: float | None
    seed: int
    fold: int | None
    train_metric: float | None
    val_metric: float | None
    test_metric: float | None
    train_loss: float | None
    val_loss: float | None
    test_loss: float | None
    seconds: float
    started_at: float
    ended_at: float | None
    device: str
    threads: int
    git_commit: str | None
    git_dirty: bool | None
    data_fingerprint: str
    config_json: str
    versions_json: str
    departures: str | None = None
    pos_enc_dim: int | None = None
    out_dim: int | None = None
    last_width: str | None = None
    gcn_normalisation: str | None = None
    concatenated_row: str | None = None
    edge_gate: str | None = None
    edge_features: str | None = None
    attention_slope: float | None = None
    attention_bias: bool | None = None
    gated_attention_slope: float | None = None
    gated_attention_bias: bool | None = None
    assignment_bias: bool | None = None
    assignment_width: str | None = None
    metric_bias: bool | None = None
    metric_relu: bool | None = None
    distance_epsilon: float | None = None
    gate_normalisation: str | None = None
    gate_epsilon: float | None = None
    cut_scope: str | None = None
    cut_adjacency: str | None = None
    cut_epsilon: float | None = None
    reduction: str | None = None
    validation_loss: str | None = None
    clip_norm: float | None = None
    report: str | None = None
    precision: str = "float32"
    epochs: tuple[EpochRecord, ...] = field(default=())

    @property
    def num_epochs(self) -> int:
        """Completed epochs."""
        return len(self.epochs)

    def sealed(self, status: Status, reason: str | None, ended_at: float) -> TrialRecord:
        """This record with its end written in."""
        return replace(self, status=status, reason=reason, ended_at=ended_at)


_ARROW_TYPES: dict[str, pa.DataType] = {
    "str": pa.string(),
    "Status": pa.string(),
    "int": pa.int64(),
    "float": pa.float64(),
    "bool": pa.bool_(),
    "tuple[int, ...]": pa.list_(pa.int64()),
}


def _arrow_fields(record_type: type, skip: str = "") -> list[pa.Field]:
    result = []
    for entry in fields(record_type):
        if entry.name != skip:
            name, _, optional = str(entry.type).partition(" | ")
            result.append(pa.field(entry.name, _ARROW_TYPES[name], nullable=optional == "None"))
    return result


SCHEMA = pa.schema(
    [
        *_arrow_fields(TrialRecord, skip="epochs"),
        pa.field("epochs", pa.list_(pa.struct(_arrow_fields(EpochRecord))), nullable=False),
    ],
    metadata={"bimp_record_schema": str(SCHEMA_VERSION)},
)
"""The columns of a record file, in order: those of :class:`TrialRecord`."""
