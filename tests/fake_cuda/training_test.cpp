// Training on fake GPUs: the programs of real plans give the losses of CPUs whatever order the
// streams take.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "core/lowering/lowering.hpp"
#include "executor/comm/nccl_communicator.hpp"
#include "executor/comm/tcp_store.hpp"
#include "executor/kernels/cuda/cuda_device.hpp"
#include "executor/kernels/kernels.hpp"
#include "executor/runtime/op_queues.hpp"
#include "tests/executor/runtime/training_fixture.hpp"
#include "tests/fake_cuda/fake_gpus.hpp"
#include "tests/sanitized.hpp"

namespace shardwright::executor {
namespace {

// The CPU's kernels in the streams of a fake GPU.
class StreamKernels final : public Kernels {
 public:
  Element element() const override { return cpu_->element(); }
  Element state_element() const override { return cpu_->state_element(); }
  std::shared_ptr<void> allocate(std::size_t bytes) override { return gpu_memory(bytes); }
  std::size_t memory_used() const override { return 0; }
  void upload(void* to, const void* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void prepare_rope(const RopeShape& shape) override { cpu_->prepare_rope(shape); }
  void linear(const LinearShape& shape, const void* x, const void* weight, const void* bias,
              void* y, Queue queue) override {
    put(queue, [=, this] { cpu_->linear(shape, x, weight, bias, y, nullptr); });
  }
  void linear_input_gradient(const LinearShape& shape, const void* dy, const void* weight, void* dx,
                             Queue queue) override {
    put(queue, [=, this] { cpu_->linear_input_gradient(shape, dy, weight, dx, nullptr); });
  }
  void linear_weight_gradient(const LinearShape& shape, const void* dy, const void* x,
                              void* dweight, void* dbias, Queue queue) override {
    put(queue, [=, this] { cpu_->linear_weight_gradient(shape, dy, x, dweight, dbias, nullptr); });
  }
  void norm(const NormShape& shape, const void* x, const void* weight, const void* bias, void* y,
            Queue queue) override {
    put(queue, [=, this] { cpu_->norm(shape, x, weight, bias, y, nullptr); });
  }
  void norm_backward(const NormShape& shape, const void* dy, const void* residual, const void* x,
                     const void* weight, void* dx, void* dweight, void* dbias,
                     Queue queue) override {
    put(queue, [=, this] {
      cpu_->norm_backward(shape, dy, residual, x, weight, dx, dweight, dbias, nullptr);
    });
  }
  void rope(const RopeShape& shape, bool inverse, void* data, Queue queue) override {
    put(queue, [=, this] { cpu_->rope(shape, inverse, data, nullptr); });
  }
  void activation(const ActivationShape& shape, const void* up, void* out, Queue queue) override {
    put(queue, [=, this] { cpu_->activation(shape, up, out, nullptr); });
  }
  void activation_backward(const ActivationShape& shape, const void* up, const void* dout,
                           void* dup, Queue queue) override {
    put(queue, [=, this] { cpu_->activation_backward(shape, up, dout, dup, nullptr); });
  }
  void add(std::int64_t elements, const void* a, const void* b, void* sum, Queue queue) override {
    put(queue, [=, this] { cpu_->add(elements, a, b, sum, nullptr); });
  }
  void attention(const AttentionWork& work, const void* qkv, void* out, void* statistics,
                 Queue queue) override {
    put(queue, [=, this] { cpu_->attention(work, qkv, out, statistics, nullptr); });
  }
  void attention_backward(const AttentionWork& work, const void* qkv, const void* out,
                          const void* statistics, const void* dout, void* dqkv,
                          Queue queue) override {
    put(queue,
        [=, this] { cpu_->attention_backward(work, qkv, out, statistics, dout, dqkv, nullptr); });
  }
  void embedding(const EmbeddingShape& shape, std::span<const std::int32_t> tokens,
                 const void* table, const void* positions, void* out, Queue queue) override {
    put(queue, [=, this] { cpu_->embedding(shape, tokens, table, positions, out, nullptr); });
  }
  void embedding_backward(const EmbeddingShape& shape, std::span<const std::int32_t> tokens,
                          const void* gradient, void* dtable, void* dpositions,
                          Queue queue) override {
    put(queue, [=, this] {
      cpu_->embedding_backward(shape, tokens, gradient, dtable, dpositions, nullptr);
    });
  }
  void loss_statistics(const LossShape& shape, std::span<const std::int32_t> targets,
                       const void* logits, void* statistics, Queue queue) override {
    put(queue, [=, this] { cpu_->loss_statistics(shape, targets, logits, statistics, nullptr); });
  }
  void loss_rescale(std::int64_t rows, const void* own_maxima, void* statistics,
                    Queue queue) override {
    put(queue, [=, this] { cpu_->loss_rescale(rows, own_maxima, statistics, nullptr); });
  }
  void loss_probabilities(const LossShape& shape, const void* logits, const void* statistics,
                          void* probabilities, double* loss, Queue queue) override {
    put(queue, [=, this] {
      cpu_->loss_probabilities(shape, logits, statistics, probabilities, loss, nullptr);
    });
  }
  void loss_backward(const LossShape& shape, std::span<const std::int32_t> targets, float scale,
                     const void* probabilities, void* dlogits, Queue queue) override {
    put(queue,
        [=, this] { cpu_->loss_backward(shape, targets, scale, probabilities, dlogits, nullptr); });
  }
  void accumulate(std::int64_t elements, const void* from, void* into, Queue queue) override {
    put(queue, [=, this] { cpu_->accumulate(elements, from, into, nullptr); });
  }
  void add_squares(std::int64_t elements, const void* gradient, double* sum, Queue queue) override {
    put(queue, [=, this] { cpu_->add_squares(elements, gradient, sum, nullptr); });
  }
  void count_not_finite(std::int64_t elements, Element format, const void* data, double* count,
                        Queue queue) override {
    put(queue, [=, this] { cpu_->count_not_finite(elements, format, data, count, nullptr); });
  }
  void adamw(std::int64_t elements, const AdamStep& step, const AdamArrays& arrays,
             const double* gradient_squares, Queue queue) override {
    put(queue, [=, this] { cpu_->adamw(elements, step, arrays, gradient_squares, nullptr); });
  }
  void zero(void* data, std::size_t bytes, Queue queue) override {
    put(queue, [=] { std::memset(data, 0, bytes); });
  }
  void copy(void* to, const void* from, std::size_t bytes, Queue queue) override {
    put(queue, [=] { std::memcpy(to, from, bytes); });
  }

 private:
  template <class Work>
  static void put(Queue queue, const Work& work) {
    if (queue == nullptr) return work();
    check_cuda(fake::launch(stream_of(queue), work), "launch");
  }

  std::unique_ptr<Kernels> cpu_ = make_cpu_kernels();
};

// Sanitizers make a step ten times as slow.
constexpr std::int64_t kSteps = kSanitized ? 1 : 3;
constexpr std::uint64_t kSeeds = kSanitized ? 1 : 2;

// The losses and gradient norms of the steps on rank 0.
std::vector<double> train_on_gpus(const ModelSpec& model, const Plan& plan, fake::Order order,
                                  std::uint64_t seed) {
  TrainingOptions options = kTwentySteps;
  options.steps = kSteps;
  const Program program = lower(model, plan, load_stack("shardwright"));
  fake::Gpus gpus(static_cast<int>(plan.world_size()), order, seed);
  LocalStore store;
  std::vector<double> figures;
  const auto run = [&](int rank) {
    use_gpu(rank);
    constexpr std::chrono::seconds kTimeout{60};
    StreamKernels kernels;
    const OpenCommunicator open = [&](const std::string& key, int member, int size) {
      return connect_nccl(store, key, member, size, kTimeout);
    };
    const MakeQueues queues = [&](std::size_t count, QueueHooks hooks) {
      return make_cuda_queues(count, std::move(hooks), kTimeout,
                              [](const std::string& why) { ADD_FAILURE() << why; });
    };
    RankTrainer trainer(model, program, rank, kernels, open, options, queues);
    trainer.set_initial_parameters();
    const BatchLoader loader(corpus(), plan, model.vocab, options.seed);
    for (std::int64_t step = 0; step < options.steps; ++step) {
      const auto sample = static_cast<std::uint64_t>(step * plan.global_batch);
      const StepReport report =
          trainer.step(step, loader.load(sample, trainer.place()[Axis::Data], 0));
      if (rank == 0) figures.insert(figures.end(), {report.loss, report.gradient_norm});
    }
  };
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < gpus.count(); ++rank) ranks.emplace_back(run, rank);
  for (std::thread& rank : ranks) rank.join();
  EXPECT_THAT(gpus.complaints(), testing::IsEmpty());
  return figures;
}

class TrainingOnFakeGpus : public testing::TestWithParam<PlanCase> {};

TEST_P(TrainingOnFakeGpus, DoesNotDependOnTheOrderOfStreams) {
  const ModelSpec model = GetParam().model();
  Plan plan = one_rank_plan();
  GetParam().change(plan);
  TrainingOptions options = kTwentySteps;
  options.steps = kSteps;
  const std::vector<double> expected = train_on_gpus(model, plan, fake::Order::Threads, 0);
  const std::vector<double> on_cpus = train(model, plan, options);
  for (std::size_t step = 0; step < on_cpus.size(); ++step)
    EXPECT_NEAR(expected.at(2 * step) / on_cpus[step], 1.0, 1e-5);
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed)
    EXPECT_EQ(train_on_gpus(model, plan, fake::Order::Seeded, seed), expected) << "seed " << seed;
}

std::vector<PlanCase> plans_of_gpus() {
  std::vector<PlanCase> cases = plan_cases();
  std::erase_if(cases, [](const PlanCase& with) { return !runs_on_gpus(with); });
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Plans, TrainingOnFakeGpus, testing::ValuesIn(plans_of_gpus()),
                         [](const auto& plan) { return plan.param.name; });

}  // namespace
}  // namespace shardwright::executor
