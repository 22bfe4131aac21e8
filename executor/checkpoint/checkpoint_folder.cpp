#include "executor/checkpoint/checkpoint_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/base/json_reader.hpp"
#include "core/base/untrusted_file.hpp"
#include "executor/data/hash.hpp"
#include "executor/telemetry/run_files.hpp"

namespace shardwright::executor {
namespace {

constexpr const char* kSchema = "shardwright/checkpoint";
constexpr const char* kPrefix = "step-";
constexpr const char* kUnfinished = ".unfinished";

// Called before a file is opened: opening a pipe would wait for its writer.
void need_regular(const std::filesystem::path& file) {
  const std::string kind = kind_unless_regular(file);
  if (!kind.empty()) throw RuntimeFailure(file.string() + " is " + kind + ", not a file");
}

nlohmann::json read_document(const std::filesystem::path& file) {
  need_regular(file);
  return read_json_file(file);
}

// Mixes each word into the checksum by a bijection, so that a change of any one word shows.
std::string file_checksum(const std::filesystem::path& file) {
  need_regular(file);
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw RuntimeFailure(file.string() + " cannot be read");
  std::array<std::uint64_t, 8192> words{};
  std::uint64_t sum = 0, bytes = 0;
  while (stream) {
    words.fill(0);
    stream.read(reinterpret_cast<char*>(words.data()), sizeof words);
    const auto got = static_cast<std::uint64_t>(stream.gcount());
    bytes += got;
    for (std::size_t i = 0; i < (got + 7) / 8; ++i) sum = split_mix(sum ^ words[i]);
  }
  return checksum_text(split_mix(sum ^ bytes));
}

// Returns the checksum of a state file's members except "checksum" itself.
std::string state_checksum(nlohmann::json document) {
  if (document.is_object()) document.erase("checksum");
  return checksum_text(key_of(0, document.dump()));
}

void flush_to_disk(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool flushed = descriptor >= 0 && ::fsync(descriptor) == 0;
  const std::string why = std::strerror(errno);
  if (descriptor >= 0) ::close(descriptor);
  if (!flushed) throw RuntimeFailure(path.string() + ": " + why);
}

std::string digits_of(std::uint64_t value) {
  return fmt::format("{}", value);
}

std::uint64_t read_unsigned(ObjectReader& reader, const std::string& key) {
  const std::string text = reader.text(key);
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end)
    reader.problem(key, "\"" + text + "\"", "an unsigned integer as text");
  return value;
}

NoiseMeans read_noise(ObjectReader reader) {
  constexpr double kLargest = std::numeric_limits<double>::max();
  constexpr NumberRange kAny{-kLargest, kLargest, false};
  NoiseMeans noise;
  noise.signal = reader.number("signal", kAny);
  noise.noise = reader.number("noise_tokens", kAny);
  noise.weight = reader.number("weight", kRatioOrZero);
  return noise;
}

struct StateFile {
  RunState state;
  std::string model_checksum, optimizer_checksum;
};

StateFile read_state_file(const std::filesystem::path& file) {
  const nlohmann::json document = read_document(file);
  ProblemList problems(file.string());
  ObjectReader reader(document, "", problems);
  StateFile read;
  if (reader.text("schema") != kSchema) reader.problem("schema", "another one", kSchema);
  reader.integer("version", {1, 1});
  if (reader.text("checksum") != state_checksum(document))
    reader.problem("checksum", "that of other content", "the checksum of the other members");
  read.state.steps = reader.integer("steps");
  read.state.samples = read_unsigned(reader, "samples");
  read.state.seed = read_unsigned(reader, "seed");
  read.state.seq_len = reader.integer("seq_len");
  read.state.model = reader.text_or("model", "");
  read.state.model_checksum = reader.text_or("model_checksum", "");
  if (reader.has("data_tokens")) read.state.data_tokens = read_unsigned(reader, "data_tokens");
  read.state.data_checksum = reader.text_or("data_checksum", "");
  if (auto options = reader.object_if("options")) {
    for (const std::string& name : options->keys()) read.state.options[name] = options->text(name);
  }
  if (auto noise = reader.object_if("noise_scale")) read.state.noise = read_noise(*noise);
  ObjectReader sums = reader.object("checksums");
  read.model_checksum = sums.text(kModelFile);
  read.optimizer_checksum = sums.text(kOptimizerFile);
  problems.throw_if_any();
  return read;
}

std::optional<std::int64_t> steps_in(const std::string& name) {
  if (name.rfind(kPrefix, 0) != 0) return std::nullopt;
  std::int64_t steps = 0;
  const char* end = name.data() + name.size();
  const auto read = std::from_chars(name.data() + std::strlen(kPrefix), end, steps);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return steps;
}

}  // namespace

std::vector<std::int64_t> CheckpointFolder::steps() const {
  std::vector<std::int64_t> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
    if (const auto steps = steps_in(entry.path().filename().string())) found.push_back(*steps);
  }
  std::sort(found.rbegin(), found.rend());
  return found;
}

std::filesystem::path CheckpointFolder::path(std::int64_t steps) const {
  return folder_ / fmt::format("{}{:08}", kPrefix, steps);
}

std::filesystem::path CheckpointFolder::unfinished(std::int64_t steps) const {
  return path(steps).string() + kUnfinished;
}

bool CheckpointFolder::has_unfinished() const {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, error))
    if (entry.path().extension() == kUnfinished) return true;
  return false;
}

std::filesystem::path CheckpointFolder::begin(std::int64_t steps) const {
  std::filesystem::path folder = unfinished(steps);
  std::error_code error;
  std::filesystem::remove_all(folder, error);
  const bool is_first = !std::filesystem::exists(folder_, error);
  std::filesystem::create_directories(folder, error);
  if (error) throw RuntimeFailure(folder.string() + ": " + error.message());
  // finish() flushes the content of the folder; a new folder also needs its own name on the disk.
  if (is_first) flush_to_disk(std::filesystem::absolute(folder_).parent_path());
  return folder;
}

void CheckpointFolder::finish(const RunState& state) {
  const std::filesystem::path folder = unfinished(state.steps);
  nlohmann::ordered_json document = {{"schema", kSchema},
                                     {"version", 1},
                                     {"steps", state.steps},
                                     {"samples", digits_of(state.samples)},
                                     {"seed", digits_of(state.seed)},
                                     {"seq_len", state.seq_len},
                                     {"model", state.model},
                                     {"model_checksum", state.model_checksum},
                                     {"data_tokens", digits_of(state.data_tokens)},
                                     {"data_checksum", state.data_checksum},
                                     {"options", state.options},
                                     {"noise_scale",
                                      {{"signal", state.noise.signal},
                                       {"noise_tokens", state.noise.noise},
                                       {"weight", state.noise.weight}}}};
  for (const char* file : {kModelFile, kOptimizerFile}) {
    flush_to_disk(folder / file);
    document["checksums"][file] = file_checksum(folder / file);
  }
  document["checksum"] = state_checksum(document);
  std::ofstream stream(folder / kStateFile);
  stream << document.dump(2) << '\n';
  stream.close();
  if (!stream) fail_to_write(folder / kStateFile);
  flush_to_disk(folder / kStateFile);
  flush_to_disk(folder);
  std::error_code error;
  std::filesystem::remove_all(path(state.steps), error);
  std::filesystem::rename(folder, path(state.steps), error);
  if (error) throw RuntimeFailure(folder.string() + ": " + error.message());
  flush_to_disk(folder_);
  intact_.insert(state.steps);
}

std::optional<std::string> CheckpointFolder::find_damage(std::int64_t steps) {
  try {
    const StateFile read = read_state_file(path(steps) / kStateFile);
    for (const auto& [file, sum] : {std::pair{kModelFile, read.model_checksum},
                                    std::pair{kOptimizerFile, read.optimizer_checksum}}) {
      if (file_checksum(path(steps) / file) != sum)
        return (path(steps) / file).string() + " has another checksum than when it was written";
    }
    if (read.state.steps != steps) return path(steps).string() + " holds another step";
  } catch (const std::exception& error) {
    return error.what();
  }
  intact_.insert(steps);
  return std::nullopt;
}

RunState CheckpointFolder::read_state(std::int64_t steps) const {
  return read_state_file(path(steps) / kStateFile).state;
}

std::uint64_t CheckpointFolder::checksum(std::int64_t steps) const {
  return key_of(0, read_document(path(steps) / kStateFile).dump());
}

bool CheckpointFolder::is_intact(std::int64_t steps) {
  return intact_.contains(steps) || !find_damage(steps);
}

void CheckpointFolder::prune(std::int64_t keep) {
  std::error_code error;
  std::vector<std::filesystem::path> old;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind(kPrefix, 0) == 0 && entry.path().extension() == kUnfinished)
      old.push_back(entry.path());
  }
  const std::vector<std::int64_t> complete = steps();
  // A damaged checkpoint does not count: it may belong to a later step than the run has reached.
  std::int64_t kept = 0;
  const bool too_many = static_cast<std::int64_t>(complete.size()) > keep;
  for (std::size_t i = 0; too_many && i < complete.size(); ++i) {
    if (kept == keep) {
      old.push_back(path(complete[i]));
    } else if (is_intact(complete[i])) {
      ++kept;
    }
  }
  for (const auto& folder : old) std::filesystem::remove_all(folder, error);
}

}  // namespace shardwright::executor
