"""A driver that lives is not taken for a study that gets on."""

from __future__ import annotations

import pytest

from study.presence import Presence
from study.signs_of_life import SignsOfLife, work_lines

NOW = 10_000.0


def works(since: float = 0.0, waits: str | None = None) -> Presence:
    return Presence(works=True, who="process 7 of a node", last_sign=NOW - 5, since=since, waits=waits)


def signs(trained_ago: float, longest_epoch_s: float | None) -> SignsOfLife:
    return SignsOfLife(driver=NOW - 5, trained=NOW - trained_ago, longest_epoch_s=longest_epoch_s)


@pytest.mark.parametrize(
    ("trained_ago", "longest_epoch_s", "quiet"),
    [
        (299.0, 0.1, None),  # a worker's start and a pull of data take minutes, however short an epoch is
        (301.0, 0.1, 301.0),
        (301.0, 60.0, None),  # twenty epochs of a minute
        (1199.0, 60.0, None),
        (1201.0, 60.0, 1201.0),
        (5000.0, None, None),  # nothing to measure by
    ],
)
def test_a_study_is_quiet_when_far_more_than_its_epochs_went_by(
    trained_ago: float, longest_epoch_s: float | None, quiet: float | None
) -> None:
    assert signs(trained_ago, longest_epoch_s).quiet_for(works(), NOW) == quiet


def test_a_run_that_goes_on_after_days_is_not_quiet_when_it_begins() -> None:
    long_ago = signs(9_000.0, 1.0)
    assert long_ago.quiet_for(works(since=NOW - 200), NOW) is None
    assert long_ago.quiet_for(works(since=NOW - 400), NOW) == 400.0
    assert long_ago.quiet_for(Presence(works=False), NOW) is None


def test_both_signs_are_told_apart_and_a_quiet_study_is_warned_of() -> None:
    first, second = work_lines(works(), signs(2400.0, 3.0), NOW)
    assert first == (
        "a run works on it now (process 7 of a node); it showed that it lives 5 s ago; the last epoch or end on record "
        "was 40 min ago"
    )
    assert second.startswith(
        "nothing has come on record for 40 min, and no epoch so far took longer than 3 s: it may be stuck; "
    )


def test_a_run_that_says_what_it_waits_for_is_not_stuck() -> None:
    lines = list(work_lines(works(waits="no node is left on which trials fit"), signs(2400.0, 3.0), NOW))
    assert lines[1:] == ["it waits: no node is left on which trials fit"]


def test_the_last_sign_of_a_study_at_rest_is_the_later_one() -> None:
    assert signs(2400.0, 3.0).last_ago(NOW) == "5 s ago"
    assert SignsOfLife(driver=None, trained=NOW - 600, longest_epoch_s=1.0).last_ago(NOW) == "10 min ago"
    assert SignsOfLife(driver=None, trained=None, longest_epoch_s=None).last_ago(NOW) is None
