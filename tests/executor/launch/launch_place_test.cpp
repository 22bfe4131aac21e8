#include "executor/launch/launch_place.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/thrown.hpp"

namespace shardwright::executor {
namespace {

using Variables = std::map<std::string, std::string>;

std::optional<LaunchPlace> read(const Variables& variables, bool only_own = false) {
  const auto environment = [&](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
  return read_launch_place(environment, only_own);
}

TEST(LaunchPlace, IsNoneWithoutALauncher) {
  EXPECT_EQ(read({{"HOME", "/root"}}), std::nullopt);
}

// pytorch.org/docs/stable/elastic/run.html, "Environment Variables"
TEST(LaunchPlace, OfTorchrunLeavesItsStoreTheMasterPort) {
  const LaunchPlace place = *read({{"RANK", "3"},
                                   {"WORLD_SIZE", "4"},
                                   {"LOCAL_RANK", "1"},
                                   {"LOCAL_WORLD_SIZE", "2"},
                                   {"MASTER_ADDR", "10.0.0.7"},
                                   {"MASTER_PORT", "29500"}});
  EXPECT_EQ(place, (LaunchPlace{3, 4, 1, 2, "10.0.0.7", 29501, false, "torchrun"}));
}

TEST(LaunchPlace, OfOpenMpiOnOneHostUsesLoopback) {
  const LaunchPlace place = *read({{"OMPI_COMM_WORLD_RANK", "0"},
                                   {"OMPI_COMM_WORLD_SIZE", "2"},
                                   {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                                   {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  EXPECT_EQ(place, (LaunchPlace{0, 2, 0, 2, "127.0.0.1", kDefaultPort, true, "Open MPI"}));
}

TEST(LaunchPlace, OfSlurmUsesTheFirstNode) {
  const LaunchPlace place = *read({{"SLURM_PROCID", "9"},
                                   {"SLURM_NTASKS", "16"},
                                   {"SLURM_LOCALID", "1"},
                                   {"SLURM_JOB_NODELIST", "gpu[07,09-12]"}});
  EXPECT_EQ(place.master_address, "gpu07");
  EXPECT_EQ(place.rank, 9);
}

// A step may use some of the job's hosts; rank 0 is on its first one.
TEST(LaunchPlace, OfAStepOfSlurmUsesTheFirstNodeOfTheStep) {
  Variables variables = {{"SLURM_PROCID", "1"},
                         {"SLURM_NTASKS", "2"},
                         {"SLURM_STEP_NODELIST", "gpu[09-10]"},
                         {"SLURM_JOB_NODELIST", "gpu[07,09-12]"}};
  EXPECT_EQ(read(variables)->master_address, "gpu09");
  variables["SLURM_STEP_NODELIST"] = "";
  EXPECT_EQ(read(variables)->master_address, "gpu07");
  variables["MASTER_ADDR"] = "10.0.0.7";
  EXPECT_EQ(read(variables)->master_address, "10.0.0.7");
}

// Without the address no other rank can be informed: RefusedRank would try.
TEST(LaunchPlace, NamesATruncatedListOfSlurm) {
  for (const char* name : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"}) {
    try {
      read({{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}, {name, "gpu[09-10"}});
      FAIL() << "accepted";
    } catch (const RefusedRank&) {
      FAIL() << "as if it were known where to meet";
    } catch (const InputError& error) {
      EXPECT_EQ(error.problems().front().where, name);
    }
  }
}

// Inside of a batch job or another launcher's container, a command may start ranks of its own.
TEST(LaunchPlace, OfOurLauncherAloneIfRequested) {
  Variables variables = {{"RANK", "0"},         {"WORLD_SIZE", "1"},  {"SLURM_PROCID", "0"},
                         {"SLURM_NTASKS", "4"}, {"MASTER_ADDR", "x"}, {"MASTER_PORT", "29500"}};
  EXPECT_TRUE(read(variables));
  EXPECT_FALSE(read(variables, true));
  variables.insert({{"SHARDWRIGHT_RANK", "1"}, {"SHARDWRIGHT_WORLD_SIZE", "2"}});
  EXPECT_EQ(read(variables, true)->rank, 1);
}

// slurm.schedmd.com/scontrol.html, "show hostnames"
TEST(LaunchPlace, TakesTheFirstHostOfASlurmList) {
  EXPECT_EQ(first_slurm_host("node5"), "node5");
  EXPECT_EQ(first_slurm_host("node5,node7"), "node5");
  EXPECT_EQ(first_slurm_host("node[10,20-25],cpu1"), "node10");
  EXPECT_EQ(first_slurm_host("node[010-012]-ib,x"), "node010-ib");
}

// A number out of range is an error, and not 0, which would exist twice.
TEST(LaunchPlace, RefusesNumbersOutOfRange) {
  const char* const beyond = "99999999999999999999";
  const auto refused = [](const Variables& variables) {
    return thrown_by([&] { read(variables); });
  };
  const std::string found =
      std::string(": found \"") + beyond + "\"; expected an integer from 0 to ";
  const Variables torchrun = {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "x"}};
  for (const char* name : {"RANK", "LOCAL_RANK"}) {
    Variables variables = torchrun;
    variables[name] = beyond;
    EXPECT_THAT(refused(variables), testing::HasSubstr(name + found));
  }
  EXPECT_THAT(refused({{"OMPI_COMM_WORLD_RANK", beyond}, {"OMPI_COMM_WORLD_SIZE", "2"}}),
              testing::HasSubstr("OMPI_COMM_WORLD_RANK" + found));
}

// A rank that knows its number and the rendezvous can inform the others that it will not join.
TEST(LaunchPlace, IsKnownToTheOthersIfRankAndMasterAreValid) {
  const Variables good = {{"RANK", "3"},
                          {"WORLD_SIZE", "4"},
                          {"LOCAL_RANK", "1"},
                          {"MASTER_ADDR", "x"},
                          {"MASTER_PORT", "29500"}};
  const auto world_with = [&](const std::string& name, const std::string& value) -> std::int64_t {
    Variables variables = good;
    variables[name] = value;
    try {
      read(variables);
    } catch (const RefusedRank& refused) {
      EXPECT_EQ(refused.place.rank, 3);
      EXPECT_EQ(refused.place.master_port, 29501);
      return refused.place.world;
    } catch (const InputError&) {
      return 0;
    }
    return -1;
  };
  EXPECT_EQ(world_with("WORLD_SIZE", "0"), 4);
  EXPECT_EQ(world_with("WORLD_SIZE", "two"), 4);
  EXPECT_EQ(world_with("WORLD_SIZE", "3"), 4);
  EXPECT_EQ(world_with("LOCAL_RANK", "-1"), 4);
  for (const char* name : {"RANK", "MASTER_ADDR", "MASTER_PORT"})
    EXPECT_EQ(world_with(name, ""), 0) << name;
}

TEST(LaunchPlace, NamesEachVariableThatIsWrong) {
  const Variables wrong = {
      {"OMPI_COMM_WORLD_RANK", "5"}, {"OMPI_COMM_WORLD_SIZE", "4x"}, {"MASTER_PORT", "0"}};
  EXPECT_THAT(problems_of([&] { read(wrong); }),
              testing::IsSupersetOf({"OMPI_COMM_WORLD_SIZE", "MASTER_PORT"}));
}

}  // namespace
}  // namespace shardwright::executor
