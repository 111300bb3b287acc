"""Share of a long run that is lost to failures and the checkpoints against them."""

from math import exp, expm1, sqrt


def young_daly_interval(checkpoint: float, mean_time_between_failures: float) -> float:
    """Interval between checkpoints that loses the least time.

    ::

        tau = sqrt(2 C M)

    Args:
        checkpoint: Time C that the run waits for one checkpoint. [s]
        mean_time_between_failures: M of the whole cluster. [s]

    Returns:
        Interval tau. [s]

    Raises:
        ValueError: A time is not positive.

    Leaves out terms of higher order in C / M, and failures during a checkpoint.

    References:
        J. W. Young, "A first order approximation to the optimum checkpoint
        interval", CACM 17(9), 1974; J. T. Daly, FGCS 22(3), 2006.
    """
    _positive("checkpoint", checkpoint)
    _positive("mean_time_between_failures", mean_time_between_failures)
    return sqrt(2 * checkpoint * mean_time_between_failures)


def lost_fraction(
    checkpoint: float,
    mean_time_between_failures: float,
    *,
    interval: float,
    restart: float = 0.0,
) -> float:
    """Share of the wall time that trains nothing new.

    Checkpoints, half an interval of work done again per failure, and restarts::

        C / tau + tau / (2 M) + R / M

    Args:
        checkpoint: Time C that the run waits for one checkpoint. [s]
        mean_time_between_failures: M of the whole cluster. [s]
        interval: Time tau between checkpoints. [s]
        restart: Time R from a failure to the first new step. [s]

    Raises:
        ValueError: A time is not positive, or the restart is negative.

    Leaves out terms of higher order: it is meant for C, tau and R far below M.

    References:
        J. T. Daly, "A higher order estimate of the optimum checkpoint interval for
        restart dumps", FGCS 22(3), 2006.
    """
    _positive("checkpoint", checkpoint)
    _positive("mean_time_between_failures", mean_time_between_failures)
    _positive("interval", interval)
    if restart < 0:
        raise ValueError(f"restart is {restart} s; it cannot be negative")
    failures = (interval / 2 + restart) / mean_time_between_failures
    return min(checkpoint / interval + failures, 1.0)


def effective_share(
    checkpoint: float,
    mean_time_between_failures: float,
    *,
    interval: float,
    restart: float = 0.0,
) -> float:
    """Share of the wall time that trains something new, for failures at random.

    ::

        tau / (M exp(R / M) (exp((tau + C) / M) - 1))

    To first order 1 - :func:`lost_fraction`, but it stays above 0 where C, tau or R
    come near M.

    Args:
        checkpoint: Time C that the run waits for one checkpoint. [s]
        mean_time_between_failures: M of the whole cluster. [s]
        interval: Time tau between checkpoints. [s]
        restart: Time R from a failure to the first new step. [s]

    Raises:
        ValueError: A time is not positive, or the restart is negative.

    References:
        J. T. Daly, "A higher order estimate of the optimum checkpoint interval for
        restart dumps", FGCS 22(3), 2006, equation 20.
    """
    lost_fraction(
        checkpoint, mean_time_between_failures, interval=interval, restart=restart
    )
    mean = mean_time_between_failures
    repeated = expm1(min((interval + checkpoint) / mean, 600.0))
    return interval / (mean * exp(min(restart / mean, 100.0)) * repeated)


def _positive(name: str, seconds: float) -> None:
    if seconds <= 0:
        raise ValueError(f"{name} is {seconds} s; it must be more than 0 s")
