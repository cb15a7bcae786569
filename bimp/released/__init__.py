"""Models trained with the authors' released code: their configurations and weights, opened here."""

from bimp.released.configuration import ReleasedError, load_config
from bimp.released.weights import load_network, read_checkpoint

__all__ = ["ReleasedError", "load_config", "load_network", "read_checkpoint"]
