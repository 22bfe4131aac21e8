// Published weights: the safetensors files of a model as the Hugging Face hub distributes them.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/spec/model_spec.hpp"
#include "executor/checkpoint/safetensors.hpp"

namespace shardwright::executor {

// The file that says which files hold the tensors of a model with several.
inline constexpr const char* kIndexFile = "model.safetensors.index.json";

// Returns a checksum of the architecture: equal for models that compute the same from the same
// parameters.
std::string architecture_checksum(const ModelSpec& model);

// Reads NAME.safetensors, or a folder with `model.safetensors`, or one with
// `model.safetensors.index.json` and the files that it lists.
class WeightFiles {
 public:
  // Throws InputError if the file or folder is missing or a file is broken.
  explicit WeightFiles(const std::filesystem::path& from);

  // Throws InputError with every tensor of the model that is missing or has another shape or an
  // unreadable format; with every tensor that the model does not have (except masks, rotary angles,
  // and the head of a tied model if it equals the embedding); and, if the folder has a
  // `config.json`, with every field that differs from `model`.
  void check(const ModelSpec& model) const;

  // Returns the content_checksum of all files as text.
  std::string checksum() const;

  // Returns a tensor that `check` has found.
  SafetensorsFile::View tensor(const std::string& name) const;

 private:
  void open_index();
  const SafetensorsFile& open_file(const std::filesystem::path& file);
  // Looks for the name, then for the name without its first word: files of a model without a head
  // leave out `transformer.` and `model.`.
  const SafetensorsFile::View* find(const std::string& name) const;
  // `used` holds the tensors that the model needs.
  void check_others(const ModelSpec& model, const std::set<const SafetensorsFile::View*>& used,
                    ProblemList& problems) const;
  void check_config(const ModelSpec& model, ProblemList& problems) const;

  std::filesystem::path from_;
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  // Tensors of all files by name.
  std::map<std::string, const SafetensorsFile::View*> tensors_;
};

}  // namespace shardwright::executor
