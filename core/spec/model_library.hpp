// Models by name, file or folder.
#pragma once

#include <string>
#include <vector>

#include "core/spec/model_spec.hpp"

namespace shardwright {

// Names of the models that are shipped, sorted, without their aliases.
std::vector<std::string> shipped_models();

// The shipped models themselves, by name, read once.
const std::vector<ModelSpec>& shipped_model_specs();

// The model of a shipped name or alias, whatever the case of its letters (they go before files of
// the same name: write ./NAME for those, except that a file goes before a Hugging Face id, which
// has a slash); otherwise of a JSON file (our own format or a Hugging Face
// configuration, told apart by "schema" and "model_type"; "-" is standard input) or of a folder
// with a config.json. An imported model is named after its folder or file. Throws InputError if
// there is no such model (with the nearest name) or the file is wrong.
ModelSpec load_model(const std::string& name_or_path);

}  // namespace shardwright
