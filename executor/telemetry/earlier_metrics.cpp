#include "executor/telemetry/earlier_metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "core/base/bounded_line.hpp"
#include "core/base/error.hpp"

namespace shardwright::executor {
namespace {

// In bytes.
constexpr std::size_t kLongestLine = std::size_t{1} << 20U;
constexpr std::size_t kMaxProblems = 100;
constexpr const char* kExpected = "an object with a step: repair or remove the line";

std::optional<std::int64_t> step_of(const nlohmann::json& line) {
  const auto step = line.is_object() ? line.find("step") : line.end();
  if (step == line.end() || !step->is_number_integer() || *step < 0) return std::nullopt;
  return step->get<std::int64_t>();
}

// The steps from `first` to `end` - 1.
struct StepRange {
  std::int64_t first = 0, end = 0;
};

std::vector<StepRange> gaps_between(const std::set<std::int64_t>& steps, std::int64_t end) {
  std::vector<StepRange> gaps;
  std::int64_t next = 0;
  for (auto step = steps.lower_bound(0); step != steps.end() && *step < end; ++step) {
    if (*step > next) gaps.push_back({next, *step});
    next = *step + 1;
  }
  if (end > next) gaps.push_back({next, end});
  return gaps;
}

}  // namespace

bool for_each_earlier_step(
    const std::filesystem::path& file,
    const std::function<void(std::int64_t step, const std::string& line)>& take) {
  if (const std::string kind = kind_unless_regular(file); !kind.empty())
    throw InputError(file.string(),
                     {{"", kind, "a regular file with the metrics of a run, or nothing"}});
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return false;
  const bool is_whole = ends_with_line_feed(file);
  ProblemList problems(file.string());
  std::string line;
  for (std::size_t number = 1; problems.size() < kMaxProblems; ++number) {
    const LineRead read = read_bounded_line(stream, kLongestLine, line);
    if (read == LineRead::End) break;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string place = fmt::format("line {}", number);
    if (read == LineRead::TooLong) {
      problems.add(place, fmt::format("more than {} bytes", kLongestLine), kExpected);
      break;
    }
    const nlohmann::json document = nlohmann::json::parse(line, nullptr, false);
    const bool is_last = stream.rdbuf()->sgetc() == std::char_traits<char>::eof();
    const bool is_truncated = document.is_discarded() && is_last && !is_whole;
    if (is_truncated) {
      problems.throw_if_any();
      return true;
    }
    if (const auto step = step_of(document)) {
      take(*step, line);
    } else {
      problems.add(place, document.is_discarded() ? "no JSON" : "no step", kExpected);
    }
  }
  problems.throw_if_any();
  return false;
}

std::string missing_steps(const std::set<std::int64_t>& steps, std::int64_t end) {
  constexpr std::size_t kMaxGaps = 3;
  const std::vector<StepRange> gaps = gaps_between(steps, end);
  std::string text;
  for (std::size_t i = 0; i < std::min(gaps.size(), kMaxGaps); ++i) {
    const auto [first, behind] = gaps[i];
    text += i == 0 ? "" : ", ";
    text +=
        behind - first == 1 ? fmt::format("{}", first) : fmt::format("{} to {}", first, behind - 1);
  }
  if (gaps.size() > kMaxGaps) text += " and others after them";
  if (text.empty()) return "";
  const bool is_one = gaps.size() == 1 && gaps.front().end - gaps.front().first == 1;
  return (is_one ? "step " : "steps ") + text;
}

}  // namespace shardwright::executor
