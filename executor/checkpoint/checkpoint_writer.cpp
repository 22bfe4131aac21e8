#include "executor/checkpoint/checkpoint_writer.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/base/error.hpp"

namespace shardwright::executor {
namespace {

constexpr std::chrono::milliseconds kPollInterval{5};
constexpr const char* kCreatedKey = "checkpoint.created";
constexpr const char* kCompleteKey = "checkpoint.complete";

std::string part_key(std::int64_t rank) {
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

template <class Work>
void CheckpointWriter::report(const std::string& key, std::int64_t steps, const Work& work) {
  try {
    work();
  } catch (const std::exception& error) {
    store_.set(key, fmt::format("{}: {}", steps, error.what()));
    throw;
  }
  store_.set(key, fmt::format("{}", steps));
}

void CheckpointWriter::wait_for(const std::string& key, std::int64_t steps,
                                const std::stop_token& stop) {
  const std::string wanted = fmt::format("{}", steps);
  while (!stop.stop_requested()) {
    const std::string value = store_.find(key).value_or("");
    if (value == wanted) return;
    if (value.rfind(wanted + ": ", 0) == 0) throw RuntimeFailure(value.substr(wanted.size() + 2));
    if (check_others_) check_others_();
    if (std::chrono::steady_clock::now() > deadline_) {
      throw RuntimeFailure(
          fmt::format("the checkpoint of step {} is not complete after {} s: no {}", steps,
                      limit_.count() / 1000, key));
    }
    std::this_thread::sleep_for(kPollInterval);
  }
  throw RuntimeFailure(fmt::format("the checkpoint of step {} was abandoned", steps));
}

void CheckpointWriter::write(const RunState& state, const std::vector<ParameterPiece>& pieces,
                             const std::stop_token& stop) {
  if (rank_ != 0) {
    wait_for(kCreatedKey, state.steps, stop);
    report(part_key(rank_), state.steps,
           [&] { write_parameters(folder_.unfinished(state.steps), model_, pieces); });
    return wait_for(kCompleteKey, state.steps, stop);
  }
  report(kCompleteKey, state.steps, [&] {
    write_parts(state, pieces, stop);
    folder_.finish(state);
    folder_.prune(keep_);
  });
}

void CheckpointWriter::write_parts(const RunState& state, const std::vector<ParameterPiece>& pieces,
                                   const std::stop_token& stop) {
  report(kCreatedKey, state.steps,
         [&] { create_parameter_files(folder_.begin(state.steps), model_); });
  write_parameters(folder_.unfinished(state.steps), model_, pieces);
  for (std::int64_t rank = 1; rank < world_; ++rank) wait_for(part_key(rank), state.steps, stop);
}

}  // namespace shardwright::executor
