// Training through one random fault after another (`./run-tests --soak`).
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <thread>

#include "executor/checkpoint/checkpoint_folder.hpp"
#include "executor/comm/socket.hpp"
#include "executor/data/hash.hpp"
#include "tests/executor/launch/started_run.hpp"
#include "tests/process_end.hpp"
#include "tests/scratch_path.hpp"

namespace shardwright::executor {
namespace {

std::uint64_t number_in(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

enum class Fault : std::uint8_t { FullDisk, Corrupted, CutNetwork, Preempted, Killed, Frozen };
constexpr std::array kFaultNames = {"full disk", "corrupted checkpoint", "cut network",
                                    "SIGTERM",   "killed rank",          "frozen rank"};
// The suite has the first ones; FailingRank hits ranks there.
constexpr std::uint64_t kFaultsOfTheSuite = 4;

// A network of its own with a loopback device, in which this thread is while `enter` runs.
class NetworkNamespace {
 public:
  NetworkNamespace() : outside_(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)) {
    // Only root may.
    if (unshare(CLONE_NEWNET) != 0) return;
    own_ = Socket(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    device_ = Socket(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    set_up(true);
    setns(outside_.descriptor(), CLONE_NEWNET);
  }

  bool exists() const { return own_.is_open(); }
  void set_up(bool up) const {
    ifreq request{};
    std::strcpy(static_cast<char*>(request.ifr_name), "lo");
    request.ifr_flags = static_cast<short>(up ? IFF_UP | IFF_RUNNING : 0);
    EXPECT_EQ(ioctl(device_.descriptor(), SIOCSIFFLAGS, &request), 0);
  }
  template <class Work>
  auto enter(const Work& work) const {
    if (exists()) setns(own_.descriptor(), CLONE_NEWNET);
    auto result = work();
    if (exists()) setns(outside_.descriptor(), CLONE_NEWNET);
    return result;
  }
  // True once no process of this network listens at a port; false if one still does after ten
  // seconds. A process that ends closes its ports a little later than it loses its command line.
  bool ports_close() const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (enter(is_listening)) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
  }

 private:
  static bool is_listening() {
    const std::string state = " 00000000:0000 0A ";
    return content_of("/proc/thread-self/net/tcp").find(state) != std::string::npos;
  }

  Socket outside_, own_, device_;
};

class Soak : public testing::Test {
 protected:
  Soak() { begin_anew(); }

  void begin_anew() { folder_ = scratch_path("soak"); }

  // Hits the run of this number and waits for its end.
  void go_on_through(std::uint64_t number) {
    const Fault fault = fault_of(number);
    SCOPED_TRACE(fmt::format("fault {}, {}", number, kFaultNames[static_cast<std::size_t>(fault)]));
    const NetworkNamespace network;
    const ino_t metrics_before = metrics();
    const std::uint64_t resumed_at = completed_steps();
    std::optional<StartedRun> run;
    network.enter([&] { return &run.emplace(folder_, resuming()); });
    const std::vector<pid_t> ranks = run->ranks();
    ASSERT_EQ(ranks.size(), static_cast<std::size_t>(kRanks)) << run->messages();
    const std::uint64_t random = random_bits(seed_, number);
    wait_for_moment(*run, number, metrics_before);
    hit(fault, *run, ranks[random % kRanks], network);
    const int status = run->wait();
    fmt::print("fault {}, {}: status {} after {} steps, from step {} on\n", number,
               kFaultNames[static_cast<std::size_t>(fault)], status, run->steps_done(), resumed_at);
    // Not 2, bad input, and not -1, a run that does not end.
    EXPECT_THAT(status, testing::AnyOf(0, 1, 128 + SIGTERM, -2)) << run->messages();
    if (fault == Fault::FullDisk && status == 1) {
      EXPECT_THAT(run->messages(), testing::HasSubstr("File too large"));
    }
    if (fault == Fault::Corrupted) corrupt_newest_checkpoint(random);
    for (const pid_t rank : ranks) EXPECT_TRUE(ends_soon(rank));
    if (network.exists()) {
      EXPECT_TRUE(network.ports_close());
    }
    expect_losses_of_undisturbed_run();
    if (completed_steps() > kSteps / 2) finish();
  }

  // Ends the run without another fault.
  void finish() {
    StartedRun run(folder_, resuming());
    EXPECT_EQ(run.wait(), 0) << run.messages();
    EXPECT_EQ(losses_in(folder_), undisturbed_losses());
    expect_intact_checkpoints(folder_);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_))
      EXPECT_THAT(entry.path().extension().string(),
                  testing::AllOf(testing::Ne(".tmp"), testing::Ne(".unfinished")));
    begin_anew();
  }

 private:
  static std::vector<std::string> resuming() {
    std::vector<std::string> options = kLimit;
    options.insert(options.end(), {"--resume", "--force"});
    return options;
  }

  Fault fault_of(std::uint64_t number) const {
    if (number < kFaultsOfTheSuite) return static_cast<Fault>(number);
    return static_cast<Fault>((random_bits(seed_, number) >> 40U) % kFaultNames.size());
  }

  std::vector<std::int64_t> intact_checkpoints() const {
    CheckpointFolder checkpoints(folder_ / "checkpoints");
    std::vector<std::int64_t> steps = checkpoints.steps();
    std::erase_if(steps, [&](std::int64_t step) { return checkpoints.find_damage(step); });
    return steps;
  }

  // Which file the metrics are; a resumed run replaces it before its first step.
  ino_t metrics() const {
    struct stat file {};
    return stat((folder_ / "metrics.jsonl").c_str(), &file) == 0 ? file.st_ino : 0;
  }

  std::uint64_t completed_steps() const {
    const auto checkpoints = intact_checkpoints();
    return checkpoints.empty() ? 0 : static_cast<std::uint64_t>(checkpoints.front());
  }

  // A moment of a random step of those that are left. Later on, one run in eight is hit while it
  // starts.
  void wait_for_moment(StartedRun& run, std::uint64_t number, ino_t metrics_before) const {
    const std::uint64_t random = random_bits(seed_, number), first = completed_steps();
    // A corrupted checkpoint needs another one before it.
    const std::uint64_t left = kSteps - first;
    const std::uint64_t least = fault_of(number) == Fault::Corrupted
                                    ? std::min<std::uint64_t>(2 * kCheckpointEvery + 2, left - 1)
                                    : 0;
    if (number < kFaultsOfTheSuite || (random >> 48U) % 8 != 0) {
      while (metrics() == metrics_before && run.is_running())
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      run.wait_for_steps(first + least + (random >> 8U) % (left - least));
    }
    std::this_thread::sleep_for(std::chrono::microseconds((random >> 16U) % 30'000));
  }

  static void hit(Fault fault, const StartedRun& run, pid_t victim,
                  const NetworkNamespace& network) {
    // Less than a checkpoint and the metrics take, and more than messages.
    const rlimit full{1'000, RLIM_INFINITY};
    switch (fault) {
      case Fault::FullDisk:
        for (const pid_t rank : run.ranks()) prlimit(rank, RLIMIT_FSIZE, &full, nullptr);
        return;
      case Fault::Corrupted:
        kill(run.launcher(), SIGKILL);
        return;
      case Fault::CutNetwork:
        if (network.exists()) network.set_up(false);
        return;
      case Fault::Preempted:
        kill(run.launcher(), SIGTERM);
        return;
      case Fault::Killed:
      case Fault::Frozen:
        kill(victim, fault == Fault::Killed ? SIGKILL : SIGSTOP);
        return;
    }
  }

  // If there is another one to go on from.
  void corrupt_newest_checkpoint(std::uint64_t random) const {
    const auto intact = intact_checkpoints();
    if (intact.size() < 2) return;
    constexpr std::array kFiles = {kModelFile, kOptimizerFile, kStateFile};
    const auto file = CheckpointFolder(folder_ / "checkpoints").path(intact.front()) /
                      kFiles[(random >> 24U) % kFiles.size()];
    const auto place =
        static_cast<std::streamoff>((random >> 32U) % std::filesystem::file_size(file));
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(place);
    const int byte = stream.get();
    stream.seekp(place);
    stream.put(static_cast<char>(byte ^ 1));
    stream.close();
    EXPECT_NE(CheckpointFolder(folder_ / "checkpoints").find_damage(intact.front()), std::nullopt)
        << file << " at " << place;
  }

  void expect_losses_of_undisturbed_run() const {
    const std::vector<double> steps = figures_in(folder_, "step"), losses = losses_in(folder_);
    ASSERT_EQ(steps.size(), losses.size());
    for (std::size_t i = 0; i < steps.size(); ++i)
      EXPECT_EQ(losses[i], undisturbed_losses().at(static_cast<std::size_t>(steps[i]))) << steps[i];
  }

  std::uint64_t seed_ = number_in("SHARDWRIGHT_SOAK_SEED", 2026);
  std::filesystem::path folder_;
};

// Each run goes on from the newest intact checkpoint of the one before. One that is more than half
// complete is finished, and another one begins.
TEST_F(Soak, GivesTheLossesOfAnUndisturbedRun) {
  ASSERT_EQ(undisturbed_losses().size(), static_cast<std::size_t>(kSteps));
  const std::uint64_t faults = number_in("SHARDWRIGHT_SOAK", kFaultsOfTheSuite);
  for (std::uint64_t number = 0; number < faults && !HasFailure(); ++number) go_on_through(number);
  finish();
}

}  // namespace
}  // namespace shardwright::executor
