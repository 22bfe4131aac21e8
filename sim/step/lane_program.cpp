#include "sim/step/lane_program.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <variant>

#include "core/base/error.hpp"

namespace shardwright::sim {
namespace {

constexpr std::size_t kMostLanes = std::numeric_limits<LaneMask>::digits;

template <class T>
std::uint32_t index_of(const T& value, std::vector<T>& known) {
  const auto found = std::find(known.begin(), known.end(), value);
  const auto index = static_cast<std::uint32_t>(found - known.begin());
  if (found == known.end()) known.push_back(value);
  return index;
}

// Makes the op that all instances of a block's op have in common.
LaneOp prototype(const Op& op, const FlatOp& flat, LanePrograms& known) {
  LaneOp result;
  result.duration = flat.duration;
  result.waits = flat.waits;
  result.computes = flat.kernel;
  result.stream = flat.stream;
  if (flat.collective) result.rendezvous = index_of({flat.group, flat.stream}, known.rendezvous);
  if (const auto* message = std::get_if<CommunicationWork>(&op.work)) {
    const OpKind kind = flat.rendezvous == Rendezvous::PointToPoint ? OpKind::Send : op.kind;
    result.transfer = index_of({kind, flat.group, flat.stream, message->bytes, flat.duration,
                                message->copies, message->most_nodes},
                               known.transfers);
  }
  return result;
}

// Ops by block and place.
using Prototypes = std::vector<std::vector<LaneOp>>;

Prototypes prototypes_of(const Program& program, const FlatProgram& flat, LanePrograms& known) {
  Prototypes result;
  for (std::size_t b = 0; b < program.blocks.size(); ++b) {
    std::vector<LaneOp>& block = result.emplace_back();
    for (std::size_t i = 0; i < program.blocks[b].ops.size(); ++i) {
      block.push_back(prototype(program.blocks[b].ops[i], flat.ops[b][i], known));
      block.back().block = static_cast<BlockId>(b);
      block.back().place = static_cast<std::uint16_t>(i);
    }
  }
  return result;
}

// The keys of each lane, in its order.
using MessageKeys = std::vector<std::vector<std::uint64_t>>;

class StageSorter {
 public:
  StageSorter(const RankProgram& rank, const FlatProgram& flat, const Prototypes& prototypes)
      : rank_(rank), flat_(flat), prototypes_(prototypes) {
    places_.reserve(rank.ops);
  }

  LaneProgram sort() {
    for (std::size_t c = 0; c < rank_.calls.size(); ++c) add_call(c);
    number_slots();
    result_.ops = rank_.ops;
    return std::move(result_);
  }
  MessageKeys take_keys() { return std::move(keys_); }

 private:
  struct Place {
    std::uint32_t lane, index;
  };

  LaneOp& op_at(std::uint32_t number) {
    return result_.lanes[places_[number].lane].ops[places_[number].index];
  }

  void add_call(std::size_t c) {
    const Call& call = rank_.calls[c];
    const std::vector<FlatOp>& ops = flat_.ops[call.block];
    for (std::size_t i = 0; i < ops.size(); ++i) add_op(call, i, ops[i], rank_.waits_of(c));
  }

  void add_op(const Call& call, std::size_t place, const FlatOp& flat,
              std::span<const Wait> waits) {
    const std::uint32_t lane = lane_of(flat);
    LaneOp op = prototypes_[call.block][place];
    host_ += flat.launch;
    launched_ += flat.launch;
    if (place == 0 && posts_ahead(flat) && waits.empty()) {
      op.host = launched_;
    } else {
      op.host = host_;
      op.hold = hold_;
      op.held_by = held_by_;
    }
    host_ += flat.further_launch;
    launched_ += flat.further_launch;
    op.number = call.first_op + static_cast<std::uint32_t>(place);
    op.first_wait = static_cast<std::uint32_t>(result_.waits.size());
    for (std::uint32_t i = 0; i < flat.waits; ++i)
      add_wait(lane, call.first_op + flat_.waits[flat.first_wait + i]);
    for (const Wait& wait : waits) {
      if (wait.op == op.number) add_wait(lane, wait.on);
    }
    op.waits = static_cast<std::uint16_t>(result_.waits.size() - op.first_wait);
    std::vector<LaneOp>& ops = result_.lanes[lane].ops;
    places_.push_back({lane, static_cast<std::uint32_t>(ops.size())});
    ops.push_back(op);
    if (flat.rendezvous == Rendezvous::PointToPoint) keys_[lane].push_back(message_key(call, flat));
    if (flat.stream == Stream::Compute) last_compute_ = op.number;
    if (flat.kernel) held_by_ = kNone;
    if (flat.holds_host) hold_host(op.number, flat);
  }

  // Lets the host go on when the op `number` and the compute stream have completed.
  void hold_host(std::uint32_t number, const FlatOp& flat) {
    hold_ = static_cast<std::uint32_t>(result_.holds.size());
    const bool is_last = last_compute_ == kNone || last_compute_ == number;
    result_.holds.push_back(is_last ? 1 : 2);
    op_at(number).ends = hold_;
    if (last_compute_ != kNone) op_at(last_compute_).ends = hold_;
    host_ = flat.further_launch;
    held_by_ = flat.rendezvous == Rendezvous::PointToPoint ? number : kNone;
    last_compute_ = kNone;
  }

  void add_wait(std::uint32_t lane, std::uint32_t on) {
    result_.waits.push_back({kNone, on});
    op_at(on).wakes |= LaneMask{1} << lane;
  }

  std::uint32_t lane_of(const FlatOp& flat) {
    const bool message = flat.rendezvous == Rendezvous::PointToPoint;
    const auto found =
        std::find_if(result_.lanes.begin(), result_.lanes.end(), [&](const Lane& lane) {
          return lane.stream == flat.stream && lane.is_message == message &&
                 lane.peer_offset == (message ? flat.peer_offset : 0);
        });
    if (found != result_.lanes.end())
      return static_cast<std::uint32_t>(found - result_.lanes.begin());
    SHARDWRIGHT_CHECK(result_.lanes.size() < kMostLanes, "a rank has too many lanes");
    Lane lane;
    lane.stream = flat.stream;
    lane.is_message = message;
    lane.sends = flat.sends;
    lane.gradient = flat.gradient;
    lane.peer_offset = message ? flat.peer_offset : 0;
    result_.lanes.push_back(std::move(lane));
    keys_.emplace_back();
    return static_cast<std::uint32_t>(result_.lanes.size() - 1);
  }

  void number_slots() {
    for (std::uint32_t number = 0; number < places_.size(); ++number) {
      LaneOp& op = op_at(number);
      if (op.wakes != 0) op.slot = result_.slots++;
    }
    for (LaneWait& wait : result_.waits) wait.slot = op_at(wait.op).slot;
  }

  const RankProgram& rank_;
  const FlatProgram& flat_;
  const Prototypes& prototypes_;
  LaneProgram result_;
  MessageKeys keys_;
  // The place of each op, by number.
  std::vector<Place> places_;
  // The host's time since its last hold.
  double host_ = 0.0;
  // The time since the start of the host alone, without its holds.
  double launched_ = 0.0;
  std::uint32_t hold_ = kNone;
  std::uint32_t held_by_ = kNone;
  // The last op on the compute stream since the last hold.
  std::uint32_t last_compute_ = kNone;
};

// Joins the two ends of each channel.
void connect(LanePrograms& programs, const std::vector<MessageKeys>& keys) {
  for (std::size_t s = 0; s < programs.stages.size(); ++s) {
    for (std::size_t l = 0; l < programs.stages[s].lanes.size(); ++l) {
      Lane& lane = programs.stages[s].lanes[l];
      if (!lane.is_message || !lane.sends) continue;
      const auto peer = static_cast<std::size_t>(static_cast<std::int64_t>(s) + lane.peer_offset);
      std::vector<Lane>& others = programs.stages[peer].lanes;
      const auto found = std::find_if(others.begin(), others.end(), [&](const Lane& other) {
        return other.is_message && !other.sends && other.gradient == lane.gradient &&
               other.peer_offset == -lane.peer_offset;
      });
      SHARDWRIGHT_CHECK(
          found != others.end() &&
              keys[s][l] == keys[peer][static_cast<std::size_t>(found - others.begin())],
          "stages " + std::to_string(s) + " and " + std::to_string(peer) +
              " do not exchange the same messages in the same order");
      lane.peer_lane = static_cast<std::int32_t>(found - others.begin());
      found->peer_lane = static_cast<std::int32_t>(l);
      lane.channel = found->channel = programs.channels++;
    }
  }
  for (const LaneProgram& stage : programs.stages) {
    for (const Lane& lane : stage.lanes)
      SHARDWRIGHT_CHECK(!lane.is_message || lane.peer_lane >= 0, "a receive has no send");
  }
}

}  // namespace

LanePrograms sort_into_lanes(const Program& program, const FlatProgram& flat) {
  LanePrograms result;
  const Prototypes prototypes = prototypes_of(program, flat, result);
  std::vector<MessageKeys> keys;
  for (const RankProgram& rank : program.stages) {
    StageSorter sorter(rank, flat, prototypes);
    result.stages.push_back(sorter.sort());
    keys.push_back(sorter.take_keys());
  }
  connect(result, keys);
  return result;
}

}  // namespace shardwright::sim
