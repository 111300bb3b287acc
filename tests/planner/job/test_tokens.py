"""How long a run is: compute, Chinchilla, serving; the numbers that are published."""

import pytest

from planner.job.run_tokens import (
    compute_optimal_tokens,
    tokens_of_compute,
    with_tokens,
)
from planner.models import preset
from planner.specs.training import TrainingSpec


def training(**fields: object) -> TrainingSpec:
    return TrainingSpec.model_validate({"seq_len": 8, "global_batch": 4, **fields})


def test_compute_of_llama_405b() -> None:
    """6 P T is 3.79e25 FLOP for 405e9 parameters and 15.6 T tokens."""
    assert tokens_of_compute(3.79e25, 405e9) == pytest.approx(15.6e12, rel=0.001)
    model = preset("llama-3.1-405b")
    tokens = with_tokens(training(compute="3.799e25 FLOP"), model).run_tokens
    assert tokens == pytest.approx(15.6e12, rel=0.001)


def test_chinchilla_is_70b_on_a_trillion_and_four_tenths() -> None:
    """20 tokens a parameter; 6 P T is then 5.88e23 FLOP."""
    tokens = compute_optimal_tokens(70e9)
    assert tokens == pytest.approx(1.4e12)
    assert 6 * 70e9 * tokens == pytest.approx(5.88e23)


def test_the_more_is_served_the_longer_is_trained() -> None:
    """At the optimum another token trained saves as much as it costs."""
    served = [0.0, 1e11, 2e12, 1e14]
    tokens = [compute_optimal_tokens(7e9, inference) for inference in served]
    assert tokens == sorted(tokens)
    assert tokens[0] == pytest.approx(140e9)
    for inference, found in zip(served, tokens, strict=True):
        gain = (1 + inference / (3 * found)) * (140e9 / found) ** 0.28
        assert gain == pytest.approx(1)


def test_no_other_size_of_the_same_loss_is_cheaper_over_training_and_serving() -> None:
    """Sardana et al.: at equal loss, 6 P T + 2 P I is least at the rule's tokens."""
    parameters, served, a, b = 7e9, 2e12, 0.34, 0.28
    tokens = compute_optimal_tokens(parameters, served)
    scale = (20 * parameters) ** b * parameters**-a * a / b
    loss = parameters**-a + scale * tokens**-b

    def total(size: float) -> float:
        """Compute of a model of another size that reaches the loss."""
        needed = ((loss - size**-a) / scale) ** (-1 / b)
        return 6 * size * needed + 2 * size * served

    here = total(parameters)
    assert here == pytest.approx(6 * parameters * tokens + 2 * parameters * served)
    assert all(total(parameters * factor) >= here for factor in (0.9, 0.97, 1.03, 1.1))


def test_experts_that_a_token_does_not_meet_do_not_count() -> None:
    model = preset("mixtral-8x7b")
    tokens = with_tokens(training(tokens="compute-optimal"), model).run_tokens
    assert tokens == pytest.approx(20 * 12_879_925_248)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"tokens": 1e9, "compute": "1e20 FLOP"}, "not both"),
        ({"inference_tokens": 1e9}, "goes with tokens: compute-optimal"),
        ({"compute": "1e20"}, "units are FLOP"),
        ({"compute": "-1 FLOP"}, "negative"),
        ({"tokens": 100, "batch_ramp": [{"global_batch": 2, "tokens": 100}]}, "100"),
        ({"batch_ramp": [{"global_batch": 4, "tokens": 1}]}, "below the global batch"),
    ],
)
def test_lengths_that_clash_are_refused(fields: dict[str, object], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        training(**fields)
