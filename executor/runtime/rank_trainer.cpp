#include "executor/runtime/rank_trainer.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/program/groups.hpp"
#include "core/program/rank_grid.hpp"
#include "executor/data/hash.hpp"
#include "executor/runtime/rank_layout.hpp"

namespace shardwright::executor {
namespace {

// The squared norm before the reduction takes another pass over the gradients.
constexpr std::int64_t kStepsBetweenNoise = 4;

// The place of a rank in its group of a kind, and the size of that group.
struct Membership {
  std::size_t index = 0, size = 1;
};
Membership membership(const Plan& plan, Group group, std::int64_t rank) {
  const GroupTable table = RankGrid(plan).table(group);
  const auto members = table.members_of(table.group_of[static_cast<std::size_t>(rank)]);
  const auto own = std::find(members.begin(), members.end(), rank) - members.begin();
  return {static_cast<std::size_t>(own), members.size()};
}

// ZeRO numbers the shards like the members of their communicator.
ShardPlaces shard_places(const ModelSpec& model, const Plan& plan, std::int64_t rank) {
  const auto place = [&](Group all, Group inner, Group outer) -> ShardPlace {
    if (plan.zero_stage == 0) return {1, 0, membership(plan, all, rank).index};
    const Membership shard = membership(plan, inner, rank);
    return {shard.size, shard.index, membership(plan, outer, rank).index};
  };
  return {place(Group::Data, Group::ShardInner, Group::ShardOuter),
          place(Group::ExpertData, Group::ExpertShardInner, Group::ExpertShardOuter),
          shards_parameters(model, plan)};
}

}  // namespace

ParameterLayout rank_layout(const Program& program, const ModelSpec& model, std::int64_t rank) {
  const RankCoordinates place = RankGrid(program.plan).dense_coordinates(rank);
  const ShardPlaces shards = shard_places(model, program.plan, rank);
  const auto index = [&](Group group) {
    return static_cast<std::int64_t>(membership(program.plan, group, rank).index);
  };
  const ReplicaAgreement& agreed = program.plan.replicas;
  const std::size_t parts = agreed.has_servers() ? static_cast<std::size_t>(agreed.servers) : 1;
  return lay_out_parameters(
      program, model,
      {place[Axis::Pipeline], place[Axis::Tensor], index(Group::Expert), index(Group::ExpertTensor),
       std::max(parts, shards.dense.count), std::max(parts, shards.experts.count)});
}

namespace {

// The size of a batch on the replica that runs the most microbatches.
std::size_t batch_bytes(const Plan& plan) {
  return static_cast<std::size_t>(plan.microbatches() * plan.micro_batch * plan.seq_len / plan.cp) *
         sizeof(std::int32_t);
}

double batch_tokens(const Plan& plan) {
  return static_cast<double>(plan.global_batch) * static_cast<double>(plan.seq_len);
}

// The places of what ranks add up after a step; the time of each rank follows.
enum ReportSum : std::size_t { kLoss, kSave, kStop, kReplan, kRankTimes };

constexpr double kDeviation = 0.02;

// Box-Muller: two uniform numbers per normal one.
float normal(std::uint64_t key, std::uint64_t index, double deviation) {
  const double radius = std::sqrt(-2.0 * std::log(random_unit(key, 2 * index)));
  const double angle = 2.0 * M_PI * random_unit(key, 2 * index + 1);
  return static_cast<float>(deviation * radius * std::cos(angle));
}

double deviation_of(const ModelSpec& model, const std::string& name) {
  const bool ends_branch =
      name.ends_with("attention.o_proj.weight") || name.ends_with(".down_proj.weight");
  return ends_branch ? kDeviation / std::sqrt(2.0 * static_cast<double>(model.layers)) : kDeviation;
}

// The values depend only on seed, name and index in the whole parameter, so that they are the same
// under every plan. Sets biases and padding to 0 and norms to 1. Matrices are normal with a
// deviation of 0.02, or of 0.02 / sqrt(2 layers) at the end of residual branches (GPT-2: Radford et
// al. 2019, section 2.3).
void fill_initial(const ModelSpec& model, std::uint64_t seed, const ParameterSlice& slice,
                  std::span<float> values) {
  if (!slice.is_matrix()) {
    const bool one = slice.is_norm() && slice.name.ends_with(".weight");
    std::fill(values.begin(), values.end(), one ? 1.0F : 0.0F);
    return;
  }
  std::fill(values.begin(), values.end(), 0.0F);
  const std::uint64_t key = key_of(seed, slice.name);
  const double deviation = deviation_of(model, slice.name);
  const auto fill_rows = [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t r = first; r < end; ++r) {
      for (std::int64_t c = 0; c < slice.columns; ++c) {
        const std::int64_t index =
            (slice.first_row + r) * slice.whole_columns() + slice.first_column + c;
        values[static_cast<std::size_t>(r * slice.columns + c)] =
            normal(key, static_cast<std::uint64_t>(index), deviation);
      }
    }
  };
  // A rank on a CPU has one core, for which it is no worse.
  constexpr std::int64_t kMostThreads = 8, kLeastElements = 1 << 20;
  const std::int64_t parts =
      std::clamp(slice.rows * slice.columns / kLeastElements, std::int64_t{1}, kMostThreads);
  std::vector<std::jthread> threads;
  for (std::int64_t i = 1; i < parts; ++i)
    threads.emplace_back(fill_rows, slice.rows * i / parts, slice.rows * (i + 1) / parts);
  fill_rows(0, slice.rows / parts);
}

// Returns the rate after linear warm-up and half a cosine down to the least rate (arXiv
// 1608.03983).
double learning_rate_at(const TrainingOptions& options, std::int64_t step) {
  const auto number = static_cast<double>(step + 1);
  const auto warmup = static_cast<double>(options.warmup_steps);
  if (step < options.warmup_steps) return options.learning_rate * number / warmup;
  const double rest = std::max(1.0, static_cast<double>(options.steps) - warmup);
  const double share = std::min(1.0, (number - warmup) / rest);
  const double fall = 0.5 * (1.0 + std::cos(M_PI * share));
  const double least = options.learning_rate * options.least_rate_ratio;
  return least + (options.learning_rate - least) * fall;
}

AdamStep adam_step(const TrainingOptions& options, std::int64_t step) {
  return {.learning_rate = static_cast<float>(learning_rate_at(options, step)),
          .beta1 = static_cast<float>(options.beta1),
          .beta2 = static_cast<float>(options.beta2),
          .epsilon = static_cast<float>(options.epsilon),
          .weight_decay = static_cast<float>(options.weight_decay),
          .clip_norm = static_cast<float>(options.clip_norm),
          .step = step + 1};
}

}  // namespace

// Before the reduction, a rank's gradient over its part of the batch is complete, except for a tied
// embedding on two stages, each of which has one addend, where the rank has a part of each
// sequence, where each microbatch is reduced alone, of experts, to which other ranks send tokens,
// where two stages hold the same parts (DualPipe), and where replicas exchange something else.
bool knows_own_gradients(const ModelSpec& model, const Program& program) {
  const Plan& plan = program.plan;
  if (plan.dp == 1 || plan.cp > 1 || plan.zero_stage >= 2 || model.moe) return false;
  if (plan.schedule == ScheduleKind::DualPipe) return false;
  if (plan.replicas != ReplicaAgreement() || !plan.replica_pools.empty()) return false;
  const auto ties = [](const Op& op) { return op.payload == Payload::TiedGradient; };
  return std::none_of(program.blocks.begin(), program.blocks.end(), [&](const Block& block) {
    return std::any_of(block.ops.begin(), block.ops.end(), ties);
  });
}

RankTrainer::RankTrainer(const ModelSpec& model, const Program& program, std::int64_t rank,
                         Kernels& kernels, const OpenCommunicator& open,
                         const TrainingOptions& options, const MakeQueues& make_queues)
    : model_(model),
      program_(program),
      kernels_(kernels),
      options_(options),
      rank_(rank),
      place_(RankGrid(program.plan).dense_coordinates(rank)),
      knows_own_gradients_(knows_own_gradients(model, program)),
      communicators_(program, rank, open),
      parameters_(rank_layout(program, model, rank), kernels,
                  shard_places(model, program.plan, rank)),
      servers_(program, place_[Axis::Data], open, parameters_),
      shares_states_(program.plan.replicas.has_servers()),
      sums_(kernels.allocate(sizeof(Sums))),
      report_sums_(
          kernels.allocate((kRankTimes + static_cast<std::size_t>(world())) * sizeof(double))),
      tokens_(kernels.allocate(batch_bytes(program.plan))),
      targets_(kernels.allocate(batch_bytes(program.plan))),
      ops_(model, program, rank, kernels, communicators_, parameters_, servers_),
      runner_(program, RankGrid(program.plan).locate(rank).stage, kernels, ops_, make_queues,
              {[this] {
                 communicators_.for_each(&Communicator::abort);
                 servers_.abort();
               },
               [this] { communicators_.for_each(&Communicator::check); }}) {
  prepare();
}

// Connections and workspaces are made now, before collectives run.
void RankTrainer::prepare() {
  runner_.prepare();
  if (communicators_.world() == nullptr) return;
  double* number = &static_cast<Sums*>(sums_.get())->over_world;
  const double one = 1.0;
  kernels_.upload(number, &one, sizeof one);
  runner_.run_alone("the first exchanges",
                    [&](Queue queue) { communicators_.warm_up(number, queue); });
}

void RankTrainer::set_initial_parameters() {
  parameters_.layout().for_each_slice([&](std::size_t unit, const ParameterSlice& slice) {
    std::vector<float> values(slice.elements());
    fill_initial(model_, options_.seed, slice, values);
    parameters_.set_weights(unit, slice.offset, values);
  });
}

StepState RankTrainer::state_of(std::int64_t step, const Batch& batch) {
  const std::size_t bytes = batch.tokens.size() * sizeof(std::int32_t);
  SHARDWRIGHT_CHECK(bytes <= batch_bytes(program_.plan), "a batch of another plan");
  kernels_.upload(tokens_.get(), batch.tokens.data(), bytes);
  kernels_.upload(targets_.get(), batch.targets.data(), bytes);
  const Sums none;
  kernels_.upload(sums_.get(), &none, sizeof(none));
  StepState state;
  state.tokens = static_cast<const std::int32_t*>(tokens_.get());
  state.targets = static_cast<const std::int32_t*>(targets_.get());
  state.adam = adam_step(options_, step);
  state.balance_loss = options_.balance_loss;
  auto* sums = static_cast<Sums*>(sums_.get());
  state.loss = &sums->loss;
  state.gradient_squares = &sums->gradient_squares;
  if (knows_own_gradients_ && step % kStepsBetweenNoise == 0)
    state.own_squares = &sums->own_squares;
  return state;
}

double RankTrainer::addend(double own_loss) const {
  // Each tensor-parallel rank of the last stage has the whole loss of its replica.
  return place_[Axis::Tensor] == 0 ? own_loss : 0.0;
}

double RankTrainer::mean_loss(double sum) const {
  return sum / batch_tokens(program_.plan);
}

void RankTrainer::share_report(double own_loss, StepReport& report) {
  const RankRequests own = requests_ ? requests_() : RankRequests();
  std::vector<double> sums(kRankTimes + static_cast<std::size_t>(world()));
  sums[kLoss] = addend(own_loss);
  sums[kSave] = own.save ? 1.0 : 0.0;
  sums[kStop] = own.stop ? 1.0 : 0.0;
  sums[kReplan] = own.replan ? 1.0 : 0.0;
  sums[kRankTimes + static_cast<std::size_t>(rank_)] =
      report.phases.forward_s + report.phases.backward_s;
  if (communicators_.world() != nullptr)
    replace_by_sums(sums, static_cast<double*>(report_sums_.get()));
  report.loss = mean_loss(sums[kLoss]);
  report.requested = {sums[kSave] > 0.0, sums[kStop] > 0.0, sums[kReplan] > 0.0};
  report.rank_compute_s.assign(sums.begin() + kRankTimes, sums.end());
}

double RankTrainer::validation_loss(const Batch& batch) {
  StepState state = state_of(0, batch);
  state.own_squares = nullptr;
  state.balance_loss = 0.0;
  state.validates = true;
  runner_.run(state, nullptr);
  Sums sums;
  kernels_.download(&sums, sums_.get(), sizeof(sums));
  return mean_loss(sum_over_world(addend(sums.loss)));
}

void RankTrainer::collect_states() {
  if (!program_.plan.replicas.has_servers()) return;
  // All replicas have made their last update before, and none begins another.
  sum_over_world(0.0);
  if (place_[Axis::Data] == 0) servers_.collect_states();
  sum_over_world(0.0);
}

StepReport RankTrainer::step(std::int64_t step, const Batch& batch, StepRecorder* recorder) {
  // The servers begin with what all ranks have, initial or of a checkpoint.
  if (std::exchange(shares_states_, false)) {
    if (place_[Axis::Data] == 0) servers_.share_states();
    sum_over_world(0.0);
  }
  StepState state = state_of(step, batch);
  const auto start = std::chrono::steady_clock::now();
  runner_.run(state, recorder);
  const auto end = std::chrono::steady_clock::now();
  Sums sums;
  kernels_.download(&sums, sums_.get(), sizeof(sums));
  StepReport report;
  report.step = step;
  const bool stale = program_.plan.replicas.stale();
  const auto replicas = static_cast<double>(program_.plan.dp);
  report.phases = runner_.phase_times();
  if (stale) {
    report.loss = mean_loss(sums.loss * replicas);
    report.update = servers_.counts();
  } else {
    share_report(sums.loss, report);
  }
  report.gradient_norm = std::sqrt(sums.gradient_squares);
  report.learning_rate = learning_rate_at(options_, step);
  report.seconds = std::chrono::duration<double>(end - start).count();
  // A rank's gradient is its addend of the mean over the whole batch, which is 1 / dp of the mean
  // over its own part.
  if (state.own_squares != nullptr) {
    report.small_batch_squares =
        sum_over_world(sums.own_squares) * static_cast<double>(program_.plan.dp);
  }
  return report;
}

std::optional<NotFiniteOp> RankTrainer::find_not_finite(std::int64_t step, const Batch& batch) {
  StepState state = state_of(step, batch);
  std::vector<NotFiniteCounts> counts(runner_.ops());
  const std::size_t bytes = counts.size() * sizeof(NotFiniteCounts);
  const auto on_device = kernels_.allocate(bytes);
  kernels_.upload(on_device.get(), counts.data(), bytes);
  state.not_finite = static_cast<NotFiniteCounts*>(on_device.get());
  runner_.run(state, nullptr);
  kernels_.download(counts.data(), on_device.get(), bytes);
  return runner_.first_not_finite(counts);
}

double RankTrainer::sum_over_world(double own) {
  if (communicators_.world() != nullptr)
    replace_by_sums({&own, 1}, &static_cast<Sums*>(sums_.get())->over_world);
  return own;
}

void RankTrainer::replace_by_sums(std::span<double> own, double* on_device) {
  kernels_.upload(on_device, own.data(), own.size_bytes());
  runner_.run_alone("sums over all ranks", [&](Queue queue) {
    communicators_.world()->all_reduce(on_device, own.size(), Element::Float64, Reduction::Sum,
                                       queue);
  });
  kernels_.download(own.data(), on_device, own.size_bytes());
}

}  // namespace shardwright::executor
