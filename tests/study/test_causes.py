from __future__ import annotations

from study.causes import Causes, Trouble, by_status


def test_what_differs_in_numbers_alone_is_one_cause() -> None:
    one, other = Causes(), Causes()
    for epoch in (1, 7, 12):
        one.add("diverged", f"epoch {epoch}: loss nan in training")
    other.add("diverged", "epoch 3: loss nan in training")
    other.add("failed", "OutOfMemoryError: tried 2.00 GiB at 0x7ff")
    other.add("failed", "OutOfMemoryError: tried 2.00 GiB at 0x7ff")
    troubles = Causes.together([one, Causes(), other])
    assert troubles == (
        Trouble("diverged", "epoch ...: loss nan in training", trials=4, cells=2),
        Trouble("failed", "OutOfMemoryError: tried 2.00 GiB at 0x7ff", trials=2, cells=1),
    )
    assert by_status(troubles) == {"diverged": 4, "failed": 2}


def test_the_same_words_of_another_status_are_another_cause() -> None:
    causes = Causes()
    causes.add("failed", "loss nan")
    causes.add("diverged", "loss nan")
    assert Causes.together([causes]) == (Trouble("diverged", "loss nan", 1, 1), Trouble("failed", "loss nan", 1, 1))


def test_a_cause_is_one_line_without_commands_to_a_terminal() -> None:
    causes = Causes()
    causes.add("failed", "gone\x1b[2J\nfor good\r")
    causes.add("failed", None)
    assert {trouble.cause for trouble in Causes.together([causes])} == {"gone [2J for good ", "no cause on record"}
