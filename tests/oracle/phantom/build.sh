#!/bin/sh
# Builds the phantom library.
# usage: build.sh OUTDIR SITE_PACKAGES
# SITE_PACKAGES holds the torch to serve. Of the CUDA functions that it wants, those that no file here answers get a
# stand-in that returns 0. Headers: those of a CUDA 12 wheel when there is one, else $CUDA_HOME or /usr/local/cuda.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$1
packages=$2
cuda=${CUDA_HOME:-/usr/local/cuda}
include=$cuda/include
if [ -f "$packages/nvidia/cuda_runtime/include/cuda.h" ]; then include=$packages/nvidia/cuda_runtime/include; fi
mkdir -p "$out/objects"

objects=
for source in "$here"/*.cpp; do
  object=$out/objects/$(basename "$source" .cpp).o
  ${CXX:-g++} -std=c++17 -O1 -fPIC -fvisibility=hidden -w -I"$include" -c "$source" -o "$object"
  objects="$objects $object"
done

list_undefined() { nm -D --undefined-only "$1" | awk '{print $2}' | sed 's/@.*//'; }
for library in torch_cuda c10_cuda torch_python torch_cuda_linalg; do
  list_undefined "$packages/torch/lib/lib$library.so"
done | grep -E '^(_*cuda[A-Z_]|cublas|cudnn|cusolver|cusparse|cufft|curand)' > "$out/wanted.unsorted"
nm -D --defined-only "$cuda/lib64/stubs/libcuda.so" | awk '{print $3}' | sed 's/@.*//' | grep '^cu' >> "$out/wanted.unsorted"
sort -u "$out/wanted.unsorted" > "$out/wanted"
# shellcheck disable=SC2086 # a list of files
nm --defined-only $objects | awk 'NF == 3 {print $3}' | sort -u > "$out/answered"
comm -23 "$out/wanted" "$out/answered" |
  awk '{print "__attribute__((visibility(\"default\"))) int " $1 "(void) { return 0; }"}' > "$out/rest.c"
${CC:-gcc} -O1 -fPIC -w -c "$out/rest.c" -o "$out/objects/rest.o"

# shellcheck disable=SC2086
${CXX:-g++} -shared -o "$out/libphantom.so" $objects "$out/objects/rest.o" -ldl -lpthread -Wl,-soname,libcuda.so.1
ln -sf libphantom.so "$out/libcuda.so.1"
ln -sf libphantom.so "$out/libcuda.so"
