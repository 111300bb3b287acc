"""A measured row as a job that the cost model prices."""

from dataclasses import replace

from pydantic import ValidationError

from planner.calibration.accuracy.logged_job import planned_job
from planner.calibration.mapping.architectures import architecture_of, latent_assumed
from planner.calibration.mapping.case import Case
from planner.calibration.mapping.clusters import hardware_of
from planner.calibration.mapping.fill_unstated import with_unstated_filled
from planner.calibration.mapping.frameworks import software_of
from planner.calibration.mapping.jobs import training_of
from planner.calibration.mapping.layouts import layout_of
from planner.calibration.mapping.measurements import Scale, measured_of
from planner.calibration.mapping.parts import hardware_block
from planner.calibration.mapping.software import stack_rule, year_of
from planner.calibration.rows.rows import Row
from planner.calibration.rows.unsupported import UnsupportedError
from planner.cost.workload import Workload
from planner.errors import BadInputError
from planner.hardware.calibration import GpuCalibration, calibration
from planner.hardware.catalog import Cluster
from planner.hardware.graph.topology import ClusterTopology
from planner.hardware.kernels.power import held, rate_held
from planner.hardware.reading.files import Catalog, CatalogError, UnknownNameError
from planner.specs.frameworks.framework import Framework


def case_of(row: Row, catalog: Catalog) -> Case:
    """The job that a row ran, as far as the row tells.

    What a row leaves open that decides memory or time is filled by the prediction,
    never by the measurement.

    Raises:
        UnsupportedError: No catalogue entry, or no price, for something it names.
    """
    try:
        if row.spec:
            return _planned(row, catalog)
        return with_unstated_filled(_stated(row, catalog))
    except (BadInputError, CatalogError, UnknownNameError) as error:
        raise UnsupportedError(str(error)) from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UnsupportedError(f"{where}: {first['msg']}") from error


def _planned(row: Row, catalog: Catalog) -> Case:
    """The case of a run whose job is known to the last field."""
    workload, layout = planned_job(row, catalog)
    scale = _scale(row, workload, workload.topology.cluster)
    return Case(
        row=row,
        workload=workload,
        layout=layout,
        measured=measured_of(row, workload.model, scale),
        stack=workload.framework.profile.name,
        flags=(),
    )


def _stated(row: Row, catalog: Catalog) -> Case:
    """The case with unknown recomputation read as none."""
    hardware = hardware_of(hardware_block(row), row.normalised.fabric, catalog)
    cluster = hardware.cluster
    achieved = _kernels(row, cluster)
    rule = stack_rule(row, cluster.gpu.arch)
    software = software_of(row, rule, hardware, achieved)
    model = architecture_of(row.model, row.job.seq_len)
    placed = layout_of(row, model.layers, rule, cluster.node.gpus_per_node)
    workload = Workload(
        model=model,
        training=training_of(row, placed.layout, rule),
        framework=_from_scratch(software.framework),
        topology=ClusterTopology(cluster),
        calibration=achieved,
    )
    latent = ("latent ranks assumed",) if latent_assumed(row.model) else ()
    scale = _scale(row, workload, cluster)
    return Case(
        row=row,
        workload=workload,
        layout=placed.layout,
        measured=measured_of(row, model, scale),
        stack=rule.stack,
        flags=(*hardware.flags, *software.flags, *placed.flags, *latent),
    )


def _kernels(row: Row, cluster: Cluster) -> GpuCalibration:
    """Calibration of a row's GPU, as its machine was measured or by its power."""
    rate = row.hardware.held_rate or rate_held(cluster.gpu, cluster.node)
    return held(calibration(cluster.gpu.name, cluster.catalog), rate)


def _from_scratch(framework: Framework) -> Framework:
    """Framework of a run neither resumed nor saved while its memory was read."""
    recipe = replace(framework.recipe, resume_copies=0.0, checkpoint="shards")
    return replace(framework, recipe=recipe)


def _scale(row: Row, workload: Workload, cluster: Cluster) -> Scale:
    return Scale(
        sequences=workload.sequences,
        gpus=row.hardware.gpus,
        year=year_of(row, cluster.gpu.arch),
        full_recompute=row.normalised.recompute.kind == "full",
        peak_tflops=workload.peak_flops / 1e12,
    )
