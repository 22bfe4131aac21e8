// The ops by which replicas add up gradients in a compressed form, and by which they agree on the
// outcome of local steps (docs/models/replicas.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/op/op.hpp"
#include "core/spec/plan.hpp"
#include "core/spec/stack_spec.hpp"

namespace shardwright {

// A kernel or a collective of an exchange.
struct ExchangeOp {
  const char* name = nullptr;
  OpKind kind = OpKind::Compression;
  // The memory traffic and FLOP of an op that is a kernel.
  MemoryWork kernel;
  // The bytes of an op that is a collective, counted as in CommunicationWork.
  Bytes bytes;
  // The steps after the exchange has begun in which the op runs.
  std::int64_t delay = 0;
  // True for a collective that runs beside steps.
  bool beside = false;
};

// The ops of an exchange in order. They are held in place: a search asks for them with every plan.
class ExchangeOps {
 public:
  void add(const ExchangeOp& op) { ops_[count_++] = op; }
  const ExchangeOp* begin() const { return ops_.data(); }
  const ExchangeOp* end() const { return ops_.data() + count_; }

 private:
  std::array<ExchangeOp, 8> ops_{};
  std::size_t count_ = 0;
};

// The replicas that agree: all ranks with the same parameters, or with ZeRO those with the same
// shard.
Group replica_group(const Plan& plan, bool experts);

// True for the forms that hold each element in 8 bits or fewer. They have an fp32 scale for each
// block of so many bytes, as 8-bit optimizers have (arXiv 2110.02861).
constexpr bool is_coded(ReplicaCompression form) {
  return form == ReplicaCompression::Int8 || form == ReplicaCompression::Fp8 ||
         form == ReplicaCompression::Fp4 || form == ReplicaCompression::OneBit;
}
inline constexpr std::int64_t kCodedBlockBytes = 256;
constexpr std::int64_t coded_block_elements(ReplicaCompression form) {
  if (form == ReplicaCompression::OneBit) return kCodedBlockBytes * 8;
  return form == ReplicaCompression::Fp4 ? kCodedBlockBytes * 2 : kCodedBlockBytes;
}
// Elements of a member's part of them, in whole blocks, and the bytes of so many.
std::int64_t coded_part(ReplicaCompression form, double elements, std::int64_t members);
constexpr std::int64_t coded_bytes(ReplicaCompression form, std::int64_t elements) {
  return elements / coded_block_elements(form) * (kCodedBlockBytes + 4);
}
// True if what a form has not sent is added to what the next exchange sends.
constexpr bool feeds_back(ReplicaCompression form) {
  return form == ReplicaCompression::OneBit || form == ReplicaCompression::TopK ||
         form == ReplicaCompression::PowerSgd;
}
// Elements that top-k sends of so many, each as a 32-bit number and its 32-bit place.
std::int64_t topk_count(double elements, double ratio);
inline constexpr std::int64_t kTopkBytes = 8;
// PowerSGD takes the elements as a square matrix, padded with zeros (PyTorch's
// batched_powerSGD_hook): its rows, and the columns of the thin matrices.
std::int64_t powersgd_side(double elements);
std::int64_t powersgd_columns(double elements, std::int64_t rank);

// Adds up `elements` elements of `element` bytes over so many members: one all-reduce without
// compression, or where the elements have no more bytes than the compressed form.
ExchangeOps sum_over_replicas(const ReplicaAgreement& replicas, double elements, Bytes element,
                              std::int64_t members);

// The fragment that a layer of a stage is in, given its number among so many layers of the stage.
std::int64_t fragment_of_layer(const ReplicaAgreement& replicas, std::int64_t layer,
                               std::int64_t layers);
// The first step after which replicas exchange a fragment. These steps lie evenly in each
// `inner_steps`.
std::int64_t first_exchange(const ReplicaAgreement& replicas, std::int64_t fragment);

// What replicas do each `inner_steps` steps about so many parameters in fp32, of which they apply
// a copy with elements of `applied` bytes, or without one the parameters themselves. Where steps
// run beside the exchange, they apply the outcome of the last one first.
ExchangeOps agree_on_steps(const ReplicaAgreement& replicas, double elements, Bytes applied,
                           std::int64_t members);

// The step of parameter servers on so many parameters of a rank, and its pull of them in elements
// of `pulled` bytes.
ExchangeOps served_parameters(double elements, Bytes pulled);

// True if the exchange is of changes since the last one, for which the parameters of then are kept.
bool keeps_anchor(const ReplicaAgreement& replicas);

// Bytes that a rank holds of each parameter that is exchanged over so many members: what the outer
// optimizer keeps, and what the compression has not sent yet.
Bytes outer_state_bytes(const ReplicaAgreement& replicas);
Bytes residual_bytes(const ReplicaAgreement& replicas, std::int64_t members);
// The largest buffer of a compressed exchange.
Bytes exchange_buffer(const ReplicaAgreement& replicas, double elements, std::int64_t members);

}  // namespace shardwright
