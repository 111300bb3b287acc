"""Speed and price of a planned model, and what a limit buys at them."""

from dataclasses import dataclass
from math import inf

from planner.errors import BadInputError
from planner.job.scaling_law import BACKWARD, FLOPS_PER_TOKEN, FORWARD, Size
from planner.models import Architecture
from planner.planning.sizing.ask import MOST_DAYS, Ask
from planner.specs.answer.result import RankedPlan
from planner.specs.answer.run import Run
from planner.specs.answer.size import SizeFlops, Trained

DAY = 86400.0
"""[s/d]"""


@dataclass(frozen=True)
class Rate:
    """Speed and price of a model's planned run.

    Attributes:
        model: The model. [-]
        plan: The best plan. [-]
        run: The plan's run. [-]
        pace: Speed over the expected speed. [1]
    """

    model: Architecture
    plan: RankedPlan
    run: Run
    pace: float = 1.0

    @property
    def tokens_per_s(self) -> float:
        """Tokens for each second of wall time, interruptions included. [token/s]."""
        return self.pace * self.run.tokens / self.run.time_to_train_s.value

    @property
    def flops_per_s(self) -> float:
        """Work for each second, at 6 for each parameter and token. [FLOP/s]."""
        return FLOPS_PER_TOKEN * self.model.parameters * self.tokens_per_s

    @property
    def usd_per_s(self) -> float | None:
        """Cost for each second of wall time; None without a price. [USD/s]."""
        cost = self.run.cost_usd
        if cost is None:
            return None
        return cost.total.value / self.run.time_to_train_s.value

    def seconds(self, ask: Ask, gpu: str) -> float:
        """Wall time that the limits allow.

        Returns:
            Time. [s]

        Raises:
            BadInputError: There is a budget and no price, or the time is absurd.
        """
        given = inf if ask.days is None else ask.days * DAY
        paid = inf if ask.budget is None else self._paid(ask.budget, gpu)
        if min(paid, given) > MOST_DAYS * DAY:
            raise BadInputError(
                f"pays for {paid / DAY:,.0f} days",
                field="--budget",
                value=ask.budget,
                allowed=f"money for {MOST_DAYS:,.0f} days at most, or --days beside it",
            )
        return min(paid, given)

    def _paid(self, budget: float, gpu: str) -> float:
        """Wall time that money pays for. [s]."""
        if not self.usd_per_s:
            raise BadInputError(
                f"no price of {gpu} is known",
                field="--budget",
                value=budget,
                allowed="--days N, or a price: --set economics.price='2 USD/GPU-h'",
            )
        return budget / self.usd_per_s

    def best(
        self, ask: Ask, seconds: float, served: float, *, held: bool = False
    ) -> Size:
        """The size that a time trains best at this rate.

        Args:
            ask: The question. [-]
            seconds: Wall time. [s]
            served: Tokens to be served. [token]
            held: True where memory holds no larger model than this one. [-]
        """
        if held:
            return Size(self.model.parameters, self.tokens_per_s * seconds)
        return ask.law.best(self.flops_per_s * seconds, served)

    def trained(self, ask: Ask, size: Size) -> Trained:
        """A size with its loss, work, time and cost at this rate."""
        pairs, seconds = size.parameters * size.tokens, size.flops / self.flops_per_s
        return Trained(
            parameters=size.parameters,
            tokens=size.tokens,
            tokens_per_parameter=size.tokens / size.parameters,
            loss=ask.law.loss(size),
            flops=SizeFlops(
                forward=FORWARD * pairs,
                backward=BACKWARD * pairs,
                training=size.flops,
                serving=FORWARD * size.parameters * ask.served,
            ),
            days=seconds / DAY,
            cost_usd=None if self.usd_per_s is None else self.usd_per_s * seconds,
        )
