// Tensor instances: written before they are read, complete when they are read, freed once.
//
// Order across streams is proven with vector clocks: the clock of an op says, for each queue, up to
// which op everything has finished when the op starts.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "core/program/program_checks.hpp"

namespace shardwright {
namespace {

// The number of the last finished op plus one, by queue.
using Clock = std::vector<std::uint32_t>;

void join(Clock& clock, const Clock& other) {
  for (std::size_t i = 0; i < clock.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

// An op that touched an instance: its queue and its number plus one.
struct Use {
  std::size_t queue = 0;
  std::uint32_t end = 0;

  bool before(const Clock& clock) const { return clock[queue] >= end; }
};

struct Instance {
  Use writer;
  // The reads since the last write, one for each queue.
  std::vector<Use> readers;
  std::uint32_t last_call = 0;
};

// Clocks of the ops of a stage. Those of the call at hand are kept, and those of ops that later
// calls wait for.
class Clocks {
 public:
  Clocks(const Program& program, const RankProgram& rank)
      : queues_(program), last_(queues_.count(), Clock(queues_.count(), 0)) {
    for (const Wait& wait : rank.waits) kept_.try_emplace(wait.on);
  }

  std::size_t queue_of(const Op& op) const { return queues_.of(op); }

  // Returns when the op starts; afterwards it counts as issued.
  Clock start_of(const PlacedOp& placed) {
    if (placed.number == placed.call.first_op) of_call_.clear();
    const std::size_t queue = queues_.of(placed.op);
    Clock clock = last_[queue];
    for (const std::uint16_t on : placed.op.waits) join(clock, of_call_[on]);
    for (const Wait& wait : placed.waits) join(clock, kept_.at(wait.on));
    Clock finished = clock;
    finished[queue] = placed.number + 1;
    last_[queue] = finished;
    const auto kept = kept_.find(placed.number);
    if (kept != kept_.end()) kept->second = finished;
    of_call_.push_back(std::move(finished));
    return clock;
  }

 private:
  Queues queues_;
  // The finish of each queue's last op.
  std::vector<Clock> last_;
  // The clocks of the ops of the call at hand.
  std::vector<Clock> of_call_;
  std::unordered_map<std::uint32_t, Clock> kept_;
};

class TensorCheck {
 public:
  TensorCheck(const Program& program, const RankProgram& rank, FindingList& findings)
      : program_(program), rank_(rank), findings_(findings), clocks_(program, rank) {}

  void run() {
    for_each_op(program_, rank_, [this](const PlacedOp& placed) { visit(placed); });
    std::vector<std::uint64_t> left;
    for (const auto& [key, instance] : alive_) left.push_back(key);
    std::ranges::sort(left);
    for (const std::uint64_t key : left) {
      findings_.add(FindingKind::Leak, rank_.stage, alive_.at(key).writer.end - 1,
                    fmt::format("{} is never freed", tensor_of(key).name));
    }
  }

 private:
  static constexpr int kMicrobatchBits = 24, kLayerBits = 24;

  // An instance: its tensor, layer and microbatch.
  std::uint64_t key_of(TensorRef ref, const Call& call) const {
    const bool shared = !program_.tensors[ref.tensor].per_microbatch;
    const std::int64_t layer = std::int64_t{call.layer} + ref.layer_offset + 1;
    const std::int64_t microbatch = shared ? 0 : std::int64_t{call.microbatch} + 1;
    return (static_cast<std::uint64_t>(ref.tensor) << (kMicrobatchBits + kLayerBits)) |
           (static_cast<std::uint64_t>(layer) << kMicrobatchBits) |
           static_cast<std::uint64_t>(microbatch);
  }

  const TensorSpec& tensor_of(std::uint64_t key) const {
    return program_.tensors[key >> (kMicrobatchBits + kLayerBits)];
  }

  void complain(FindingKind kind, const PlacedOp& placed, TensorRef ref, const char* what) {
    findings_.add(
        kind, rank_.stage, placed.number,
        fmt::format("{} {} {}", describe(placed), what, program_.tensors[ref.tensor].name));
  }

  void visit(const PlacedOp& placed) {
    const Clock clock = clocks_.start_of(placed);
    const Use use{clocks_.queue_of(placed.op), placed.number + 1};
    for (const TensorRef ref : placed.op.reads) read(placed, ref, clock, use);
    for (const TensorRef ref : placed.op.writes) write(placed, ref, clock, use);
    for (const TensorRef ref : placed.op.frees) {
      if (alive_.erase(key_of(ref, placed.call)) == 0)
        complain(FindingKind::Undefined, placed, ref, "frees what is not alive:");
    }
  }

  void read(const PlacedOp& placed, TensorRef ref, const Clock& clock, Use use) {
    const auto found = alive_.find(key_of(ref, placed.call));
    if (found == alive_.end())
      return complain(FindingKind::Undefined, placed, ref, "reads what is not alive:");
    Instance& instance = found->second;
    if (!instance.writer.before(clock))
      complain(FindingKind::Race, placed, ref, "does not wait for who writes");
    instance.last_call = placed.call.first_op + 1;
    for (Use& reader : instance.readers) {
      if (reader.queue == use.queue) {
        reader.end = use.end;
        return;
      }
    }
    instance.readers.push_back(use);
  }

  void write(const PlacedOp& placed, TensorRef ref, const Clock& clock, Use use) {
    Instance& instance = alive_[key_of(ref, placed.call)];
    const bool is_new = instance.writer.end == 0;
    if (!is_new && instance.last_call != placed.call.first_op + 1)
      complain(FindingKind::Overwritten, placed, ref, "writes anew what is alive:");
    const auto passed = [&](const Use& other) {
      return other.end == use.end || other.before(clock);
    };
    if (!is_new && (!passed(instance.writer) || !std::ranges::all_of(instance.readers, passed)))
      complain(FindingKind::Race, placed, ref, "does not wait for who uses");
    instance.writer = use;
    instance.readers.clear();
    instance.last_call = placed.call.first_op + 1;
  }

  const Program& program_;
  const RankProgram& rank_;
  FindingList& findings_;
  Clocks clocks_;
  std::unordered_map<std::uint64_t, Instance> alive_;
};

}  // namespace

void check_tensors(const Program& program, FindingList& findings) {
  for (const RankProgram& rank : program.stages) TensorCheck(program, rank, findings).run();
}

}  // namespace shardwright
