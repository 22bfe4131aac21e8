#include "core/spec/model_library.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "core/base/data_directory.hpp"
#include "tests/scratch_path.hpp"
#include "tests/thrown.hpp"

namespace shardwright {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const std::string kConfigs =
    std::string(SHARDWRIGHT_SOURCE_DIR) + "/tests/core/spec/data/huggingface/";

std::string message_of(const std::string& name) {
  return thrown_by([&name] { load_model(name); });
}

TEST(ModelLibrary, ShipsTheModelsThatThePublishedResultsNeed) {
  const std::vector<std::string> names = shipped_models();
  EXPECT_TRUE(std::ranges::is_sorted(names));
  for (const char* name : {"gpt3-175b", "mt-nlg-530b", "megatron-1t", "llama3.1-405b"})
    EXPECT_TRUE(std::ranges::binary_search(names, name)) << name;
}

TEST(ModelLibrary, NamesAndAliasesAreUnique) {
  std::set<std::string> seen;
  for (const std::string& name : shipped_models()) {
    EXPECT_TRUE(seen.insert(name).second) << name;
    for (std::string alias : load_model(name).aliases) {
      std::ranges::transform(alias, alias.begin(), [](char c) { return std::tolower(c); });
      EXPECT_TRUE(seen.insert(alias).second) << alias;
    }
  }
}

TEST(ModelLibrary, FindsByAlias) {
  EXPECT_EQ(load_model("llama3-405b"), load_model("llama3.1-405b"));
}

// A user copies the id from a page of the Hub, which ignores the case of letters.
TEST(ModelLibrary, FindsByTheIdOfTheHuggingFaceHub) {
  EXPECT_EQ(load_model("meta-llama/Llama-3.1-8B"), load_model("llama3.1-8b"));
  EXPECT_EQ(load_model("qwen/qwen3-235b-a22b"), load_model("qwen3-235b-a22b"));
  EXPECT_THAT(message_of("meta-llama/Llama-3.1-9B"),
              HasSubstr("did you mean \"meta-llama/Llama-3.1-8B\"?"));
}

// A source that is a configuration on the Hub has the id by which users know the model.
TEST(ModelLibrary, TheIdOfEachSourceOnTheHubIsAnAlias) {
  const std::string hub = "https://huggingface.co/";
  for (const ModelSpec& model : shipped_model_specs()) {
    if (!model.source.starts_with(hub)) continue;
    const std::string id =
        model.source.substr(hub.size(), model.source.find("/blob/") - hub.size());
    EXPECT_THAT(model.aliases, testing::Contains(id)) << model.name;
  }
}

TEST(ModelLibrary, ReadsAFileOfEitherFormatAndNamesAnImportAfterIt) {
  EXPECT_EQ(load_model(kConfigs + "qwen3-8b.json").name, "qwen3-8b");
  EXPECT_EQ(load_model(std::string(SHARDWRIGHT_SOURCE_DIR) + "/models/qwen3-8b.json"),
            load_model("qwen3-8b"));
}

TEST(ModelLibrary, ReadsAFolderAndNamesTheImportAfterIt) {
  const TemporaryFolder scratch;
  const fs::path folder = scratch.path() / "My-Llama";
  fs::create_directory(folder);
  fs::copy(kConfigs + "llama2-7b.json", folder / "config.json");
  const ModelSpec model = load_model(folder);
  EXPECT_EQ(model.name, "My-Llama");
  EXPECT_EQ(model.layers, 32);
}

TEST(ModelLibrary, AWrongNameIsAnsweredWithTheNearestOne) {
  EXPECT_THAT(message_of("lama3-70b"), HasSubstr("did you mean \"llama3-70b\"?"));
  EXPECT_THAT(message_of("no-such-thing-at-all"), HasSubstr(" known names"));
  EXPECT_THAT(message_of(""), HasSubstr("no model of this name"));
}

TEST(ModelLibrary, RefusesWhatIsNoModel) {
  const TemporaryFolder scratch;
  EXPECT_THAT(message_of("/no/such/config.json"), HasSubstr("no such file"));
  EXPECT_THAT(message_of("./nowhere.json"), HasSubstr("no such file"));
  EXPECT_THAT(message_of(scratch.path()), HasSubstr("without config.json"));
  const fs::path file = scratch.path() / "model.json";
  const std::pair<const char*, const char*> kBadFiles[] = {{"{}", "\"model_type\""},
                                                           {"[1, 2]", "found an array of 2"},
                                                           {"{\"model_type\": \"ll", "JSON"},
                                                           {"", "an empty file"}};
  for (const auto& [text, message] : kBadFiles) {
    std::ofstream(file) << text;
    EXPECT_THAT(message_of(file), HasSubstr(message));
  }
}

// Sets an environment variable for the length of a test.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const std::string& value) : name_(name) {
    setenv(name, value.c_str(), 1);
  }
  ~ScopedVariable() { unsetenv(name_); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const char* name_;
};

TEST(DataDirectory, IsTheSourceTreeUnlessTheEnvironmentSaysOtherwise) {
  EXPECT_TRUE(fs::equivalent(data_directory(), SHARDWRIGHT_SOURCE_DIR));
  const TemporaryFolder scratch;
  const ScopedVariable variable("SHARDWRIGHT_DATA", scratch.path().string());
  EXPECT_EQ(data_directory(), scratch.path());
  EXPECT_TRUE(shipped_models().empty());
  EXPECT_THAT(message_of("llama3-8b"), HasSubstr("holds no models"));
}

TEST(DataDirectory, AFolderThatIsNotThereIsRefused) {
  const ScopedVariable variable("SHARDWRIGHT_DATA", "/no/such/folder");
  EXPECT_THROW(data_directory(), InputError);
}

}  // namespace
}  // namespace shardwright
