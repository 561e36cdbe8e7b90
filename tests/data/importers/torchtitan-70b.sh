#!/usr/bin/bash
# 32 hosts of 8 cards; the file is written beside the launch
cat > llama3_70b.toml <<'EOF'
[model]
name = "llama3"
flavor = "70B"
hf_assets_path = "./assets/hf/Llama-3.1-70B"

[training]
local_batch_size = 1
seq_len = 8192
dataset = "c4"

[parallelism]
data_parallel_shard_degree = -1

[activation_checkpoint]
mode = "selective"
EOF
torchrun --nproc_per_node=8 --nnodes 32 --rdzv_backend c10d --rdzv_endpoint="localhost:0" --role rank --tee 3 \
  -m torchtitan.train --job.config_file ./llama3_70b.toml --activation_checkpoint.mode full \
  --parallelism.data_parallel_replicate_degree 4
