#include "sim/calibration/nccl_tests.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "core/base/json_reader.hpp"

namespace shardwright::sim {
namespace {

constexpr std::pair<const char*, OpKind> kPrograms[] = {
    {"all_reduce", OpKind::AllReduce},         {"all_gather", OpKind::AllGather},
    {"reduce_scatter", OpKind::ReduceScatter}, {"alltoall", OpKind::AllToAll},
    {"broadcast", OpKind::Broadcast},          {"sendrecv", OpKind::Send}};

std::optional<OpKind> collective_in(const std::string& text) {
  for (const auto& [name, kind] : kPrograms)
    if (text.find(name) != std::string::npos) return kind;
  return std::nullopt;
}

struct Output {
  std::optional<OpKind> kind;
  std::set<std::int64_t> ranks;
  std::vector<std::pair<double, double>> rows;  // bytes and microseconds
};

// "  1048576  262144  float  sum  -1  45.2  23.2  43.5  0  …": root and reduction may be missing.
void read_row(const std::string& line, Output& output) {
  std::istringstream words(line);
  double bytes = 0.0, count = 0.0;
  std::string word;
  if (!(words >> bytes >> count)) return;
  std::vector<double> numbers;
  while (words >> word) {
    std::istringstream number(word);
    double value = 0.0;
    if (number >> value && number.eof()) numbers.push_back(value);
  }
  // Root, then time, algorithm and bus bandwidth out of place.
  constexpr std::size_t kTime = 1;
  if (numbers.size() > kTime && bytes > 0.0 && numbers[kTime] > 0.0)
    output.rows.emplace_back(bytes, numbers[kTime]);
}

Output read_text(std::istream& stream) {
  Output output;
  for (std::string line; std::getline(stream, line);) {
    const std::size_t first = line.find_first_not_of(" \t");
    if (first == std::string::npos) continue;
    if (line[first] != '#') {
      read_row(line, output);
      continue;
    }
    const std::size_t rank = line.find("Rank ");
    if (line.find("Collective test starting") != std::string::npos)
      output.kind = collective_in(line);
    if (rank != std::string::npos) {
      std::istringstream number(line.substr(rank + 5));
      std::int64_t value = 0;
      if (number >> value) output.ranks.insert(value);
    }
  }
  return output;
}

constexpr std::size_t kMostBytes = 64ULL << 20;

// The whole file, as what it prints is small.
std::string content_of(const std::string& file) {
  const char* const expected = "the output of nccl-tests";
  if (std::filesystem::is_directory(file)) throw InputError(file, {{"", "a folder", expected}});
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw InputError(file, {{"", "no such readable file", expected}});
  std::string content(kMostBytes + 1, '\0');
  stream.read(content.data(), static_cast<std::streamsize>(content.size()));
  content.resize(static_cast<std::size_t>(stream.gcount()));
  if (content.size() > kMostBytes)
    throw InputError(file, {{"", fmt::format("more than {} bytes", kMostBytes), expected}});
  return content;
}

Output read_json(const nlohmann::json& document, const std::string& source) {
  ProblemList problems(source);
  ObjectReader object(document, "", problems);
  Output output;
  for (const std::string& argument : object.texts("args")) {
    if (!output.kind) output.kind = collective_in(argument);
  }
  for (ObjectReader& device : object.object("config").objects("devices"))
    output.ranks.insert(device.integer("rank", {0, 10'000'000}));
  for (ObjectReader& row : object.objects("results")) {
    ObjectReader timing = row.object("out_of_place");
    output.rows.emplace_back(row.number("size", kNonNegative), timing.number("time", kNonNegative));
  }
  problems.throw_if_any();
  return output;
}

}  // namespace

std::vector<ExchangeSample> read_nccl_tests(const std::string& file) {
  return parse_nccl_tests(content_of(file), file);
}

std::vector<ExchangeSample> parse_nccl_tests(const std::string& text, const std::string& file) {
  if (text.find('\0') != std::string::npos)
    throw InputError(file, {{"", "binary data", "the output of nccl-tests"}});
  std::istringstream stream(text);
  const bool json = (stream >> std::ws).peek() == '{';
  Output output = json ? read_json(parse_json(text, file), file) : read_text(stream);
  if (!output.kind) output.kind = collective_in(std::filesystem::path(file).filename().string());
  ProblemList problems(file);
  if (!output.kind) {
    problems.add("", "no name of a collective",
                 "one in the output or the file's name: all_reduce, all_gather, reduce_scatter, "
                 "alltoall, broadcast or sendrecv");
  }
  if (output.ranks.size() < 2)
    problems.add("", fmt::format("{} ranks", output.ranks.size()), "a list of at least 2 devices");
  if (output.rows.empty()) problems.add("", "no timings", "rows of sizes and times");
  problems.throw_if_any();
  std::vector<ExchangeSample> samples;
  const bool pairs = *output.kind == OpKind::Send;
  for (const auto& [bytes, time] : output.rows) {
    if (bytes <= 0.0 || time <= 0.0) continue;
    samples.push_back({*output.kind, pairs ? 2 : static_cast<std::int64_t>(output.ranks.size()), 1,
                       Bytes(bytes), microseconds(time)});
  }
  return samples;
}

}  // namespace shardwright::sim
