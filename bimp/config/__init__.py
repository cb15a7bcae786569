"""What one trial is: its model, its training and its data, as frozen values.

A :class:`TrialConfig` is complete: nothing that changes a result is left to a default elsewhere.
Its hash, :func:`trial_key`, is the identity of the trial: the same on every machine and at every start.
"""

from bimp.config.backbone import BACKBONES, GAT_HEADS, Backbone, NamedBackbone, require_backbone
from bimp.config.model import Gate, Head, ModelConfig, Readout
from bimp.config.placement import NamedPlacement, Placement, gated_layers
from bimp.config.requirements import ConfigError
from bimp.config.train import Precision, TrainConfig
from bimp.config.trial import Phase, TrialConfig, trial_key

__all__ = [
    "BACKBONES",
    "GAT_HEADS",
    "Backbone",
    "ConfigError",
    "Gate",
    "Head",
    "ModelConfig",
    "NamedBackbone",
    "NamedPlacement",
    "Phase",
    "Placement",
    "Precision",
    "Readout",
    "TrainConfig",
    "TrialConfig",
    "gated_layers",
    "require_backbone",
    "trial_key",
]
