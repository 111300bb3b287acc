"""The declared space: every legal outer tuple, and the rule that removed the rest.

A mesh is a tuple of degrees; a candidate adds the schedule with its chunks and
one entry of the recompute menu (or the whole menu, where layers choose freely).
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from planner.cost.host_bound import host_bound, leaves_the_gpus
from planner.cost.meshes import CP_KINDS, ORDERS, Ints, Meshes
from planner.cost.workload import Workload
from planner.models.blocks import Mlp, Moe
from planner.search.schedules import AT_ONCE, SEARCHED, Rows, schedule_rows
from planner.search.together import clash_of
from planner.specs.offload import CATEGORIES, LEAST_ZERO

MOST_DEFAULT_MICRO_BATCH = 8
"""Sequences in the largest micro-batch of the default space. [1]"""
MOST_DEFAULT_CONTEXT = 64
"""Largest context degree of the default space. [1]"""

NO_RECOMPUTE = "none"
"""Kind under which a layer keeps everything for its backward. [text]"""


def divisors(n: int) -> list[int]:
    """Divisors in ascending order.

    Args:
        n: A positive whole number. [1]

    Returns:
        Its divisors. [1]
    """
    small = [d for d in range(1, int(n**0.5) + 1) if n % d == 0]
    return sorted({*small, *(n // d for d in small)})


@dataclass(frozen=True)
class Space:
    """Meshes of the declared space, candidates on them, and what was removed."""

    meshes: Meshes
    mesh: Ints
    """Mesh of every candidate. [1], shape (candidates,)"""
    vpp: Ints
    """Chunks per rank of every candidate. [1], shape (candidates,)"""
    schedules: Ints
    """Schedule of every candidate, an entry of ``SEARCHED``. [1]"""
    menu: Ints
    """Entry of the recompute menu; -1 where layers choose. [1]"""
    recompute: tuple[str, ...]
    """The recompute menu. [text]"""
    removed: dict[str, int]
    """Tuples removed by each rule before pricing. [1]"""

    def __len__(self) -> int:
        return len(self.mesh)

    def schedule(self, candidate: int) -> str:
        """Schedule of a candidate.

        Args:
            candidate: Index. [1]

        Returns:
            Name of the schedule. [text]
        """
        return SEARCHED[self.schedules[candidate]]

    def choices(self, candidate: int) -> tuple[int, ...]:
        """Menu entries that the layers of a candidate may use.

        Args:
            candidate: Index. [1]

        Returns:
            Indices into the recompute menu. [1]
        """
        entry = int(self.menu[candidate])
        return tuple(range(len(self.recompute))) if entry < 0 else (entry,)


class Enumerator:
    """Lists the legal meshes of a job in a fixed order, counting what it drops."""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.limits = workload.framework.limits
        self.search = workload.search
        self.removed: Counter[str] = Counter()
        self.full = workload.search.space == "full"
        shares = workload.offload
        self.offloaded = [name for name in CATEGORIES if getattr(shares, name) > 0]

    def space(self) -> Space:
        """Enumerate meshes, schedules and recompute settings.

        Returns:
            The declared space.
        """
        menu = self._recompute_menu()
        meshes = Meshes.from_rows(list(self._rows()) if menu else [])
        menu = menu or (NO_RECOMPUTE,)
        tied = self.limits.recompute_scope == "plan" or len(menu) == 1
        entries = list(range(len(menu))) if tied else [-1]
        rows = schedule_rows(self.workload, meshes, self.removed, full=self.full)
        if len(rows.mesh) and leaves_the_gpus(self.workload):
            rows = rows.take(self._host_holds(meshes.take(rows.mesh), rows, menu))
        return Space(
            meshes=meshes,
            mesh=np.repeat(rows.mesh, len(entries)),
            vpp=np.repeat(rows.vpp, len(entries)),
            schedules=np.repeat(rows.schedule, len(entries)),
            menu=np.tile(np.array(entries, dtype=np.int64), len(rows.mesh)),
            recompute=menu,
            removed=dict(self.removed),
        )

    def _host_holds(self, meshes: Meshes, rows: Rows, menu: tuple[str, ...]) -> Ints:
        """Candidates whose hosts hold what leaves the GPUs, however layers split."""
        room = self.workload.topology.cluster.node.host_memory
        if room is None:
            return np.arange(len(meshes))
        stages = meshes.pp * rows.vpp
        needed = host_bound(
            self.workload,
            meshes,
            vpp=rows.vpp,
            layers=-(-self.workload.model.layers // stages) + int(self.full),
            recompute=menu,
            at_once=rows.schedule == AT_ONCE,
        )
        kept = np.flatnonzero(needed <= room)
        rule = f"host memory: {room / 1e9:,.0f} GB a node, less than is offloaded"
        self.removed[rule] += len(needed) - len(kept)
        return kept

    def _keep(self, axis: str, value: int) -> bool:
        """Apply the user's limit on an axis, and count what it removes."""
        if self.search.allows(axis, value):
            return True
        self.removed[f"limit:{axis}"] += 1
        return False

    def _rows(self) -> Iterator[tuple[int, ...]]:
        for tp, pp, cp in self._degrees():
            dp = self.workload.gpus // (tp * pp * cp)
            if not self._keep("dp", dp):
                continue
            for micro_batch in self._micro_batches(dp):
                micro_batches = self.workload.sequences // (dp * micro_batch)
                for sp, kind, (ep, etp), order in self._inner(tp, pp, cp, dp):
                    for zero, shard in self._sharding(tp, cp, dp):
                        hybrid = shard < cp * dp
                        if self._apart(zero, hybrid=hybrid, tp=tp, pp=pp, cp=cp, ep=ep):
                            continue
                        yield (
                            tp,
                            sp,
                            pp,
                            cp,
                            kind,
                            ep,
                            etp,
                            dp,
                            shard,
                            zero,
                            micro_batch,
                            micro_batches,
                            order,
                        )

    def _degrees(self) -> Iterator[tuple[int, int, int]]:
        """Degrees whose product divides the GPUs and that the model can split."""
        for tp in divisors(self.workload.gpus):
            if not (self._tensor_legal(tp) and self._keep("tp", tp)):
                continue
            for cp in divisors(self.workload.gpus // tp):
                if not (self._context_legal(tp, cp) and self._keep("cp", cp)):
                    continue
                for pp in divisors(self.workload.gpus // (tp * cp)):
                    if not (self._pipeline_legal(pp) and self._keep("pp", pp)):
                        continue
                    if not self._apart(tp=tp, pp=pp, cp=cp):
                        yield tp, pp, cp

    def _apart(
        self, zero: int | None = None, *, hybrid: bool = False, **degrees: int
    ) -> bool:
        """Whether the framework lacks two of these together, which is counted."""
        clash = clash_of(self.workload, degrees, zero=zero, hybrid=hybrid)
        if clash:
            self.removed[clash] += 1
        return clash is not None

    def _tensor_legal(self, tp: int) -> bool:
        """Heads, KV heads and inner widths divide; inside one scale-up domain.

        The full space also has tensor groups over two domains.
        """
        domain = self.workload.topology.cluster.node.scale_up_domain
        if tp > (2 * domain if self.full else domain):
            self.removed["tp leaves the scale-up domain"] += 1
            return False
        for kind in self.workload.kinds:
            attention = kind.attention
            if attention.heads % tp:
                self.removed["heads % tp"] += 1
                return False
            groups = getattr(attention, "kv_heads", attention.heads)
            if groups % tp and tp % groups:
                self.removed["kv heads % tp"] += 1
                return False
            dense = kind.ffn if isinstance(kind.ffn, Mlp) else kind.ffn.shared
            if dense.ffn % tp:
                self.removed["ffn % tp"] += 1
                return False
        return True

    def _context_legal(self, tp: int, cp: int) -> bool:
        """Zig-zag chunks (2 cp of them) and tensor splits divide the sequence."""
        if cp > MOST_DEFAULT_CONTEXT and not self.full:
            self.removed["cp above the default space"] += 1
            return False
        chunks = tp * (2 * cp if cp > 1 else 1)
        if self.workload.training.seq_len % chunks:
            self.removed["sequence % (tp * 2 cp)"] += 1
            return False
        return True

    def _pipeline_legal(self, pp: int) -> bool:
        """Every stage holds a layer or an end, and the framework has pipelines."""
        if pp > 1 and not self.limits.pipeline:
            self.removed["the framework has no pipeline"] += 1
            return False
        if pp > self.workload.model.layers + (2 if pp > 1 else 0):
            self.removed["more stages than layers"] += 1
            return False
        if pp > 1 and self._activations_alone():
            self.removed["offload of activations needs pp = 1"] += 1
            return False
        return True

    def _activations_alone(self) -> bool:
        """Whether offloaded activations rule out a pipeline and recompute."""
        alone = self.limits.offloads_activations_alone
        return alone and "activations" in self.offloaded

    def _micro_batches(self, dp: int) -> Iterator[int]:
        """Micro-batches that divide the sequences of a replica."""
        if self.workload.sequences % dp:
            self.removed["global batch % dp"] += 1
            return
        for micro_batch in divisors(self.workload.sequences // dp):
            if micro_batch > MOST_DEFAULT_MICRO_BATCH and not self.full:
                self.removed["micro-batch above the default space"] += 1
            elif self._keep("micro_batch", micro_batch):
                yield micro_batch

    def _inner(
        self, tp: int, pp: int, cp: int, dp: int
    ) -> Iterator[tuple[int, int, tuple[int, int], int]]:
        """Sequence parallelism, kind of cp, experts and rank order."""
        for sp in self._sequence_parallel(tp):
            for kind in self._context_kinds(tp, cp):
                for experts in self._experts(tp, cp, dp, sp=sp):
                    for order in self._orders(pp, dp, tp * cp, experts):
                        yield sp, kind, experts, order

    def _sequence_parallel(self, tp: int) -> list[int]:
        legal = self.limits.sequence_parallel if tp > 1 else (False,)
        wanted = self.search.sp
        kept = [int(sp) for sp in legal if wanted in (None, sp) or tp == 1]
        self.removed["limit:sp"] += len(legal) - len(kept)
        return kept

    def _context_kinds(self, tp: int, cp: int) -> list[int]:
        """The framework's first kind in the default space; all in the full one."""
        if cp == 1:
            return [CP_KINDS.index("all-gather")]
        names = self.limits.cp_kinds if self.full else self.limits.cp_kinds[:1]
        if self.search.cp_kind is not None:
            names = tuple(
                n for n in self.limits.cp_kinds if self.search.allows_text("cp_kind", n)
            )
        return [
            CP_KINDS.index(name)
            for name in names
            if name != "ulysses" or self._heads_divide(tp * cp)
        ]

    def _heads_divide(self, ranks: int) -> bool:
        return all(kind.attention.heads % ranks == 0 for kind in self.workload.kinds)

    def _experts(
        self, tp: int, cp: int, dp: int, *, sp: int
    ) -> Iterator[tuple[int, int]]:
        """(ep, etp) that divide the experts and lie inside dp * cp * tp."""
        experts = [k.ffn for k in self.workload.kinds if isinstance(k.ffn, Moe)]
        if not experts:
            yield 1, 1
            return
        ranks = tp * cp * dp
        for etp in self._expert_tensor(tp):
            for ep in divisors(np.gcd.reduce([moe.experts for moe in experts]).item()):
                if ranks % (ep * etp) or any(moe.ffn % etp for moe in experts):
                    self.removed["tp cp dp % (ep etp)"] += 1
                elif ep > 1 and tp > 1 and self.limits.experts_need_sp and not sp:
                    self.removed["ep with tp needs sp"] += 1
                elif ep > 1 and not self.limits.expert_parallel:
                    self.removed["the framework has no expert parallelism"] += 1
                elif self._keep("ep", ep) and self._keep("etp", etp):
                    yield ep, etp

    def _expert_tensor(self, tp: int) -> list[int]:
        return divisors(tp) if self.limits.expert_tensor else [1]

    def _orders(
        self, pp: int, dp: int, inner: int, experts: tuple[int, int]
    ) -> Iterator[int]:
        """Rank orders; both coincide without a pipeline or without replicas."""
        ep, etp = experts
        routed = self.workload.model.expert_parameters > 0
        if pp == 1 or dp == 1:
            yield 0
            return
        for name in self.limits.orders:
            if not self.search.allows_text("order", name):
                self.removed["limit:order"] += 1
            elif name == "tp-cp-ep-pp-dp" and routed and ep * etp != inner:
                self.removed["pp inside dp needs ep * etp == tp * cp"] += 1
            else:
                yield ORDERS.index(name)

    def _sharding(self, tp: int, cp: int, dp: int) -> Iterator[tuple[int, int]]:
        """ZeRO stages and shard groups; smaller ones only with hybrid sharding."""
        for zero in self.limits.zero_stages:
            if not (self._offload_legal(zero) and self._keep("zero_stage", zero)):
                continue
            for replicas in divisors(dp):
                if replicas > 1 and (zero == 0 or not self.limits.hybrid_sharding):
                    break
                shard = cp * dp // replicas
                copies = dp if zero < 2 else replicas
                wrong = self.limits.shards(
                    zero=zero, tp=tp, cp=cp, shard=shard, replicas=copies
                )
                if wrong:
                    self.removed[wrong] += 1
                elif self._keep("dp_shard", shard):
                    yield zero, shard

    def _offload_legal(self, zero: int) -> bool:
        """Only what is sharded, and as the framework shards it, can be offloaded."""
        for name in self.offloaded:
            least = max(
                LEAST_ZERO.get(name, 0), self.limits.offload_least_zero.get(name, 0)
            )
            if zero < least:
                self.removed[f"offload of {name} needs ZeRO-{least}"] += 1
                return False
        return True

    def _recompute_menu(self) -> tuple[str, ...]:
        known = self.limits.recompute
        if self._activations_alone():
            known = tuple(name for name in known if name == NO_RECOMPUTE)
            dropped = len(self.limits.recompute) - len(known)
            self.removed["offload of activations needs recompute none"] += dropped
        kept = [name for name in known if self.search.allows_text("recompute", name)]
        self.removed["limit:recompute"] += len(known) - len(kept)
        return tuple(kept)


def enumerate_space(workload: Workload) -> Space:
    """List the declared space of a job.

    Args:
        workload: The job.

    Returns:
        Meshes and candidates in a fixed order, with what each rule removed.
    """
    return Enumerator(workload).space()
