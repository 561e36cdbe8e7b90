#include "estimate/item_table.h"

#include <array>

namespace membill {
namespace {

constexpr std::string_view kCensus = "census of the model's parameters";
constexpr std::string_view kAutograd = "torch 2.15 autograd: tensors that each operator saves (derivatives.yaml)";
constexpr std::string_view kLoss = "transformers 5.24 loss/loss_utils.py ForCausalLMLoss";

constexpr std::string_view kGroup =
    "NVIDIA/nccl 2.30 src/include/device.h, src/transport/p2p.cc: 12 MiB a channel and connection, 64 channels at "
    "most; "
    "likely: ai-dynamo/aiconfigurator systems yaml (nccl_mem); Ascend: CANN's HCCL_BUFFSIZE";

constexpr std::array kRows = {
    ItemRow{"weights.base", "base weights", "weights", kCensus},
    ItemRow{"weights.reference", "reference model", "weights", "trl 1.16 trainer/dpo_trainer.py ref_model"},
    ItemRow{"weights.teacher", "teacher model", "weights",
            "torchtune 0.6.1 recipes/knowledge_distillation_single_device.py _teacher_model"},
    ItemRow{"weights.value", "value model", "weights", "trl 0.24 trainer/ppo_trainer.py value_model"},
    ItemRow{"weights.reward", "reward model", "weights", "trl 0.24 trainer/ppo_trainer.py reward_model"},
    ItemRow{"weights.adapter", "adapter weights", "weights", "peft 0.21 tuners/lora/layer.py"},
    ItemRow{"weights.master", "fp32 master weights", "weights", "Rajbhandari et al. 2020 (ZeRO), section 3.1"},
    ItemRow{"weights.quantization", "scales and tables of quantised weights", "weights",
            "the code that packs the weights: membill formats"},
    ItemRow{"weights.buffers", "model buffers", "weights", "census of the model's buffers"},
    ItemRow{"weights.autocast", "16-bit copies of weights under autocast", "weights",
            "torch 2.15 aten/src/ATen/autocast_mode.cpp cached_cast"},
    ItemRow{"weights.dequantized", "dequantised matrix of one linear", "weights",
            "bitsandbytes 0.50 autograd/_functions.py MatMul4Bit"},
    ItemRow{"gradients", "gradients", "gradients", "torch 2.15 autograd AccumulateGrad"},
    ItemRow{"optimizer.m", "optimizer: first moment", "optimizer",
            "torch 2.15 torch/optim, or the optimizer's own code"},
    ItemRow{"optimizer.v", "optimizer: second moment", "optimizer",
            "torch 2.15 torch/optim, or the optimizer's own code"},
    ItemRow{"optimizer.step", "optimizer: step counters", "optimizer", "torch 2.15 torch/optim (fused)"},
    ItemRow{"optimizer.tables", "optimizer: quantisation tables", "optimizer", "bitsandbytes 0.50 optim/optimizer.py"},
    ItemRow{"optimizer", "optimizer: further states", "optimizer", "the optimizer's own code"},
    ItemRow{"activations.inputs", "token ids and labels", "activations",
            "transformers 5.24 trainer.py get_batch_samples"},
    ItemRow{"activations.embedding", "embedding output, masks, positions", "activations", kAutograd},
    ItemRow{"activations.vision", "vision tower: tensors of the images", "activations", kAutograd},
    ItemRow{"activations.boundaries", "residual stream between layers", "activations", kAutograd},
    ItemRow{"activations.block", "tensors inside the layers", "activations", kAutograd},
    ItemRow{"activations.final", "final norm", "activations", kAutograd},
    ItemRow{"activations.gradients", "gradients of activations on their way down", "activations", kAutograd},
    ItemRow{"loss.logits", "logits", "loss", kLoss},
    ItemRow{"loss.upcast", "fp32 copy of the logits", "loss", kLoss},
    ItemRow{"loss.probabilities", "log-probabilities of the loss", "loss", kLoss},
    ItemRow{"loss.gradient", "gradients of loss and logits", "loss", kLoss},
    ItemRow{"rollout.vllm", "vLLM, awake", "activations", "trl 1.16 generation/vllm_generation.py"},
    ItemRow{"kv_cache", "keys and values of generated tokens", "activations",
            "transformers 5.24 cache_utils.py DynamicLayer"},
    ItemRow{"evaluation.logits", "logits that the evaluation keeps", "loss",
            "transformers 5.24 trainer.py evaluation_loop"},
    ItemRow{"gathered.parameters", "gathered parameters of the units at work", "gathered",
            "torch 2.15 _fully_shard/_fsdp_param_group.py unshard"},
    ItemRow{"gathered.flat", "all-gather buffers", "gathered",
            "torch 2.15 _fully_shard/_fsdp_collectives.py foreach_all_gather"},
    ItemRow{"buffers.reduce_scatter", "reduce-scatter buffer", "buffers",
            "torch 2.15 _fully_shard/_fsdp_collectives.py foreach_reduce"},
    ItemRow{"buffers.reducer", "gradient buckets of DistributedDataParallel", "buffers",
            "torch 2.15 torch/csrc/distributed/c10d/reducer.cpp"},
    ItemRow{"buffers.reduce_bucket", "DeepSpeed's reduce buckets", "buffers",
            "deepspeed 0.19 runtime/zero/stage_1_and_2.py setup_buckets, allreduce_bucket"},
    ItemRow{"buffers.offload", "copies on their way between host and card", "buffers",
            "deepspeed 0.19 runtime/zero/stage_1_and_2.py"},
    ItemRow{"buffers.swap", "buffers between host memory and NVMe", "buffers",
            "deepspeed 0.19 runtime/swap_tensor/utils.py SwapBufferManager, partitioned_param_swapper.py"},
    ItemRow{"buffers.saving", "copies made while a checkpoint is saved", "buffers",
            "transformers 5.24 trainer.py _save_checkpoint"},
    ItemRow{"buffers.gradients", "stand-ins for weight gradients", "buffers",
            "megatron-core 0.16 tensor_parallel/layers.py get_dummy_wgrad"},
    ItemRow{"buffers.tensor_parallel", "global memory buffer of the tensor-parallel layers", "buffers",
            "megatron-core 0.16 utils.py GlobalMemoryBuffer"},
    ItemRow{"buffers.routing", "what the experts' dispatchers remember", "buffers",
            "megatron-core 0.16 transformer/moe/token_dispatcher.py"},
    ItemRow{"buffers.pipeline", "tensors from the neighbouring pipeline stages", "buffers",
            "megatron-core 0.16 pipeline_parallel/p2p_communication.py"},
    ItemRow{"step.temporaries", "temporaries of clipping and the optimizer's step", "step", "torch 2.15 torch/optim"},
    ItemRow{"runtime.workspace", "cuBLAS workspace", "workspace", "torch 2.15 aten/src/ATen/cuda/CublasHandlePool.cpp"},
    ItemRow{"runtime.context", "CUDA context and loaded kernels", "runtime",
            "measured on A100, RTX 6000 Ada and RTX 3090 with lazy loading: ml-engineering training/performance; "
            "unsloth-zoo#1053; InvokeAI#9413"},
    ItemRow{"runtime.communicator", "communicator of all ranks", "runtime",
            "ai-dynamo/aiconfigurator systems yaml (nccl_mem); ml-engineering training/performance "
            "torch-dist-mem-usage; Ascend: CANN's HCCL_BUFFSIZE"},
    ItemRow{"runtime.communicator.tensor", "communicator of the tensor-parallel ranks", "runtime", kGroup},
    ItemRow{"runtime.communicator.pipeline", "communicator of the pipeline's stages", "runtime", kGroup},
    ItemRow{"runtime.communicator.embedding", "communicator of the stages that share the embedding", "runtime", kGroup},
    ItemRow{"runtime.communicator.sequence", "communicator of the ranks that share a sequence", "runtime", kGroup},
    ItemRow{"runtime.communicator.context", "communicator of the context-parallel ranks", "runtime", kGroup},
    ItemRow{"runtime.communicator.data", "communicator of the data-parallel ranks", "runtime", kGroup},
    ItemRow{"runtime.communicator.model", "communicator for the norm of the gradients", "runtime", kGroup},
    ItemRow{"runtime.communicator.expert", "communicator of the expert-parallel ranks", "runtime", kGroup},
    ItemRow{"runtime.communicator.expert_tensor", "communicator of the experts' tensor-parallel ranks", "runtime",
            kGroup},
    ItemRow{"runtime.communicator.expert_data", "communicator of the experts' data-parallel ranks", "runtime", kGroup},
    ItemRow{"runtime.communicator.expert_model", "communicator of the experts' tensor- and expert-parallel ranks",
            "runtime", kGroup},
    ItemRow{"runtime.communicator.expert_norm", "communicator for the norm of the experts' gradients", "runtime",
            kGroup},
    ItemRow{"runtime.communicator.router", "communicator of the router's auxiliary loss", "runtime", kGroup},
    ItemRow{"runtime.communicator.replica", "communicator of the replicas of a shard", "runtime", kGroup},
    ItemRow{"runtime.communicator.shard", "communicator of the ranks of a shard group", "runtime", kGroup},
    ItemRow{"other", "other", "other", "trace"},
};

}  // namespace

std::span<const ItemRow> item_table() { return kRows; }

const ItemRow& item_row(std::string_view id) {
  for (const ItemRow& row : kRows)
    if (row.id == id) return row;
  const std::string_view first = id.substr(0, id.find('.'));
  for (const ItemRow& row : kRows)
    if (row.id == first) return row;
  return kRows.back();
}

}  // namespace membill
