#include "core/lowering/replica_exchange.hpp"

#include <algorithm>
#include <cmath>

namespace shardwright {
namespace {

constexpr Bytes kFp32 = Bytes(4.0), kHalf = Bytes(2.0);

// PyTorch selects the largest of 32-bit numbers digit by digit, 8 bits at a time
// (aten/src/ATen/native/cuda/SortingRadixSelect.cuh), and reads them all for each digit.
constexpr double kRadixPasses = 4.0;

ExchangeOp kernel(const char* name, Bytes read, Bytes written, Flop flop = Flop(),
                  std::int64_t kernels = 1) {
  return {name, OpKind::Compression, {read, written, flop, kernels}, {}};
}

ExchangeOp collective(const char* name, OpKind kind, Bytes bytes) {
  return {name, kind, {}, bytes};
}

void add_cast(double elements, Bytes element, ExchangeOps& ops) {
  ops.add(kernel("compress", element * elements, kHalf * elements));
  ops.add(collective("all_reduce", OpKind::AllReduce, kHalf * elements));
  ops.add(kernel("restore", kHalf * elements, element * elements));
}

// Sums of 8-bit numbers overflow 8 bits, and a sum of signs is none. So each rank gets its part of
// all members' numbers, adds it up in fp32 and hands on the sum in the same form (ZeRO++, arXiv
// 2306.10209, section 4.3; 1-bit Adam, arXiv 2102.02888, section 5.1). With error feedback both
// ends keep what the form has lost.
void add_coded(ReplicaCompression form, double elements, Bytes element, std::int64_t members,
               ExchangeOps& ops) {
  const auto ranks = static_cast<double>(members);
  const Bytes wire =
      Bytes(ranks * static_cast<double>(coded_bytes(form, coded_part(form, elements, members))));
  const Bytes residual = feeds_back(form) ? kFp32 * elements : Bytes();
  ops.add(kernel("compress", element * elements + residual, wire + residual));
  ops.add(collective("all_to_all", OpKind::AllToAll, wire));
  ops.add(kernel("add", wire + residual / ranks, (wire + residual) / ranks));
  ops.add(collective("all_gather", OpKind::AllGather, wire));
  ops.add(kernel("restore", wire, element * elements));
}

// Ranks choose different elements, so that all of them receive what each has chosen.
void add_topk(double elements, double ratio, Bytes element, double members, ExchangeOps& ops) {
  const Bytes own = Bytes(static_cast<double>(kTopkBytes * topk_count(elements, ratio)));
  const Bytes all = own * members;
  const Bytes with_residual = (element + kFp32) * elements;
  ops.add(kernel("compress", with_residual + kFp32 * (kRadixPasses * elements),
                 kFp32 * elements + own, Flop(), 1 + static_cast<std::int64_t>(kRadixPasses)));
  ops.add(collective("all_gather", OpKind::AllGather, all));
  ops.add(kernel("restore", all * 1.5, element * elements + all * 0.5));
}

// P = M Q, summed; Q = M^T P with P's columns made orthonormal, summed; M = P Q^T (arXiv
// 1905.13727, algorithm 1).
void add_powersgd(double elements, std::int64_t rank, Bytes element, ExchangeOps& ops) {
  const auto side = static_cast<double>(powersgd_side(elements));
  const auto columns = static_cast<double>(powersgd_columns(elements, rank));
  const Bytes thin = kFp32 * (side * columns), matrix = kFp32 * (side * side);
  const Flop product = Flop(2.0 * side * side * columns);
  const Flop gram_schmidt = Flop(2.0 * side * columns * columns);
  ops.add(kernel("compress", (element + kFp32) * elements + thin, matrix + thin, product, 2));
  ops.add(collective("p.all_reduce", OpKind::AllReduce, thin));
  ops.add(kernel("project", matrix + thin * (1.0 + columns), thin * (1.0 + columns),
                 product + gram_schmidt, 1 + 2 * static_cast<std::int64_t>(columns)));
  ops.add(collective("q.all_reduce", OpKind::AllReduce, thin));
  ops.add(kernel("restore", matrix + thin * 2.0, (element + kFp32) * elements, product, 1));
}

void add_sum(const ReplicaAgreement& replicas, double elements, Bytes element, std::int64_t members,
             ExchangeOps& ops) {
  switch (replicas.compression) {
    case ReplicaCompression::Bf16:
    case ReplicaCompression::Fp16:
      if (element > kHalf) return add_cast(elements, element, ops);
      break;
    case ReplicaCompression::Int8:
    case ReplicaCompression::Fp8:
    case ReplicaCompression::Fp4:
    case ReplicaCompression::OneBit:
      return add_coded(replicas.compression, elements, element, members, ops);
    case ReplicaCompression::TopK:
      return add_topk(elements, replicas.topk_ratio, element, static_cast<double>(members), ops);
    case ReplicaCompression::PowerSgd:
      return add_powersgd(elements, replicas.powersgd_rank, element, ops);
    case ReplicaCompression::None:
      break;
  }
  ops.add(collective("all_reduce", OpKind::AllReduce, element * elements));
}

}  // namespace

Group replica_group(const Plan& plan, bool experts) {
  if (plan.zero_stage == 0) return experts ? Group::ExpertData : Group::Data;
  return experts ? Group::ExpertShardOuter : Group::ShardOuter;
}

std::int64_t coded_part(ReplicaCompression form, double elements, std::int64_t members) {
  const std::int64_t block = coded_block_elements(form);
  const double blocks = elements / (static_cast<double>(block) * static_cast<double>(members));
  return static_cast<std::int64_t>(std::ceil(blocks)) * block;
}

std::int64_t topk_count(double elements, double ratio) {
  return std::max<std::int64_t>(1, std::llround(elements * ratio));
}

std::int64_t powersgd_side(double elements) {
  return static_cast<std::int64_t>(std::ceil(std::sqrt(elements)));
}

std::int64_t powersgd_columns(double elements, std::int64_t rank) {
  return std::min(rank, powersgd_side(elements));
}

ExchangeOps sum_over_replicas(const ReplicaAgreement& replicas, double elements, Bytes element,
                              std::int64_t members) {
  ExchangeOps ops;
  add_sum(replicas, elements, element, members, ops);
  return ops;
}

bool keeps_anchor(const ReplicaAgreement& replicas) {
  return replicas.local() && (replicas.outer == OuterOptimizer::Nesterov ||
                              replicas.compression != ReplicaCompression::None);
}

std::int64_t fragment_of_layer(const ReplicaAgreement& replicas, std::int64_t layer,
                               std::int64_t layers) {
  if (replicas.fragment_order == FragmentOrder::Strided) return layer % replicas.fragments;
  return layer * replicas.fragments / std::max<std::int64_t>(layers, 1);
}

std::int64_t first_exchange(const ReplicaAgreement& replicas, std::int64_t fragment) {
  const std::int64_t step = fragment * replicas.inner_steps / replicas.fragments;
  return step == 0 ? replicas.inner_steps : step;
}

// The mean of the parameters needs nothing else. Changes since the last exchange are taken from the
// parameters of then, and added to them.
ExchangeOps agree_on_steps(const ReplicaAgreement& replicas, double elements, Bytes applied,
                           std::int64_t members) {
  ExchangeOps ops;
  const bool anchored = keeps_anchor(replicas);
  const bool momentum = replicas.outer == OuterOptimizer::Nesterov;
  const bool beside = replicas.overlap_steps > 0;
  const Bytes weights = kFp32 * elements;
  const double states = (anchored ? 1.0 : 0.0) + (momentum ? 1.0 : 0.0);
  const double mixed = replicas.local_share > 0.0 ? 1.0 : 0.0;
  ExchangeOp apply = kernel("apply", weights * (1.0 + states + mixed),
                            weights * (1.0 + states) + applied * elements);
  apply.delay = replicas.overlap_steps;
  if (beside) ops.add(apply);
  if (anchored) ops.add(kernel("change", weights * 2.0, weights));
  for (ExchangeOp op : sum_over_replicas(replicas, elements, kFp32, members)) {
    op.beside = beside && is_communication(op.kind);
    ops.add(op);
  }
  if (!beside) ops.add(apply);
  return ops;
}

// Adam reads the gradient, weights and moments, and writes all but the gradient.
ExchangeOps served_parameters(double elements, Bytes pulled) {
  ExchangeOps ops;
  const Bytes states = kFp32 * (3.0 * elements);
  const Bytes copy = pulled < kFp32 ? pulled * elements : Bytes();
  ops.add({"server_optimizer",
           OpKind::ServerOptimizer,
           {states + kFp32 * elements, states + copy, Flop(), 1},
           {}});
  ops.add(collective("pull", OpKind::Pull, pulled * elements));
  return ops;
}

Bytes outer_state_bytes(const ReplicaAgreement& replicas) {
  if (!keeps_anchor(replicas)) return {};
  return kFp32 * (replicas.outer == OuterOptimizer::Nesterov ? 2.0 : 1.0);
}

Bytes residual_bytes(const ReplicaAgreement& replicas, std::int64_t members) {
  if (!feeds_back(replicas.compression)) return {};
  const double of_part = is_coded(replicas.compression) ? 1.0 / static_cast<double>(members) : 0.0;
  return kFp32 * (1.0 + of_part);
}

Bytes exchange_buffer(const ReplicaAgreement& replicas, double elements, std::int64_t members) {
  Bytes largest;
  if (replicas.compression == ReplicaCompression::None || elements <= 0.0) return largest;
  for (const ExchangeOp& op : sum_over_replicas(replicas, elements, kFp32, members))
    largest = std::max(largest, op.bytes);
  return largest;
}

}  // namespace shardwright
