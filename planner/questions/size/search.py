"""The flow of `planner size`: plans of catalogue models, until size and model agree."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import log

from planner.errors import BadInputError, InfeasibleError, TimeLimitError
from planner.job.loading import Job
from planner.job.scaling_law import FLOPS_PER_TOKEN, FORWARD, Size, fitted_range
from planner.models import preset
from planner.planning.economics.phases import phases_of, with_runs
from planner.planning.sizing.ask import FIRST, Ask
from planner.planning.sizing.rate import DAY, Rate
from planner.questions.inputs.progress import OnProgress, telling
from planner.questions.plan import Planned, phases_to_plan, planned
from planner.questions.question import Question
from planner.search.stop import Stop
from planner.specs.answer.estimate import ByConvention
from planner.specs.answer.size import NearestModel, Round, SizeAnswer, SizeLaw, Trained

FAR = 1.5
"""Factor between the best size and the nearest model from which a warning tells. [1]"""
REFUSED = 3
"""Models that may be refused before the job is taken to be wrong. [1]"""
SHARE = 0.4
"""Largest share of the time left for the plan of one model. [1]"""


@dataclass(frozen=True)
class Tried:
    """A model of the catalogue that was planned.

    Attributes:
        rate: Speed and price. [-]
        flow: The search. [-]
        job: The job. [-]
        size: Best size at the rate. [-]
        seconds: Wall time that the limits allow at the rate's price. [s]
        assumed: Assumptions of the job. [text]
    """

    rate: Rate
    flow: Planned
    job: Job
    size: Size
    seconds: float
    assumed: tuple[str, ...]

    @property
    def distance(self) -> float:
        """Distance of the model from the size. [1]."""
        return abs(log(self.rate.model.parameters / self.size.parameters))


@dataclass(frozen=True)
class Sized:
    """The answer with the plan behind it.

    Attributes:
        answer: The answer. [-]
        flow: Search of the nearest model. [-]
    """

    answer: SizeAnswer
    flow: Planned


@dataclass(frozen=True)
class SizeModel(Question[Sized]):
    """`planner size`: the model that a limit of time or money trains best.

    A cluster is as fast as the best plan of the catalogue's dense model nearest to the
    size. Another size asks for another model, until size and model agree.

    Attributes:
        ask: Limits and cluster. [-]
    """

    ask: Ask

    def answer(self, stop: Stop, told: OnProgress | None = None) -> Sized:
        """Plan models of the catalogue until size and model agree.

        Raises:
            BadInputError: A name, a field or a limit is wrong.
            InfeasibleError: No model of the catalogue fits.
            TimeLimitError: The time ended before the first plan.
        """
        search = _Search(self.ask, stop, telling(told, stop))
        return _told(self.ask, search.settled(), search)


@dataclass
class _Search:
    """Plans of one model after the other.

    Attributes:
        ask: The question. [-]
        stop: Ends the searches. [-]
        told: Called with the state of each search. [-]
        names: Dense models that one framework trains and that may fit, by size. [text]
        found: Models planned, by name. [-]
        rounds: Models looked at. [-]
        full: True once a model did not fit. [-]
        refused: Models that were refused. [1]
    """

    ask: Ask
    stop: Stop
    told: OnProgress
    names: list[str] = field(default_factory=list)
    found: dict[str, Tried] = field(default_factory=dict)
    rounds: list[Round] = field(default_factory=list)
    full: bool = False
    refused: int = 0

    def settled(self) -> Tried:
        """The model nearest to the size that its own rate gives."""
        self.names = list(self.ask.models())
        name: str | None = self.names[len(self.names) // 2]
        last: Tried | None = None
        while name is not None:
            last = self._plan(name, last.size.tokens if last else FIRST) or last
            name = self._next(last)
        if not self.found:
            raise InfeasibleError("proven: no dense model of the catalogue fits")
        if self.is_held:
            return min(self.found.values(), key=self._loss)
        return min(self.found.values(), key=lambda tried: tried.distance)

    @property
    def is_held(self) -> bool:
        """True where the best size is larger than what the memory holds."""
        found = self.found.values()
        most = max(tried.rate.model.parameters for tried in found)
        return self.full and min(tried.size.parameters for tried in found) > most * FAR

    def _loss(self, tried: Tried) -> float:
        """Loss of a model after all of its time. [nat/token]."""
        own = tried.rate.best(self.ask, tried.seconds, 0.0, held=True)
        return self.ask.law.loss(own)

    def _next(self, last: Tried | None) -> str | None:
        """The model to plan next; None where the last size asks for none."""
        if not self.names or (self.found and self.stop.reached):
            return None
        if last is None:
            return self.names[len(self.names) // 2]
        wanted, count = log(last.size.parameters), len(self.names)
        sizes = [log(preset(name).parameters) for name in self.names]
        at = min(range(count), key=lambda place: abs(sizes[place] - wanted))
        known = max(place for place in range(count) if self.names[place] in self.found)
        if self.full and at == count - 1 and known < at:
            at = (known + at + 1) // 2
        return None if self.names[at] in self.found else self.names[at]

    def _plan(self, name: str, tokens: float) -> Tried | None:
        """Plan a model; None where it does not fit or cannot be trained."""
        job, assumed = self.ask.job(name, tokens)
        try:
            phases = phases_to_plan(job.asking(job.spec))
        except BadInputError:
            self.refused += 1
            self.names.remove(name)
            if self.refused > REFUSED or not self.names:
                raise
            return None
        part = self.stop.within(SHARE * self.stop.left)
        flow = planned(phases, top=4, stop=part, robust=True, told=self.told)
        if not flow.result.plans:
            self._take_out(name, flow)
            return None
        assert flow.result.run is not None
        rate = Rate(preset(name), flow.result.plans[0], flow.result.run)
        seconds = rate.seconds(self.ask, job.workloads[0].gpu.name)
        size = rate.best(self.ask, seconds, self.ask.served)
        mfu = rate.plan.estimate.mfu.full_attention
        self.rounds.append(Round(model=name, mfu=mfu, parameters=size.parameters))
        self.found[name] = Tried(rate, flow, job, size, seconds, assumed)
        return self.found[name]

    def _take_out(self, name: str, flow: Planned) -> None:
        """Take a model without a plan, and every larger one, out."""
        if flow.result.status == "unknown" and not self.found:
            raise TimeLimitError("no plan in time; give more --time-limit")
        self.rounds.append(Round(model=name, mfu=None, parameters=None))
        self.names, self.full = self.names[: self.names.index(name)], True


def _told(ask: Ask, tried: Tried, search: _Search) -> Sized:
    """The answer at the rate of the model that was settled on."""
    workload, rate, seconds = tried.job.workloads[0], tried.rate, tried.seconds
    whole = _over(ask, tried, rate.tokens_per_s * seconds)
    slow, value, fast = (
        one.trained(ask, one.best(ask, seconds, ask.served, held=search.is_held))
        for one in _paces(rate)
    )
    answer = SizeAnswer(
        **dict(value),
        on=ask.on,
        gpu=workload.gpu.name,
        gpus=workload.topology.gpus,
        cluster=workload.topology.cluster.spec.name,
        limit="budget" if ask.days is None or seconds < ask.days * DAY else "days",
        given_days=ask.days,
        given_budget_usd=ask.budget,
        serve_tokens=ask.served,
        held_by_memory=search.is_held,
        flops_per_s=rate.flops_per_s,
        low=slow,
        high=fast,
        **_beside(ask, rate, seconds),
        law=SizeLaw(name=ask.law.name, source=ask.law.source, why=ask.law.why),
        nearest=_nearest(ask, rate, whole),
        rounds=tuple(search.rounds),
        warnings=(*_doubts(tried, search), *whole.result.warnings),
        assumed=tried.assumed,
    )
    return Sized(answer, whole)


def _paces(rate: Rate) -> tuple[Rate, Rate, Rate]:
    """The rate at the slow end of the step's interval, as it is, and at the fast."""
    time = rate.run.time_to_train_s
    slow, fast = (replace(rate, pace=time.value / end) for end in (time.high, time.low))
    return slow, rate, fast


def _beside(ask: Ask, rate: Rate, seconds: float) -> dict[str, Trained | None]:
    """The size without serving, and the cheapest one as good as it."""
    if not ask.served:
        return {"alone": None, "as_good": None}
    alone = rate.best(ask, seconds, 0.0)
    as_good = ask.law.as_good(ask.law.loss(alone), ask.served)
    return {"alone": rate.trained(ask, alone), "as_good": rate.trained(ask, as_good)}


def _over(ask: Ask, tried: Tried, tokens: float) -> Planned:
    """The search of a model with its run on other tokens."""
    job, _ = ask.job(tried.rate.model.name, tokens)
    step = job.workloads[0].training
    if tokens < step.sequences * step.seq_len:
        raise BadInputError(
            f"pays for {tokens:,.0f} tokens of {tried.rate.model.name}, less than one "
            f"step of {step.sequences:,} sequences of {step.seq_len:,} tokens",
            field="--days, --budget",
            allowed="more of them",
        )
    phases = phases_of(job)
    result = tried.flow.result.model_copy(
        update={"spec": job.resolved(tried.flow.result.plans[0])}
    )
    return Planned(phases, with_runs(phases, [result]), tried.flow.trails)


def _nearest(ask: Ask, rate: Rate, whole: Planned) -> NearestModel:
    """The model of the plan, with its work and run."""
    result, run = whole.result, whole.result.run
    assert run is not None
    seq_len = whole.phases[0].job.workloads[0].training.seq_len
    full, causal = (
        rate.model.model_flops_per_token(seq_len, kind) * FORWARD / FLOPS_PER_TOKEN
        for kind in ("full", "causal")
    )
    back = FLOPS_PER_TOKEN / FORWARD - 1
    return NearestModel(
        name=rate.model.name,
        trained=rate.trained(ask, Size(rate.model.parameters, run.tokens)),
        forward_flops_per_token=ByConvention(
            full_attention=full, causal_attention=causal
        ),
        backward_flops_per_token=ByConvention(
            full_attention=back * full, causal_attention=back * causal
        ),
        status=result.status,
        gap=result.objective.gap,
        plan=result.plans[0],
        run=run,
    )


def _doubts(tried: Tried, search: _Search) -> Iterator[str]:
    """Sentences on a model that is far from the size, and a size far from the law."""
    model, size = tried.rate.model, tried.size
    factor = max(model.parameters / size.parameters, size.parameters / model.parameters)
    if search.is_held:
        yield (
            f"the limits alone would train {size.parameters / 1e9:,.3g}B parameters; "
            f"of the catalogue's dense models that fit these GPUs {model.name} is best"
        )
    elif factor > FAR:
        more = "smaller" if model.parameters < size.parameters else "larger"
        yield (
            f"the nearest dense model of the catalogue is {factor:.1f} times {more} "
            f"than the best size: the rate is that of {model.name}"
        )
    fitted = fitted_range()
    (least, most), paper = fitted.parameters, fitted.source.partition(",")[0]
    if not least <= size.parameters <= most:
        yield (
            f"the law was fitted to models of {least / 1e6:,.0f}M to "
            f"{most / 1e9:,.0f}B parameters ({paper}); this size lies outside"
        )
