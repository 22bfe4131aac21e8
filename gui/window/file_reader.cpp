#include "gui/window/file_reader.hpp"

#include <QFileInfo>
#include <utility>

#include "gui/models/file_names.hpp"
#include "gui/views/message_bar.hpp"

namespace shardwright::gui {
namespace {

QStringList names_of(const QStringList& paths) {
  QStringList names;
  for (const QString& path : paths) names.append(QFileInfo(path).fileName());
  return names;
}

// Empty if no file was named more than once.
QString repeated_text(const QStringList& repeated) {
  QStringList names = names_of(repeated);
  names.removeDuplicates();
  if (names.isEmpty()) return {};
  return FileReader::tr("Named more than once, opened once: %1.").arg(names.join(u", "_s));
}

}  // namespace

FileReader::FileReader(const ScenarioDocument* document, MessageBar* messages, QObject* parent)
    : QObject(parent),
      document_(document),
      messages_(messages),
      job_(
          this,
          [this](const auto& files) {
            Q_EMIT read_all(*files, reading_);
            read_next();
          },
          [this](const QString& error) {
            messages_->say(u"files"_s, Tone::Problem, error);
            read_next();
          }) {}

void FileReader::read(const ReadBatch& batch) {
  if (batch.paths.isEmpty()) return;
  if (job_.is_running()) {
    if (!batch.is_reload && !waiting_.empty() && !waiting_.back().is_reload) {
      waiting_.back().paths += batch.paths;
    } else {
      waiting_.push_back(batch);
    }
    return;
  }
  QStringList repeated;
  reading_ = {each_once(batch.paths, repeated), batch.is_reload};
  messages_->take_back(u"reading"_s);
  messages_->say(u"repeated"_s, Tone::Notice, repeated_text(repeated));
  progress_.begin({});
  Q_EMIT busy_changed(true);
  job_.start(
      [this, paths = reading_.paths, choice = document_->choice()](const std::stop_token& stop) {
        return read_files(paths, choice, progress_, stop);
      });
}

void FileReader::stop() {
  if (!job_.is_running()) return;
  job_.cancel();
  const QStringList names = names_of(unread());
  waiting_.clear();
  read_next();
  messages_->say(u"reading"_s, Tone::Notice,
                 tr("The reading of %1 was stopped.").arg(names.join(u", "_s)));
}

QStringList FileReader::unread() const {
  QStringList paths = reading_.paths;
  for (const ReadBatch& batch : waiting_) paths += batch.paths;
  return paths;
}

void FileReader::read_next() {
  reading_ = {};
  Q_EMIT busy_changed(false);
  if (waiting_.empty()) return;
  const ReadBatch next = waiting_.front();
  waiting_.erase(waiting_.begin());
  read(next);
}

}  // namespace shardwright::gui
