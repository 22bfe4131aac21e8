// The hint that a view shows while it has no content.
#pragma once

#include <QLabel>
#include <QStackedWidget>

namespace shardwright::gui {

// A page with a hint in front of a page with the content.
class EmptyState : public QStackedWidget {
  Q_OBJECT

 public:
  explicit EmptyState(QWidget* content, QWidget* parent = nullptr);

  // Rich text.
  void show_hint(const QString& text);
  void show_content();
  bool is_empty() const;
  QString hint() const { return label_->text(); }
  QSize minimumSizeHint() const override;
  bool hasHeightForWidth() const override;

 Q_SIGNALS:
  // The user has clicked on a link of the hint.
  void link_clicked(const QString& target);

 protected:
  void changeEvent(QEvent* event) override;

 private:
  QLabel* label_;
};

// Says that no plan fits the scenario. Rich text.
QString hint_of_no_plan();

// Says that the step of `files` lacks what a view draws ("no cluster"), and how to return to the
// chosen plan, which has it. Rich text.
QString hint_of_files(const QString& files, const QString& lack);

}  // namespace shardwright::gui
