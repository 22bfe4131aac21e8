// Options are named in cli/ alone: the libraries below name fields, for the window and Python have
// no options.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/cli/command_run.hpp"

namespace shardwright::cli {
namespace {

namespace fs = std::filesystem;

const std::regex kOption("--[a-z][a-z-]*");

std::vector<std::string> matches(const std::string& text, const std::regex& wanted) {
  std::vector<std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), wanted), end; match != end; ++match)
    found.push_back(match->str());
  return found;
}

std::set<std::string> option_names() {
  std::set<std::string> names;
  for (const std::string command : {"plan", "sweep", "replan", "simulate", "explain", "compare",
                                    "export", "probe", "calibrate", "validate", "fit", "run"}) {
    for (const std::string& name : matches(run_command(command + " --help").output, kOption))
      names.insert(name);
  }
  return names;
}

std::vector<fs::path> sources_below_the_command_line() {
  const fs::path root = SHARDWRIGHT_SOURCE_DIR;
  std::vector<fs::path> files;
  for (const char* folder : {"core", "sim", "planner"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string kind = entry.path().extension().string();
      // Exports write the options of other programs.
      const bool exports = entry.path().parent_path().filename() == "export";
      if ((kind == ".cpp" || kind == ".hpp") && !exports) files.push_back(entry.path());
    }
  }
  return files;
}

TEST(OptionNames, StandInNoTextBelowTheCommandLine) {
  const std::set<std::string> names = option_names();
  ASSERT_TRUE(names.contains("--global-batch") && names.contains("--timeline-steps"));
  const std::vector<fs::path> files = sources_below_the_command_line();
  ASSERT_GT(files.size(), 100U);
  const std::regex literal(R"("(?:[^"\\]|\\.)*")");
  for (const fs::path& file : files) {
    std::ifstream stream(file);
    for (std::string line; std::getline(stream, line);) {
      if (line.find("--") == std::string::npos) continue;
      for (const std::string& text : matches(line, literal)) {
        for (const std::string& name : matches(text, kOption))
          EXPECT_FALSE(names.contains(name)) << file << ": " << line;
      }
    }
  }
}

}  // namespace
}  // namespace shardwright::cli
