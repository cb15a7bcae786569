"""Where asynchronous successive halving compares trials."""

from __future__ import annotations

import numpy as np

from study.spec import AshaSpec


def milestones(asha: AshaSpec | None, max_epochs: int) -> tuple[int, ...]:
    """The rungs of Ray's ``AsyncHyperBandScheduler`` with one bracket, ascending: grace, grace * factor, ...

    They end at or before ``max_epochs``. Their number is Ray's, rounding of its logarithms included: from 1 by
    factor 10 to 1,000 it has three rungs, not four.
    """
    if asha is None:
        return ()
    count = int(np.log(max_epochs / asha.grace_epochs) / np.log(asha.reduction_factor) + 1)
    return tuple(asha.grace_epochs * asha.reduction_factor**rung for rung in range(count))
