// Errors and notices inside of the window. Whoever holds the bar shows it as `wanted` says.
#pragma once

#include <QFrame>
#include <QLabel>

class QAction;
class QToolButton;

namespace shardwright::gui {

enum class Tone : std::uint8_t { Notice, Problem };

class MessageBar : public QFrame {
  Q_OBJECT

 public:
  explicit MessageBar(QWidget* parent = nullptr);

  // Replaces what is shown, until the user closes it; with an empty text nothing is wanted. `offer`
  // is what can be done about it at a click; null: nothing.
  void show_text(Tone tone, const QString& text, QAction* offer = nullptr);
  void clear();
  QString text() const { return label_->text(); }
  Tone tone() const { return tone_; }

 Q_SIGNALS:
  void wanted(bool visible);

 protected:
  void changeEvent(QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  void fit_height();
  void restyle();

  QLabel* sign_;
  QLabel* label_;
  QToolButton *offer_, *close_;
  Tone tone_ = Tone::Notice;
};

}  // namespace shardwright::gui
