#include "executor/runtime/replica_exchange.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/error.hpp"
#include "core/lowering/replica_exchange.hpp"
#include "executor/data/hash.hpp"
#include "executor/kernels/bfloat16.hpp"
#include "executor/kernels/cpu/compression.hpp"
#include "executor/runtime/op_runner.hpp"

namespace shardwright::executor {
namespace {

// What follows the name of the block: "compress" of "gradients.compress".
std::string_view step_of(const Op& op) {
  return std::string_view(op.name).substr(op.name.find('.') + 1);
}

// The first Q: the same numbers on all ranks.
std::vector<float> first_thin_matrix(std::size_t elements) {
  std::vector<float> q(elements);
  const std::uint64_t key = key_of(0, "powersgd");
  for (std::size_t i = 0; i < elements; ++i) q[i] = static_cast<float>(random_unit(key, i) - 0.5);
  return q;
}

std::size_t whole(std::int64_t number) {
  return static_cast<std::size_t>(number);
}

}  // namespace

ReplicaExchange::ReplicaExchange(const Program& program, const RankCommunicators& communicators,
                                 ParameterStore& parameters)
    : replicas_(program.plan.replicas),
      program_(program),
      communicators_(communicators),
      parameters_(parameters) {}

std::span<float> ReplicaExchange::updated(std::size_t unit) const {
  const ElementRange own = parameters_.own(unit);
  return {static_cast<float*>(parameters_.updated(OptimizerArray::Weights, unit, own.begin)),
          own.size()};
}

std::span<float> ReplicaExchange::gradients(std::size_t unit) const {
  const ElementRange own = parameters_.own(unit);
  return {static_cast<float*>(parameters_.gradients(unit, own.begin)), own.size()};
}

void ReplicaExchange::keep_anchor() {
  if (!keeps_anchor(replicas_) || !anchors_.empty()) return;
  for (std::size_t unit = 0; unit < parameters_.layout().units.size(); ++unit) {
    const std::span<const float> now = updated(unit);
    anchors_[unit].assign(now.begin(), now.end());
  }
}

void ReplicaExchange::run(const BoundOp& bound, std::span<const std::size_t> units) {
  SHARDWRIGHT_CHECK(bound.queue == nullptr, "replicas exchange on CPUs alone");
  const std::vector<Op>& ops = program_.blocks[bound.call->block].ops;
  Communicator* group = nullptr;
  for (const Op& op : ops) {
    if (const auto* work = std::get_if<CommunicationWork>(&op.work))
      group = &communicators_.of(work->group);
  }
  const bool local = bound.op->payload == Payload::LocalSteps;
  if (local && replicas_.overlap_steps > 0) return run_beside(bound, units, *group);
  units_.assign(units.begin(), units.end());
  local_ = local;
  members_ = static_cast<std::size_t>(group->size());
  if (bound.op == &ops.front()) load();
  run_step(*bound.op, *group);
  if (bound.op == &ops.back() && !local_) store();
}

// The first op applies the outcome of the exchange before, the others are one exchange.
void ReplicaExchange::run_beside(const BoundOp& bound, std::span<const std::size_t> units,
                                 Communicator& group) {
  const std::vector<Op>& ops = program_.blocks[bound.call->block].ops;
  if (bound.op == &ops.front()) {
    const std::vector<std::size_t> own(units.begin(), units.end());
    // Another fragment may be on its way.
    if (units_ == own) arrive();
    apply(own, arrived_.at(own));
    arrived_.erase(own);
    return;
  }
  if (bound.op != &ops.back()) return;
  arrive();
  units_.assign(units.begin(), units.end());
  local_ = true;
  members_ = static_cast<std::size_t>(group.size());
  load();
  on_its_way_ = std::async(std::launch::async, [this, &ops, &group] {
    for (std::size_t i = 1; i < ops.size(); ++i) run_step(ops[i], group);
  });
}

void ReplicaExchange::arrive() {
  if (!on_its_way_.valid()) return;
  on_its_way_.get();
  arrived_[units_] = std::move(values_);
}

double ReplicaExchange::carried_bytes() const {
  if (on_its_way_.valid()) on_its_way_.wait();
  return carried_;
}

void ReplicaExchange::run_step(const Op& op, Communicator& group) {
  const std::string_view step = step_of(op);
  if (step == "change") return;  // loaded so
  if (step == "compress") return compress();
  if (step == "add") return add_parts(static_cast<std::size_t>(group.rank()));
  if (step == "project") return project();
  if (step == "restore") return restore();
  if (step == "apply") return apply(units_, values_);
  switch (op.kind) {
    case OpKind::AllToAll:
      return all_to_all(group);
    case OpKind::AllGather:
      return all_gather(group);
    default:
      return all_reduce(step, group);
  }
}

// The gradients, the parameters, or their change since the last exchange, against the direction of
// the steps as a gradient is.
void ReplicaExchange::load() {
  values_.clear();
  for (const std::size_t unit : units_) {
    const std::span<const float> from = local_ ? updated(unit) : gradients(unit);
    const std::size_t first = values_.size();
    values_.insert(values_.end(), from.begin(), from.end());
    if (!local_ || !keeps_anchor(replicas_)) continue;
    const std::vector<float>& anchor = anchors_.at(unit);
    for (std::size_t i = 0; i < from.size(); ++i) values_[first + i] = anchor[i] - from[i];
  }
}

void ReplicaExchange::store() {
  std::size_t place = 0;
  for (const std::size_t unit : units_) {
    const std::span<float> to = gradients(unit);
    std::copy_n(values_.begin() + static_cast<std::ptrdiff_t>(place), to.size(), to.begin());
    place += to.size();
  }
}

// The outer step: the mean itself, or Nesterov's step along it (torch.optim.SGD with nesterov). A
// share of what the replica has by now stays.
void ReplicaExchange::apply(std::span<const std::size_t> units, std::span<const float> outcome) {
  const float share = 1.0F / static_cast<float>(members_);
  const bool nesterov = replicas_.outer == OuterOptimizer::Nesterov;
  const auto rate = static_cast<float>(nesterov ? replicas_.outer_learning_rate : 1.0);
  const auto momentum = static_cast<float>(replicas_.outer_momentum);
  const auto own = static_cast<float>(replicas_.local_share);
  const auto take_over = [own](float agreed, float& weight) {
    weight = own == 0.0F ? agreed : (1.0F - own) * agreed + own * weight;
  };
  std::size_t place = 0;
  for (const std::size_t unit : units) {
    const std::span<float> weights = updated(unit);
    std::vector<float>& velocity = momenta_[unit];
    if (nesterov) velocity.resize(weights.size(), 0.0F);
    for (std::size_t i = 0; i < weights.size(); ++i, ++place) {
      float step = outcome[place] * share;
      if (!keeps_anchor(replicas_)) {
        take_over(step, weights[i]);
        continue;
      }
      if (nesterov) {
        velocity[i] = momentum * velocity[i] + step;
        step += momentum * velocity[i];
      }
      take_over(anchors_[unit][i] -= rate * step, weights[i]);
    }
    parameters_.apply_updated(unit);
  }
}

// Adds what earlier exchanges have not sent.
void ReplicaExchange::feed_back() {
  std::size_t place = 0;
  for (const std::size_t unit : units_) {
    std::vector<float>& residual = residuals_[unit];
    residual.resize(parameters_.own(unit).size(), 0.0F);
    for (float& left : residual) values_[place++] += left;
  }
}

void ReplicaExchange::keep_residuals(std::span<const float> values, std::span<const float> sent) {
  std::size_t place = 0;
  for (const std::size_t unit : units_) {
    for (float& left : residuals_.at(unit)) {
      left = values[place] - sent[place];
      ++place;
    }
  }
}

std::size_t ReplicaExchange::coded_elements() const {
  return whole(coded_part(replicas_.compression, static_cast<double>(values_.size()),
                          static_cast<std::int64_t>(members_)));
}

void ReplicaExchange::encode() {
  const std::size_t each = coded_elements();
  const std::size_t bytes =
      whole(coded_bytes(replicas_.compression, static_cast<std::int64_t>(each)));
  sent_.resize(members_ * bytes);
  for (std::size_t part = 0; part < members_; ++part) {
    const std::size_t first = std::min(part * each, values_.size());
    const std::size_t count = std::min(each, values_.size() - first);
    to_codes(replicas_.compression, std::span(values_).subspan(first, count), each,
             sent_.data() + part * bytes);
  }
}

void ReplicaExchange::decode(const std::vector<std::byte>& parts) {
  const std::size_t bytes = parts.size() / members_, each = coded_elements();
  std::fill(values_.begin(), values_.end(), 0.0F);
  for (std::size_t part = 0; part < members_; ++part) {
    const std::size_t first = std::min(part * each, values_.size());
    const std::size_t count = std::min(each, values_.size() - first);
    add_codes(replicas_.compression, parts.data() + part * bytes, each,
              std::span(values_).subspan(first, count));
  }
}

std::pair<std::size_t, std::size_t> ReplicaExchange::thin_shape() const {
  const auto elements = static_cast<double>(values_.size());
  return {whole(powersgd_side(elements)),
          whole(powersgd_columns(elements, replicas_.powersgd_rank))};
}

void ReplicaExchange::compress() {
  switch (replicas_.compression) {
    case ReplicaCompression::Bf16:
      halves_.resize(values_.size());
      std::transform(values_.begin(), values_.end(), halves_.begin(), to_bfloat16);
      return;
    case ReplicaCompression::Int8:
    case ReplicaCompression::Fp8:
    case ReplicaCompression::Fp4:
      return encode();
    case ReplicaCompression::OneBit: {
      feed_back();
      encode();
      const std::vector<float> before = values_;
      decode(sent_);
      keep_residuals(before, values_);
      return;
    }
    case ReplicaCompression::TopK: {
      feed_back();
      const auto elements = static_cast<double>(values_.size());
      const auto largest =
          largest_elements(values_, whole(topk_count(elements, replicas_.topk_ratio)));
      sent_.resize(largest.size() * sizeof(TopkElement));
      std::memcpy(sent_.data(), largest.data(), sent_.size());
      std::vector<float> chosen(values_.size(), 0.0F);
      for (const TopkElement& each : largest) chosen[each.place] = each.value;
      keep_residuals(values_, chosen);
      return;
    }
    case ReplicaCompression::PowerSgd: {
      feed_back();
      const auto [rows, columns] = thin_shape();
      std::vector<float>& q = q_[units_];
      if (q.empty()) q = first_thin_matrix(rows * columns);
      p_.resize(rows * columns);
      multiply_thin(values_, q, rows, columns, p_);
      return;
    }
    case ReplicaCompression::None:
    case ReplicaCompression::Fp16:
      break;
  }
  SHARDWRIGHT_CHECK(false, "no such compression on CPUs");
}

void ReplicaExchange::all_reduce(std::string_view step, Communicator& group) {
  const auto sum = [&](void* data, std::size_t elements, Element element) {
    carried_ += static_cast<double>(elements * bytes_of(element));
    group.all_reduce(data, elements, element, Reduction::Sum, nullptr);
  };
  if (step == "p.all_reduce") return sum(p_.data(), p_.size(), Element::Float32);
  if (step == "q.all_reduce") {
    std::vector<float>& q = q_.at(units_);
    return sum(q.data(), q.size(), Element::Float32);
  }
  if (replicas_.compression == ReplicaCompression::Bf16)
    return sum(halves_.data(), halves_.size(), Element::Bfloat16);
  sum(values_.data(), values_.size(), Element::Float32);
}

void ReplicaExchange::all_to_all(Communicator& group) {
  const std::vector<std::size_t> each(members_, sent_.size() / members_);
  received_.resize(sent_.size());
  carried_ += static_cast<double>(sent_.size());
  group.all_to_all(sent_.data(), each, received_.data(), each, nullptr);
}

// Parts have whole numbers of four bytes.
void ReplicaExchange::all_gather(Communicator& group) {
  received_.resize(sent_.size() * members_);
  carried_ += static_cast<double>(received_.size());
  group.all_gather(sent_.data(), received_.data(), sent_.size() / bytes_of(Element::Float32),
                   Element::Float32, nullptr);
}

// Adds up this member's part of all members' values, which it then hands on.
void ReplicaExchange::add_parts(std::size_t member) {
  const ReplicaCompression form = replicas_.compression;
  const std::vector<std::byte> parts = std::exchange(received_, {});
  const std::size_t bytes = sent_.size() / members_, each = coded_elements();
  const std::size_t first = std::min(member * each, values_.size());
  std::vector<float> sum(std::min(each, values_.size() - first), 0.0F);
  for (std::size_t from = 0; from < members_; ++from)
    add_codes(form, parts.data() + from * bytes, each, sum);
  sent_.resize(bytes);
  if (!feeds_back(form)) return to_codes(form, sum, each, sent_.data());
  std::vector<float>& left = part_residuals_[units_];
  left.resize(sum.size(), 0.0F);
  for (std::size_t i = 0; i < left.size(); ++i) left[i] += sum[i];
  to_codes(form, left, each, sent_.data());
  std::fill(sum.begin(), sum.end(), 0.0F);
  add_codes(form, sent_.data(), each, sum);
  for (std::size_t i = 0; i < left.size(); ++i) left[i] -= sum[i];
}

void ReplicaExchange::project() {
  const auto [rows, columns] = thin_shape();
  make_orthonormal(p_, rows, columns);
  multiply_transposed(values_, p_, rows, columns, q_.at(units_));
}

void ReplicaExchange::restore() {
  switch (replicas_.compression) {
    case ReplicaCompression::Bf16:
      std::transform(halves_.begin(), halves_.end(), values_.begin(), from_bfloat16);
      return;
    case ReplicaCompression::Int8:
    case ReplicaCompression::Fp8:
    case ReplicaCompression::Fp4:
    case ReplicaCompression::OneBit:
      return decode(received_);
    case ReplicaCompression::TopK: {
      std::fill(values_.begin(), values_.end(), 0.0F);
      TopkElement each;
      for (std::size_t at = 0; at < received_.size(); at += sizeof each) {
        std::memcpy(&each, received_.data() + at, sizeof each);
        values_[each.place] += each.value;
      }
      return;
    }
    case ReplicaCompression::PowerSgd: {
      const auto [rows, columns] = thin_shape();
      const std::vector<float>& q = q_.at(units_);
      std::vector<float> sum(values_.size());
      multiply_back(p_, q, rows, columns, sum);
      // What is left is that of the mean, so that the members' residuals add up to what the sum
      // lacks.
      std::vector<float> mean = sum;
      for (float& each : mean) each /= static_cast<float>(members_);
      keep_residuals(values_, mean);
      values_ = std::move(sum);
      return;
    }
    case ReplicaCompression::None:
    case ReplicaCompression::Fp16:
      break;
  }
  SHARDWRIGHT_CHECK(false, "no such compression on CPUs");
}

}  // namespace shardwright::executor
