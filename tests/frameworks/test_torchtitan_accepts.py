"""torchtitan's own parser takes what is emitted, and no wrong configuration."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

LAUNCH = Path(__file__).parents[1] / "planner" / "launch"
SCRIPTS = Path(__file__).parent / "torchtitan"
sys.path.insert(0, str(LAUNCH))

from many_plans import jobs  # noqa: E402  # of the tests beside these
from target_gaps import torchtitan as gaps  # noqa: E402
from torchtitan_plans import torchtitan_plans  # noqa: E402

from planner.frameworks.torchtitan.families import families, flavours, shapes  # noqa: E402
from planner.frameworks.torchtitan.launch.lacks import SCHEDULES  # noqa: E402
from planner.launch import emit, write_folder  # noqa: E402
from planner.launch.read_plan import PlanFile, read_plan  # noqa: E402
from planner.launch.targets.torchtitan.placed import Settings, layers_by_stage  # noqa: E402
from planner.launch.targets.torchtitan.settings import registered, registry  # noqa: E402
from planner.models.architecture import Architecture  # noqa: E402
from planner.models.layers.blocks import LatentAttention, Mlp, Moe  # noqa: E402

pytestmark = pytest.mark.frameworks
Run = Callable[..., subprocess.CompletedProcess[str]]
EACH = 6
RESHARD = {"always": 3, "never": 2}
POLICIES = {"none": None, "selective": "SelectiveAC.Config", "full": "FullAC.Config"}


def question(plan: PlanFile, folder: Path, *words: str) -> dict[str, Any]:
    write_folder(folder, emit(plan, "torchtitan"), force=True)
    check = ("--training.steps=20", "--metrics.log-freq=1")
    world = plan.plan.layout.gpus
    return {"folder": str(folder), "world": world, "words": [*check, *words]}


def answers(run_in: Run, questions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    text = "\n".join(map(json.dumps, questions))
    script = str(SCRIPTS / "accepts.py")
    done = run_in("torchtitan", [script], stdin=text, timeout=400)
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def plans() -> list[PlanFile]:
    golden = [read_plan(folder / "plan.json") for folder in jobs("torchtitan")]
    drawn = (p for folder in jobs("torchtitan") for p in torchtitan_plans(folder, EACH))
    return [plan for plan in (*golden, *drawn) if not gaps(plan.brief)]


def test_every_plan_is_accepted_as_it_was_planned(run_in: Run, tmp_path: Path) -> None:
    every = plans()
    assert len(every) > 60
    _every_axis_is_among(every)
    asked = [question(plan, tmp_path / str(at)) for at, plan in enumerate(every)]
    for plan, said in zip(every, answers(run_in, asked), strict=True):
        assert said["accepted"], (said["why"], plan.path, plan.plan.layout)
        _says_the_plan(plan, said)


def _every_axis_is_among(every: list[PlanFile]) -> None:
    """A draw that leaves an axis at 1 proves nothing of it."""
    layouts = [plan.plan.layout for plan in every]
    for axis in ("tp", "pp", "vpp", "cp", "ep", "micro_batch"):
        assert any(getattr(layout, axis) > 1 for layout in layouts), axis
    assert {"1f1b", "interleaved", "gpipe"} <= {layout.schedule for layout in layouts}
    assert {layout.zero_stage for layout in layouts} == {2, 3}
    assert {len(set(one.layers_per_stage)) > 1 for one in layouts} == {True, False}
    assert any(layout.offload.parameters for layout in layouts)
    assert any(layout.dp_shard < layout.dp * layout.cp for layout in layouts)
    precisions = {plan.pricing.training.precision for plan in every}
    assert precisions == {"bf16", "fp8", "mxfp8"}


def _says_the_plan(plan: PlanFile, said: dict[str, Any]) -> None:
    its, training = plan.plan.layout, plan.pricing.training
    shards = its.dp_shard // its.cp
    degrees = {"cp": its.cp, "tp": its.tp, "pp": its.pp, "ep": its.ep}
    replicas = its.dp * its.cp // its.dp_shard
    assert said["mesh"] == {"dp_replicate": replicas, "dp_shard": shards, **degrees}
    assert said["global"] == training.sequences
    micro = said["micro"] if its.pp > 1 else said["local"]
    assert micro == its.micro_batch
    assert said["local"] == micro * (its.grad_accum if its.pp > 1 else 1)
    if its.pp > 1:
        assert tuple(said["stages"]) == its.layers_per_stage
        assert said["schedule"] == SCHEDULES[its.schedule]
    usual = 3 if its.pp == 1 else 2
    assert RESHARD.get(said["reshard"], usual) == its.zero_stage
    (kind,) = {p.kind for stage in its.stages for p in stage.recompute} or {"none"}
    assert said["checkpointing"] == POLICIES[kind]
    assert said["offload"] == bool(its.offload.parameters)
    assert said["sequence"] == its.sp
    assert said["compile"] == plan.brief.stack["compile"]
    half = training.state_bits == 16
    assert said["optimizer"] == ("fused_opt_states_bf16" if half else "fused")
    depth = plan.pricing.model.mtp_layers
    _has_the_sizes(said["model"], plan.pricing.model, added=depth)


def _has_the_sizes(
    said: dict[str, Any], model: Architecture, *, added: int = 0
) -> None:
    block = model.kinds[0].attention
    dense = [kind.ffn for kind in model.kinds if isinstance(kind.ffn, Mlp)]
    routed = [kind.ffn for kind in model.kinds if isinstance(kind.ffn, Moe)]
    # Layers that predict further tokens are appended when the trainer starts.
    assert said["layers"] in (model.layers, model.layers + added)
    assert (said["dim"], said["vocab"]) == (model.hidden, model.vocab)
    assert (said["heads"], said["tied"]) == (block.heads, model.tied_embeddings)
    if isinstance(block, LatentAttention):
        assert said["kv_rank"] == block.kv_rank
    else:
        assert said["kv_heads"] == block.kv_heads
        assert (said["head_dim"] or model.hidden // block.heads) == block.head_dim
        assert said["qk_norm"] == block.qk_norm
    assert said["ffn"] == (dense[0].ffn if dense else None)
    expert = routed[0] if routed else None
    assert said["experts"] == (expert.experts if expert else None)
    assert said["top_k"] == (expert.top_k if expert else None)
    assert said["expert_ffn"] == (expert.ffn if expert else None)


WRONG = {
    "the ranks": ("--parallelism.tensor_parallel_degree=5",),
    "an option": ("--parallelism.tensor_paralel_degree=4",),
    "the micro-batch": ("--parallelism.pipeline_parallel_microbatch_size=3",),
    "the schedule": ("--parallelism.pipeline_parallel_schedule=2F2B",),
    "captured graphs": ("--training.no-disable-cuda-graphs",),
    "the batch": ("--training.global_batch_size=513",),
    "the sequence": ("--training.seq_len=8190",),
    "the policy": ("--parallelism.fsdp_reshard_after_forward=sometimes",),
    "a longer sequence than positions": ("--training.seq_len=262144",),
    "the chunks": ("--parallelism.pipeline_parallel_schedule=Interleaved1F1B",),
}


def test_wrong_configurations_are_refused(run_in: Run, tmp_path: Path) -> None:
    (folder,) = (f for f in jobs("torchtitan") if f.name == "llama-3.1-70b-pp-32-h100")
    plan = read_plan(folder / "plan.json")
    asked = [question(plan, tmp_path / "good")]
    asked += [question(plan, tmp_path / "good", *words) for words in WRONG.values()]
    asked.append(_with_a_layer_less(plan, tmp_path / "stages"))
    good, *bad = answers(run_in, asked)
    assert good["accepted"], good
    names = [*WRONG, "the stages"]
    taken = [what for what, said in zip(names, bad, strict=True) if said["accepted"]]
    assert taken == []


def _with_a_layer_less(plan: PlanFile, folder: Path) -> dict[str, Any]:
    asked = question(plan, folder)
    file = folder / "plan_config.py"
    text = file.read_text()
    assert "[20, 21, 21, 18]" in text
    file.write_text(text.replace("[20, 21, 21, 18]", "[20, 21, 21, 17]"))
    return asked


def test_what_is_known_of_the_package_is_true(run_in: Run) -> None:
    script = str(SCRIPTS / "registry.py")
    done = run_in("torchtitan", [script, *registry()], timeout=200)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    _flavours_are(found["flavours"])
    for name, said in found["configurations"].items():
        _configuration_is(name, said)
    for layers, stages, first, last, counts in found["stages"]:
        values = {
            "parallelism.pipeline_parallel_degree": stages,
            "parallelism.pipeline_parallel_first_stage_less_layers": first,
            "parallelism.pipeline_parallel_last_stage_less_layers": last,
        }
        its = Settings(values, "", gpus=None, layers=layers)
        assert layers_by_stage(its) == tuple(counts)


def _flavours_are(found: dict[str, dict[str, dict[str, Any]]]) -> None:
    assert {module: set(names) for module, names in found.items()} == {
        module: set(names) for module, names in flavours().items()
    }
    for (module, name), shape in shapes().items():
        said, fields = found[module][name], flavours()[module][name]
        _has_the_sizes(said, shape)
        assert said["theta"] == fields["rope_theta"]
        router = families()[shape.family].router
        if router and said["score"]:
            scale = fields.get("routed_scaling_factor", router.scale)
            assert (said["score"], said["scale"]) == (router.score, scale)


def _configuration_is(name: str, said: dict[str, Any]) -> None:
    its = registered(name)
    assert its["model"][2] == said["flavour"]
    assert its["training.local_batch_size"] == said["local_batch_size"]
    assert said["global_batch_size"] == -1
    assert its["training.seq_len"] == said["seq_len"]
    assert its["activation_checkpoint"] == said["checkpointing"]
    assert its["loss"] == said["loss"]
    assert its.get("parallelism.tensor_parallel_degree", 1) == said["tensor"]
    assert its.get("parallelism.expert_parallel_degree", 1) == said["expert"]
    schedule = its.get("parallelism.pipeline_parallel_schedule", "1F1B")
    assert schedule == said["schedule"]
    parts = its.get("compile.components", ["model", "loss"])
    compiled = its.get("compile.enable", False) and "model" in parts
    assert compiled == said["compiled"]
