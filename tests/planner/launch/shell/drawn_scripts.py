"""Scripts drawn from the constructs that people write, and what bash makes of them."""

import os
import random
import subprocess
from pathlib import Path

STUB = """#!/bin/sh
for word; do printf '%s\\0' "$word"; done >>"$SEEN"
printf '\\n\\0' >>"$SEEN"
"""
"""A torchrun that notes its arguments, each ended by a NUL, and a newline after all."""
NAMES = ("TP", "PP", "MBS", "CP")
ENDS = (
    "torchrun --tp $TP --pp $PP --mbs $MBS --cp $CP {more}",
    'torchrun --tp "$TP" --pp="$PP" --mbs ${{MBS}} --cp "${{CP}}" {more}',
    'ARGS+=(--tp $TP --pp "$PP")\ntorchrun "${{ARGS[@]}}" --mbs $MBS --cp $CP {more}',
    'OPTS="--tp $TP --pp $PP"\ntorchrun $OPTS --mbs $((MBS)) --cp $CP {more}',
    'CMD="torchrun --tp $TP --pp $PP"\n$CMD --mbs $MBS --cp $CP {more}',
    'CMD="torchrun --tp $TP --pp $PP --mbs $MBS --cp $CP"\neval "$CMD {more}"',
    "exec torchrun --tp $TP --pp $PP --mbs $MBS --cp $CP {more}",
    "X=1 nohup torchrun --tp $TP --pp $PP --mbs $MBS --cp $CP {more} &\nwait",
    'launch() {{\n  local tp=$1\n  shift\n  torchrun --tp $tp --pp $PP "$@"\n}}\n'
    "launch $TP --mbs $MBS --cp $CP {more}",
    "export TP PP\nbash -c 'torchrun --tp $TP --pp $PP --mbs 1 --cp 1 \"$@\"' x {more}",
    "torchrun --tp $TP --pp $PP --mbs $MBS --cp $CP {more} 2>&1 | tee /dev/null",
    "if true; then\n  torchrun --tp $TP --pp $PP \\\n  --mbs $MBS --cp $CP {more}\nfi",
    "time env X=1 torchrun --tp $TP --pp $PP --mbs $MBS --cp $CP {more}",
)
MORE = (
    "",
    '"${ARGS[@]}"',
    "${ARGS[@]}",
    "$OPTS",
    '"$OPTS"',
    "--list 'a b' \"c d\" e\\ f",
    "--n ${#ARGS[@]}",
    "--first ${ARGS[0]}",
    '--star "${ARGS[*]}"',
    "--lora q_proj,v_proj --json '{\"a\": 1}'",
    "--path ${PATH_LIKE%/*} --base ${PATH_LIKE##*/}",
    "--sum $(( (TP + PP) * MBS ))",
    "$@",
)
PIECES = (
    "{v}={n}",
    "{v}=$(({w} * {n}))",
    "{v}=$(({w} + {n} - 1))",
    "(({v} += {n}))",
    "(({v}++)) || true",
    "let {v}={n}*2",
    "if [ ${w} -gt {n} ]; then {v}={m}; else {v}={n}; fi",
    'if [[ "${w}" == "{n}" ]]; then\n  {v}={m}\nelif (( {w} > 2 )); then {v}={n}; fi',
    "if false; then\n  {v}={m}\nfi",
    "if true; then {v}={n}; else {v}={m}; fi",
    "[ ${w} = {n} ] && {v}={m}",
    "[[ -n $UNUSED_BUT_SET ]] && {v}={m}",
    '[ -z "" ] && {v}={n} || {v}={m}',
    "true && {v}={n}",
    "false || {v}={n}",
    "false && {v}={m}",
    "! true && {v}={m}",
    "old() {{\n  {v}={m}\n}}",
    "f() {{\n  local {v}={m}\n}}\nf",
    "g() {{ {v}=$1; }}\ng {n}",
    "h() {{\n  if [ $# -gt 1 ]; then return 1; fi\n  {v}={n}\n}}\nh a b || h a",
    "(\n{v}={m}\n)",
    "{{ {v}={n}; }}",
    "{v}={m} true",
    "{v}={m} | cat",
    "while false; do\n{v}={m}\ndone",
    "until true; do {v}={m}; done",
    "i=0\nwhile [ $i -lt 3 ]; do i=$((i + 1)); {v}=$i; done",
    "for x in 1 2 4; do {v}=$x; done",
    "for x in 1 2 4; do if [ $x -eq 2 ]; then break; fi; {v}=$x; done",
    "for x in a b c; do [ $x = b ] && continue; ARGS+=(--$x); done",
    "for ((i = 0; i < 3; i++)); do {v}=$((i + {n})); done",
    "case ${w} in\n  {n}) {v}={m} ;;\n  1|2) {v}={n} ;;\n  *) {v}={m} ;;\nesac",
    "case llama-7b in llama*) {v}={n} ;; *) {v}={m} ;; esac",
    "UNUSED=(--tp {m} --mbs {m})",
    "ARGS+=(--extra{n} {m})",
    "ARGS=(--new ${w})",
    "ARGS=(\n  --a {n}  # --mbs {m}\n  # --tp {m}\n  --b 'x y'\n)",
    "ARGS[0]=--zero",
    'OPTS="--opt ${w}"',
    'OPTS+=" --more {n}"',
    "OPTS='--raw $TP'",
    "echo --tp {m}",
    "echo '--mbs {m}' >/dev/null",
    "cat <<EOT >/dev/null\n{v}={m}\ntorchrun --tp {m}\nEOT",
    "cat <<'EOT' >/dev/null\n{v}={m} $(false\nEOT",
    ": '\n{v}={m}\n'",
    "# {v}={m}",
    "python tools/other.py --tp {m} --mbs {m} 2>/dev/null",
    "{v}=${{{w}:-{m}}}",
    "{v}=${{NOT_THERE:-{n}}}",
    ': "${{{v}:={m}}}"',
    "unset {v}\n{v}=${{{v}:-{n}}}",
    "unset UNUSED",
    "{v}=${{{w}:+{n}}}",
    "NAME=size-{n}b\n{v}=${{NAME#size-}}\n{v}=${{{v}%b}}",
    "NAME=x{n}y\n{v}=${{NAME:1:1}}",
    "NAME=a{n}a\n{v}=${{NAME//a/}}",
    "{v}=$(echo {n})",
    "{v}=`echo {n}`",
    "pick() {{ echo $(($1 * 2)); }}\n{v}=$(pick {n})",
    "set -- {n} {m}\n{v}=$2\nshift\n{v}=$1",
    "REF={w}\n{v}=${{!REF}}",
    "declare -A SIZES=([small]={n} [large]={m})\n{v}=${{SIZES[large]}}",
    "LIST=({n} {m})\n{v}=${{LIST[1]}}",
    "export {v}={n}",
    "declare -i {v}={n}",
    "readonly FIXED={n}\n{v}=$FIXED",
    'read -r {v} other <<< "{n} {m}"',
    'IFS=, read -r {v} other <<< "{n},{m}"',
    "{v}=$[ {w} + {n} ]",
    "test {n} -le ${w} && {v}={n}",
    "[[ ( ${w} -ge {n} && {n} != {m} ) || ! -z x ]] && {v}={n}",
    "[[ foo{n} =~ ^foo[0-9]$ ]] && {v}={m}",
    "{v}=$(({w} > {n} ? {n} : {m}))",
    "{v}=$((0x{n} + 010))",
    "set -e",
    "set +e",
    "set -u\nset +u",
    "printf -v {v} '%s' {n}",
    'OPTS="$(cat <<EOT\n--here {n}\nEOT\n)"',
    "{v}={n};{w}={m}",
    "{v}={n} {w}={m}",
    "PATH_LIKE=/data/run{n}/x.json",
    'if [ -n "$OPTS" ]; then {v}={n}; fi',
    "size() {{\ncase $1 in\n  7b) {v}={n} ;;\n  70b) {v}={m} ;;\nesac\n}}\nsize 70b",
    "n=$(seq 1 {n} | tail -n 1 | wc -l) ; unset n",
    "eval {v}={n}",
    'eval "{v}=\\${w}"',
    "trap 'echo bye' EXIT",
    "{v}=${{#NAME_OF}}{n}",
    "printf '%s\\n' a b > /dev/null",
    '{v}="{n}" # {m}',
    'foo="a # b"; {v}={n}',
)
"""Statements; v and w are variables, n and m numbers."""


def drawn(seed: int) -> str:
    """Script of random statements around one run.

    Args:
        seed: Seed of the draw. [1]

    Returns:
        The script; every variable that it uses is set. [text]
    """
    rng = random.Random(seed)  # noqa: S311
    lines = ["#!/bin/bash", "UNUSED_BUT_SET=1", "NAME_OF=abc", "PATH_LIKE=/a/b.json"]
    lines += ["ARGS=(--base)", "OPTS="]
    lines += [f"{name}={rng.randint(1, 8)}" for name in NAMES]
    for _ in range(rng.randint(2, 9)):
        lines.append(_piece(rng))
    lines.append(rng.choice(ENDS).format(more=rng.choice(MORE)))
    lines += [_piece(rng) for _ in range(rng.randint(0, 2))]
    return "\n".join(lines) + "\n"


def _piece(rng: random.Random) -> str:
    v, w = rng.sample(NAMES, 2)
    n, m = rng.sample(range(1, 8), 2)
    text = rng.choice(PIECES).format(v=v, w=w, n=n, m=m)
    if rng.random() < 0.15 and "EOT" not in text and text[0] != "#":
        cond = rng.choice(("true", "false", f"[ ${w} -gt {n} ]", f"(( {w} < {m} ))"))
        text = f"if {cond}; then\n{text}\nfi"
    return text


def by_bash(script: str, folder: Path, **variables: str) -> list[list[str]]:
    """Arguments that real bash gives torchrun, of every time that it starts it.

    Args:
        script: The script. [text]
        folder: Folder to run in. [-]
        variables: Environment. [text]

    Returns:
        Arguments of each start. [text]
    """
    programs, seen = folder / "bin", folder / "seen"
    programs.mkdir(exist_ok=True)
    seen.write_text("")
    for name in ("torchrun", "python"):
        stub = programs / name
        stub.write_text(STUB if name == "torchrun" else "#!/bin/sh\n")
        stub.chmod(0o755)
    file = folder / "run.sh"
    file.write_text(script)
    its = {"PATH": f"{programs}{os.pathsep}/usr/bin:/bin", "SEEN": str(seen)}
    subprocess.run(
        ["bash", str(file)],
        cwd=folder,
        env=its | variables,
        capture_output=True,
        timeout=60,
        check=False,
    )
    runs = seen.read_text().split("\n\0")
    return [text.split("\0")[:-1] for text in runs[:-1]]
