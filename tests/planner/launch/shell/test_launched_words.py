"""The command that a script starts, word by word, and what is asked for."""

import pytest

from planner.errors import BadInputError
from planner.launch.importing import read_texts
from planner.launch.importing.fleet import UserOverrides, cluster_of, fleet_told
from planner.launch.shell.runs import Launch, alternatives, launch_of

MEGATRON = "pretrain_gpt.py --num-layers 8 --micro-batch-size 1"
BASES = ["torchrun", "255", "4031", "1295", "8"]


def launched(text: str, **variables: str) -> Launch:
    (found,) = alternatives({"run.sh": text}, variables)
    return found.launch


def words(text: str, **variables: str) -> list[str]:
    return list(launched(text, **variables).words)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("torchrun --a 1 \\\n  --b '2 3'", ["torchrun", "--a", "1", "--b", "2 3"]),
        ("A=${B:-7}\ntorchrun $A", ["torchrun", "7"]),
        (': "${B:=9}"\ntorchrun $B', ["torchrun", "9"]),
        ("torchrun --data $NOWHERE", ["torchrun", "--data", "${NOWHERE}"]),
        ("torchrun --n $((A * 2))", ["torchrun", "--n", "$((${A} * 2))"]),
        ("A=1\nA=$A,2\ntorchrun $A", ["torchrun", "1,2"]),
        ("IFS=, read -ra G <<< '0,1,2'\ntorchrun ${#G[@]}", ["torchrun", "3"]),
        ("IFS=: read A B <<< 'x:y:z'\ntorchrun $A $B", ["torchrun", "x", "y:z"]),
        ('A=$B\nB=3\neval "torchrun --a $A"', ["torchrun", "--a", "${B}"]),
        ("WORLD=8 torchrun --a 1", ["torchrun", "--a", "1"]),
        ("srun -N 2 torchrun --a 1", ["torchrun", "--a", "1"]),
        ("mpirun -np 8 -x A=1 python t.py", ["python", "t.py"]),
        ("srun --mpi=pmix bash -c 'torchrun --a 1'", ["torchrun", "--a", "1"]),
        ("time nohup env A=1 deepspeed t.py", ["deepspeed", "t.py"]),
        ("ssh -p 22 $host 'cd x && torchrun --a 1'", ["torchrun", "--a", "1"]),
        ("python -m torch.distributed.run t.py", None),
        (
            "axolotl preprocess a.yml\naxolotl train a.yml",
            ["axolotl", "train", "a.yml"],
        ),
        ("python prepare.py --a 1\ntorchrun t.py", ["torchrun", "t.py"]),
        ("pip install x\npython -m pip list\npython t.py", ["python", "t.py"]),
        ("cd /x || exit 1\nmkdir -p y || exit\ntorchrun t.py", ["torchrun", "t.py"]),
        ("[ $# -eq 1 ] || exit 1\ntorchrun t.py --a $1", None),
        ('[ -z "$X" ] && echo usage && exit 1\ntorchrun --x $X', None),
        ('X=${X:-}\n[ -n "$X" ] || exit 1\ntorchrun --x $X', None),
        ('torchrun t.py "$@"', ["torchrun", "t.py"]),
        ("torchrun t.py \\\n  --a 1 \\\n", ["torchrun", "t.py", "--a", "1"]),
        ("source env/bin/activate\ntorchrun t.py", ["torchrun", "t.py"]),
        ("TP=08\ntorchrun $((10#$TP / 2))", ["torchrun", "4"]),
        ("A=08\ntorchrun $((16#fF)) $((64#@_)) $((36#Zz)) $((10#${A}))", BASES),
        ("A=08\n((B = 10#$A))\ntorchrun $B", ["torchrun", "8"]),
        ("torchrun --n $((10#$A / 2))", ["torchrun", "--n", "$((10#${A} / 2))"]),
    ],
)
def test_the_command_that_starts_the_ranks(
    text: str, expected: list[str] | None
) -> None:
    given = {"python -m": "python -m torch.distributed.run t.py"}.get(text[:9], "")
    if expected is None and not given:
        given = "torchrun t.py --a ${1}" if "$1" in text else "torchrun --x ${X}"
    assert words(text) == (expected or given.split())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("A=$((08/2))\ntorchrun --a $A", r"run.sh:1: .*08 is no octal number"),
        ("A=$((1/0))\ntorchrun --a $A", "divides by 0"),
        ("torchrun a.py $EXTRA", r"run.sh:1: .*--env EXTRA=VALUE"),
        ("source other.sh\ntorchrun a.py", "not among those given"),
        ("if true\nthen torchrun", r"run.sh:\d: .*is no bash that is followed"),
        ("torchrun a.py ; ;", r"run.sh:1: .*is no bash that is followed"),
        ("A=$((8#9))\ntorchrun --a $A", "8#9 is no number"),
        ("A=1\nexit 0\ntorchrun a.py", r"run.sh:2: exit: ends .* of line 3"),
        ("f() { exit; }\nf\n\nsrun torchrun a.py", r"run.sh:1: exit: ends .*line 4"),
        ("select x in a b; do torchrun $x; done", "is no loop that is followed"),
        ("f() { f; }\nf\ntorchrun a.py", "calls itself"),
        ("while true; do A=1; done\ntorchrun a.py", "rounds|commands"),
        ("A=x\nfor i in {1..40}; do A=$A$A; done\ntorchrun $A", "filled to more"),
        ("declare -i A=1\nA=7b\ntorchrun --a $A", "7b is no number"),
        ("readonly A=1\nA=2\ntorchrun --a $A", "readonly"),
    ],
)
def test_what_cannot_be_followed_is_refused_by_its_line(text: str, says: str) -> None:
    with pytest.raises(BadInputError, match=says):
        alternatives({"run.sh": text}, {})


@pytest.mark.parametrize(
    ("before", "value"),
    [
        ("false\nX=$?", "1"),
        ("f() { return 4; }\nf\nX=$?", "4"),
        ("A=(a b)\nX=${A[*]/#/--}", "--a --b"),
        ("A=([2]=c [0]=a)\nX=${A[*]}${!A[*]}", "a c0 2"),
        ("A=(a b c)\nunset 'A[0]'\nX=${!A[*]}", "1 2"),
        (r"X=$'\x41\102'", "AB"),
        (r"X=$(echo -e 'a\nb' | cat)", "a\nb"),
        ("X=$(bash -c 'echo $0 $1' name word)", "name word"),
        ("X=; for i in {08..10}; do X+=$i; done", "080910"),
        ("set -e\nX=$(false; echo 3)", "3"),
        ("set -o pipefail\nfalse | true || X=2", "2"),
        ("time X=8", "8"),
        ("X=$(( 3 ))\ntrap 'X=9' EXIT", "3"),
        ("[[ llama-70b =~ ([0-9]+)b$ ]]; X=${BASH_REMATCH[1]:-8}", "70"),
        ("IFS= read -r X <<< '  a '", "  a "),
        ("X='a b'; X=${X//[[:space:]]/}", "ab"),
        ("f() { local Y=$((X = 7)); }\nf", "7"),
    ],
)
def test_values_that_a_shell_gives(before: str, value: str) -> None:
    assert words(f'{before}\ntorchrun "$X"') == ["torchrun", value]


@pytest.mark.parametrize(
    "text",
    [
        "set -u\nunset X\nA=$X\ntorchrun a",
        "set -eo pipefail\nfalse | true\ntorchrun a",
        "unset X\n: ${X:?is not set}\ntorchrun a",
        "set -e\nX=$(false)\ntorchrun a",
        "bash -ec 'false; torchrun a'",
    ],
)
def test_a_script_that_ends_before_its_run_starts_none(text: str) -> None:
    assert alternatives({"run.sh": text}, {}) == []


@pytest.mark.parametrize(
    "statement",
    [
        r"X=`echo \`echo 3\``",
        "shopt -s nocasematch",
        "shopt -s lastpipe",
        "shopt -s nullglob",
        "shopt -s expand_aliases",
        "shopt -s no_such_word",
        "set -o posix",
        "set -k",
        "X=${Y/a/[&]}",
        "X=abc; X=${X/a/[&]}",
        "X=abc; X=${X~}",
        "X=abc; X=${X^^[a]}",
        "unset X[0]",
        "declare -u X=a",
        "declare -A X=(a 1)",
        r"read X <<< 'a\b'",
        "while getopts a: o -a 1; do X=$OPTARG; done",
        "trap 'X=3' DEBUG",
        "env -u X true torchrun",
        "X=x; [[ $X =~ \\d ]]",
    ],
)
def test_what_is_not_carried_out_is_refused_by_name_and_line(statement: str) -> None:
    with pytest.raises(BadInputError, match=r"run.sh:2: "):
        alternatives({"run.sh": f"Y=a\n{statement}\ntorchrun $X"}, {})


def test_two_commands_that_could_be_the_run_are_refused_with_their_lines() -> None:
    text = f"torchrun {MEGATRON}\ntorchrun {MEGATRON} --bf16\n"
    with pytest.raises(BadInputError, match=r"run.sh:1 and run.sh:2: several commands"):
        read_texts({"run.sh": text}, "megatron", "run.sh")
    same = f"for r in 0 1; do ssh n$r torchrun --node-rank $r {MEGATRON}; done"
    assert read_texts({"run.sh": same}, "megatron", "run.sh").layout["micro_batch"] == 1


def test_conditions_that_change_no_setting_are_not_asked_for() -> None:
    text = (
        'if [ -n "$WANDB" ]; then LOG="--wandb-project x"; fi\n'
        'if [ "$MASTER_ADDR" = "" ]; then MASTER_ADDR=localhost; fi\n'
        f"torchrun --master_addr $MASTER_ADDR {MEGATRON} $LOG --save $OUT\n"
    )
    found = read_texts({"run.sh": text}, "megatron", "run.sh", {"LOG": ""})
    assert found.unknown == ()


@pytest.mark.parametrize(
    ("text", "ranks"),
    [
        ("#SBATCH --nodes=4\n#SBATCH --gpus-per-node=8\nsrun python t.py", 32),
        ("#SBATCH -N 4 --gres=gpu:h100:8\nsrun torchrun --nproc_per_node=gpu t.py", 32),
        (
            "#SBATCH --nodes 2\n#SBATCH --ntasks-per-node=8 # ranks\nsrun python t.py",
            16,
        ),
        (
            "#SBATCH --nodes=4\n"
            "torchrun --nnodes $SLURM_NNODES --nproc_per_node ${X:-8} t",
            32,
        ),
        (
            "#SBATCH --nodes=3\nnodes=( $(scontrol show hostnames $SLURM_NODELIST) )\n"
            "torchrun --nnodes ${#nodes[@]} --nproc_per_node 8 t.py",
            24,
        ),
        ("torchrun --nproc_per_node 8 t.py", 8),
        ("accelerate launch --num_processes 16 t.py", 16),
        ("deepspeed --num_nodes 2 --num_gpus 8 t.py", 16),
        ("mpirun -np 64 python t.py", 64),
        ("NPROC_PER_NODE=8 NNODES=2 swift sft --x 1", 16),
        ("export NNODES=4\ntorchrun --nproc_per_node 8 t.py", 8),
        ("NPROC_PER_NODE=8 torchrun --nnodes 2 t.py", 2),
        ("PET_NNODES=4 torchrun --nproc_per_node 8 t.py", 32),
        ("torchrun --nnodes 2:2 --nproc_per_node 8 t.py", 16),
        ("torchrun --nnodes $N --nproc_per_node $G t.py", None),
        ("torchrun t.py", 1),
        ("torchrun --nnodes=2 t.py", 2),
        ("python -m torch.distributed.run --nnodes 4 t.py", 4),
        ("torchrun --nproc_per_node $N t.py", None),
        ("tune run full_finetune_single_device --config a", 1),
        ("tune run full_finetune_distributed --config a", 1),
        ("tune run --nproc_per_node 4 full_finetune_distributed --config a", 4),
        ("CUDA_VISIBLE_DEVICES=0,1 accelerate launch t.py", 2),
        ("export CUDA_VISIBLE_DEVICES=0,1,2\ndeepspeed t.py", 3),
        ("CUDA_VISIBLE_DEVICES=2,3 llamafactory-cli train a.yaml", 2),
        ("CUDA_VISIBLE_DEVICES=0,1 torchrun --nnodes 2 --nproc_per_node gpu t.py", 4),
        ("CUDA_VISIBLE_DEVICES=0,1,2 torchrun --nproc_per_node 2 t.py", 2),
        ("CUDA_VISIBLE_DEVICES=0\naccelerate launch t.py", None),
        ("deepspeed --include localhost:0,1 t.py", 2),
        ("deepspeed --include=a:0,1@b:0,2,3 t.py", 5),
        (
            "export CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7\n"
            "accelerate launch --num_machines 2 --num_processes 16 t.py",
            16,
        ),
    ],
)
def test_ranks_follow_from_the_head_and_the_command(
    text: str, ranks: int | None
) -> None:
    assert launched(f"#!/bin/bash\n{text}\n").ranks == ranks


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node 8 t.py", "shows 2 GPUs"),
        ("CUDA_VISIBLE_DEVICES=0,1 deepspeed --num_gpus 4 t.py", "shows 2 GPUs"),
        ("CUDA_VISIBLE_DEVICES= accelerate launch t.py", "different GPUs"),
        ("CUDA_VISIBLE_DEVICES=0,0 accelerate launch t.py", "different GPUs"),
        ("CUDA_VISIBLE_DEVICES=$GPUS accelerate launch t.py", "--env GPUS=VALUE"),
        ("deepspeed --exclude localhost:7 t.py", "leaves GPUs out"),
        ("deepspeed --include localhost t.py", "names no GPUs"),
        ("torchrun --nnodes $N --nproc_per_node 8 t.py", "--env N=VALUE"),
        ("torchrun --nnodes=${N} t.py", "--env N=VALUE"),
        ("deepspeed --num_nodes $N --num_gpus 8 t.py", "--env N=VALUE"),
        ("torchrun --nnodes 1:4 --nproc_per_node 8 t.py", "no number of nodes"),
    ],
)
def test_gpus_that_do_not_say_the_ranks_are_refused(text: str, says: str) -> None:
    with pytest.raises(BadInputError, match=rf"run.sh:1: .*{says}"):
        launched(text)


TRAINER = "--per_device_train_batch_size 2 --bf16 --max_seq_length 2048"


@pytest.mark.parametrize(
    ("text", "on", "gpus"),
    [
        ("python train.py", "8xh100", None),
        ("CUDA_VISIBLE_DEVICES=0,1 python train.py", "8xh100", None),
        ("CUDA_VISIBLE_DEVICES=3 python train.py", "8xh100", 1),
        ("#SBATCH --gres=gpu:8\npython train.py", "8xh100", None),
        ("python train.py", "1xh100", 1),
        ("python -m torch.distributed.run --nproc_per_node 4 train.py", "8xh100", 4),
    ],
)
def test_one_process_takes_one_gpu_or_is_refused(
    text: str, on: str, gpus: int | None
) -> None:
    """Trainer wraps the model in DataParallel where one process sees several GPUs."""
    reading = read_texts({"run.sh": f"{text} {TRAINER}"}, "accelerate", "run.sh")
    if gpus is None:
        with pytest.raises(BadInputError, match="DataParallel"):
            fleet_told(reading, UserOverrides(on=on))
        return
    its = fleet_told(reading, UserOverrides(on=on))
    assert its is not None
    assert cluster_of(its if isinstance(its, str) else dict(its)).gpus == gpus


def test_ranks_of_a_file_are_not_more_than_the_gpus_that_its_command_sees() -> None:
    files = {
        "run.sh": "CUDA_VISIBLE_DEVICES=0 accelerate launch --config_file a.yaml t.py",
        "a.yaml": "distributed_type: MULTI_GPU\nnum_machines: 1\nnum_processes: 8\n",
    }
    with pytest.raises(BadInputError, match="shows 1 GPUs of a node"):
        read_texts(files, "accelerate", "run.sh")


def test_a_file_that_the_script_writes_is_one_of_its_files() -> None:
    text = (
        'STAGE=3\ncat > ds.json <<EOF\n{"zero_optimization": {"stage": $STAGE},\n'
        '  "train_micro_batch_size_per_gpu": 2, "bf16": {"enabled": true}}\nEOF\n'
        "deepspeed --num_gpus 8 train.py --deepspeed ds.json\n"
    )
    found = read_texts({"run.sh": text}, "deepspeed", "run.sh")
    assert found.layout["zero_stage"] == 3
    assert found.layout["micro_batch"] == 2


def test_scripts_follow_each_other_with_what_is_exported() -> None:
    files = {
        "job.sbatch": "#SBATCH --nodes=2\nexport TP=4\nPP=8\nsrun bash run.sh 2",
        "run.sh": "source ./args.sh\ntorchrun --tp $TP --pp ${PP:-1} --m $1 ${A[@]}",
        "args.sh": "A=(--more 1)",
    }
    found = launch_of(files)
    expected = "torchrun --tp 4 --pp 1 --m 2 --more 1"
    assert " ".join(found.words) == expected


def test_a_file_of_arguments_alone_is_read() -> None:
    """A file that another script sources has no command of its own."""
    text = "ARGUMENTS=(\n  --a 1\n  --b\n)"
    assert words(text)[1:] == ["--a", "1", "--b"]
    assert words("--a 1\n--b 2\n")[1:] == ["--a", "1", "--b", "2"]


def test_comments_are_no_settings() -> None:
    text = (
        "# torchrun --num-layers 99\nA=(\n  # --num-layers 9 isn't read\n  --bf16\n)\n"
        f"torchrun {MEGATRON} ${{A[@]}}  # --micro-batch-size 9\n"
    )
    found = read_texts({"run.sh": text}, "megatron", "run.sh")
    assert found.layout["micro_batch"] == 1
    assert not [word for word in found.ignored if "9" in word or "isn" in word]
