#include "gui/views/widgets.hpp"

#include <QApplication>
#include <QEvent>
#include <QFileDialog>
#include <QFocusEvent>
#include <QHeaderView>
#include <QPainter>
#include <QPointer>
#include <QRegularExpression>
#include <QStyle>
#include <QTableWidget>

#include "core/base/quantity_reading.hpp"
#include "gui/models/text.hpp"
#include "gui/style/palette.hpp"

namespace shardwright::gui {
namespace {

constexpr int kLeastLetters = 12;
constexpr int kShareSteps = 1000;
constexpr int kDecimalsOfAByte = 9;
// The mark of a button that is on, in pixels, and the button's own frame.
constexpr int kLine = 3, kEdge = 2;
constexpr double kTint = 0.22;
constexpr double kTowardsText = 0.4;

int power_above(int value, int most) {
  int power = 1;
  while (power <= value && power <= most / 2) power *= 2;
  return power > value ? power : most;
}

int power_below(int value, int least) {
  int power = 1;
  while (power * 2 < value && power < (1 << 30)) power *= 2;
  return value <= 1 ? least : power;
}

class WheelFilter : public QObject {
 public:
  explicit WheelFilter(QWidget* field) : QObject(field), field_(field) {}

  bool eventFilter(QObject* watched, QEvent* event) override {
    if (event->type() != QEvent::Wheel || field_->hasFocus())
      return QObject::eventFilter(watched, event);
    // The view around the field takes the event.
    event->ignore();
    return true;
  }

 private:
  QWidget* field_;
};

class SeparatorFilter : public QObject {
 public:
  using QObject::QObject;

  bool eventFilter(QObject* watched, QEvent* event) override {
    // A field loses the focus once more as it is destroyed, when it is no spin box any more.
    if (auto* field = qobject_cast<QAbstractSpinBox*>(watched)) {
      if (event->type() == QEvent::FocusIn) field->setGroupSeparatorShown(false);
      if (event->type() == QEvent::FocusOut && leaves(*static_cast<QFocusEvent*>(event))) {
        // The new text is that of the value, which what was typed is to become first.
        field->interpretText();
        field->setGroupSeparatorShown(true);
      }
    }
    return QObject::eventFilter(watched, event);
  }

 private:
  // A menu of the field, or another window, takes the focus only for a while.
  static bool leaves(const QFocusEvent& event) {
    return event.reason() != Qt::PopupFocusReason && event.reason() != Qt::ActiveWindowFocusReason;
  }
};

class LetterFilter : public QObject {
 public:
  LetterFilter(QWidget* widget, std::function<void()> fit)
      : QObject(widget), fit_(std::move(fit)) {}

  bool eventFilter(QObject* watched, QEvent* event) override {
    if (event->type() == QEvent::FontChange) fit_();
    return QObject::eventFilter(watched, event);
  }

 private:
  std::function<void()> fit_;
};

// The pixels of a row besides its letters.
constexpr int kAroundLetters = 7;

// True for a number with a letter of thousands or millions, or with a fraction that one may follow.
bool is_abbreviated(const QString& typed) {
  static const QRegularExpression kForm(u"^\\d[\\d,]*(?:\\.\\d*\\s*[kKMBT]?|\\s*[kKMBT])$"_s);
  return kForm.match(typed).hasMatch();
}

}  // namespace

QLabel* wrapped_label(const QString& name) {
  auto* label = named<QLabel>(name);
  label->setWordWrap(true);
  return label;
}

QToolButton* tool_button(const QString& name, const QString& text, const QString& tip) {
  auto* button = named<QToolButton>(name);
  button->setText(text);
  button->setToolTip(tip);
  return button;
}

void set_text_colour(QWidget& widget, const QColor& colour) {
  QPalette colours = widget.palette();
  colours.setColor(QPalette::WindowText, colour);
  widget.setPalette(colours);
}

void make_bold(QWidget& widget) {
  QFont bold = widget.font();
  bold.setBold(true);
  widget.setFont(bold);
}

ShareBar::ShareBar(QWidget* parent) : QProgressBar(parent) {
  setRange(0, kShareSteps);
  setTextVisible(false);
  setFixedWidth(140);
}

void ShareBar::begin() {
  setValue(0);
  show();
}

std::function<void(double)> ShareBar::reporter() {
  return [bar = QPointer(this)](double share) {
    QMetaObject::invokeMethod(
        qApp,
        [bar, share] {
          if (bar) bar->setValue(static_cast<int>(share * kShareSteps));
        },
        Qt::QueuedConnection);
  };
}

QTableWidget* text_table_widget(const QString& name) {
  auto* table = named<QTableWidget>(name);
  table->setSelectionBehavior(QAbstractItemView::SelectRows);
  table->setTabKeyNavigation(false);
  table->verticalHeader()->hide();
  fit_rows_to_letters(*table);
  table->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  table->setShowGrid(false);
  return table;
}

void show_table(QTableWidget& widget, const TextTable& table) {
  widget.clear();
  widget.setColumnCount(static_cast<int>(table.header.size()));
  widget.setRowCount(static_cast<int>(table.rows.size()));
  widget.setHorizontalHeaderLabels(table.header);
  for (int row = 0; row < widget.rowCount(); ++row) {
    for (int column = 0; column < widget.columnCount(); ++column) {
      const QString& text = table.rows[static_cast<std::size_t>(row)][column];
      auto* item = new QTableWidgetItem(text);
      item->setFlags(Qt::ItemIsEnabled | Qt::ItemIsSelectable);
      if (column > 0) item->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
      item->setToolTip(text);
      widget.setItem(row, column, item);
    }
  }
  widget.scrollToTop();
}

HintLabel::HintLabel(const QString& text, QWidget* parent) : QLabel(text, parent) {
  setWordWrap(true);
  restyle();
}

void HintLabel::changeEvent(QEvent* event) {
  QLabel::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) restyle();
}

void HintLabel::restyle() {
  QPalette colours = palette();
  const QColor muted = colours_for(colours).muted_text;
  if (colours.color(QPalette::WindowText) == muted) return;
  colours.setColor(QPalette::WindowText, muted);
  setPalette(colours);
}

ElidedLabel::ElidedLabel(QWidget* parent) : QLabel(parent) {
  setTextFormat(Qt::PlainText);
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
}

void ElidedLabel::show_text(const QString& text) {
  setText(text);
  setToolTip(text);
}

QSize ElidedLabel::minimumSizeHint() const {
  const int letters = fontMetrics().averageCharWidth() * kLeastLetters;
  return {qMin(letters, sizeHint().width()), QLabel::minimumSizeHint().height()};
}

void ElidedLabel::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const QString shown = fontMetrics().elidedText(text(), Qt::ElideRight, contentsRect().width());
  style()->drawItemText(&painter, contentsRect(), Qt::AlignVCenter | Qt::AlignLeft, palette(),
                        isEnabled(), shown, foregroundRole());
}

ToggleButton::ToggleButton(QWidget* parent) : QToolButton(parent) {
  setCheckable(true);
}

void ToggleButton::paintEvent(QPaintEvent* event) {
  QToolButton::paintEvent(event);
  if (!isChecked()) return;
  QPainter painter(this);
  const QRect inside = rect().adjusted(kEdge, kEdge, -kEdge, -kEdge);
  const QColor tint = palette().color(QPalette::Highlight);
  // The text stands out from the button in every theme, so the line takes some of its colour.
  const QColor line = mixed_colour(tint, palette().color(QPalette::ButtonText), kTowardsText);
  painter.fillRect(inside, faded(tint, kTint));
  painter.fillRect(inside.left(), inside.bottom() - kLine + 1, inside.width(), kLine, line);
}

GigabyteSpinBox::GigabyteSpinBox(QWidget* parent) : QDoubleSpinBox(parent) {
  setDecimals(kDecimalsOfAByte);
  setSuffix(tr(" GB"));
}

QString GigabyteSpinBox::textFromValue(double value) const {
  QLocale plain = locale();
  plain.setNumberOptions(plain.numberOptions() | QLocale::OmitGroupSeparator);
  return plain.toString(value, 'f', QLocale::FloatingPointShortest);
}

PowerSpinBox::PowerSpinBox(QWidget* parent) : QSpinBox(parent) {
  separate_thousands(*this);
}

void PowerSpinBox::set_unit(const QString& unit, const QString& unit_of_one) {
  const auto follow = [=, this](int count) { setSuffix(count == 1 ? unit_of_one : unit); };
  connect(this, &QSpinBox::valueChanged, this, follow);
  follow(value());
}

void PowerSpinBox::stepBy(int steps) {
  interpretText();
  int next = value();
  for (; steps > 0; --steps) next = power_above(next, maximum());
  for (; steps < 0; ++steps) next = power_below(next, minimum());
  setValue(next);
}

QString PowerSpinBox::typed_of(const QString& text) const {
  const bool has_unit = !suffix().isEmpty() && text.endsWith(suffix());
  return (has_unit ? text.chopped(suffix().size()) : text).trimmed();
}

QValidator::State PowerSpinBox::validate(QString& input, int& position) const {
  const QString word = specialValueText(), typed = typed_of(input);
  if (!word.isEmpty() && !typed.isEmpty() && word.startsWith(typed, Qt::CaseInsensitive))
    return typed.size() == word.size() ? QValidator::Acceptable : QValidator::Intermediate;
  if (is_abbreviated(typed))
    return abbreviated_count(typed) ? QValidator::Acceptable : QValidator::Intermediate;
  return QSpinBox::validate(input, position);
}

std::optional<int> PowerSpinBox::abbreviated_count(const QString& typed) const {
  const auto count = parse_count(typed.toStdString());
  if (!count || *count < minimum() || *count > maximum()) return std::nullopt;
  return static_cast<int>(*count);
}

int PowerSpinBox::valueFromText(const QString& text) const {
  const QString word = specialValueText();
  const QString typed = typed_of(text);
  if (!word.isEmpty() && word.compare(typed, Qt::CaseInsensitive) == 0) return minimum();
  if (is_abbreviated(typed)) return abbreviated_count(typed).value_or(value());
  return QSpinBox::valueFromText(text);
}

void separate_thousands(QAbstractSpinBox& field) {
  field.setGroupSeparatorShown(true);
  field.installEventFilter(new SeparatorFilter(&field));
}

void follow_letters(QWidget& widget, std::function<void()> fit) {
  fit();
  widget.installEventFilter(new LetterFilter(&widget, std::move(fit)));
}

void fit_rows_to_letters(QTableView& table) {
  follow_letters(table, [&table] {
    table.verticalHeader()->setDefaultSectionSize(table.fontMetrics().height() + kAroundLetters);
  });
}

void leave_wheel_to_scrolling(QWidget& field) {
  field.setFocusPolicy(Qt::StrongFocus);
  field.installEventFilter(new WheelFilter(&field));
}

QString ask_for_file(QWidget* parent, const QString& title, const QString& suggestion,
                     const QString& filter, const QString& suffix) {
  QFileDialog dialog(parent, title, QString(), filter);
  dialog.setAcceptMode(QFileDialog::AcceptSave);
  dialog.setDefaultSuffix(suffix);
  dialog.selectFile(suggestion);
  return dialog.exec() == QDialog::Accepted ? dialog.selectedFiles().front() : QString();
}

}  // namespace shardwright::gui
