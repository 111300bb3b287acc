"""Terms of matrix products: shape, rate, memory traffic, launch."""

from dataclasses import dataclass

import numpy as np

from planner.cost.kernels import ELEMENT, GemmRate, gemm_constants, gemm_parts
from planner.cost.kernels import gemm_rate as rate_of
from planner.cost.meshes import Floats
from planner.cost.parameters.rank_parameters import padded_vocab
from planner.cost.pricing import Pricing
from planner.cost.time.columns import Context
from planner.cost.time.ends import head_terms
from planner.cost.time.gradients import HALF_PRECISION, gemm_shape
from planner.cost.time.layers import gemm_terms
from planner.cost.why.facts import gemm_sources, in_force, memory_sources
from planner.cost.why.terms import Term
from planner.models.layers.blocks import LayerKind, Moe
from planner.models.layers.parts import Gemm

WORDS = {
    "product": "forward product",
    "input_gradient": "gradient of the input",
    "weight_gradient": "gradient of the weight",
    "casts": "casts below half precision",
    "adapters": "adapters and magnitudes beside a frozen weight",
    "other_experts": "the same of the other local experts",
    "norm_and_loss": "norm and cross-entropy",
}
"""Term of a product to its title. [text]"""
FORMULAS = {
    "casts": "bytes cast / (efficiency W) + latency",
    "adapters": "products of low rank, additions, dequantisation",
    "norm_and_loss": "memory_traffic bytes / (efficiency W) + 3 latency",
}
"""Term that is no product to its formula. [text]"""


@dataclass(frozen=True)
class Product:
    """A product on one rank, to be told term by term."""

    pricing: Pricing
    shape: tuple[float, float, float]
    """M, N and K of the forward. [1]"""
    experts: float = 0.0
    """Local experts of a routed product; 0 for any other. [1]"""
    narrow: bool = True

    @property
    def grouped(self) -> bool:
        """True where all local experts share one launch."""
        return self.experts > 0

    def terms(self, side: dict[str, Floats]) -> list[Term]:
        """Terms of one pass, each product among them with its own terms.

        Args:
            side: Time by name of :func:`planner.cost.time.layers.gemm_terms`. [s]

        Returns:
            Terms. [s]
        """
        return [self._term(name, float(time[0])) for name, time in side.items()]

    def _term(self, name: str, value: float) -> Term:
        m, n, k = self.shape
        turned = {
            "product": (m, n, k),
            "input_gradient": (m, k, n),
            "weight_gradient": (k, n, m),
        }
        if name == "other_experts":
            return self._others(name)
        if name not in turned:
            return Term(
                name=name,
                title=WORDS[name],
                value=value,
                formula=FORMULAS[name],
                source=memory_sources(self.pricing),
            )
        parts = self._parts(turned[name], wgrad=name == "weight_gradient")
        if name == "weight_gradient" and self.experts > 1:
            parts.append(self._others("other_experts", added=True))
        formula = f"GEMM {' x '.join(f'{size:,.0f}' for size in turned[name])}"
        total = Term.of_parts(name, WORDS[name], parts)
        return total.model_copy(update={"formula": formula})

    def _others(self, name: str, *, added: bool = False) -> Term:
        """Weights, or gradients, of the rank's other experts through memory."""
        rate = rate_of(self.pricing, grouped=True)
        _, n, k = self.shape
        numbers = {
            "others": self.experts - 1,
            "N": n,
            "K": k,
            "e": float(ELEMENT) if added else rate.element,
            "add": rate.adding * added,
        } | self._bandwidth(rate)
        kernel = numbers["e"] / rate.bandwidth + numbers["add"]
        return Term(
            name=name,
            title=WORDS[name],
            value=numbers["others"] * n * k * kernel,
            formula="others * N * K * (e * traffic / W + add)",
            numbers=numbers,
            source=self._sources,
        )

    @property
    def _sources(self) -> tuple[str, ...]:
        return gemm_sources(self.pricing, grouped=self.grouped, narrow=self.narrow)

    def _parts(self, shape: tuple[float, float, float], *, wgrad: bool) -> list[Term]:
        rate = rate_of(self.pricing, grouped=self.grouped, narrow=self.narrow)
        m, n, k = (np.array([size]) for size in shape)
        times = gemm_parts(rate, m, n, k, wgrad=wgrad)
        own = self._formulas(rate, shape)
        return [
            Term(
                name=name,
                title=own[name][0],
                value=float(np.ravel(time)[0]),
                formula=own[name][1],
                numbers=own[name][2],
                source=self._sources,
                stack=in_force(self.pricing, *own[name][3]),
            )
            for name, time in times.items()
        ]

    def _bandwidth(self, rate: GemmRate) -> dict[str, float]:
        """Bandwidth of the memory, and the weight of operands' bytes."""
        peak = self.pricing.gpu.memory_bandwidth
        return {"W": peak, "traffic": peak / rate.bandwidth}

    def _formulas(
        self, rate: GemmRate, shape: tuple[float, float, float]
    ) -> dict[str, tuple[str, str, dict[str, float], tuple[str, ...]]]:
        """Title, formula, numbers and constants of the stack by term."""
        m, n, k = shape
        size = {"M": m, "N": n, "K": k}
        _, entry = gemm_constants(
            self.pricing, grouped=self.grouped, narrow=self.narrow
        )
        clock = self.pricing.profile.clock
        lost = float(np.ravel(rate.waves.lost(*(np.array([s]) for s in shape)))[0])
        peak = rate.flops / (entry.efficiency * clock)
        speed = {"P": peak, "efficiency": entry.efficiency, "clock": clock}
        memory = self._bandwidth(rate)
        width = {"e": rate.element, "o": float(ELEMENT)}
        return {
            "multiply": (
                "multiplication",
                "2 * (M * N + lost) * (K + ramp) / (P * efficiency * clock)",
                size | {"lost": lost, "ramp": rate.ramp} | speed,
                ("clock",),
            ),
            "operands": (
                "operands through memory",
                "(e * (M * K + K * N) + o * M * N) * traffic / W",
                size | width | memory,
                (),
            ),
            "launch": ("launch", "overhead", {"overhead": rate.overhead}, ("latency",)),
            "add": (
                "addition to earlier gradients",
                "add * M * N",
                {"M": m, "N": n, "add": rate.adding},
                ("gradient_traffic",),
            ),
        }


def layer_product(
    context: Context, layer: LayerKind, gemm: Gemm, forwards: int
) -> Term:
    """Terms of one GEMM of a layer, all its passes.

    Returns:
        The GEMM. [s]
    """
    shape = gemm_shape(context, gemm)
    product = Product(
        context.pricing,
        (float(shape.rows[0]), float(shape.outputs[0]), float(shape.inputs[0])),
        experts=_experts(context, layer, gemm),
        narrow=gemm.name not in HALF_PRECISION,
    )
    ahead, behind = gemm_terms(context, layer, gemm)
    parts = [term.times(forwards) for term in product.terms(ahead)]
    parts += product.terms(behind) if layer.role != "below" else []
    size = " x ".join(f"{axis:,.0f}" for axis in product.shape)
    return Term.of_parts(gemm.name, f"GEMM {gemm.name}, M x N x K {size}", parts)


def _experts(context: Context, layer: LayerKind, gemm: Gemm) -> float:
    """Local experts of a routed product; 0 for any other. [1]."""
    if not gemm.split.startswith("expert"):
        return 0.0
    assert isinstance(layer.ffn, Moe)
    return float(layer.ffn.experts / context.meshes.ep[0])


def head_products(context: Context, passes: int) -> list[Term]:
    """Terms of the head's products, norm and loss.

    Returns:
        Terms of a micro-batch. [s]
    """
    pricing = context.pricing
    columns = padded_vocab(pricing, context.meshes) / context.meshes.tp
    shape = (float(context.local[0]), float(columns[0]), float(pricing.model.hidden))
    product = Product(pricing, shape, narrow=False)
    return [
        term.times(passes)
        for side in head_terms(context)
        for term in product.terms(side)
    ]
