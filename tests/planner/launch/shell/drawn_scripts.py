"""Scripts drawn from the constructs that people write, and what bash makes of them."""

import os
import random
import subprocess
from pathlib import Path

STUB = """#!/bin/sh
printf '%s\\0' "${CUDA_VISIBLE_DEVICES-}" >>"$SEEN"
for word; do printf '%s\\0' "$word"; done >>"$SEEN"
printf '\\n\\0' >>"$SEEN"
"""
"""A torchrun that notes the GPUs that it sees and its arguments, each ended by a NUL,
and a newline after all."""
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
    "{v}=$((10#${w} + 16#{n}))",
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


RARE = (
    "false\n{v}=$?",
    "true\n{v}=$?",
    "[ {n} -gt {m} ]\nif [ $? -ne 0 ]; then {v}={n}; fi",
    "[[ ${w} == {n} ]]\n(( $? )) && {v}={n}",
    "f() {{ return {n}; }}\nf\n{v}=$?",
    "f() {{ {v}=$?; }}\nfalse\nf",
    "f() {{ echo {n}; return {m}; }}\n{w}=$(f)\n{v}=$?",
    "X=$(false) || {v}={n}",
    "X=$(exit {n})\n{v}=$?",
    "local_status() {{ local x=$(false); {v}=$?; }}\nlocal_status",
    "{v}=$(false; echo $?)",
    "false; {v}=$?$(true)$?",
    "false\nif true; then {v}=$?; fi",
    "false\ncase x in x) {v}=$? ;; esac",
    "if false; then :; else {v}=$?; fi",
    "for x in 1; do false; done\n{v}=$?",
    "while false; do :; done\n{v}=$?",
    "(exit {n})\n{v}=$?",
    "! true\n{v}=$?",
    "true | false\n{v}=$?",
    "set -o pipefail\nfalse | true\n{v}=$?",
    "set -e -o pipefail\nfalse | true",
    "set -euo pipefail",
    "set -eE\nX=$(false; echo {n})\n{v}=$X",
    "set -e\nX=$(false)",
    "set -e\nfalse || {v}={n}",
    "set -e\n((N=0))\n{v}={n}",
    "set -e\nf() {{ false; {v}={n}; }}\nif f; then :; fi",
    "set -e\nf() {{ false; {v}={n}; }}\nf || true",
    "set -e\n{{ false; echo; }} | cat\n{v}={n}",
    "set -e\n(false; {v}={n})\n{w}={n}",
    "set -e\nshopt -s inherit_errexit\nX=$(false; echo {n})\n{v}=$X",
    "set -u\nunset X\n{v}=${{X:-{n}}}",
    "set -u\nunset X\n{v}=$X",
    "set -u\nL=({n})\n{v}=${{L[3]}}",
    "set -u\nunset X\n: $((X + 1))\n{v}={n}",
    "set -u\nunset X\nY=$(echo $X; echo 1)\n{v}={n}",
    "unset X\n: ${{X:?no}}\n{v}={n}",
    "X=\n(: ${{X:?no}})\n{v}=$?",
    "set -f\nARGS+=(*)",
    "set -x 2>/dev/null\n{v}={n}\nset +x",
    "set -a\nX={n}\nset +a\n{v}=$(bash -c 'echo $X')",
    "set -C",
    "set -k",
    "set +B\nARGS+=({{1..{n}}})",
    "shopt -s nocasematch\n[[ ABC == abc ]] && {v}={n}",
    "shopt -s lastpipe\necho {n} | read {v}",
    "shopt -s nullglob\nARGS+=(--none=*.nothing)",
    "shopt -s extglob\n{v}={n}",
    "shopt -s expand_aliases\nalias nine='echo 9'\n{v}=$(nine)",
    "alias torchrun=nothing",
    "shopt -u nullglob",
    "if shopt -q extglob; then {v}={m}; fi",
    "L=(a b {n})\nARGS+=(${{L[@]/#/--}})",
    'L=(a b)\nARGS+=("${{L[@]/%/={n}}}")',
    'L=(a-1 a-2)\nARGS+=("${{L[@]/-/={n}}}")',
    'L=(aba aba)\nARGS+=("${{L[@]//a/x}}")',
    'L=(x.a y.b)\nARGS+=("${{L[@]%.*}}" "${{L[@]#*.}}")',
    'L=(abc def)\nARGS+=("${{L[@]^}}" "${{L[@]^^}}")',
    "X=q{n}\nARGS+=(${{X/q/[&]}})",
    "X=q{n}\nARGS+=(${{X/q/a\\&b}})",
    'X=q{n}\nR="&&"\nARGS+=("${{X/q/$R}}")',
    "X='a b  c'\nARGS+=(${{X//[[:space:]]/}})",
    "X=a_b-c.d\nARGS+=(${{X//[^[:alnum:]]/+}})",
    "X=Llama-3.1-{n}B\nARGS+=(${{X//[!0-9]/}} ${{X,,}} ${{X%%-*}} ${{X##*-}})",
    "X=aXb\nARGS+=(${{X//[[:upper:]]/_}} ${{X/[X-Z]/]}})",
    "X=abc\nARGS+=(${{X//*/z}} ${{X/*/z}} ${{X//b*/}})",
    "X=abc\nARGS+=(${{X^^[a]}})",
    "X=abc\nARGS+=(${{X@U}})",
    "X=abc\nARGS+=(${{X~}})",
    'X=ab\nARGS+=("${{X: -5}}" "${{X:1}}" "${{X:0:-1}}" "${{X: -1}}")',
    "L=([2]=c [0]=a)\nARGS+=(${{L[@]}} ${{!L[@]}} ${{#L[@]}})",
    "L=([3]=c d [1]=a b)\nARGS+=(${{L[@]}} ${{!L[@]}})",
    "L=(x y)\nL+=(z [7]=w v)\nARGS+=(${{L[@]}} ${{!L[@]}})",
    "L=(x y z)\nunset 'L[1]'\nL+=(w)\nARGS+=(${{L[@]}} ${{!L[@]}} ${{L[-1]}})",
    "L=(x y z)\nunset L[0]\nARGS+=(${{L[@]:0:1}} ${{L[@]:1}} ${{L[@]: -1}})",
    "L=(x y z)\nunset 'L[-1]'\nI=0\nunset \"L[$I]\"\nARGS+=(${{L[@]}})",
    "L=(x)\nL[4]=y\nARGS+=(${{L[@]:2}} ${{#L[@]}})",
    "L=(a b)\nL[0]+=q\nL+=z\nARGS+=(${{L[@]}})",
    'L=(a "b c" "")\nARGS+=("${{L[@]}}" ${{#L[@]}} "${{L[*]}}")',
    "X='a b'\nL=([1]=$X [0]=y)\nARGS+=(\"${{L[@]}}\")",
    "declare -A M=([a]={n} [b]={m} [c]=1)\nARGS+=(${{M[@]}})",
    "declare -A M=([a]={n} [b]={m})\nARGS+=(${{!M[@]}})",
    "declare -A M=([x y]={n})\nK='x y'\n{v}=${{M[$K]}}",
    "K=z\ndeclare -A M=([$K]={n} [k]='a b')\n{v}=${{M[z]}}",
    'declare -A M\nM[a]={n}\nfor k in "${{!M[@]}}"; do {v}=${{M[$k]}}; done',
    'declare -A M=([a]=1 [b]=2)\nfor k in "${{!M[@]}}"; do ARGS+=(--$k); done',
    "declare -A M=([a]=1)\nunset 'M[a]'\n{v}=${{M[a]:-{n}}}",
    "declare -A M=(a {n} b {m})\n{v}=${{M[a]}}",
    "declare -u X=abc\nARGS+=($X)",
    "declare -n R={v}\nR={n}",
    "declare -i X={n}\nX+=2\n{v}=$X",
    "f() {{ local X=$(({v}++)); }}\nf",
    "export X=$(({v} += {n}))",
    "X={n} eval '{v}=$X'",
    "f() {{ {v}=$X; }}\nX={n} f",
    "f() {{ bash -c 'echo $X'; }}\n{v}=$(X={n} f)",
    "export X={n}\nexport -n X\n{v}=$(bash -c 'echo ${{X:-{m}}}')",
    "f() {{ echo {n}; }}\nexport -f f\n{v}=$(bash -c f)",
    "cat >args.sh <<'EOT'\ndeclare -A S=([x]={n})\nEOT\n. ./args.sh\n{v}=${{S[x]}}",
    "ARGS+=($'\\x41\\102\\t' $'a\\'b' $'\\u0041' $'\\q')",
    'ARGS+=("$(echo -e "a\\tb\\\\")")',
    'X=$(echo -e "--e\\n{n}")\nARGS+=($X)',
    """ARGS+=("$(echo 'a\\tb')" "$(echo -n x)" "$(echo -ne 'y\\x41')")""",
    "ARGS+=(\"$(echo -e 'a\\0101')\" \"$(echo -e 'a\\cb')\")",
    "ARGS+=($(printf '%s,' a b) $(printf '%d' 010) $(printf '%%'))",
    "ARGS+=($(printf '%s\\x41\\n' a) \"$(printf '%s\\t%s|' a b c)\")",
    "printf -v {v} '%d' {n}",
    'read X Y <<< \'a\\ b c\'\nARGS+=("$X" "$Y")',
    'read -r X Y <<< \'a\\ b  c d \'\nARGS+=("$X" "$Y")',
    "read X <<< '  a  b  '\nARGS+=(\"$X\")",
    "IFS= read -r X <<< '  a  b  '\nARGS+=(\"$X\")",
    "read -r <<< ' q {n} '\nARGS+=(\"$REPLY\")",
    'IFS=, read -r X Y Z <<< \'a,,b,c,\'\nARGS+=("$X" "$Y" "$Z")',
    "IFS=', ' read -r X Y <<< 'a , b,'\nARGS+=(\"$X\" \"$Y\")",
    "IFS=: read -ra L <<< 'a::b:'\nARGS+=(\"${{L[@]}}\" ${{#L[@]}})",
    "read -r -n 1 X <<< abc\nARGS+=($X)",
    "read -r -d b X <<< abc\nARGS+=($X)",
    "read -rp 'how? ' {v} <<< {n}",
    "read -r X </dev/null || {v}={n}",
    "mapfile -t L <<< $'a\\nb {n}'\nARGS+=(\"${{L[@]}}\" ${{#L[@]}})",
    "mapfile L <<< $'a\\nb'\nARGS+=(\"${{L[@]}}\")",
    "mapfile -t -s 1 L <<< $'a\\nb'\nARGS+=(\"${{L[@]}}\")",
    "while read -r X; do ARGS+=(--$X); done <<< $'a\\nb'",
    'while IFS== read -r K X; do ARGS+=("$K:$X"); done < <(echo a=1; echo b=2=3)',
    "printf 'a b\\nc\\n' | while read -r X; do {v}={m}; done",
    "{v}=$(bash -c 'echo $1$0' {n} 0)",
    "{v}=$(bash -c 'echo $#' x {n} {m})",
    "ARGS+=($(bash -c 'echo $0 $@' name a b))",
    "bash -e -c 'false; echo {n}' && {v}={m}",
    "{v}=$(bash -ec 'echo {n}; false; echo {m}')",
    "for x in {{01..03}}; do ARGS+=($x); done",
    "ARGS+=({{08..10}} {{3..1}} {{1..9..4}} {{-1..1}})",
    "ARGS+=({{a..c}})",
    "ARGS+=(x{{1,2}})",
    "ARGS+=(x{{1..3}})",
    'ARGS+=("{{1..3}}" {{1..$TP}})',
    "time {v}={n}",
    "{v}=`echo \\`echo {n}\\``",
    '{v}="`echo {n}`$(echo)"',
    "time {v}={n} true",
    "time -p g{n}() {{ :; }}",
    "f() {{ {v}={n}; }}\ntime f",
    "time {{ {v}={n}; }}",
    "command {v}={n} 2>/dev/null || true",
    "builtin eval {v}={n}",
    "command printf -v {v} '%s' {n}",
    "if command -v no_such_program >/dev/null; then {v}={m}; fi",
    "command -v torchrun >/dev/null || {v}={m}",
    "[[ tp-{n}b =~ ([0-9]+)b$ ]] && {v}=${{BASH_REMATCH[1]}}",
    "[[ a.{n} =~ a.$'{n}' && a{n} =~ ^a[[:digit:]]$ ]] && {v}={n}",
    '[[ axb =~ "a.b" ]] && {v}={n}',
    "R='^x-(.*)$'\n[[ x-{n} =~ $R ]] && {v}=${{BASH_REMATCH[1]:-{m}}}",
    "[[ abc =~ (a|ab)(c|bcd)? ]]\nARGS+=(${{BASH_REMATCH[@]}})",
    "[[ x{n} =~ x\\d ]] && {v}={m}",
    '[[ no =~ z(.) ]]\nARGS+=("${{#BASH_REMATCH[@]}}")',
    "[[ -v ARGS && -v {w} && ! -v NOT_SET_AT_ALL_{n} ]] && {v}={n}",
    "unset X\n[[ -v X ]] || {v}={n}",
    "[[ b > B ]] && {v}={n}",
    "[[ 8b < 70b ]] && {v}={n}",
    "[[ {n} -eq 0{n} ]] && {v}={m}",
    "[ 0{n} -eq {n} ] && {v}={m}",
    "trap '{v}={m}' EXIT",
    "trap 'torchrun --tp 9' EXIT",
    "trap '{v}={n}' ERR\nfalse",
    "trap '{v}={n}' DEBUG\ntrue",
    "trap 'echo failed' ERR\nfalse",
    "set -e\ntrap 'echo failed; exit 1' ERR",
    "export CUDA_VISIBLE_DEVICES={n},{m}",
    "CUDA_VISIBLE_DEVICES={n},{m}",
    "export CUDA_VISIBLE_DEVICES\nCUDA_VISIBLE_DEVICES={n}",
    "CUDA_VISIBLE_DEVICES={n} true",
    "(export CUDA_VISIBLE_DEVICES={n})",
    "export CUDA_VISIBLE_DEVICES={n}\nunset CUDA_VISIBLE_DEVICES",
    "export CUDA_VISIBLE_DEVICES={n}\nCUDA_VISIBLE_DEVICES=0,$CUDA_VISIBLE_DEVICES",
    "export CUDA_VISIBLE_DEVICES=$(echo {n},{m})",
    "export GPUS={n},{m}\nexport CUDA_VISIBLE_DEVICES=$GPUS",
    "declare -x CUDA_VISIBLE_DEVICES={n}",
    "getopts ab: opt || {v}={n}",
    "shift 2>/dev/null || {v}={n}",
    "set -- a b c\nshift 2\n{v}=$#",
    'set -- a "b c"\nARGS+=("${{@:2}}" "${{@: -1}}" ${{#@}} "${{*:1:1}}")',
    "set -- -x {n}\nwhile getopts x: o; do {v}=$OPTARG; done",
    "IFS=:\nX=a:b\nARGS+=($X)\nunset IFS",
    "for f in *.nothing; do {v}={n}; done",
    "for f in *; do {v}={n}; done",
    "L=(*)\n{v}=${{#L[@]}}",
    "{v}=$(dirname /a/{n}/ | wc -c)",
    "ARGS+=($(dirname /a) $(dirname a/b/) $(basename /x/y.py .py) $(basename -a p q))",
    "{v}=$(echo {n} | tee seen.txt)",
    "echo a > w.txt\necho b | tee -a w.txt >/dev/null\nARGS+=($(cat w.txt))",
    "echo {n} | xargs true",
    "ARGS+=($(seq 3 -1 1) $(seq 2))",
    "{v}=$(ulimit -n | wc -l)",
    "RANDOM={n}\n{v}=$RANDOM",
    "false | true\n{v}=${{PIPESTATUS[0]:-{n}}}",
    "{v}=${{UID:-{n}}}",
    "env -i true\n{v}={n}",
    "let {v}={n} {w}=0 || {v}={m}",
    "{v}=$(({n}, {m}))",
    "X=({n} {m})\n{v}=$((X[1] + ${{#X[@]}}))",
    'ARGS+=(~ a~b "~")',
    "function k {{ {v}={n}; }}\nk",
    "k() if true; then {v}={n}; fi\nk",
    "select x in a; do {v}=$x; done </dev/null",
    "coproc true",
    "until (( {v} > 6 )); do (( {v} += 1 )); done",
    "case X in x) {v}={n} ;; [[:upper:]]) {v}={m} ;; esac",
    "case a-b in a[!x]b) {v}={n} ;;& *-*) {w}={m} ;; esac",
    "case '' in '') {v}={n} ;; esac",
    "case a] in a[]]) {v}={n} ;; *) {v}={m} ;; esac",
    "hash torchrun && {v}={n}",
    "type torchrun >/dev/null 2>&1 || {v}={m}",
    "exec 3>&1",
    "exec >/dev/null",
    "eval\n{v}=$?",
    "f() {{ return; }}\nfalse\nf\n{v}=$?",
    "f() {{ false; return; }}\nf\n{v}=$?",
    "exit_later() {{ exit 3; }}\n(exit_later)\n{v}=$?",
)
"""Statements that are rarer, or refused; v and w are variables, n and m numbers."""
RARE_ENDS = (
    *ENDS,
    "CUDA_VISIBLE_DEVICES=0,1 torchrun --tp $TP --pp $PP --mbs $MBS --cp $CP {more}",
    "env CUDA_VISIBLE_DEVICES=$TP torchrun --tp $TP --pp $PP --mbs $MBS {more}",
    'run() {{ torchrun --tp $TP "$@"; }}\nCUDA_VISIBLE_DEVICES=0 run --pp $PP {more}',
    'CUDA_VISIBLE_DEVICES=0 bash -c "torchrun --tp $TP --pp $PP {plain}"',
    "CUDA_VISIBLE_DEVICES=0,$PP exec torchrun --tp $TP --pp $PP {more}",
    "CUDA_VISIBLE_DEVICES=3 eval torchrun --tp $TP --pp $PP",
    "time CUDA_VISIBLE_DEVICES=0 torchrun --tp $TP --pp $PP {more}",
    "time TP=8 torchrun --tp $TP --pp $PP {more}",
    "torchrun --tp $TP --status $? {more}",
    "bash <<EOT\ntorchrun --tp $TP --pp \\${{PP:-1}}\nEOT",
    "echo torchrun --tp $TP | bash",
    "torchrun --tp $TP --pp $PP {more} || exit 1",
    "if torchrun --tp $TP {more}; then echo fine; fi",
    "bash -c 'torchrun --tp $1 --name $0' me $TP",
    "echo $TP | xargs torchrun --pp $PP --tp",
)


def drawn(seed: int, *, rare: bool = False) -> str:
    """Script of random statements around one run.

    Args:
        seed: Seed of the draw. [1]
        rare: True for half of the statements of the rarer kinds. [-]

    Returns:
        The script; every variable that it uses is set. [text]
    """
    rng = random.Random(seed)  # noqa: S311
    lines = ["#!/bin/bash", "UNUSED_BUT_SET=1", "NAME_OF=abc", "PATH_LIKE=/a/b.json"]
    lines += ["ARGS=(--base)", "OPTS="]
    lines += [f"{name}={rng.randint(1, 8)}" for name in NAMES]
    for _ in range(rng.randint(1, 4) if rare else rng.randint(2, 9)):
        lines.append(_piece(rng, rare=rare))
    more = rng.choice(MORE)
    plain = "" if '"' in more else more
    end = rng.choice(RARE_ENDS if rare else ENDS)
    lines.append(end.format(more=more, plain=plain))
    lines += [_piece(rng, rare=rare) for _ in range(rng.randint(0, 2))]
    return "\n".join(lines) + "\n"


def _piece(rng: random.Random, *, rare: bool) -> str:
    v, w = rng.sample(NAMES, 2)
    n, m = rng.sample(range(1, 8), 2)
    pieces = RARE if rare and rng.random() < 0.7 else PIECES
    text = rng.choice(pieces).format(v=v, w=w, n=n, m=m)
    if rng.random() < 0.15 and "EOT" not in text and text[0] != "#":
        cond = rng.choice(("true", "false", f"[ ${w} -gt {n} ]", f"(( {w} < {m} ))"))
        text = f"if {cond}; then\n{text}\nfi"
    return text


def by_bash(script: str, folder: Path, **variables: str) -> list[list[str]]:
    """GPUs that torchrun sees and its arguments, of every time that bash starts it.

    Args:
        script: The script. [text]
        folder: Folder to run in. [-]
        variables: Environment. [text]

    Returns:
        CUDA_VISIBLE_DEVICES and the arguments of each start. [text]
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
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    runs = seen.read_text().split("\n\0")
    return [text.split("\0")[:-1] for text in runs[:-1]]
