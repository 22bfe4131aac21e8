#include "executor/runtime/rank_trainer.hpp"

#include <chrono>
#include <cmath>

#include "core/program/groups.hpp"
#include "core/program/rank_grid.hpp"
#include "executor/runtime/initial_values.hpp"

namespace shardwright::executor {
namespace {

// The squared norm before the reduction is one more pass over the gradients.
constexpr std::int64_t kStepsBetweenNoise = 4;

// The ranks over which a plan splits optimizer states are numbered as in their communicator.
ShardPlace shard_place(const Plan& plan, std::int64_t rank) {
  if (plan.zero_stage == 0) return {};
  const GroupTable table = RankGrid(plan).table(Group::ShardInner);
  const auto members = table.members_of(table.group_of[static_cast<std::size_t>(rank)]);
  ShardPlace place{members.size(), 0};
  while (members[place.index] != rank) ++place.index;
  return place;
}

ParameterLayout layout_of(const Program& program, const ModelSpec& model, std::int64_t rank) {
  const RankCoordinates place = RankGrid(program.plan).dense_coordinates(rank);
  return lay_out_parameters(program, model, place[Axis::Pipeline], place[Axis::Tensor],
                            static_cast<std::int64_t>(shard_place(program.plan, rank).count));
}

}  // namespace

RankTrainer::RankTrainer(const ModelSpec& model, const Program& program, std::int64_t rank,
                         Kernels& kernels, const OpenCommunicator& open,
                         const TrainingOptions& options)
    : model_(model),
      program_(program),
      options_(options),
      rank_(rank),
      place_(RankGrid(program.plan).dense_coordinates(rank)),
      communicators_(program, rank, open),
      parameters_(layout_of(program, model, rank), kernels, shard_place(program.plan, rank)),
      ops_(model, program, rank, kernels, communicators_, parameters_),
      runner_(program, place_[Axis::Pipeline], kernels, ops_, [this] { communicators_.abort(); }) {
  initialise();
}

void RankTrainer::initialise() {
  const std::vector<ParameterUnit>& units = parameters_.layout().units;
  for (std::size_t u = 0; u < units.size(); ++u) {
    for (const ParameterSlice& slice : units[u].slices) {
      fill_initial(model_, options_.seed, slice,
                   {static_cast<float*>(parameters_.weights(u, slice.offset)), slice.elements()});
    }
  }
}

StepReport RankTrainer::step(std::int64_t step, const Batch& batch, StepRecorder* recorder) {
  StepState state;
  state.batch = &batch;
  state.adam = adam_step(options_, step);
  state.clip_norm = options_.clip_norm;
  state.measures_noise = program_.plan.dp > 1 && step % kStepsBetweenNoise == 0;
  const auto start = std::chrono::steady_clock::now();
  runner_.run(state, recorder);
  const auto end = std::chrono::steady_clock::now();
  const double tokens =
      static_cast<double>(program_.plan.global_batch) * static_cast<double>(program_.plan.seq_len);
  StepReport report;
  report.step = step;
  // Each tensor-parallel rank of the last stage has the whole loss of its replica.
  report.loss = sum_over_world(place_[Axis::Tensor] == 0 ? state.loss : 0.0) / tokens;
  report.gradient_norm = std::sqrt(state.gradient_squares);
  report.learning_rate = learning_rate(options_, step);
  report.seconds = std::chrono::duration<double>(end - start).count();
  report.phases = runner_.phase_times();
  // A rank's gradient is its addend of the mean over the whole batch; over its own part it is dp
  // times that.
  if (state.measures_noise) {
    report.small_batch_squares =
        sum_over_world(state.own_squares) * static_cast<double>(program_.plan.dp);
  }
  return report;
}

double RankTrainer::sum_over_world(double own) {
  Communicator* world = communicators_.world();
  if (world != nullptr) world->all_reduce(&own, 1, Element::Float64, Reduction::Sum, nullptr);
  return own;
}

void RankTrainer::gather_parameters() {
  StepState state;
  runner_.gather_parameters(state);
}

}  // namespace shardwright::executor
