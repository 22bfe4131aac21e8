#include "core/spec/model_library.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "core/base/data_directory.hpp"
#include "core/base/error.hpp"

namespace shardwright {
namespace {

namespace fs = std::filesystem;

const std::string kConfigs =
    std::string(SHARDWRIGHT_SOURCE_DIR) + "/tests/core/spec/data/huggingface/";

std::string message_of(const std::string& name) {
  try {
    load_model(name);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

// A folder that is removed with the test.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern = (fs::temp_directory_path() / "shardwright-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const fs::path& path() const { return path_; }
  fs::path write(const fs::path& name, const std::string& text) const {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << text;
    return path_ / name;
  }

 private:
  fs::path path_;
};

TEST(ModelLibrary, ShipsTheModelsThatThePublishedResultsNeed) {
  const std::vector<std::string> names = shipped_models();
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  for (const char* name : {"gpt3-175b", "mt-nlg-530b", "megatron-1t", "llama3.1-405b"})
    EXPECT_TRUE(std::binary_search(names.begin(), names.end(), name)) << name;
}

TEST(ModelLibrary, NamesAndAliasesAreUnique) {
  std::set<std::string> seen;
  for (const std::string& name : shipped_models()) {
    EXPECT_TRUE(seen.insert(name).second) << name;
    for (const std::string& alias : load_model(name).aliases)
      EXPECT_TRUE(seen.insert(alias).second) << alias;
  }
}

TEST(ModelLibrary, FindsByAlias) {
  EXPECT_EQ(load_model("llama3-405b"), load_model("llama3.1-405b"));
}

TEST(ModelLibrary, ReadsAFileOfEitherFormatAndNamesAnImportAfterIt) {
  EXPECT_EQ(load_model(kConfigs + "qwen3-8b.json").name, "qwen3-8b");
  EXPECT_EQ(load_model(std::string(SHARDWRIGHT_SOURCE_DIR) + "/models/qwen3-8b.json"),
            load_model("qwen3-8b"));
}

TEST(ModelLibrary, ReadsAFolderAndNamesTheImportAfterIt) {
  const ScratchFolder scratch;
  fs::create_directory(scratch.path() / "My-Llama");
  fs::copy(kConfigs + "llama2-7b.json", scratch.path() / "My-Llama" / "config.json");
  const ModelSpec model = load_model((scratch.path() / "My-Llama").string());
  EXPECT_EQ(model.name, "My-Llama");
  EXPECT_EQ(model.layers, 32);
}

TEST(ModelLibrary, AWrongNameIsAnsweredWithTheNearestOne) {
  EXPECT_NE(message_of("lama3-70b").find("did you mean \"llama3-70b\"?"), std::string::npos);
  EXPECT_NE(message_of("no-such-thing-at-all").find(" known names"), std::string::npos);
  EXPECT_NE(message_of("").find("no model of this name"), std::string::npos);
}

TEST(ModelLibrary, RefusesWhatIsNoModel) {
  const ScratchFolder scratch;
  EXPECT_NE(message_of("/no/such/config.json").find("no such file"), std::string::npos);
  EXPECT_NE(message_of("./nowhere.json").find("no such file"), std::string::npos);
  EXPECT_NE(message_of(scratch.path().string()).find("without config.json"), std::string::npos);
  EXPECT_NE(message_of(scratch.write("a.json", "{}").string()).find("\"model_type\""),
            std::string::npos);
  EXPECT_NE(message_of(scratch.write("b.json", "[1, 2]").string()).find("found an array of 2"),
            std::string::npos);
  EXPECT_NE(message_of(scratch.write("c.json", "{\"model_type\": \"ll").string()).find("JSON"),
            std::string::npos);
  EXPECT_NE(message_of(scratch.write("d.json", "").string()).find("an empty file"),
            std::string::npos);
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
  const ScratchFolder scratch;
  const ScopedVariable variable("SHARDWRIGHT_DATA", scratch.path().string());
  EXPECT_EQ(data_directory(), scratch.path());
  EXPECT_TRUE(shipped_models().empty());
  EXPECT_NE(message_of("llama3-8b").find("holds no models"), std::string::npos);
}

TEST(DataDirectory, AFolderThatIsNotThereIsRefused) {
  const ScopedVariable variable("SHARDWRIGHT_DATA", "/no/such/folder");
  EXPECT_THROW(data_directory(), InputError);
}

}  // namespace
}  // namespace shardwright
