#include "gui/models/scenario_document.hpp"

#include <QUndoCommand>
#include <utility>

namespace shardwright::gui {
namespace {

// "Global batch" is "global batch", "GPUs" stays.
QString within_sentence(QString title) {
  const bool is_word = title.size() < 2 || title[1].isLower();
  if (is_word && !title.isEmpty()) title[0] = title[0].toLower();
  return title;
}

}  // namespace

class ScenarioEdit : public QUndoCommand {
 public:
  // `id`: edits of the same id merge; -1: with none.
  ScenarioEdit(ScenarioDocument* document, int id, const QString& title, ScenarioChoice next)
      : QUndoCommand(title),
        document_(document),
        id_(id),
        before_(document->choice()),
        after_(std::move(next)) {}

  int id() const override { return id_; }
  void undo() override { document_->set(before_); }
  void redo() override { document_->set(after_); }

  bool mergeWith(const QUndoCommand* other) override {
    const auto* edit = static_cast<const ScenarioEdit*>(other);
    after_ = edit->after_;
    setObsolete(after_ == before_);
    return true;
  }

 private:
  ScenarioDocument* document_;
  int id_;
  ScenarioChoice before_, after_;
};

ScenarioDocument::ScenarioDocument(QObject* parent) : QObject(parent) {
  pause_.setSingleShot(true);
  pause_.setInterval(kTogetherMs);
  connect(&pause_, &QTimer::timeout, this, [this] { ++burst_; });
}

void ScenarioDocument::edit(Field field, const ScenarioChoice& next, int part) {
  if (next == choice_) return;
  const QString title = tr("change of %1").arg(within_sentence(title_of(field)));
  constexpr auto kFields = static_cast<int>(kEnumCount<Field>);
  constexpr auto kParts = static_cast<int>(kEnumCount<planner::Resource>);
  const int place = part * kFields + static_cast<int>(field);
  const int id = burst_ * kFields * kParts + place;
  undo_stack_.push(new ScenarioEdit(this, id, title, next));
  pause_.start();
}

void ScenarioDocument::replace(const QString& title, const ScenarioChoice& next) {
  if (next == choice_) return;
  undo_stack_.push(new ScenarioEdit(this, -1, title, next));
}

void ScenarioDocument::reset(const ScenarioChoice& choice) {
  undo_stack_.clear();
  set(choice);
}

void ScenarioDocument::set(const ScenarioChoice& choice) {
  choice_ = choice;
  Q_EMIT changed();
}

}  // namespace shardwright::gui
