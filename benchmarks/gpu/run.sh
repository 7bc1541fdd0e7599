#!/usr/bin/env bash
# Gantry on a Linux GPU host that has no Java: everything is in this folder.
#
# FILE is a safetensors file, which is made (8.6 GB) if it is missing. FOLDER receives the data that a measurement needs, unless FOLDER has it.
#
#   run.sh tests              runs the tests that need a GPU, the tests of DJL on gpu(0) if DJL's library is given, and the corpus on cuda:0
#   run.sh bench ARGUMENTS    runs gantry bench: ceilings, Gantry and peers in turns; bench --out FOLDER writes the page and the JSON
#   run.sh save FILE          measures saves of the tensors of FILE, in turns with the disk's ceiling, and saves by peers
#   run.sh overlap-save FOLDER      measures the step time of a training by DJL on the GPU without saves, with stalling and with overlapping
#                             snapshots
#   run.sh datasets FOLDER    measures the ceilings, and Gantry on 8 GB of samples
#   run.sh random-datasets FOLDER   measures single samples in random order, which the CPU reads or the GPU fetches, unchanged and
#                             normalised, beside DJL's operations
#   run.sh mapped-datasets FOLDER   measures the samples of random-datasets that the GPU fetches
#   run.sh two-gpus FOLDER    measures single samples that two GPUs fetch at once from files that are registered once, beside the ceilings
#                             of the links
#   run.sh replicas FILE [GPUS]     measures loads of FILE onto several GPUs (2 by default) that read each byte once, beside one load after
#                             the other and beside rings in C
#   run.sh slices FILE [GPUS]       measures loads of the tensors of FILE, cut along either axis, with one rank's part on each GPU, beside
#                             rings in C
#   run.sh resident FILE      measures weights that outlive their process: fresh JVMs and 100 clients map them, the server is killed, and
#                             the GPU's memory is printed
#   run.sh first-answer FILE  measures the time from the start of a process to its first answer by DJL, with resident weights of a server
#   run.sh first-batch FOLDER       measures the time to the first batch of each of three epochs
#   run.sh stream-datasets FOLDER   measures TFRecord files without an index, which the CPU reads, checks and decodes
#   run.sh model FOLDER       measures loads of a Llama of 8 GB into a block, in BF16 and from FP8, its refresh and its offload
#   run.sh first [TURNS]      measures the first load of a process, of 10, 100 and 500 MB, beside DJL's own loads
#   run.sh first-device FILE  measures the first loads of a process onto the GPU, from the process's start, beside a C program
#   run.sh into FOLDER        measures loads into DJL's own tensors beside loads into Gantry's memory, and writes from both (5.4 GB)
#   run.sh texts FOLDER       measures how many texts a second a BERT-base with random weights embeds, beside Python's libraries
#   run.sh generate FOLDER [WIDTH LAYERS]   measures tokens a second of a Llama of 8 billion parameters (16 GB) with one prompt and with 32
#                             prompts, in turns with transformers, and the time from the process's start to the first answer
#   run.sh quantised FOLDER   measures loads of weights (4.3 GB) in each format of quantisation, as they are and as BFLOAT16
#   run.sh pickled FOLDER     measures loads of a Llama's tensors (4.3 GB) from a .pt file beside loads from a safetensors file
#   run.sh pictures FOLDER [PICTURES]   measures JPEGs of WebDataset archives, decoded by the CPU and by the GPU, beside DALI
#   run.sh remote [TURNS] [GB]      measures S3, HTTP and the hub, from a server on the loopback to the host and to the GPU with 64 MB of
#                             heap, beside the CRT client alone; BENCH_FOLDER names a folder for the bytes instead of /dev/shm
#   run.sh cufile FILE [LIBRARY]    measures libcufile's APIs for reads in compatibility mode: threads, pieces by one call, batches and
#                             streams; LIBRARY names a libcufile.so.0 other than the host's
#   run.sh cufile-open [LIBRARY]    shows whether libcufile frees device memory of other threads while its driver opens
#   run.sh soak MINUTES [DEVICE,DEVICE [SEED [FOLDER]]]   runs loads, saves, epochs, refreshes, clients of resident weights and remote reads at
#                             once, with faults, compares each byte, and fails if a resource is left. Devices are named as in cuda:0,cuda:1
#   run.sh cancels FILE [LOADS...]  measures how long a cancelled load takes to return beside others; LOADS are the numbers of concurrent
#                             loads, 1 2 6 16 by default
#   run.sh gantry ARGUMENTS   runs the command line
#
# The dynamic loader finds libcufile, also under /usr/local/cuda. GANTRY_LIBTORCH names the folder of libtorch; if it is unset, python3's torch is
# used. DJL needs its native library built for the host's libtorch (the folder include/ has the JDK's headers for that build);
# PYTORCH_LIBRARY_PATH names the folder that holds both.
set -uo pipefail
here=$(cd -P "$(dirname "${BASH_SOURCE[0]}")" && pwd)
java=$here/runtime/bin/java
# Writes the class data archive of the JDK, which speeds up its start; this runtime comes without one, other JDKs include it.
[[ -f $here/runtime/lib/server/classes.jsa ]] || "$java" -Xshare:dump >/dev/null 2>&1
if [[ -d /usr/local/cuda/lib64 ]]; then
  export LD_LIBRARY_PATH=/usr/local/cuda/lib64:${LD_LIBRARY_PATH:-}
fi
options=(--enable-native-access=ALL-UNNAMED --sun-misc-unsafe-memory-access=allow -Xmx1g -Dai.djl.offline=true
  "-Dgantry.corpus=$here/corpus" "-Dgantry.hub=$here/src/test/resources/hub" -Dorg.slf4j.simpleLogger.defaultLogLevel=info)

main() {
  "$java" "${options[@]}" -cp "$here/lib/*" "$@"
}

find_libtorch() {
  if [[ -z ${GANTRY_LIBTORCH:-} ]] && command -v python3 >/dev/null; then
    GANTRY_LIBTORCH=$(python3 -c 'import torch, os; print(os.path.join(os.path.dirname(torch.__file__), "lib"))' 2>/dev/null)
  fi
  if [[ -n ${GANTRY_LIBTORCH:-} ]]; then
    LD_LIBRARY_PATH=$GANTRY_LIBTORCH:$(printf '%s:' "$GANTRY_LIBTORCH"/../../nvidia/*/lib)${LD_LIBRARY_PATH:-}
    export GANTRY_LIBTORCH LD_LIBRARY_PATH
  else
    unset GANTRY_LIBTORCH
  fi
  return 0
}

tests() {
  local failed=0
  # Tests resolve their resources against this folder; property tests record failed seeds in target.
  cd "$here" && mkdir -p target || return
  find_libtorch
  echo "== tests of loader-core on the GPU"
  main dev.gantry.testing.stub.TaggedTests dev.gantry.core gpu || failed=1
  if [[ -n ${PYTORCH_LIBRARY_PATH:-} ]]; then
    echo "== all tests of loader-djl with DJL on CUDA, its library in $PYTORCH_LIBRARY_PATH"
    main dev.gantry.testing.stub.TaggedTests dev.gantry.djl || failed=1
    echo "== all tests of models with DJL on CUDA"
    # Without this setting cuDNN rounds FLOAT32 to TF32, and answers differ from the reference in the third digit.
    NVIDIA_TF32_OVERRIDE=0 main dev.gantry.testing.stub.TaggedTests dev.gantry.models || failed=1
  else
    echo "== tests of loader-djl on the GPU without DJL (PYTORCH_LIBRARY_PATH names no library of DJL's for CUDA), libtorch in ${GANTRY_LIBTORCH:-(none)}"
    main dev.gantry.testing.stub.TaggedTests dev.gantry.djl gpu || failed=1
  fi
  echo "== tests of formats on the GPU"
  main dev.gantry.testing.stub.TaggedTests dev.gantry.formats gpu || failed=1
  echo "== the corpus on cuda:0"
  main dev.gantry.cli.CorpusOnDevice "$here/corpus/safetensors" cuda:0 || failed=1
  return $failed
}

make_file() {
  [[ -f $1 ]] || main dev.gantry.benchmarks.Measure make "$1" 8600000000 256
}

texts() {
  echo "== machine: $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -1), $(nproc) cores, $(uname -r)"
  python3 "$here/texts.py" "$1" || return
  NVIDIA_TF32_OVERRIDE=0 main dev.gantry.benchmarks.Measure texts "$1" gpu0
}

generate() {
  local folder=$1 python=(python3 "$here/generate.py" "$1" cuda "$2" "$3" 32)
  echo "== machine: $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -1), $(nproc) cores, $(uname -r)"
  [[ -f $folder/config.json ]] || "${python[@]}" || return
  for turn in 1 2; do
    GANTRY_STARTED=$(date +%s%N) "${python[@]}" || echo "no python3 with transformers: no peer"
    GANTRY_STARTED=$(date +%s%N) main dev.gantry.benchmarks.Measure generate "$folder" gpu0 32
  done
}

quantised() {
  python3 "$here/quantised.py" "$1" 4300000000 || return
  for folder in "$1"/*/; do
    main dev.gantry.benchmarks.Measure dequantise "$folder"
  done
}

pickled() {
  [[ -f $1/llama.pt ]] || python3 "$here/pickled.py" "$1" 4300000000 || return
  main dev.gantry.benchmarks.Measure loads "${DEVICE:-cuda:0}" "$1/llama.safetensors" "$1/llama.pt"
}

pictures() {
  echo "== machine: $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -1), $(nproc) cores, $(uname -r)"
  find_libtorch
  main dev.gantry.benchmarks.Measure pictures "$1" - "$2" || return
  python3 "$here/dali.py" "$(nproc)" "$1"/pictures-"$2"-*.tar
}

# limits FILE FOLDER [reads|writes]: measures the ceilings of the host in C
limits() {
  local program=$2/limits
  [[ -x $program ]] || PATH=$PATH:/usr/local/cuda/bin nvcc -O2 -arch=native "$here/limits.cu" -o "$program" || return
  "$program" "$@"
}

# several_gpus replicas|slices FILE GPUS: measures Gantry, and the ceiling of rings in C before and after
several_gpus() {
  local program
  program=$(dirname "$2")/rings
  make_file "$2"
  echo "== machine: $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | tr '\n' ';') $(nproc) cores, $(uname -r)"
  [[ -x $program ]] || PATH=$PATH:/usr/local/cuda/bin nvcc -O2 -arch=native "$here/rings.cu" -o "$program" || return
  "$program" "$2" "$3"
  main dev.gantry.benchmarks.Measure several-gpus "$1" "$2" "$3"
  "$program" "$2" "$3"
}

save() {
  local checkpoints
  checkpoints=$(dirname "$1")/checkpoints
  echo "== saves by peers"
  python3 "$here/peers.py" "$1" || echo "no python3 with torch: no peers"
  echo "== saves, ours"
  main dev.gantry.benchmarks.Measure save cuda:0 "$checkpoints" "$1"
  rm -rf "$checkpoints"
}

# datasets FOLDER rows|random|mapped|streams|first
datasets() {
  main dev.gantry.benchmarks.Measure datasets cuda:0 "$2" "$1" 8600000000
}

all_datasets() {
  local folder=$1
  mkdir -p "$folder"
  make_file "$folder/8gb.safetensors"
  echo "== machine: $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -1), $(nproc) cores, $(uname -r)"
  echo "== ceilings"
  limits "$folder/8gb.safetensors" "$folder" reads
  rm "$folder/8gb.safetensors"
  echo "== ours"
  datasets "$folder" rows
}

# first_device FILE [JVM OPTION...]
first_device() {
  local file=$1
  shift
  GANTRY_STARTED=$(date +%s%N) "$java" "${options[@]}" "$@" -cp "$here/lib/*" dev.gantry.benchmarks.Measure first-device "$file" cuda:0 ${prepare:-}
}

all_first_device() {
  local cache program
  make_file "$1"
  program=$(dirname "$1")/first
  [[ -x $program ]] || cc -O2 -I/usr/local/cuda/include -L/usr/local/cuda/lib64/stubs "$here/first.c" -o "$program" -lcuda -lpthread || return
  cat "$1" >/dev/null
  cache=$(mktemp -d)
  for turn in 1 2 3 4 5 6 7; do
    echo "in C:              $(GANTRY_STARTED=$(date +%s%N) "$program" "$1" 8)"
    echo "plain:             $(first_device "$1")"
    echo "prepared:          $(prepare=prepare first_device "$1")"
  done
  prepare=prepare first_device "$1" -XX:AOTCacheOutput="$cache/aot" >/dev/null 2>&1
  for turn in 1 2 3 4 5 6 7; do
    echo "prepared, AOT:     $(prepare=prepare first_device "$1" -XX:AOTCache="$cache/aot" 2>&1)"
  done
  rm -r "$cache"
}

# first_answer LOCATION DEVICE plain|together [JVM OPTION...]
first_answer() {
  local location=$1 device=$2 way=$3
  shift 3
  GANTRY_STARTED=$(date +%s%N) "$java" "${options[@]}" -Dorg.slf4j.simpleLogger.defaultLogLevel=warn "$@" -cp "$here/lib/*" \
    dev.gantry.benchmarks.Measure first-answer "$location" "$device" "$way"
}

all_first_answer() {
  local folder location server way turn device=${DEVICE:-cuda:0}
  make_file "$1"
  folder=$(mktemp -d)
  location=gantry-resident://$folder/s/weights.sock
  serve_weights "$1" "$folder/s/weights.sock" "$folder/server.txt"
  for way in plain together; do
    first_answer "$location" "$device" $way -XX:AOTCacheOutput="$folder/$way.aot" >"$folder/aot-$way.txt" 2>&1
    for turn in 1 2 3; do
      echo "$way: $(first_answer "$location" "$device" $way 2>&1)"
    done
    for turn in 1 2 3; do
      echo "$way, AOT cache: $(first_answer "$location" "$device" $way -XX:AOTCache="$folder/$way.aot" 2>&1)"
    done
  done
  kill $server
  wait $server 2>/dev/null
  rm -r "$folder"
}

model() {
  mkdir -p "$1"
  echo "== machine: $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -1), $(nproc) cores, $(uname -r)"
  find_libtorch
  main dev.gantry.benchmarks.Measure model "$1" 19
}

gpu_memory() {
  nvidia-smi --query-gpu=memory.used --format=csv,noheader | head -1
}

# serve_weights FILE SOCKET LOG: starts a server, waits for it, prints its first output, and sets $server to its process id
serve_weights() {
  "$java" "${options[@]}" -cp "$here/lib/*" dev.gantry.cli.GantryCommand serve-weights "$1" --device "${DEVICE:-cuda:0}" --socket "$2" >"$3" 2>&1 &
  server=$!
  until grep -q "clients open" "$3"; do
    kill -0 $server 2>/dev/null || { cat "$3"; exit 1; }
    sleep 0.1
  done
  cat "$3"
}

resident() {
  local folder location client from server
  make_file "$1"
  folder=$(mktemp -d)
  location=gantry-resident://$folder/s/weights.sock
  echo "GPU memory before: $(gpu_memory)"
  serve_weights "$1" "$folder/s/weights.sock" "$folder/server.txt"
  echo "GPU memory with the server: $(gpu_memory)"
  echo "== fresh JVMs, from start to end; each maps all tensors"
  for turn in 1 2 3 4 5; do
    from=$(date +%s%N)
    main dev.gantry.cli.GantryCommand load "$location" --device cuda:0 | tail -1
    echo "process: $((($(date +%s%N) - from) / 1000000)) ms"
  done
  echo "== the bytes: digests of the file and of the GPU's memory"
  main dev.gantry.cli.GantryCommand digest "$1" | sha256sum
  main dev.gantry.cli.GantryCommand digest "$location" --device cuda:0 | sha256sum
  echo "== 100 clients"
  for ((i = 0; i < 100; i += 10)); do
    clients=()
    for ((j = 0; j < 10; j++)); do
      main dev.gantry.cli.GantryCommand load "$location" --device cuda:0 >/dev/null || echo "a client failed" &
      clients+=($!)
    done
    wait "${clients[@]}"
  done
  sleep 1
  tail -1 "$folder/server.txt"
  echo "GPU memory with the server after them: $(gpu_memory)"
  echo "== SIGKILL of the server while a client goes on"
  main dev.gantry.cli.GantryCommand load "$location" --device cuda:0 --repeat 100000 >"$folder/client.txt" 2>&1 &
  client=$!
  sleep 2
  kill -9 $server
  wait $server 2>/dev/null
  echo "GPU memory with the client only: $(gpu_memory)"
  wait $client
  echo "the client's exit code (must be 0): $?, its last line: $(tail -1 "$folder/client.txt")"
  sleep 1
  echo "GPU memory at the end: $(gpu_memory)"
  main dev.gantry.cli.GantryCommand load "$location" --device cuda:0
  serve_weights "$1" "$folder/s/weights.sock" "$folder/server2.txt"
  kill $server
  wait $server 2>/dev/null
  rm -r "$folder"
}

# cufile_open LIBRARY: allocates beside no opening, openings that refuse compatibility mode, and openings that allow it
cufile_open() {
  local program=$here/cufile-open way
  [[ -x $program ]] || cc -O2 "$here/opening.c" -o "$program" -ldl -lpthread || return
  for way in none strict compat; do "$program" "$1" "$way" 15; done
}

# cufile_ways FILE LIBRARY: measures each API with each request size, from the page cache and from the disk
cufile_ways() {
  program=$(dirname "$1")/cufile-ways
  [[ -x $program ]] || cc -O2 "$here/cufile.c" -o "$program" -ldl -lpthread || return
  cat "$1" >/dev/null
  "$program" "$2" "$1" compat-cached
  "$program" "$2" "$1" compat-direct
}

# cancels FILE [LOADS...]
cancels() {
  local file=$1
  shift
  (($# > 0)) || set -- 1 2 6 16
  make_file "$file" || return
  cat "$file" >/dev/null
  main dev.gantry.benchmarks.Measure cancels cuda:0 "$file" "$@"
}

remote() {
  echo "== machine: $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -1), $(nproc) cores, $(uname -r)"
  main -Xmx64m -XX:MaxDirectMemorySize=4g "-Dbench.folder=${BENCH_FOLDER:-/dev/shm}" dev.gantry.benchmarks.Measure s3 loopback "${1:-7}" "${2:-1}"
}

case ${1:-} in
  tests) tests ;;
  bench) main dev.gantry.cli.GantryCommand "$@" ;;
  save) make_file "${2:?run.sh save FILE}" && save "$2" ;;
  overlap-save) find_libtorch && main dev.gantry.benchmarks.Measure overlap-save "${2:?run.sh overlap-save FOLDER}" "${@:3}" ;;
  datasets) all_datasets "${2:?run.sh datasets FOLDER}" ;;
  random-datasets) find_libtorch && datasets "${2:?run.sh random-datasets FOLDER}" random ;;
  mapped-datasets) find_libtorch && datasets "${2:?run.sh mapped-datasets FOLDER}" mapped ;;
  two-gpus) main dev.gantry.benchmarks.Measure two-gpus "${2:?run.sh two-gpus FOLDER}" 8600000000 ;;
  replicas | slices) several_gpus "$1" "${2:?run.sh $1 FILE [GPUS]}" "${3:-2}" ;;
  resident) resident "${2:?run.sh resident FILE}" ;;
  first-answer) find_libtorch && all_first_answer "${2:?run.sh first-answer FILE}" ;;
  first-batch) datasets "${2:?run.sh first-batch FOLDER}" first ;;
  stream-datasets) datasets "${2:?run.sh stream-datasets FOLDER}" streams ;;
  model) model "${2:?run.sh model FOLDER}" ;;
  first) find_libtorch && main dev.gantry.benchmarks.Measure first "${2:-5}" 10 100 500 ;;
  first-device) all_first_device "${2:?run.sh first-device FILE}" ;;
  into) find_libtorch && main dev.gantry.benchmarks.Measure into "${2:?run.sh into FOLDER}" ;;
  texts) find_libtorch && texts "${2:?run.sh texts FOLDER}" ;;
  generate) find_libtorch && generate "${2:?run.sh generate FOLDER [WIDTH LAYERS]}" "${3:-4096}" "${4:-32}" ;;
  quantised) find_libtorch && quantised "${2:?run.sh quantised FOLDER}" ;;
  pickled) pickled "${2:?run.sh pickled FOLDER}" ;;
  pictures) pictures "${2:?run.sh pictures FOLDER [PICTURES]}" "${3:-2000}" ;;
  remote) remote "${@:2}" ;;
  cufile-open) cufile_open "${2:-libcufile.so.0}" ;;
  cufile) make_file "${2:?run.sh cufile FILE [LIBRARY]}" && cufile_ways "$2" "${3:-libcufile.so.0}" ;;
  # All pages of the Java heap are touched at the start, and the C library gets as few arenas as on two cores: otherwise both
  # grow for minutes, which would look like a leak.
  soak) find_libtorch && MALLOC_ARENA_MAX=16 main -Xms1g -XX:+AlwaysPreTouch dev.gantry.benchmarks.Measure soak "${2:?run.sh soak MINUTES [DEVICE,DEVICE [SEED [FOLDER]]]}" "${@:3}" ;;
  cancels) cancels "${2:?run.sh cancels FILE [LOADS...]}" "${@:3}" ;;
  gantry) shift; main dev.gantry.cli.GantryCommand "$@" ;;
  # Prints the comment at the top of this script.
  *) sed -n '2,/^#   run.sh gantry/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 64 ;;
esac
