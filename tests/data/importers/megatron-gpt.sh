#!/bin/bash
# Arrays, defaults and arithmetic, as Megatron-LM's own examples are written.
GPUS_PER_NODE=8
NUM_NODES=${NUM_NODES:-2}
DISTRIBUTED_ARGS=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NUM_NODES
    --master_addr ${MASTER_ADDR:-localhost}
)
GPT_MODEL_ARGS=(
    --num-layers 96
    --hidden-size 12288
    --num-attention-heads 96
    --seq-length 2048
    --max-position-embeddings 2048
    --attention-backend auto # Can use (flash/fused/unfused/local)
)
MODEL_PARALLEL_ARGS=(
    --tensor-model-parallel-size 8
    --pipeline-model-parallel-size $((NUM_NODES * GPUS_PER_NODE / 8))
)
torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py \
    ${GPT_MODEL_ARGS[@]} \
    ${MODEL_PARALLEL_ARGS[@]} \
    --micro-batch-size 1 \
    --global-batch-size 1536 \
    --clip-grad 1.0 \
    --fp16 \
    --vocab-file "$VOCAB_FILE"
