#!/bin/bash
# Runs the "7.6B" model
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS_PER_NODE=8
NUM_NODES=${NUM_NODES:-4}
MASTER_ADDR=localhost; NODE_RANK=${RANK:-0}
WORLD_SIZE=$(($GPUS_PER_NODE*$NUM_NODES))
TP=2
PP="2"  # stages
CHECKPOINT_PATH=$1 #<Specify path>
DP=$((WORLD_SIZE / (TP * PP)))

DISTRIBUTED_ARGS=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NUM_NODES # and more
    --master_addr $MASTER_ADDR
)
GPT_MODEL_ARGS="
    --num-layers 32 \
    --hidden-size 4096 \
    --num-attention-heads 32 \
    --group-query-attention --num-query-groups 8 \
    --seq-length 4096 --max-position-embeddings 4096
"
TRAINING_ARGS=(
    --micro-batch-size 1 --global-batch-size $((DP * 16))
    --bf16
    --lr 6.0e-5
    --tokenizer-type 'Null Tokenizer'
)
if [ "$USE_ZERO" = "" ]; then
  TRAINING_ARGS+=(--use-distributed-optimizer)
fi
torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py \
    $GPT_MODEL_ARGS \
    "${TRAINING_ARGS[@]}" ${MORE_ARGS[@]} \
    --tensor-model-parallel-size=${TP} --pipeline-model-parallel-size $PP \
    --save "$CHECKPOINT_PATH" --clip-grad 1.0 2>&1 | tee "log $NODE_RANK.txt"
