#include "executor/launch/agreement.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <vector>

#include "executor/comm/communicator.hpp"
#include "executor/comm/socket.hpp"
#include "executor/launch/heartbeat.hpp"
#include "executor/launch/rendezvous.hpp"

namespace shardwright::executor {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;
using std::chrono::milliseconds;

constexpr const char* kVerdictKey = "inputs.verdict";
constexpr milliseconds kPollInterval{5};
// Rank 0's process may serve the store: it gives the others this long to read the verdict.
constexpr milliseconds kReadTime{2'000};
// The wait for a rank of which only some ranks know.
constexpr milliseconds kJoinTime{2'000};
constexpr std::size_t kMaxProblems = 20;

std::string inputs_key(std::int64_t rank) {
  return fmt::format("inputs.{}", rank);
}

std::string read_key(std::int64_t rank) {
  return fmt::format("inputs.read.{}", rank);
}

std::optional<std::string> await(Store& store, const std::string& key, Clock::time_point deadline) {
  while (true) {
    if (auto value = store.find(key)) return value;
    if (Clock::now() > deadline) return std::nullopt;
    std::this_thread::sleep_for(kPollInterval);
  }
}

// A rank's inputs and host, or its own errors.
struct RankInputs {
  // The world size that its launcher stated.
  std::int64_t rank = 0, world = 0;
  std::string host;
  RunInputs inputs;
  std::vector<Problem> refused = {};

  std::string name() const { return fmt::format("rank {} on {}", rank, host); }
};

json json_of(const std::vector<Problem>& problems) {
  json list = json::array();
  for (const Problem& problem : problems)
    list.push_back({problem.where, problem.found, to_string(problem.expected)});
  return list;
}

std::vector<Problem> read_problems(const json& list) {
  std::vector<Problem> problems;
  for (const json& problem : list)
    problems.push_back({problem.at(0), problem.at(1), problem.at(2).get<std::string>()});
  return problems;
}

// Returns a rank's errors for display by other ranks.
std::vector<Problem> problems_of(const RankInputs& rank, const InputError& error) {
  std::vector<Problem> problems;
  for (const Problem& problem : error.problems()) {
    const std::string separator = problem.where.empty() ? "" : ": ";
    problems.push_back(
        {fmt::format("{}, {}{}{}", rank.name(), error.source(), separator, problem.where),
         problem.found, problem.expected});
  }
  return problems;
}

std::string text_of(const RankInputs& own) {
  // The time distinguishes two processes with the same rank number.
  const json entry = {{"world", own.world},   {"host", own.host},
                      {"process", getpid()},  {"joined", Clock::now().time_since_epoch().count()},
                      {"inputs", own.inputs}, {"refused", json_of(own.refused)}};
  return entry.dump(-1, ' ', false, json::error_handler_t::replace);
}

RankInputs read_inputs(std::int64_t rank, const std::string& text) {
  const json read = json::parse(text);
  return {rank, read.at("world"), read.at("host"), read.at("inputs"),
          read_problems(read.at("refused"))};
}

struct Verdict {
  std::vector<std::int64_t> absent;
  std::vector<Problem> problems;
  // The largest world size that a rank stated; known to rank 0 alone.
  std::int64_t world = 0;

  bool is_good() const { return absent.empty() && problems.empty(); }
};

std::string text_of(const Verdict& verdict) {
  return json{{"absent", verdict.absent}, {"problems", json_of(verdict.problems)}}.dump(
      -1, ' ', false, json::error_handler_t::replace);
}

Verdict read_verdict(const std::string& text) {
  const json read = json::parse(text);
  return {read.at("absent"), read_problems(read.at("problems"))};
}

void compare(const RankInputs& first, const RankInputs& other, std::vector<Problem>& problems) {
  if (!other.refused.empty()) {
    problems.insert(problems.end(), other.refused.begin(), other.refused.end());
    return;
  }
  if (other.world != first.world)
    problems.push_back({other.name() + ", number of ranks", fmt::format("{}", other.world),
                        fmt::format("{}, as on {}", first.world, first.name())});
  const auto value = [](const RunInputs& inputs, const std::string& name) {
    const auto found = inputs.find(name);
    return found == inputs.end() ? std::string("nothing") : found->second;
  };
  RunInputs all = first.inputs;
  all.insert(other.inputs.begin(), other.inputs.end());
  for (const auto& [name, ignored] : all) {
    const std::string found = value(other.inputs, name), expected = value(first.inputs, name);
    if (found == expected) continue;
    problems.push_back({fmt::format("{}, {}", other.name(), name), found,
                        fmt::format("{}, as on {}", expected, first.name())});
  }
}

void publish_verdict(Store& store, Verdict& verdict) {
  if (verdict.problems.size() > kMaxProblems) verdict.problems.resize(kMaxProblems);
  store.set(kVerdictKey, text_of(verdict));
}

// Rank 0 collects the inputs of the others, compares them with its own and publishes the verdict.
Verdict compare_all_ranks(Store& store, const RankInputs& own, std::int64_t world,
                          milliseconds timeout, const std::function<void()>& prepare) {
  auto deadline = Clock::now() + timeout;
  std::int64_t least_world = world;
  Verdict verdict;
  verdict.world = world;
  for (std::int64_t rank = 1; rank < world; ++rank) {
    // Some rank knows of no ranks from here on: those may not exist, and the difference is already
    // known.
    if (rank >= least_world) deadline = std::min(deadline, Clock::now() + kJoinTime);
    const auto text = await(store, inputs_key(rank), deadline);
    if (!text) {
      verdict.absent.push_back(rank);
      report_absent(store, rank);
      continue;
    }
    const RankInputs other = read_inputs(rank, *text);
    least_world = std::min(least_world, other.world);
    verdict.world = std::max(verdict.world, other.world);
    if (verdict.problems.size() < kMaxProblems) compare(own, other, verdict.problems);
  }
  try {
    if (prepare && verdict.is_good()) prepare();
  } catch (const InputError& error) {
    verdict.problems = problems_of(own, error);
  }
  publish_verdict(store, verdict);
  return verdict;
}

void wait_for_readers(Store& store, const Verdict& verdict, milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  for (std::int64_t rank = 1; rank < verdict.world && Clock::now() < deadline; ++rank) {
    const bool is_absent = std::count(verdict.absent.begin(), verdict.absent.end(), rank) > 0;
    if (!is_absent) await(store, read_key(rank), deadline);
  }
}

[[noreturn]] void reject_duplicate(std::int64_t rank, const std::string& other) {
  const json found = json::parse(other);
  throw InputError(
      "the ranks of the run",
      {{fmt::format("rank {}", rank),
        fmt::format("two processes, the other one process {} on {}",
                    found.at("process").get<std::int64_t>(), found.at("host").get<std::string>()),
        "each rank once"}});
}

// The other ranks wait for the verdict of rank 0.
Verdict await_verdict(Store& store, std::int64_t rank, milliseconds timeout) {
  if (!await(store, inputs_key(0), Clock::now() + timeout)) {
    report_absent(store, 0);
    return {{0}, {}};
  }
  const auto text = await(store, kVerdictKey, Clock::now() + timeout + kReadTime);
  if (!text) throw RuntimeFailure("rank 0 did not report whether all ranks have joined");
  store.set(read_key(rank), "");
  return read_verdict(*text);
}

}  // namespace

void agree_on_inputs(Store& store, std::int64_t rank, std::int64_t world, const RunInputs& inputs,
                     milliseconds timeout, const std::function<void()>& prepare) {
  if (world == 1) {
    if (prepare) prepare();
    return;
  }
  const RankInputs own{rank, world, host_name(), inputs};
  const std::string text = text_of(own);
  if (const auto other = store.find(inputs_key(rank))) reject_duplicate(rank, *other);
  store.set(inputs_key(rank), text);
  const Verdict verdict = rank == 0 ? compare_all_ranks(store, own, world, timeout, prepare)
                                    : await_verdict(store, rank, timeout);
  // Two processes that start at the same moment both find the key unset.
  const auto last = store.find(inputs_key(rank));
  if (last && *last != text) reject_duplicate(rank, *last);
  if (rank == 0) wait_for_readers(store, verdict, kReadTime);
  if (verdict.is_good()) return;
  if (!verdict.problems.empty()) throw InputError("the ranks of the run", verdict.problems);
  const std::chrono::duration<double> seconds = timeout;
  throw RuntimeFailure(fmt::format("{} {} did not join within {:.1f} s",
                                   verdict.absent.size() == 1 ? "rank" : "ranks",
                                   fmt::join(verdict.absent, ", "), seconds.count()));
}

void report_refusal(Store& store, std::int64_t rank, std::int64_t world, const InputError& error,
                    milliseconds limit) {
  RankInputs own{rank, world, host_name(), {}};
  own.refused = problems_of(own, error);
  store.set(inputs_key(rank), text_of(own));
  // This rank does not read the verdict.
  store.set(read_key(rank), "");
  if (rank != 0) {
    // The answer arrives after the store has the entry.
    store.find(inputs_key(rank));
    return;
  }
  Verdict verdict{{}, own.refused, world};
  publish_verdict(store, verdict);
  wait_for_readers(store, verdict, limit);
}

void report_to_other_ranks(const LaunchPlace& place, const std::string& token,
                           const InputError& error, std::chrono::milliseconds timeout) {
  if (place.launcher == kOwnLauncher || place.world == 1 || token.empty()) return;
  constexpr std::chrono::milliseconds kLongest{30'000};
  const auto limit = std::min(timeout, kLongest);
  try {
    const Rendezvous rendezvous(place, token, limit);
    report_refusal(*rendezvous.store(), place.rank, place.world, error, limit);
  } catch (const CommunicationError&) {
    // No other rank is there.
  }
}

}  // namespace shardwright::executor
