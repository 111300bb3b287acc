"""Prices of GPUs to rent or own, and costs of running them: quotes with sources."""

from collections.abc import Sequence
from statistics import median
from typing import Annotated, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from planner.hardware.reading.files import Catalog, remembered
from planner.hardware.reading.money import Price, PriceField
from planner.hardware.reading.quantities import (
    KgPerKwh,
    Seconds,
    UsdPerKwh,
    UsdPerKwMonth,
)

_FOLDER, _RUNNING = "prices", "running"
ENOUGH = 3
"""Quotes that a median should rest on. [1]"""
Value = TypeVar("Value")


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Quoted(_Strict):
    """One asking price.

    Attributes:
        price: With currency and basis. [-]
        who: Lessor, of a rental. [-]
        covers: Of a purchase: a card, a board of several, or a whole server. [-]
        date: Year, month or day of the quote. [-]
        source: Source of the quote. [-]
    """

    price: PriceField
    who: str | None = None
    covers: Literal["card", "board", "server"] = "server"
    date: str = Field(pattern=r"^\d{4}(-\d\d){0,2}$")
    source: str = Field(min_length=1)


class GpuPrices(_Strict):
    """Quotes of one GPU.

    Attributes:
        name: Of the GPU. [-]
        rental: For an hour on demand. [-]
        purchase: To own. [-]
    """

    name: str
    rental: tuple[Quoted, ...] = ()
    purchase: tuple[Quoted, ...] = ()


class Fact(_Strict, Generic[Value]):
    """A number with its date and source.

    Attributes:
        value: In the base unit of its field. [-]
        date: Year or month of the number. [-]
        source: Source of the number. [-]
    """

    value: Value
    date: str
    source: str = Field(min_length=1)


class NetworkTier(_Strict):
    """Fabric of clusters up to a size.

    Attributes:
        gpus: The most GPUs. [1]
        price: For each. [USD/GPU]
    """

    gpus: int = Field(gt=0)
    price: PriceField


class NetworkPrices(_Strict):
    """Switches and cables by size of the cluster, smallest first.

    Attributes:
        tiers: Ascending. [-]
        date: Of the prices. [-]
        source: Source of the prices. [-]
    """

    tiers: tuple[NetworkTier, ...] = Field(min_length=1)
    date: str
    source: str = Field(min_length=1)

    def per_gpu(self, gpus: int) -> float:
        """Price of a cluster's fabric per GPU.

        Returns:
            Price of the smallest tier that fits, else of the last tier. [USD/GPU]
        """
        fit = [tier for tier in self.tiers if gpus <= tier.gpus]
        return (fit or self.tiers[-1:])[0].price.amount


Above = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Running(_Strict):
    """Facts that hold for every GPU.

    Attributes:
        depreciation: Time that a purchase is written off over. [s]
        server_over_gpu: Price of a server over the price of its bare GPUs. [1]
        network_per_gpu: Fabric beside the servers. [USD/GPU]
        electricity: Price of electricity. [USD/kWh]
        colocation: Room for a load, without electricity. [USD/kW-month]
        pue: Power of the building over power of its computers. [1]
        carbon: Of electricity. [kg/kWh]
        rated_over_tdp: A server's rated power over its GPUs' TDP. [1]
        computing_over_rated: Power of a server in kernels over rated power. [1]
        waiting_over_tdp: Power of a GPU that waits for others over its TDP. [1]
        idle_over_tdp: Power of an idle GPU over its TDP. [1]
    """

    depreciation: Fact[Seconds]
    server_over_gpu: Fact[Above]
    network_per_gpu: NetworkPrices
    electricity: Fact[UsdPerKwh]
    colocation: Fact[UsdPerKwMonth]
    pue: Fact[Above]
    carbon: Fact[KgPerKwh]
    rated_over_tdp: Fact[Above]
    computing_over_rated: Fact[Above]
    waiting_over_tdp: Fact[Above]
    idle_over_tdp: Fact[Above]


class Quote(_Strict):
    """One price out of several quotes.

    Attributes:
        price: Median of the quotes. [-]
        low: Least of the quotes. [basis of price]
        high: Greatest of the quotes. [basis of price]
        quotes: Number of quotes. [1]
        date: Date of the newest quote. [-]
        source: Source of the newest quote. [-]
    """

    price: PriceField
    low: float
    high: float
    quotes: int
    date: str
    source: str


@remembered
def running(catalog: Catalog) -> Running:
    """Facts that hold for every GPU, from our own file or the user's."""
    return catalog.lookup(_FOLDER, _RUNNING, Running)


def check_file(name: str, catalog: Catalog) -> object:
    """Content of one file of the folder."""
    return running(catalog) if name == _RUNNING else gpu_prices(name, catalog)


@remembered
def gpu_prices(gpu_name: str, catalog: Catalog) -> GpuPrices:
    """Quotes of a GPU; none where the catalog has none."""
    if gpu_name not in catalog.names(_FOLDER) or gpu_name == _RUNNING:
        return GpuPrices(name=gpu_name)
    return catalog.lookup(_FOLDER, gpu_name, GpuPrices)


def rental(gpu_name: str, catalog: Catalog) -> Quote | None:
    """Price of an hour of a GPU: the median of the newest year's quotes.

    Where the newest year has fewer than `ENOUGH` quotes, older ones join, newest first.

    Returns:
        The price with its spread, None without a quote. [USD/GPU-h]
    """
    quotes = _newest(gpu_prices(gpu_name, catalog).rental)
    amounts = [(quote, quote.price.amount) for quote in quotes]
    return _quote(amounts, Price(0.0, "USD/GPU-h")) if amounts else None


def purchase(
    gpu_name: str, catalog: Catalog, *, gpus: int, gpus_per_node: int
) -> Quote | None:
    """Price of a GPU to own, with its share of server and fabric.

    ::

        median(server / GPUs of a node  or  card * server_over_gpu) + fabric

    Returns:
        The price with its spread, None without a quote. [USD/GPU]

    Leaves out storage, building and people.
    """
    facts, every = running(catalog), gpu_prices(gpu_name, catalog).purchase
    servers = [quote for quote in every if quote.covers == "server"]
    fabric = facts.network_per_gpu.per_gpu(gpus) if gpus > gpus_per_node else 0.0
    amounts = []
    for quote in _newest(servers or every):
        factor = 1.0 if quote.covers == "server" else facts.server_over_gpu.value
        amounts.append((quote, quote.price.per_gpu(gpus_per_node) * factor + fabric))
    return _quote(amounts, Price(0.0, "USD/GPU")) if amounts else None


def _newest(quotes: Sequence[Quoted]) -> list[Quoted]:
    """Quotes of the newest year, and older ones where these are fewer than enough."""
    dates = sorted((quote.date for quote in quotes), reverse=True)
    if not dates:
        return []
    since = min(dates[0][:4], dates[:ENOUGH][-1])
    return [quote for quote in quotes if quote.date >= since]


def _quote(amounts: Sequence[tuple[Quoted, float]], unit: Price) -> Quote:
    newest = max(amounts, key=lambda pair: pair[0].date)[0]
    values = [amount for _, amount in amounts]
    return Quote(
        price=Price(median(values), unit.basis),
        low=min(values),
        high=max(values),
        quotes=len(values),
        date=newest.date,
        source=newest.source,
    )
