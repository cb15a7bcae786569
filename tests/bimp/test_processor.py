"""Who made the processor, by what Linux says of it."""

from pathlib import Path

import pytest

from bimp.kernels.processor import maker_of_processor


@pytest.mark.parametrize("maker", ["AuthenticAMD", "GenuineIntel"])
def test_linux_names_the_maker_of_every_core(tmp_path: Path, maker: str) -> None:
    described = tmp_path / "cpuinfo"
    described.write_text(f"processor\t: 0\nvendor_id\t: {maker}\ncpu family\t: 25\n\n" * 2)
    assert maker_of_processor(described) == maker


def test_a_processor_of_another_family_names_none(tmp_path: Path) -> None:
    described = tmp_path / "cpuinfo"
    described.write_text("processor\t: 0\nBogoMIPS\t: 50.00\nCPU implementer\t: 0x41\n")
    assert maker_of_processor(described) == ""


def test_elsewhere_the_last_word_of_its_name_is_the_maker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = "AMD64 Family 25 Model 17 Stepping 1, AuthenticAMD"
    monkeypatch.setattr("platform.processor", lambda: named)
    assert maker_of_processor(tmp_path / "none") == "AuthenticAMD"
