"""The degrees over which a search spreads experts."""

from collections import Counter
from collections.abc import Iterator
from math import gcd

from planner.cost.pricing import Pricing
from planner.models.layers.blocks import Moe
from planner.search.space.fleet import divisors

Degrees = tuple[int, int]
"""Expert and expert tensor degree. [1]"""


class ExpertDegrees:
    """Expert and expert tensor degrees that model, framework and user allow."""

    def __init__(self, pricing: Pricing) -> None:
        self.limits, self.search = pricing.framework.limits, pricing.search
        self.moes = [k.ffn for k in pricing.kinds if isinstance(k.ffn, Moe)]
        self.domain = pricing.domain
        self.known: dict[tuple[int, int, int], tuple[list[Degrees], Counter[str]]] = {}

    def of(self, tp: int, ranks: int, sp: int, removed: Counter[str]) -> list[Degrees]:
        """Degrees that divide the experts and lie inside the ranks of a stage.

        Args:
            tp: Tensor ranks. [1]
            ranks: Tensor times context times data ranks. [1]
            sp: 1 where tensor ranks split the sequence, else 0. [1]
            removed: Counts what a rule removes, by its name. [1]

        Returns:
            ep and etp; both 1 without experts. [1]
        """
        key = tp, ranks, sp
        if key not in self.known:
            dropped: Counter[str] = Counter()
            self.known[key] = list(self._every(tp, ranks, sp, dropped)), dropped
        found, dropped = self.known[key]
        removed.update(dropped)
        return found

    def _every(
        self, tp: int, ranks: int, sp: int, removed: Counter[str]
    ) -> Iterator[Degrees]:
        shared = gcd(*(moe.experts for moe in self.moes)) if self.moes else 1
        for etp in self._tensor(tp, ranks):
            for ep in divisors(shared):
                if self._legal(tp, ranks, ep, etp, sp, removed):
                    yield ep, etp

    def _tensor(self, tp: int, ranks: int) -> list[int]:
        """Degrees that divide tp; in the full space any inside a scale-up domain."""
        if not (self.moes and self.limits.expert_tensor):
            return [1]
        full = self.search.space == "full"
        most = max(tp, self.domain) if full else tp
        return [etp for etp in divisors(ranks if full else tp) if etp <= most]

    def _legal(
        self, tp: int, ranks: int, ep: int, etp: int, sp: int, removed: Counter[str]
    ) -> bool:
        rules = {
            "tp cp dp % (ep etp)": ranks % (ep * etp) != 0
            or any(moe.ffn % etp for moe in self.moes),
            "ep with tp needs sp": ep > 1
            and tp > 1
            and self.limits.experts_need_sp
            and not sp,
            "the framework has no expert parallelism": ep > 1
            and not self.limits.expert_parallel,
            "limit:ep": not self.search.allows("ep", ep),
            "limit:etp": not self.search.allows("etp", etp),
        }
        for rule, broken in rules.items():
            if broken:
                removed[rule] += 1
                return False
        return True
