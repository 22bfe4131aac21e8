// Published weights: the safetensors files of a model, as Hugging Face's hub holds them.
#pragma once

#include <cstddef>
#include <cstdint>
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

// What one looks for: NAME.safetensors; a folder with `model.safetensors.index.json` and the
// tensors that it names, each in its file, or with `model.safetensors`.
class WeightFiles {
 public:
  // Throws InputError if there is no such file or folder, or a file is broken.
  explicit WeightFiles(const std::filesystem::path& from);

  // Throws InputError with every tensor of the model that is missing, has another shape or no
  // format of ours (fp32, bf16, fp16); with every tensor that is there and that the model has not
  // (masks and angles, which are no parameters, may be there, and the head of a tied model if it is
  // the embedding); and, where the folder has a `config.json`, with every field that says another
  // model than `model`.
  void check(const ModelSpec& model) const;

  // Tells weights apart: content_sum of all the files, as text.
  std::string sum() const;

  // Of a tensor that `check` has found; `index` counts its elements.
  SafetensorsFile::View tensor(const std::string& name) const;

 private:
  void open_folder();
  void open_index();
  const SafetensorsFile& open_file(const std::filesystem::path& file);
  // Under its name, or without the first word of it: files of a model without a head leave out
  // `transformer.` and `model.`.
  const SafetensorsFile::View* find(const std::string& name) const;
  // `used`: what the model's own tensors are.
  void check_others(const ModelSpec& model, const std::set<const SafetensorsFile::View*>& used,
                    ProblemList& problems) const;
  void check_config(const ModelSpec& model, ProblemList& problems) const;

  std::filesystem::path from_;
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, const SafetensorsFile::View*> tensors_;  // by name, of all files
};

}  // namespace shardwright::executor
