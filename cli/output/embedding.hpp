// The command inside another program, as the Python module has it.
#pragma once

#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>

namespace shardwright::cli {

// What a command asks of the program around it.
struct Embedding {
  // Called from the command's threads, at most ten times a second. `share` is the part of the work
  // that is done, 0 to 1; the text says how far it is.
  std::function<void(double share, const std::string& text)> progress;
  // Takes the place of Ctrl-C: the command ends with what it has found.
  std::stop_token stop;
  // The folder of the command `shardwright`, beside which its other programs are found; empty: that
  // of the running program.
  std::filesystem::path programs;
};

// The embedding of the command that runs on this thread; nullptr if the command is a program of its
// own.
const Embedding* current_embedding();

// While an object exists, the commands of its thread are embedded.
class EmbeddingScope {
 public:
  explicit EmbeddingScope(const Embedding& embedding);
  EmbeddingScope(const EmbeddingScope&) = delete;
  EmbeddingScope& operator=(const EmbeddingScope&) = delete;
  ~EmbeddingScope();
};

}  // namespace shardwright::cli
