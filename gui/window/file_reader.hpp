// Reads files in the background, one batch after the other.
#pragma once

#include <QObject>
#include <QStringList>
#include <vector>

#include "gui/models/background_job.hpp"
#include "gui/models/read_files.hpp"
#include "gui/models/scenario_document.hpp"

namespace shardwright::gui {

class MessageBar;

// Files that are read together.
struct ReadBatch {
  QStringList paths;
  // True if the files were open already: the views in front stay there.
  bool is_reload = false;
};

class FileReader : public QObject {
  Q_OBJECT

 public:
  FileReader(const ScenarioDocument* document, MessageBar* messages, QObject* parent);

  // Files that are opened while others are read go together; files that are read again wait by
  // themselves.
  void read(const ReadBatch& batch);
  // Drops the files that are being read and those that wait.
  void stop();
  bool is_busy() const { return job_.is_running(); }
  const ReadingProgress& progress() const { return progress_; }
  // The files that are being read or wait.
  QStringList unread() const;

 Q_SIGNALS:
  void busy_changed(bool busy);
  void read_all(const ReadFiles& files, const ReadBatch& batch);

 private:
  void read_next();

  const ScenarioDocument* document_;
  MessageBar* messages_;
  ReadBatch reading_;
  std::vector<ReadBatch> waiting_;
  ReadingProgress progress_;
  BackgroundJob<ReadFiles> job_;
};

}  // namespace shardwright::gui
