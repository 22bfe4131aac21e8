#include "core/program/validate.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/program/program_checks.hpp"

namespace shardwright {
namespace {

bool is_message(const Op& op) {
  return op.kind == OpKind::Send || op.kind == OpKind::Receive;
}

void check_block(const Program& program, const Block& block, FindingList& findings) {
  for (std::size_t i = 0; i < block.ops.size(); ++i) {
    const Op& op = block.ops[i];
    const auto complain = [&](FindingKind kind, const char* text) {
      findings.add(kind, -1, static_cast<std::uint32_t>(i),
                   fmt::format("{}, {}: {}", block.name, op.name, text));
    };
    for (const std::uint16_t on : op.waits) {
      if (on >= i) complain(FindingKind::Wait, "waits for an op of its block that comes later");
    }
    for (const auto* refs : {&op.reads, &op.writes, &op.frees}) {
      for (const TensorRef ref : *refs) {
        if (ref.tensor >= program.tensors.size())
          complain(FindingKind::Structure, "a tensor that the program does not have");
      }
    }
    if (is_communication(op.kind) != std::holds_alternative<CommunicationWork>(op.work))
      complain(FindingKind::Structure, "its work is not of its kind");
  }
}

void check_calls(const Program& program, const RankProgram& rank, FindingList& findings) {
  std::size_t ops = 0;
  std::size_t waits = 0;
  for (std::size_t c = 0; c < rank.calls.size(); ++c) {
    const Call& call = rank.calls[c];
    const auto complain = [&](FindingKind kind, const char* text) {
      findings.add(kind, rank.stage, call.first_op, fmt::format("call {}: {}", c, text));
    };
    if (call.block >= program.blocks.size())
      return complain(FindingKind::Structure, "a block that the program does not have");
    if (call.first_op != ops || call.first_wait != waits)
      return complain(FindingKind::Structure, "does not begin where the call before it ended");
    ops += program.blocks[call.block].ops.size();
    const std::size_t end =
        c + 1 < rank.calls.size() ? rank.calls[c + 1].first_wait : rank.waits.size();
    if (end < waits || end > rank.waits.size())
      return complain(FindingKind::Structure, "its waits do not follow those of the call before");
    for (; waits < end; ++waits) {
      const Wait& wait = rank.waits[waits];
      const bool ascends = waits == call.first_wait || rank.waits[waits - 1].op <= wait.op;
      if (wait.op < call.first_op || wait.op >= ops || !ascends)
        complain(FindingKind::Structure, "a wait of another call's op, or out of order");
      if (wait.on >= wait.op) complain(FindingKind::Wait, "waits for an op that comes later");
    }
  }
  if (ops != rank.ops || waits != rank.waits.size())
    findings.add(FindingKind::Structure, rank.stage, rank.ops, "ops or waits that no call has");
}

}  // namespace

Queues::Queues(const Program& program) {
  for (const Block& block : program.blocks) {
    for (const Op& op : block.ops) {
      if (!is_message(op)) continue;
      const std::pair channel{op.stream, std::get<CommunicationWork>(op.work).peer_offset};
      if (std::ranges::find(channels_, channel) == channels_.end()) channels_.push_back(channel);
    }
  }
}

std::size_t Queues::of(const Op& op) const {
  if (!is_message(op)) return static_cast<std::size_t>(op.stream);
  const std::pair channel{op.stream, std::get<CommunicationWork>(op.work).peer_offset};
  const auto found = std::ranges::find(channels_, channel);
  return kStreams + static_cast<std::size_t>(found - channels_.begin());
}

std::string describe(std::string_view op, std::int32_t layer, std::int32_t microbatch) {
  std::string words(op);
  if (layer >= 0) words += fmt::format(" of layer {}", layer);
  if (microbatch >= 0)
    words += fmt::format("{} microbatch {}", layer >= 0 ? "," : " of", microbatch);
  return words;
}

std::string describe(const PlacedOp& placed) {
  return describe(placed.op.name, placed.call.layer, placed.call.microbatch);
}

void check_structure(const Program& program, FindingList& findings) {
  for (const Block& block : program.blocks) check_block(program, block, findings);
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    if (program.stages[s].stage != static_cast<std::int32_t>(s))
      findings.add(FindingKind::Structure, static_cast<std::int32_t>(s), 0,
                   "another stage's program");
    check_calls(program, program.stages[s], findings);
  }
}

std::vector<Finding> validate(const Program& program, std::size_t most) {
  FindingList findings(most);
  check_structure(program, findings);
  if (findings.empty()) {
    check_exchanges(program, findings);
    check_progress(program, findings);
    check_tensors(program, findings);
  }
  return findings.take();
}

}  // namespace shardwright
