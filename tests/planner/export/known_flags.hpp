// Names that the frameworks themselves declare, read in their sources, so that no exporter prints a
// name of its own making.
#pragma once

#include <set>
#include <string>

namespace shardwright::planner {

// megatron/training/arguments.py and megatron/core/transformer/transformer_config.py of
// https://pypi.org/project/megatron-core/0.19.2/; kinds of layers: the same files at commit
// d98e8a64ddf3 of https://github.com/NVIDIA/Megatron-LM.
inline const std::set<std::string>& megatron_flags() {
  static const std::set<std::string> flags = {
      // _add_distributed_args
      "--account-for-embedding-in-pipeline-split", "--account-for-loss-in-pipeline-split",
      "--context-parallel-size", "--cp-comm-type", "--data-parallel-sharding-strategy",
      "--no-overlap-p2p-communication", "--num-distributed-optimizer-instances",
      "--num-layers-per-virtual-pipeline-stage", "--overlap-grad-reduce", "--overlap-param-gather",
      "--pipeline-model-parallel-layout", "--pipeline-model-parallel-size",
      "--tensor-model-parallel-size", "--use-distributed-optimizer", "--use-megatron-fsdp",
      "--use-tp-pp-dp-mapping",
      // _add_training_args
      "--add-qkv-bias", "--cuda-graph-impl", "--cuda-graph-modules", "--cpu-offloading-num-layers",
      "--cross-entropy-loss-fusion", "--disable-bias-linear", "--global-batch-size",
      "--micro-batch-size", "--no-bias-dropout-fusion", "--no-gradient-accumulation-fusion",
      "--optimizer-cpu-offload", "--recompute-granularity", "--recompute-method",
      "--recompute-modules", "--recompute-num-layers", "--sequence-parallel", "--tp-comm-overlap",
      // _add_network_size_args, _add_regularization_args, _add_data_args, _add_vision_args
      "--attention-backend", "--attention-dropout", "--ffn-hidden-size", "--group-query-attention",
      "--hidden-dropout", "--hidden-size", "--kv-channels", "--max-position-embeddings",
      "--mtp-num-layers", "--multi-latent-attention", "--normalization", "--num-attention-heads",
      "--num-layers", "--num-query-groups", "--position-embedding-type", "--qk-layernorm",
      "--norm-epsilon", "--rotary-base", "--rotary-seq-len-interpolation-factor",
      "--rope-scaling-factor", "--use-rope-scaling", "--rotary-percent", "--seq-length", "--swiglu",
      "--untie-embeddings-and-output-weights", "--window-attn-skip-freq", "--window-size",
      // _add_moe_args, _add_mla_args
      "--expert-model-parallel-size", "--expert-tensor-parallel-size", "--kv-lora-rank",
      "--moe-aux-loss-coeff", "--moe-flex-dispatcher-backend", "--moe-router-dtype",
      "--moe-ffn-hidden-size", "--moe-grouped-gemm", "--moe-layer-freq",
      "--moe-router-bias-update-rate", "--moe-router-enable-expert-bias",
      "--moe-router-load-balancing-type", "--moe-router-force-load-balancing",
      "--moe-router-score-function", "--moe-router-topk", "--moe-shared-expert-intermediate-size",
      "--moe-shared-expert-overlap", "--moe-token-dispatcher-type", "--num-experts",
      "--q-lora-rank", "--qk-head-dim", "--qk-pos-emb-head-dim", "--v-head-dim",
      "--rotary-scaling-factor", "--mscale", "--mscale-all-dim",
      // _add_mixed_precision_args, _add_transformer_engine_args, _add_checkpointing_args
      "--bf16", "--ckpt-format", "--fp16", "--fp8-dot-product-attention", "--fp8-format",
      "--fp8-recipe", "--grad-reduce-in-bf16",
      // _add_experimental_args
      "--exp-avg-dtype", "--exp-avg-sq-dtype", "--fine-grained-activation-offloading",
      "--offload-modules", "--use-precision-aware-optimizer",
      // kinds of layers
      "--attention-output-gate", "--experimental-attention-variant", "--hybrid-layer-pattern",
      "--linear-attention-freq", "--linear-conv-kernel-dim", "--linear-key-head-dim",
      "--linear-num-key-heads", "--linear-num-value-heads", "--linear-value-head-dim",
      "--mamba-head-dim", "--mamba-num-groups", "--mamba-num-heads", "--mamba-state-dim",
      "--moe-shared-expert-gate", "--spec"};
  return flags;
}

// Keys as JSON pointers. https://www.deepspeed.ai/docs/config-json/ (docs/_pages/config-json.md at
// commit 00376da49967 of https://github.com/deepspeedai/DeepSpeed) and
// deepspeed/runtime/zero/config.py; data_types: deepspeed/runtime/constants.py; tensor_parallel and
// expert_parallel: runtime/tensor_parallel/config.py and module_inject/auto_ep_presets/base.py of
// https://pypi.org/project/deepspeed/0.19.8/.
inline const std::set<std::string>& deepspeed_keys() {
  static const std::set<std::string> keys = {"/train_batch_size",
                                             "/train_micro_batch_size_per_gpu",
                                             "/gradient_accumulation_steps",
                                             "/communication_data_type",
                                             "/data_types/grad_accum_dtype",
                                             "/bf16/bf16_master_weights_and_grads",
                                             "/bf16/bf16_optimizer_states",
                                             "/bf16/enabled",
                                             "/fp16/enabled",
                                             "/tensor_parallel/autotp_size",
                                             "/expert_parallel/enabled",
                                             "/expert_parallel/autoep_size",
                                             "/expert_parallel/expert_tensor_parallel_size",
                                             "/expert_parallel/preset_model",
                                             "/zero_allow_untested_optimizer",
                                             "/zero_optimization/stage",
                                             "/zero_optimization/overlap_comm",
                                             "/zero_optimization/contiguous_gradients",
                                             "/zero_optimization/reduce_scatter",
                                             "/zero_optimization/reduce_bucket_size",
                                             "/zero_optimization/allgather_bucket_size",
                                             "/zero_optimization/offload_optimizer/device",
                                             "/zero_optimization/offload_optimizer/nvme_path",
                                             "/zero_optimization/offload_optimizer/pin_memory"};
  return keys;
}

// torchtitan/config/configs.py of https://pypi.org/project/torchtitan/0.3.0/. "no-" is how its
// command line (tyro) unsets a switch.
inline const std::set<std::string>& torchtitan_names() {
  static const std::set<std::string> names = {
      "--parallelism.data_parallel_replicate_degree",
      "--parallelism.data_parallel_shard_degree",
      "--parallelism.fsdp_reshard_after_forward",
      "--parallelism.tensor_parallel_degree",
      "--parallelism.no-enable-sequence-parallel",
      "--parallelism.context_parallel_degree",
      "--parallelism.expert_parallel_degree",
      "--parallelism.pipeline_parallel_degree",
      "--parallelism.pipeline_parallel_schedule",
      "--parallelism.pipeline_parallel_first_stage_less_layers",
      "--parallelism.pipeline_parallel_last_stage_less_layers",
      "--parallelism.pipeline_parallel_layers_per_stage",
      "--parallelism.pipeline_parallel_microbatch_size",
      "--training.local_batch_size",
      "--training.global_batch_size",
      "--training.seq_len",
      "--training.mixed_precision_param",
      "--training.mixed_precision_reduce",
      "--optimizer.implementation",
      "--training.dtype",
      "--training.disable_cuda_graphs",
      "--compile.enable",
      "--compile.no-enable",
      "--compile.components",
      "--compile.enable-async-tensor-parallel",
      "--compile.no-enable-async-tensor-parallel"};
  return names;
}

}  // namespace shardwright::planner
