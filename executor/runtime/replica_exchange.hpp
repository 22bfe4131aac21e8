// The exchange between replicas that send compressed gradients, or make local steps, on CPUs: one
// op after another, as core/lowering/replica_exchange.hpp lists them. Where steps run beside it, a
// thread of its own runs all ops but the last one, on communicators that nothing else uses. One
// exchange is on its way at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <future>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/program/program.hpp"
#include "executor/comm/rank_communicators.hpp"
#include "executor/runtime/parameter_store.hpp"

namespace shardwright::executor {

struct BoundOp;

class ReplicaExchange {
 public:
  // The references must outlive the exchange.
  ReplicaExchange(const Program& program, const RankCommunicators& communicators,
                  ParameterStore& parameters);

  // Keeps the parameters that changes are taken from, the first time that it is called.
  void keep_anchor();
  // Runs one op of an exchange of these units. Throws CommunicationError.
  void run(const BoundOp& bound, std::span<const std::size_t> units);

  // Bytes that collectives have carried since the start, as CommunicationWork counts them, with
  // those that are on their way.
  double carried_bytes() const;

 private:
  // By unit: its part that this rank updates.
  using UnitValues = std::map<std::size_t, std::vector<float>>;

  // The same of a fragment of local steps beside which others run.
  void run_beside(const BoundOp& bound, std::span<const std::size_t> units, Communicator& group);
  // Waits for the exchange on its way, if there is one, and keeps its outcome.
  void arrive();
  void run_step(const Op& op, Communicator& group);
  void load();
  void store();
  void apply(std::span<const std::size_t> units, std::span<const float> outcome);
  void compress();
  void all_reduce(std::string_view step, Communicator& group);
  void all_to_all(Communicator& group);
  void all_gather(Communicator& group);
  void add_parts(std::size_t member);
  void project();
  void restore();
  void feed_back();
  // The values in the codes of a form of few bits, a part for each member, and back.
  void encode();
  void decode(const std::vector<std::byte>& parts);
  // Keeps what is left of the values, one after another as in `values_`, where these are sent.
  void keep_residuals(std::span<const float> values, std::span<const float> sent);
  // Elements of a member's part; rows and columns of PowerSGD's thin matrices.
  std::size_t coded_elements() const;
  std::pair<std::size_t, std::size_t> thin_shape() const;
  std::span<float> updated(std::size_t unit) const;
  std::span<float> gradients(std::size_t unit) const;

  const ReplicaAgreement replicas_;
  const Program& program_;
  const RankCommunicators& communicators_;
  ParameterStore& parameters_;
  UnitValues anchors_, momenta_, residuals_;
  // The exchange at hand: its units, their values one after another, and what is sent and received.
  std::vector<std::size_t> units_;
  bool local_ = false;
  std::size_t members_ = 1;
  std::vector<float> values_;
  std::vector<std::byte> sent_, received_;
  std::vector<std::uint16_t> halves_;
  // PowerSGD's matrices; Q goes on from where the last exchange of the same units left it.
  std::vector<float> p_;
  std::map<std::vector<std::size_t>, std::vector<float>> q_;
  // By the units of an exchange: what the form has lost of the sums of this rank's part.
  std::map<std::vector<std::size_t>, std::vector<float>> part_residuals_;
  double carried_ = 0.0;
  // The exchange on its way, and by units the outcomes that have arrived and are not applied yet.
  std::future<void> on_its_way_;
  std::map<std::vector<std::size_t>, std::vector<float>> arrived_;
};

}  // namespace shardwright::executor
