#include "cli/programs/here_profile.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "calibration/part_calibration.hpp"
#include "cli/output/output_file.hpp"
#include "cli/programs/sibling_programs.hpp"
#include "core/base/error.hpp"
#include "core/base/folder_lock.hpp"
#include "core/base/json_reader.hpp"
#include "core/base/nearest_name.hpp"
#include "core/base/printable_text.hpp"
#include "core/base/standard_streams.hpp"
#include "core/base/stop_signals.hpp"
#include "core/spec/cluster_json.hpp"
#include "core/spec/profile_library.hpp"
#include "core/spec/this_machine.hpp"

namespace shardwright::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolderPrefix = "shardwright-probe.";

// Opens and locks a folder; the system releases the lock however the process ends. Returns a value
// below 0 if the folder is gone, belongs to another user, or is locked by another process.
int lock_folder(const fs::path& path) {
  const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0 || flock(folder, LOCK_EX | LOCK_NB) == 0) return folder;
  close(folder);
  return -1;
}

// Removes the folders of probes that SIGKILL or a stop of the machine ended.
void remove_abandoned_folders() {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(fs::temp_directory_path(), ignored)) {
    if (entry.path().filename().string().rfind(kFolderPrefix, 0) != 0) continue;
    const int folder = lock_folder(entry.path());
    if (folder < 0) continue;
    fs::remove_all(entry.path(), ignored);
    close(folder);
  }
}

// A temporary folder that is removed with the object, or else when the next one is created.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    remove_abandoned_folders();
    std::string name = (fs::temp_directory_path() / kFolderPrefix).string() + "XXXXXX";
    if (mkdtemp(name.data()) == nullptr) throw RuntimeFailure(name + " cannot be created");
    path_ = name;
    folder_ = lock_folder(path_);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
    if (folder_ >= 0) close(folder_);
  }

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
  int folder_ = -1;
};

// The source of the profile: the probe, its date and the device.
std::string source_of(const ClusterSpec& machine) {
  const auto known = machine.accelerator.sources.find("/compute_units");
  return known != machine.accelerator.sources.end() ? known->second.source
                                                    : "measured by shardwright probe";
}

}  // namespace

calibration::Calibration profile_of_probe(const fs::path& folder) {
  const fs::path exchanges = folder / "exchanges.json";
  const ClusterSpec machine = load_cluster((folder / "machine.json").string());
  calibration::CalibrationData data;
  data.exchanges =
      calibration::bounded_by_larger(read_exchanges(read_json_file(exchanges), exchanges.string()));
  std::vector<fs::path> runs;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder / "runs", error))
    runs.push_back(entry.path());
  std::sort(runs.begin(), runs.end());
  for (const fs::path& run : runs) data.runs.push_back(calibration::load_run(run));
  return calibration::calibrate(machine, data, source_of(machine), Confidence::Measured);
}

calibration::Calibration probe_machine(const MachineProbe& probe) {
  // A signal waits until the folder is removed.
  const StopSignalsHeld held;
  const TemporaryFolder temporary;
  const fs::path& out = probe.folder.empty() ? temporary.path() : probe.folder;
  std::vector<std::string> arguments = {"probe",      "--local",  "--out",
                                        out.string(), "--device", probe.device};
  if (probe.share_gpu) arguments.emplace_back("--share-gpu");
  if (!probe.progress) arguments.emplace_back("--no-progress");
  const auto add = [&](const char* option, std::int64_t value) {
    if (value == 0) return;
    arguments.emplace_back(option);
    arguments.push_back(std::to_string(value));
  };
  add("--ranks", probe.ranks);
  add("--steps", probe.steps);
  run_executor(std::move(arguments), held);
  return profile_of_probe(out);
}

ClusterSpec load_cluster_or_here(const std::string& name) {
  if (name == kHere) return load_here();
  const std::vector<std::string> names = shipped_clusters();
  const bool meant = !nearest_name(name, std::array<std::string, 1>{kHere}).empty();
  if (meant && std::find(names.begin(), names.end(), name) == names.end()) {
    throw InputError(name,
                     {{"",
                       "no cluster of this name",
                       {fmt::format("one that `shardwright clusters list` shows, the path of a "
                                    "JSON file, or {}",
                                    kHere),
                        kHere}}});
  }
  return load_cluster(name);
}

void keep_profile(const fs::path& file, const ClusterSpec& cluster) {
  const std::string text = json_text(to_json(cluster));
  try {
    write_file(file.string(), text, true);
    print_message(fmt::format("cluster here: saved in {}", file.string()));
  } catch (const RuntimeFailure& error) {
    print_message(
        fmt::format("cluster here: not saved, because {}; use `shardwright probe --out FILE`",
                    printable(error.what())));
  }
}

ClusterSpec load_here() {
  const fs::path file = cached_profile();
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  const bool keeps = !error && access(file.parent_path().c_str(), W_OK) == 0;
  // If several commands start at once, one probes and the others use its result.
  std::optional<FolderLock> lock;
  if (keeps && !fs::exists(file, error)) lock.emplace(file.parent_path(), FolderLock::IfHeld::Wait);
  if (fs::exists(file, error)) {
    ClusterSpec cluster = load_cluster(file.string());
    print_message(fmt::format("cluster here: {} ({})", file.string(), source_of(cluster)));
    return cluster;
  }
  print_message(
      "cluster here: measuring this machine once (half a minute if it is idle; longer on GPUs)");
  ClusterSpec cluster = probe_machine({}).cluster;
  keep_profile(file, cluster);
  return cluster;
}

}  // namespace shardwright::cli
