"""Hours that a study will take, from its epochs and measured seconds an epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from study.duration import duration
from study.plan.effort import CellEffort, Epochs, trained_trials
from study.spec import StudySpec

HOUR_S = 3600.0


@dataclass(frozen=True, kw_only=True)
class Speed:
    """Seconds an epoch of a cell's trials, and where they are known from."""

    seconds_an_epoch: float
    known_from: str


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Epochs and, as far as speeds are known, hours of a study.

    Attributes:
        efforts: of every cell.
        speeds: by cell; cells that are missing have none.
        slots: trials side by side, and slots_from: how that is known.
        gpus_per_trial: a part of a GPU, or several; None where a probe on the cluster is to tell.
        assumed: sentences on what the numbers take for granted.
    """

    efforts: tuple[CellEffort, ...]
    speeds: Mapping[str, Speed]
    slots: int
    slots_from: str
    gpus_per_trial: float | None
    assumed: tuple[str, ...]

    @property
    def epochs(self) -> Epochs:
        """Of all cells."""
        return Epochs.sum(effort.epochs for effort in self.efforts)

    def hours(self, effort: CellEffort) -> Epochs | None:
        """Hours of all trials of a cell, one after the other; None where its speed is not known."""
        speed = self.speeds.get(effort.cell.id)
        return None if speed is None else effort.epochs.times(speed.seconds_an_epoch / HOUR_S)

    @property
    def all_hours(self) -> Epochs | None:
        """Of all cells together; None where the speed of one is not known."""
        hours = [self.hours(effort) for effort in self.efforts]
        known = [one for one in hours if one is not None]
        return Epochs.sum(known) if len(known) == len(hours) else None

    @property
    def by_the_clock(self) -> Epochs | None:
        """Hours until the last trial ends; None where :attr:`all_hours` is.

        All of it is spread over the slots, but takes no less than a search trial that is chosen, and a confirm trial
        after it, or as many as share a slot.
        """
        hours = self.all_hours
        if hours is None:
            return None
        longest = max(
            ((effort.cell.trials > 0) + effort.together)
            * effort.cell.max_epochs
            * self.speeds[effort.cell.id].seconds_an_epoch
            for effort in self.efforts
        )
        spread, chain = hours.times(1 / self.slots), longest / HOUR_S
        return Epochs(
            least=max(spread.least, chain), expected=max(spread.expected, chain), most=max(spread.most, chain)
        )


def estimate(
    efforts: Sequence[CellEffort], spec: StudySpec, speeds: Mapping[str, Speed], *, slots: int, slots_from: str
) -> Estimate:
    """What the study comes to, with the assumptions named that bear on it."""
    asked = spec.resources.gpus_per_trial
    return Estimate(
        efforts=tuple(efforts),
        speeds=speeds,
        slots=slots,
        slots_from=slots_from,
        gpus_per_trial=None if asked == "auto" else asked,
        assumed=tuple(_assumptions(efforts, spec, speeds)),
    )


def _assumptions(efforts: Sequence[CellEffort], spec: StudySpec, speeds: Mapping[str, Speed]) -> Iterator[str]:
    asha = None if spec.search is None else spec.search.asha
    if asha is not None and any(effort.cell.rungs for effort in efforts):
        yield (
            f"of the trials that reach a rung one in {asha.reduction_factor} goes on (in truth more do, of the first "
            "ones); in brackets: all stop at the first rung, none is pruned"
        )
    if any(trained_trials(effort.cell) < effort.cell.trials for effort in efforts):
        yield "where a cell has fewer configurations than search trials each is trained once: a repeated one never is"
    yield "training that is not pruned lasts max_epochs; min_lr or time_limit_s may end it before"
    yield from dict.fromkeys(speed.known_from for speed in speeds.values())
    if speeds and any(effort.together > 1 for effort in efforts):
        yield "seeds that are trained together take as long as one after another, in one slot"
    if speeds and (spec.resources.gpus_per_trial == "auto" or 0 < spec.resources.gpus_per_trial < 1):
        yield "trials that share a GPU are as fast as those that were measured, which may have had one to themselves"
    if speeds:
        yield "beside training, a trial costs nothing"
    if spec.resources.gpus_per_trial == "auto":
        yield "GPU-hours depend on how many trials share a GPU, which a probe on the cluster finds out (auto)"


def estimate_json(found: Estimate) -> dict[str, Any]:
    """The estimate by cell, for ``plan --json``; numbers that depend on pruning are ``[least, expected, most]``."""
    return {effort.cell.id: _cell_json(found, effort) for effort in found.efforts}


def _cell_json(found: Estimate, effort: CellEffort) -> dict[str, Any]:
    speed, hours = found.speeds.get(effort.cell.id), found.hours(effort)
    return {
        "search_epochs": _three(effort.search),
        "confirm_epochs": effort.confirm,
        "seconds_an_epoch": None if speed is None else speed.seconds_an_epoch,
        "hours": None if hours is None else _three(hours),
    }


def _three(numbers: Epochs) -> list[float]:
    return [numbers.least, numbers.expected, numbers.most]


def render_estimate(found: Estimate) -> RenderableType:
    """A table of cells, whose time and GPU-hours are the expected ones; below it the study and what was assumed."""
    timed = bool(found.speeds)
    table = Table(pad_edge=False, box=None, padding=(0, 1))
    table.add_column("Cell", overflow="fold")
    headings = ["Search\nepochs", "Confirm\nepochs", *(["Seconds\nan epoch", "Time"] if timed else [])]
    gpus = found.gpus_per_trial
    if timed and gpus:
        headings.append("GPU-hours")
    for heading in headings:
        table.add_column(heading, justify="right")
    for effort in found.efforts:
        row = [range_text(effort.search) if effort.cell.trials else "-", f"{effort.confirm:,}"]
        if timed:
            speed, hours = found.speeds.get(effort.cell.id), found.hours(effort)
            row += [
                f"{speed.seconds_an_epoch:.3g}" if speed else "?",
                duration(hours.expected * HOUR_S) if hours else "?",
            ]
            row += [_number(hours.expected * gpus) if hours else "?"] if gpus else []
        table.add_row(Text(effort.cell.id), *row)
    return Group(table, Text(), *(Text(line) for line in _below(found)))


def _below(found: Estimate) -> Iterator[str]:
    yield f"epochs of all trials: {range_text(found.epochs)}"
    hours, clock = found.all_hours, found.by_the_clock
    if hours is not None and clock is not None:
        gpus = found.gpus_per_trial
        also = f"; GPU-hours: {range_text(hours.times(gpus))}" if gpus else ""
        yield f"time of all trials: {time_text(hours)}{also}"
        beside = "one at a time" if found.slots == 1 else f"{found.slots} side by side"
        yield f"time by the clock: {time_text(clock)} with trials {beside} ({found.slots_from})"
    elif found.speeds:
        unknown = sum(effort.cell.id not in found.speeds for effort in found.efforts)
        yield f"time: not known of {unknown} {'cell' if unknown == 1 else 'cells'} (marked ?), and so not of the whole"
    else:
        yield "time: not known before an epoch was measured (--measure, or --from RESULTS of an earlier study)"
    for line in found.assumed:
        yield f"assumed: {line}"


def range_text(numbers: Epochs, text: Callable[[float], str] | None = None) -> str:
    """What is expected, and both bounds where they differ; each as ``text`` has it."""
    text = text or _number
    if numbers.least == numbers.most:
        return text(numbers.expected)
    return f"{text(numbers.expected)} ({text(numbers.least)} to {text(numbers.most)})"


def time_text(hours: Epochs) -> str:
    """Hours as people say them."""
    return range_text(hours, lambda number: duration(number * HOUR_S))


def _number(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 or float(number).is_integer() else f"{number:.3g}"
