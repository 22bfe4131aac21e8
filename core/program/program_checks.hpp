// The checks that validate() is made of.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/program/validate.hpp"

namespace shardwright {

// Collects findings up to a limit.
class FindingList {
 public:
  explicit FindingList(std::size_t most) : most_(most) {}

  void add(FindingKind kind, std::int32_t stage, std::uint32_t op, std::string text) {
    if (findings_.size() < most_) findings_.push_back({kind, stage, op, std::move(text)});
  }
  bool empty() const { return findings_.empty(); }
  bool full() const { return findings_.size() >= most_; }
  std::vector<Finding> take() { return std::move(findings_); }

 private:
  std::size_t most_;
  std::vector<Finding> findings_;
};

// One op of a rank program in its place.
struct PlacedOp {
  const Op& op;
  const Call& call;
  std::uint32_t number;
  // The waits for ops of other calls.
  std::span<const Wait> waits;
};

// Calls `visit(PlacedOp)` for each op of a stage in the order of issue. The structure must be
// right.
template <class Visit>
void for_each_op(const Program& program, const RankProgram& rank, Visit visit) {
  for (std::size_t c = 0; c < rank.calls.size(); ++c) {
    const Call& call = rank.calls[c];
    std::span<const Wait> waits = rank.waits_of(c);
    std::uint32_t number = call.first_op;
    for (const Op& op : program.blocks[call.block].ops) {
      std::size_t own = 0;
      while (own < waits.size() && waits[own].op == number) ++own;
      visit(PlacedOp{op, call, number, waits.first(own)});
      waits = waits.subspan(own);
      ++number;
    }
  }
}

// The queues of a rank whose ops run in issue order: streams, and for messages each stream towards
// each peer, since messages with different peers pass each other.
class Queues {
 public:
  explicit Queues(const Program& program);

  std::size_t of(const Op& op) const;
  std::size_t count() const { return kStreams + channels_.size(); }

 private:
  // The stream and the peer offset of each channel.
  std::vector<std::pair<Stream, std::int32_t>> channels_;
};

// Words for an op: its name, layer and microbatch, as far as it belongs to one (-1: it does not).
std::string describe(std::string_view op, std::int32_t layer, std::int32_t microbatch);
std::string describe(const PlacedOp& placed);

// Defined in validate.cpp.
void check_structure(const Program& program, FindingList& findings);
// Defined in exchange_check.cpp.
void check_exchanges(const Program& program, FindingList& findings);
// Defined in progress_check.cpp.
void check_progress(const Program& program, FindingList& findings);
// Defined in tensor_check.cpp.
void check_tensors(const Program& program, FindingList& findings);

}  // namespace shardwright
