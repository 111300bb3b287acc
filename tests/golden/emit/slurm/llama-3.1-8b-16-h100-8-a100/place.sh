# Finds this node's row of nodes.txt, and refuses GPUs of another pool.
# shellcheck shell=bash
HERE=$(hostname -s)
mapfile -t ROWS < <(grep -v '^[[:space:]]*\(#\|$\)' nodes.txt)

refuse() {
  echo "place.sh: $1" >&2
  exit 2
}

# Words of a GPU in nodes.txt: model and form, and GiB of memory up to a tenth.
is_of_kind() { # KIND NAME MIB
  local word name=${2,,}
  name=" ${name//[^a-z0-9]/ } "
  for word in ${1//-/ }; do
    case $word in
      sxm*) ;;
      *gb)
        local short=$((10 * $3 - 10240 * ${word%gb}))
        [ "${short#-}" -le $((1024 * ${word%gb})) ] || return 1
        ;;
      *) [[ $name == *" $word "* ]] || return 1 ;;
    esac
  done
}

[ "${NNODES:=${#ROWS[@]}}" -eq "${#ROWS[@]}" ] ||
  refuse "$NNODES nodes are not the ${#ROWS[@]} of nodes.txt"
for row in "${ROWS[@]}"; do
  read -r node _ _ host _ <<<"$row"
  [ "${host%%.*}" != "$HERE" ] || : "${NODE_RANK:=$node}"
  [ "$node" -ne 0 ] || [ "$host" = - ] || : "${MASTER_ADDR:=$host}"
done
[ "${#ROWS[@]}" -gt 1 ] || : "${NODE_RANK:=0}"
[ -n "${NODE_RANK:-}" ] || refuse "set NODE_RANK, or name $HERE in nodes.txt"

GPUS_PER_NODE=
for row in "${ROWS[@]}"; do
  read -r node gpus kind _ pool <<<"$row"
  [ "$node" -ne "$NODE_RANK" ] || { GPUS_PER_NODE=$gpus; break; }
done
[ -n "$GPUS_PER_NODE" ] || refuse "nodes.txt has no node $NODE_RANK"
export NNODES NODE_RANK GPUS_PER_NODE
[ -z "${MASTER_ADDR:-}" ] || export MASTER_ADDR

# Name and MiB of every GPU here.
QUERY=(nvidia-smi --query-gpu=name,memory.total --format=csv,noheader,nounits)
if [ "${DEVICE:-gpu}" != cpu ]; then
  SEEN=$("${QUERY[@]}" 2>/dev/null) ||
    echo "place.sh: no nvidia-smi on $HERE: its GPUs are not checked" >&2
  while IFS=, read -r name mib; do
    [ -z "$name" ] || is_of_kind "$kind" "$name" "$mib" ||
      refuse "node $NODE_RANK is to be of pool $pool ($kind); $HERE has $name"
  done <<<"${SEEN:-}"
fi
