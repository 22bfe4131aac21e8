// Small models, and their runs with each rank as a thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/spec/model_spec.hpp"
#include "core/spec/plan.hpp"
#include "core/spec/profile_library.hpp"
#include "core/spec/stack_spec.hpp"
#include "executor/data/batch_loader.hpp"
#include "executor/data/token_file.hpp"
#include "executor/runtime/rank_trainer.hpp"

namespace shardwright::executor {

// Llama: RMSNorm, rotary positions, SwiGLU, grouped queries.
ModelSpec small_llama();
// GPT-2: LayerNorm with biases, learned positions, GELU, tied embeddings.
ModelSpec small_gpt2();
// Qwen3: the Llama with wider heads and norms of each head of queries and keys.
ModelSpec small_qwen3();
// Qwen2: the Llama with biases of queries, keys and values, and one head of keys and values.
ModelSpec small_qwen2();
// Mixtral: the Llama with two of four experts for each token, and two layers.
ModelSpec small_mixtral();
// Qwen2-MoE: the same with gated shared experts and shares that are not renormalised.
ModelSpec small_qwen2_moe();
// DeepSeek-V2-Lite: latent attention with queries that are projected at once, and experts with
// shared ones behind a dense layer.
ModelSpec small_deepseek_v2();
// DeepSeek-V3 without its experts: latent attention with a bottleneck of the queries, and biases.
ModelSpec small_deepseek_v3();

// One rank, fp32, no ZeRO.
Plan one_rank_plan();

// The same with two replicas.
Plan two_replicas();

// Returns a generated text.
const TokenFile& corpus();

// Hands all calls on to another communicator.
class ForwardingCommunicator : public Communicator {
 public:
  explicit ForwardingCommunicator(std::unique_ptr<Communicator> with) : with_(std::move(with)) {}

  int rank() const override { return with_->rank(); }
  int size() const override { return with_->size(); }
  void all_reduce(void* data, std::size_t elements, Element element, Reduction reduction,
                  Queue queue) override {
    with_->all_reduce(data, elements, element, reduction, queue);
  }
  void all_gather(const void* in, void* out, std::size_t elements_each, Element element,
                  Queue queue) override {
    with_->all_gather(in, out, elements_each, element, queue);
  }
  void reduce_scatter(const void* in, void* out, std::size_t elements_each, Element element,
                      Queue queue) override {
    with_->reduce_scatter(in, out, elements_each, element, queue);
  }
  void all_to_all(const void* in, std::span<const std::size_t> sent, void* out,
                  std::span<const std::size_t> received, Queue queue) override {
    with_->all_to_all(in, sent, out, received, queue);
  }
  void broadcast(void* data, std::size_t bytes, int root, Queue queue) override {
    with_->broadcast(data, bytes, root, queue);
  }
  void send(const void* data, std::size_t bytes, int peer, int channel, Queue queue) override {
    with_->send(data, bytes, peer, channel, queue);
  }
  void receive(void* data, std::size_t bytes, int peer, int channel, Queue queue) override {
    with_->receive(data, bytes, peer, channel, queue);
  }
  void abort() override { with_->abort(); }

 private:
  std::unique_ptr<Communicator> with_;
};

// Returns a communicator that stands for the given one.
using WrapCommunicator =
    std::function<std::unique_ptr<Communicator>(std::unique_ptr<Communicator>)>;

// Calls `work` concurrently on each rank of a plan, with the rank's trainer and that text.
void on_ranks(const ModelSpec& model, const Plan& plan, const TrainingOptions& options,
              const std::function<void(RankTrainer&, const BatchLoader&)>& work,
              const StackSpec& stack = load_stack("shardwright"),
              const WrapCommunicator& wrap = nullptr);

// Runs the steps `first` to `last` - 1 and returns their losses.
std::vector<double> run_steps(RankTrainer& trainer, const BatchLoader& loader, std::int64_t first,
                              std::int64_t last);

// Returns the losses of a run.
std::vector<double> train(const ModelSpec& model, const Plan& plan, const TrainingOptions& options,
                          const StackSpec& stack = load_stack("shardwright"));

// Returns the loss of the first step from the weights of a file or folder (WeightFiles).
double first_loss(const ModelSpec& model, const Plan& plan, const std::filesystem::path& from);

// Plans whose loss curves are compared with that of one rank: changes to `one_rank_plan`.
struct PlanCase {
  std::string name;
  ModelSpec (*model)() = nullptr;
  std::function<void(Plan&)> change;
};

void PrintTo(const PlanCase& plan, std::ostream* out);

const std::vector<PlanCase>& plan_cases();

// False if GPUs have no kernels for the model or the plan.
bool runs_on_gpus(const PlanCase& with);

inline constexpr TrainingOptions kTwentySteps{
    .steps = 20, .learning_rate = 3e-3, .warmup_steps = 5};

}  // namespace shardwright::executor
