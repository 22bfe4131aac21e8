#include "sim/step/rank_watch.hpp"

#include <algorithm>

namespace shardwright::sim {

RankWatch::RankWatch(const Program& program, const FlatProgram& flat, const LaneProgram& lanes)
    : program_(program), flat_(flat), ops_(lanes.ops), arrivals_(lanes.ops), starts_(lanes.ops) {
  last_.fill(kNoOp);
}

void RankWatch::arrive(const LaneOp& op, const OpStart& arrival) {
  const FlatOp& flat = flat_.ops[op.block][op.place];
  ops_[op.number].describe(flat, arrival.cause);
  arrivals_[op.number] = arrival.ready;
  const auto stream = static_cast<std::size_t>(flat.stream);
  delayed_[stream] = arrival.cause != kNoOp && arrival.cause == last_[stream];
}

void RankWatch::compute(const LaneOp& op, const OpStart& arrival, double free, double factor) {
  OpTime& time = ops_[op.number];
  const double duration = (op.duration + op.interference) * factor;
  starts_[op.number] = arrival.ready;
  time.finish = arrival.ready + duration;
  time.duration = static_cast<float>(duration);
  busy_.add(program_.blocks[op.block].ops[op.place], op.duration * factor);
  gaps_.interference += Seconds(op.interference * factor);
  if (flat_.ops[op.block][op.place].stream != Stream::Compute) return;
  explain_gap({free, arrival.ready, arrival.cause}, ops_, gaps_);
  computed_ = time.finish;
}

void RankWatch::communicate(const LaneOp& op, double start, double duration) {
  OpTime& time = ops_[op.number];
  starts_[op.number] = start;
  time.finish = start + duration;
  time.duration = static_cast<float>(duration);
  const Stream stream = flat_.ops[op.block][op.place].stream;
  const auto index = static_cast<std::size_t>(stream);
  // A delay of the collective before it on the stream delays this one too.
  late_[index] = start - arrivals_[op.number] + (delayed_[index] ? late_[index] : 0.0);
  last_[index] = op.number;
  time.late = static_cast<float>(late_[index]);
  if (stream == Stream::ParameterGather || stream == Stream::GradientReduce)
    gathered_ = std::max(gathered_, time.finish);
}

TimeBreakdown RankWatch::breakdown(double step) const {
  TimeBreakdown time = gaps_;
  time.gemm = Seconds(busy_.gemm);
  time.attention = Seconds(busy_.attention);
  time.memory_bound = Seconds(busy_.memory_bound);
  time.optimizer = Seconds(busy_.optimizer);
  time.offload += Seconds(busy_.offloaded);
  time.recompute = Seconds(busy_.recompute);
  explain_end(computed_, gathered_, step, time);
  return time;
}

OpTimes RankWatch::op_times() const {
  OpTimes times;
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    times.start.emplace_back(starts_[i]);
    times.finish.emplace_back(ops_[i].finish);
  }
  return times;
}

}  // namespace shardwright::sim
