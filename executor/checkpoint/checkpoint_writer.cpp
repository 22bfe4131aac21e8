#include "executor/checkpoint/checkpoint_writer.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/base/error.hpp"

namespace shardwright::executor {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{5};
constexpr const char* kMade = "checkpoint.made";
constexpr const char* kWhole = "checkpoint.whole";

std::string part_of(std::int64_t rank) {
  return fmt::format("checkpoint.part.{}", rank);
}

}  // namespace

CheckpointWriter::CheckpointWriter(CheckpointFolder& folder, std::int64_t keep,
                                   const ModelSpec& model, Store& store, std::int64_t rank,
                                   std::int64_t world, std::chrono::milliseconds limit,
                                   std::function<void()> check_others)
    : folder_(folder),
      keep_(keep),
      model_(model),
      store_(store),
      rank_(rank),
      world_(world),
      limit_(limit),
      check_others_(std::move(check_others)) {}

void CheckpointWriter::start(const RunState& state, const std::vector<ParameterPiece>& pieces) {
  deadline_ = std::chrono::steady_clock::now() + limit_;
  thread_ = std::jthread([this, state, &pieces](const std::stop_token& stop) {
    try {
      write(state, pieces, stop);
    } catch (...) {
      failure_ = std::current_exception();
    }
  });
}

void CheckpointWriter::wait() {
  if (thread_.joinable()) thread_.join();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

// Whatever fails, the ranks that wait for it are told.
template <class Work>
void CheckpointWriter::tell(const std::string& key, std::int64_t steps, const Work& work) {
  try {
    work();
  } catch (const std::exception& error) {
    store_.set(key, fmt::format("{}: {}", steps, error.what()));
    throw;
  }
  store_.set(key, fmt::format("{}", steps));
}

void CheckpointWriter::await(const std::string& key, std::int64_t steps,
                             const std::stop_token& stop) {
  const std::string wanted = fmt::format("{}", steps);
  while (!stop.stop_requested()) {
    const std::string value = store_.find(key).value_or("");
    if (value == wanted) return;
    if (value.rfind(wanted + ": ", 0) == 0) throw RuntimeFailure(value.substr(wanted.size() + 2));
    if (check_others_) check_others_();
    if (std::chrono::steady_clock::now() > deadline_) {
      throw RuntimeFailure(fmt::format("the checkpoint of step {} is not written after {} s: {}",
                                       steps, limit_.count() / 1000, key));
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
  throw RuntimeFailure(fmt::format("the checkpoint of step {} was given up", steps));
}

void CheckpointWriter::write(const RunState& state, const std::vector<ParameterPiece>& pieces,
                             const std::stop_token& stop) {
  if (rank_ != 0) {
    await(kMade, state.steps, stop);
    tell(part_of(rank_), state.steps,
         [&] { write_parameters(folder_.unfinished(state.steps), model_, pieces); });
    return await(kWhole, state.steps, stop);
  }
  tell(kWhole, state.steps, [&] {
    write_parts(state, pieces, stop);
    folder_.finish(state);
    folder_.prune(keep_);
  });
}

void CheckpointWriter::write_parts(const RunState& state, const std::vector<ParameterPiece>& pieces,
                                   const std::stop_token& stop) {
  tell(kMade, state.steps, [&] { create_parameter_files(folder_.begin(state.steps), model_); });
  write_parameters(folder_.unfinished(state.steps), model_, pieces);
  for (std::int64_t rank = 1; rank < world_; ++rank) await(part_of(rank), state.steps, stop);
}

}  // namespace shardwright::executor
