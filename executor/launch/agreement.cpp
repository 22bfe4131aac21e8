#include "executor/launch/agreement.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "executor/launch/heartbeat.hpp"
#include "executor/telemetry/host_name.hpp"

namespace shardwright::executor {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;
using std::chrono::milliseconds;

constexpr const char* kVerdictKey = "inputs.verdict";
constexpr milliseconds kBetweenLooks{5};
// The table goes with rank 0, whom a launcher of ours does not serve: others have so long to read.
constexpr milliseconds kToRead{2'000};
constexpr std::size_t kMostProblems = 20;

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
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

// A rank's inputs, with where it is.
struct RankInputs {
  std::int64_t rank = 0;
  std::string host;
  RunInputs inputs;

  std::string name() const { return fmt::format("rank {} on {}", rank, host); }
};

std::string text_of(const RankInputs& own) {
  // The moment tells apart two that come as one rank.
  const json said = {{"host", own.host},
                     {"process", getpid()},
                     {"came", Clock::now().time_since_epoch().count()},
                     {"inputs", own.inputs}};
  return said.dump(-1, ' ', false, json::error_handler_t::replace);
}

RankInputs read_inputs(std::int64_t rank, const std::string& text) {
  const json read = json::parse(text);
  return {rank, read.at("host"), read.at("inputs")};
}

struct Verdict {
  std::vector<std::int64_t> absent;
  std::vector<Problem> problems;

  bool is_good() const { return absent.empty() && problems.empty(); }
};

std::string text_of(const Verdict& verdict) {
  json problems = json::array();
  for (const Problem& problem : verdict.problems)
    problems.push_back({problem.where, problem.found, problem.expected});
  return json{{"absent", verdict.absent}, {"problems", problems}}.dump(
      -1, ' ', false, json::error_handler_t::replace);
}

Verdict read_verdict(const std::string& text) {
  const json read = json::parse(text);
  Verdict verdict{read.at("absent"), {}};
  for (const json& problem : read.at("problems"))
    verdict.problems.push_back({problem.at(0), problem.at(1), problem.at(2)});
  return verdict;
}

void compare(const RankInputs& first, const RankInputs& other, std::vector<Problem>& problems) {
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

// The first rank's side.
Verdict judge(Store& store, const RankInputs& own, std::int64_t world, milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  Verdict verdict;
  for (std::int64_t rank = 1; rank < world; ++rank) {
    const auto text = await(store, inputs_key(rank), deadline);
    if (!text) {
      verdict.absent.push_back(rank);
      report_absent(store, rank);
    } else if (verdict.problems.size() < kMostProblems) {
      compare(own, read_inputs(rank, *text), verdict.problems);
    }
  }
  if (verdict.problems.size() > kMostProblems) verdict.problems.resize(kMostProblems);
  store.set(kVerdictKey, text_of(verdict));
  return verdict;
}

void wait_for_readers(Store& store, const Verdict& verdict, std::int64_t world) {
  const auto deadline = Clock::now() + kToRead;
  for (std::int64_t rank = 1; rank < world; ++rank) {
    const bool is_absent = std::count(verdict.absent.begin(), verdict.absent.end(), rank) > 0;
    if (!is_absent) await(store, read_key(rank), deadline);
  }
}

[[noreturn]] void refuse_second(std::int64_t rank, const std::string& other) {
  const json found = json::parse(other);
  throw InputError(
      "the ranks of the run",
      {{fmt::format("rank {}", rank),
        fmt::format("two processes, the other one process {} on {}",
                    found.at("process").get<std::int64_t>(), found.at("host").get<std::string>()),
        "each rank once"}});
}

// The side of the others.
Verdict hear(Store& store, std::int64_t rank, milliseconds timeout) {
  if (!await(store, inputs_key(0), Clock::now() + timeout)) {
    report_absent(store, 0);
    return {{0}, {}};
  }
  const auto text = await(store, kVerdictKey, Clock::now() + timeout + kToRead);
  if (!text) throw RuntimeFailure("rank 0 does not say whether all ranks have come");
  store.set(read_key(rank), "");
  return read_verdict(*text);
}

}  // namespace

void agree_on_inputs(Store& store, std::int64_t rank, std::int64_t world, const RunInputs& inputs,
                     milliseconds timeout) {
  if (world == 1) return;
  const RankInputs own{rank, host_name(), inputs};
  const std::string text = text_of(own);
  if (const auto other = store.find(inputs_key(rank))) refuse_second(rank, *other);
  store.set(inputs_key(rank), text);
  const Verdict verdict =
      rank == 0 ? judge(store, own, world, timeout) : hear(store, rank, timeout);
  // Two that come at the same moment both find nobody there.
  const auto last = store.find(inputs_key(rank));
  if (last && *last != text) refuse_second(rank, *last);
  if (rank == 0) wait_for_readers(store, verdict, world);
  if (verdict.is_good()) return;
  if (!verdict.problems.empty()) throw InputError("the ranks of the run", verdict.problems);
  const std::chrono::duration<double> seconds = timeout;
  throw RuntimeFailure(fmt::format("{} {} did not join within {:.1f} s",
                                   verdict.absent.size() == 1 ? "rank" : "ranks",
                                   fmt::join(verdict.absent, ", "), seconds.count()));
}

}  // namespace shardwright::executor
