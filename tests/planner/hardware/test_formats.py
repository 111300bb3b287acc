"""Block-wise formats: bytes of an element with its scales, and who runs them."""

import pytest

from planner.hardware import catalog
from planner.hardware.formats import block_format
from planner.hardware.reading import files
from planner.hardware.reading.files import SHIPPED


@pytest.mark.parametrize(
    ("name", "nested", "each"),
    [
        ("nf4", False, 0.5 + 4 / 64),
        ("nf4", True, 0.5 + 0.127 / 8),
        ("fp4", True, 0.5 + 0.127 / 8),
        ("int8", True, 1.0),
    ],
)
def test_a_weight_has_its_share_of_the_scales(
    name: str, each: float, *, nested: bool
) -> None:
    """QLoRA, section 3: double quantisation takes 0.5 bits a weight to 0.127."""
    form = block_format("weights", name)
    assert form.bytes_each(nested=nested) == pytest.approx(each, abs=1e-5)


def test_a_moment_in_8_bits_has_a_scale_per_256() -> None:
    assert block_format("moments", "8-bit").bytes_each() == 1 + 4 / 256


def test_architectures_are_those_of_the_catalog() -> None:
    known = {catalog.gpu(name, SHIPPED).arch for name in SHIPPED.names("gpus")}
    for use, names in (
        ("weights", ("nf4", "fp4", "int8")),
        ("moments", ("8-bit", "paged")),
    ):
        for name in names:
            assert set(block_format(use, name).architectures) <= known


def test_an_unknown_format_is_answered_with_those_there_are() -> None:
    with pytest.raises(files.UnknownNameError, match="nf4, fp4, int8"):
        block_format("weights", "int3")
