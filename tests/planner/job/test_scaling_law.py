"""Laws of the loss: published optima, and no other size that does better."""

from math import exp, log

import pytest
from each import each
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import BadInputError
from planner.job.scaling_law import Law, Size, fitted_range, law_named, root

LAWS = ("besiroglu-2024", "hoffmann-2022")
GOPHER = 5.76e23
"""Training compute of Gopher and of Chinchilla (arXiv:2203.15556, table 3). [FLOP]"""
flops = st.floats(18.0, 28.0).map(lambda power: 10.0**power)
served = st.one_of(st.just(0.0), st.floats(8.0, 17.0).map(lambda power: 10.0**power))
laws = st.sampled_from(LAWS).map(law_named)


def test_the_usual_law_makes_chinchilla_of_chinchilla_s_compute() -> None:
    """70B parameters on 1.4T tokens were trained; the law is within a tenth of both."""
    best = law_named().best(GOPHER)
    assert best.parameters == pytest.approx(70e9, rel=0.1)
    assert best.tokens == pytest.approx(1.4e12, rel=0.1)
    assert best.flops == pytest.approx(GOPHER)


def test_the_first_fit_has_the_figures_of_its_closed_form() -> None:
    """Equation 4: P = G (C / 6)^(b / (a + b)), G = (a A / (b B))^(1 / (a + b))."""
    law = law_named("hoffmann-2022")
    a, b = law.parameter_exponent, law.data_exponent
    scale = (a * law.parameter_scale / (b * law.data_scale)) ** (1 / (a + b))
    best = law.best(GOPHER)
    assert best.parameters == pytest.approx(scale * (GOPHER / 6) ** (b / (a + b)))
    assert best.parameters == pytest.approx(32.2e9, rel=0.01)


def test_the_corrected_fit_agrees_with_the_figures_of_its_paper() -> None:
    """Exponents of compute 0.5126 and 0.4874 (arXiv:2404.10102, section 3)."""
    law = law_named("besiroglu-2024")
    least, most = law.best(1e21), law.best(1e25)
    assert log(most.parameters / least.parameters) / log(1e4) == pytest.approx(
        0.513, abs=0.001
    )
    assert log(most.tokens / least.tokens) / log(1e4) == pytest.approx(0.487, abs=0.001)


def test_a_model_to_be_served_is_trained_as_llama_is() -> None:
    """Llama 3's 8B had 15T tokens, 90 times Chinchilla's rule: a great deal served."""
    law = law_named()
    compute = 6 * 8.03e9 * 15e12
    alone, much = law.best(compute), law.best(compute, 2e14)
    assert alone.parameters > 75e9
    assert much.parameters == pytest.approx(8e9, rel=0.25)
    assert much.tokens / much.parameters > 1000


@given(laws, flops, served)
def test_no_other_size_of_the_budget_is_as_cheap_at_its_loss(
    law: Law, compute: float, tokens: float
) -> None:
    """Nearby sizes that reach the loss of the best take more work in all."""
    best = law.best(compute, tokens)
    least, loss = work(best, tokens), law.loss(best)
    for factor in (0.5, 0.9, 1.1, 2.0):
        other = reaching(law, best.parameters * factor, loss)
        assert other is None or work(other, tokens) > least * (1 - 1e-9)


@given(laws, flops)
def test_no_other_size_of_the_budget_has_a_lower_loss(law: Law, compute: float) -> None:
    best = law.best(compute)
    for factor in (0.5, 0.9, 1.1, 2.0):
        other = Size(best.parameters * factor, best.tokens / factor)
        assert law.loss(other) >= law.loss(best)


@given(laws, flops, served, st.floats(1.01, 100.0))
def test_more_compute_is_a_larger_model_on_more_tokens(
    law: Law, compute: float, tokens: float, factor: float
) -> None:
    less, more = law.best(compute, tokens), law.best(compute * factor, tokens)
    assert more.parameters > less.parameters
    assert more.tokens > less.tokens * (1 - 1e-9)
    assert law.loss(more) < law.loss(less)


@given(laws, flops, served, st.floats(1.01, 100.0))
def test_more_to_serve_is_a_smaller_model_on_more_tokens(
    law: Law, compute: float, tokens: float, factor: float
) -> None:
    less, more = law.best(compute, tokens), law.best(compute, tokens * factor)
    assert more.parameters <= less.parameters * (1 + 1e-9)
    assert more.tokens >= less.tokens * (1 - 1e-9)


@given(laws, flops, served)
def test_the_model_as_good_has_the_loss_and_takes_no_more_work(
    law: Law, compute: float, tokens: float
) -> None:
    alone = law.best(compute)
    same = law.as_good(law.loss(alone), tokens)
    assert law.loss(same) == pytest.approx(law.loss(alone))
    assert work(same, tokens) <= work(alone, tokens) * (1 + 1e-9)


def work(size: Size, tokens: float) -> float:
    """Work of training and serving. [FLOP]."""
    return size.flops + 2 * size.parameters * tokens


def reaching(law: Law, parameters: float, loss: float) -> Size | None:
    """A model of a size on the tokens that reach a loss; None where none do."""
    left = loss - law.irreducible
    left -= law.parameter_scale * parameters**-law.parameter_exponent
    if left <= 0:
        return None
    power = log(law.data_scale / left) / law.data_exponent
    return Size(parameters, exp(power)) if power < 600 else None


@each("name", ["besiroglu", "chinchilla"])
def test_a_law_that_is_not_known_is_refused(name: str) -> None:
    with pytest.raises(BadInputError, match="besiroglu-2024, hoffmann-2022"):
        law_named(name)


def test_the_range_of_the_fit_is_one() -> None:
    fitted = fitted_range()
    assert fitted.parameters[0] < fitted.parameters[1]
    assert fitted.tokens[0] < fitted.tokens[1]


def test_a_root_is_found_to_the_last_bit() -> None:
    assert root(lambda place: place**3 - 8, 0.0, 5.0) == 2.0
    assert root(lambda place: place - 5.0, 0.0, 5.0) == 5.0
