// Errors and notices inside of the window. Whoever holds the bar shows it as `wanted` says.
#pragma once

#include <QFrame>
#include <QLabel>

class QToolButton;

namespace shardwright::gui {

enum class Tone : std::uint8_t { Notice, Problem };

class MessageBar : public QFrame {
  Q_OBJECT

 public:
  explicit MessageBar(QWidget* parent = nullptr);

  // Replaces what is shown, until the user closes it; with an empty text nothing is wanted.
  void show_text(Tone tone, const QString& text);
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
  QToolButton* close_;
  Tone tone_ = Tone::Notice;
};

}  // namespace shardwright::gui
