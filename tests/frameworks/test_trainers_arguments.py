"""Every argument of the installed programs is read, refused, or stated harmless."""

import json
from pathlib import Path

import pytest
from conftest import Run

from planner.frameworks.accelerate.axolotl import known as axolotl
from planner.frameworks.accelerate.harmless import harmless
from planner.frameworks.accelerate.launch import known as trainer
from planner.frameworks.accelerate.llamafactory import known as factory
from planner.launch.targets.trainers.dialect import dialect
from planner.launch.targets.trl import presets

pytestmark = pytest.mark.frameworks
HERE = Path(__file__).parent
OF_TRAINER = trainer.READ | trainer.UNPRICED | harmless("trainer")
OF_TRL, OF_FACTORY, OF_AXOLOTL, OF_TORCHTUNE = (
    dialect(name).read | dialect(name).unpriced | harmless(name)
    for name in ("trl", "llamafactory", "axolotl", "torchtune")
)
METHODS = {"knowledge_distillation", "ppo", "qat", "quantize", "generate", "eleuther"}
"""Recipes of torchtune that are refused by their names, or train nothing. [text]"""


def passed_over(names: set[str], judged: frozenset[str], program: str) -> set[str]:
    """Names that stand in no list; the count goes to the test's output."""
    print(f"{program}: {len(names)} arguments, {len(names & judged)} judged")  # noqa: T201
    return names - judged


def test_trl_and_transformers(run_in: Run) -> None:
    done = run_in("accelerate", [str(HERE / "accelerate" / "keys.py")], timeout=300)
    its = json.loads(done.stdout[done.stdout.index("{") :])
    names = {n for k in ("TrainingArguments", "SFTConfig", "DPOConfig") for n in its[k]}
    assert passed_over(names, OF_TRAINER, "trainers") == set()
    script = {
        *its["ModelConfig"],
        *its["ScriptArguments"],
        *its["DatasetMixtureConfig"],
    }
    assert passed_over(script - names, OF_TRL, "TRL's scripts") == set()


def test_presets_are_those_of_trl(run_in: Run) -> None:
    code = (
        "import json, sys, yaml; from importlib.resources import files\n"
        "its = {f.name: yaml.safe_load(f.read_text())"
        " for f in files('trl.accelerate_configs').iterdir()}\n"
        "sys.stdout.write(json.dumps(its))"
    )
    done = run_in("accelerate", ["-c", code])
    theirs = {n.removesuffix(".yaml"): i for n, i in json.loads(done.stdout).items()}
    assert theirs.keys() == presets.presets().keys()
    for name, its in presets.presets().items():
        alone = its["distributed_type"] == "NO"
        for key, value in its.items():
            same = theirs[name][key]
            if isinstance(value, dict):
                assert value.items() <= same.items(), name
            else:
                assert value == (1 if alone and key == "num_processes" else same), name


def test_llamafactory(run_in: Run) -> None:
    done = run_in("llamafactory", [str(HERE / "llamafactory" / "keys.py")], timeout=300)
    its = json.loads(done.stdout[done.stdout.index("{") :])
    own = ("model", "data", "training", "finetuning", "generating")
    names = {name for kind in own for name in its[kind]} - set(its["trainer"])
    assert passed_over(names, OF_FACTORY | OF_TRAINER, "LLaMA-Factory") == set()
    assert factory.arguments() >= names


def test_axolotl(run_in: Run) -> None:
    done = run_in("axolotl", [str(HERE / "axolotl" / "keys.py")], timeout=300)
    its = json.loads(done.stdout[done.stdout.index("{") :])
    names = {*its["axolotl"], *its["liger"]}
    assert passed_over(names, OF_AXOLOTL, "axolotl") == set()
    assert axolotl.known().axolotl | axolotl.known().liger >= names


def test_torchtune(run_in: Run) -> None:
    """Settings that a recipe reads of its file, and those of its shipped files."""
    code = (
        "import json, re, sys, torchtune; from pathlib import Path\n"
        "top = Path(torchtune.__file__).parents[1] / 'recipes'; names = {}\n"
        "for f in top.glob('*.py'):\n"
        "    found = re.findall(r'\\bcfg\\.(?:get\\(\\s*\"(\\w+)\"|(?!get\\b)(\\w+))',"
        " f.read_text())\n"
        "    names[f.stem] = sorted({a or b for a, b in found})\n"
        "sys.stdout.write('KEYS ' + json.dumps(names))"
    )
    done = run_in("torchtune", ["-c", code])
    its = json.loads(done.stdout.partition("KEYS ")[2])
    able = {n: k for n, k in its.items() if not any(n.startswith(m) for m in METHODS)}
    assert len(able) >= 6
    names = {name for keys in able.values() for name in keys}
    assert passed_over(names, OF_TORCHTUNE, "torchtune") == set()
