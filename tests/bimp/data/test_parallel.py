import math

import pytest

from bimp.data.parallel import available_processes, work_through


@pytest.mark.parametrize("processes", [1, 2])
def test_results_stand_in_the_order_of_the_things(processes: int) -> None:
    assert work_through(math.sqrt, range(40), processes, worth=1) == [math.sqrt(number) for number in range(40)]


def test_few_things_start_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bimp.data.parallel.ProcessPoolExecutor", None)
    assert work_through(abs, [-1, 2], 8) == [1, 2]
    assert work_through(abs, [], 8) == []
    assert available_processes() >= 1
